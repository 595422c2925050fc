"""The rows of a write in Arrow files, one for each task of another program that had them; the write reads them once.

The processes that plan, fill and commit such a write are different ones, and each may end before the write does. The
folder of the files names a process that lives as long as their program, if there is one on this machine: without it the
write is dead. It also counts as dead if no file of it is younger than a day (`is_dead_stage_folder`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from hoodie.files.markers import TEMP_FOLDER
from hoodie.files.staging.staged import STAGE_PREFIX, compressed_writer, new_staged_file
from hoodie.format.filenames import name_of
from hoodie.format.schema.plain_types import valid_batches
from hoodie.storage import Store, StoreSpec, open_store
from hoodie.timeline.owner import Owner

_UNOWNED: Final = f"{STAGE_PREFIX}rows-"


def new_row_folder(pid: int | None = None) -> str:
    """Return the path of a new folder for the rows of one write, which ends before the process `pid` of this machine.

    Nothing is created.
    """
    owner = f"{_UNOWNED}{uuid.uuid4().hex}" if pid is None else f"{STAGE_PREFIX}{Owner.new(pid=pid).short_name}"
    return f"{TEMP_FOLDER}/{owner}"


def is_unowned_row_folder(folder: str) -> bool:
    """Return whether the folder is one of `new_row_folder` without a process."""
    return name_of(folder).startswith(_UNOWNED)


def write_row_file(store: Store, folder: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> str | None:
    """Write batches to a new file of the folder, in the types of the schema; return its path, None without rows.

    Each call, so each attempt of a task, has a file of its own. Memory: one batch.

    Raises: SchemaMismatchError: a text is not valid UTF-8; names column and row.
    """
    rows = (batch.cast(schema) for batch in valid_batches(batches) if batch.num_rows)
    first = next(rows, None)
    if first is None:
        return None
    path = f"{folder}/{uuid.uuid4().hex}.arrow"
    with new_staged_file(store, path) as sink, compressed_writer(sink, schema, first.nbytes) as writer:
        writer.write_batch(first)
        for batch in rows:
            writer.write_batch(batch)
    return path


@dataclass(frozen=True, slots=True)
class RowFiles:
    """Rows in files of `write_row_file`, as a dataset of the in-process engine."""

    store: StoreSpec
    schema: pa.Schema
    paths: tuple[str, ...]

    def parts(self, count: int) -> list[Iterator[pa.RecordBatch]]:
        """Return up to `count` streams that together contain every row of every file. Memory: a batch of each."""
        number = max(min(count, len(self.paths)), 1)
        return [self._batches(self.paths[start::number]) for start in range(number)]

    def _batches(self, paths: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        store = open_store(self.store)
        for path in paths:
            with store.open_input(path) as source, pa.ipc.open_file(source) as reader:
                for number in range(reader.num_record_batches):
                    yield reader.get_batch(number)
