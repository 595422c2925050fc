"""The rows of a write in Arrow files, one for each task of another program that had them; the write reads them once.

The folder of the files names no process: the processes that plan, fill and commit such a write are different ones, and
each may end before the write does. It counts as dead, and a later write deletes it, if no file of it is younger than a
day (`is_dead_stage_folder`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from hoodie.files.markers import TEMP_FOLDER
from hoodie.files.staging.staged import STAGE_PREFIX
from hoodie.storage import Store, StoreSpec, open_store

_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


def new_row_folder() -> str:
    """Return the path of a new folder for the rows of one write; nothing is created."""
    return f"{TEMP_FOLDER}/{STAGE_PREFIX}rows-{uuid.uuid4().hex}"


def write_row_file(store: Store, folder: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> str | None:
    """Write batches to a new file of the folder, in the types of the schema; return its path, None without rows.

    Each call, so each attempt of a task, has a file of its own. Memory: one batch.
    """
    rows = (batch.cast(schema) for batch in batches if batch.num_rows)
    first = next(rows, None)
    if first is None:
        return None
    path = f"{folder}/{uuid.uuid4().hex}.arrow"
    with store.open_output(path) as sink, pa.ipc.new_file(sink, schema, options=_OPTIONS) as writer:
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
