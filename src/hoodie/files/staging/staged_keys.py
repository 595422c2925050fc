"""Stage the keys of a write's rows in separate files, in groups by index file group, for an index by key.

The task of an index file group reads only its group, so that a look-up needs no shuffle and reads no whole rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.files.staging.staged import StageReader, compressed_writer, staged_output
from hoodie.format.hashes.java_hash import file_group_index
from hoodie.records.change import LEADING, RECORD_KEY
from hoodie.storage import Store

GROUPS_MAX = 64
"""Maximum number of groups of one file: a few dozen tasks are enough for a cluster, and tiny batches are slow."""

ROW = "#row"
"""Column with the ordinals of the rows among all staged rows of the write."""
PLACE = "#place"
"""Column with numbers that ascend in the order of the caller's data: staging changes the order of rows."""

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class KeyGroups:
    """Assigns keys to groups: all keys of index file group number `n` are in group `n % count`. Picklable."""

    buckets: int
    """Number of index file groups."""

    @property
    def count(self) -> int:
        """Number of groups."""
        return min(self.buckets, GROUPS_MAX)

    def split(self, keys: pa.StringArray) -> Iterator[tuple[int, Rows]]:
        """Yield each group that has keys, with its row numbers; inside a group the order is kept."""
        # NumPy sorts one-byte numbers by counting them.
        groups = (file_group_index(keys, self.buckets) % self.count).astype(np.uint8)
        order = np.argsort(groups, kind="stable")
        bounds = np.searchsorted(groups[order], np.arange(self.count + 1))
        for group in range(self.count):
            if bounds[group] < bounds[group + 1]:
                yield group, order[bounds[group] : bounds[group + 1]]


@dataclass(frozen=True, slots=True)
class KeyStage:
    """Options for staged keys: their groups, and further columns of the change batches that the index reads."""

    groups: KeyGroups
    columns: tuple[str, ...] = ()

    def schema(self, changes: pa.Schema) -> pa.Schema:
        """Return the schema of staged keys: the leading columns, the further columns, `ROW` and `PLACE`."""
        names = list(dict.fromkeys([*LEADING, *self.columns]))
        numbers = [pa.field(name, pa.int64(), False) for name in (ROW, PLACE)]
        return pa.schema([*(changes.field(name) for name in names), *numbers])


@dataclass(frozen=True, slots=True)
class StagedKeys:
    """Keys of one group: record batch `batch` of `path`. `start` is the ordinal of the first row of their file."""

    path: str
    batch: int
    group: int
    rows: int
    start: int = 0


class KeyWriter:
    """Writes the keys of one task's staged rows to one IPC file. Memory: the keys since the last flush."""

    def __init__(self, store: Store, path: str, changes: pa.Schema, stage: KeyStage) -> None:
        self._path = path
        self._stage = stage
        self._schema = stage.schema(changes)
        self._sink = staged_output(store, path)
        self._writer: pa.ipc.RecordBatchFileWriter | None = None
        self._pending: list[pa.RecordBatch] = []
        self._rows = 0
        self._written: list[StagedKeys] = []

    @property
    def columns(self) -> list[str]:
        """The columns of staged rows that it reads."""
        names: list[str] = self._schema.names[:-2]
        return names

    def add(self, batch: pa.RecordBatch, places: pa.Int64Array) -> None:
        """Add the keys of staged rows; see `RowListener.add`."""
        numbers = pa.array(np.arange(self._rows, self._rows + batch.num_rows))
        self._rows += batch.num_rows
        columns = [batch.column(name) for name in self.columns]
        self._pending.append(pa.RecordBatch.from_arrays([*columns, numbers, places], schema=self._schema))

    def flush(self) -> None:
        """Write the added keys, in groups."""
        if not self._pending:
            return
        rows = pa.Table.from_batches(self._pending, self._schema).combine_chunks()
        self._pending = []
        writer = self._writer = self._writer or compressed_writer(self._sink, self._schema, rows.nbytes)
        for group, members in self._stage.groups.split(rows[RECORD_KEY].combine_chunks()):
            writer.write_batch(rows.take(pa.array(members)).combine_chunks().to_batches()[0])
            self._written.append(StagedKeys(self._path, len(self._written), group, len(members)))

    def close(self) -> list[StagedKeys]:
        """Finish the file and return its staged keys."""
        self.flush()
        (self._writer or compressed_writer(self._sink, self._schema, 0)).close()
        self._sink.close()
        return self._written


def read_keys(store: Store, found: Sequence[StagedKeys]) -> pa.Table:
    """Read staged keys as one table; `ROW` and `PLACE` are numbered over all files of the write."""
    batches = []
    with StageReader(store) as reader:
        for keys in found:
            batch = reader.read_batch(keys.path, keys.batch)
            for name in (ROW, PLACE):
                numbers = pa.array(np.asarray(batch.column(name)) + keys.start)
                batch = batch.set_column(batch.schema.get_field_index(name), batch.schema.field(name), numbers)
            batches.append(batch)
    return pa.Table.from_batches(batches).combine_chunks()
