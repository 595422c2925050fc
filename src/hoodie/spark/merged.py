"""Read slices with log files in Python workers of Spark, which merge them and return Arrow batches."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hoodie.engine.packing import Item, balanced, file_bytes
from hoodie.files.slices import FileSlice
from hoodie.format.schema.conform import conform
from hoodie.read.local import SliceScan
from hoodie.spark.engine import SparkEngine
from hoodie.spark.tasks import Batches, each_in_a_task, packed_tasks
from hoodie.storage import Store, StoreSpec, open_store

_TASK_BYTES_MIN = 4 * 1024 * 1024
_TASK_BYTES_MAX = 16 * 1024 * 1024
"""Bytes of files for a Spark task: each task has an overhead of about 50 ms of a core."""
_KEY_SHARE = 4
"""Estimated bytes of a base file per byte of its record keys."""
_BATCH_ROWS = 64 * 1024
_BATCH_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SliceReader:
    """The reader of slices in workers. Picklable; `schema` has the types that Spark expects.

    `only_logged`: of slices with a base file, only the rows that come from logs are read.
    """

    store: StoreSpec
    scan: SliceScan
    schema: pa.Schema
    only_logged: bool = False

    def batches(self, slices: tuple[FileSlice, ...]) -> Batches:
        """Read the rows of the slices in batches of bounded size. Memory: as `SliceScan.batches` of one slice."""
        store = open_store(self.store)
        for found in slices:
            yield from self._batches_of(store, found)

    def _batches_of(self, store: Store, found: FileSlice) -> Batches:
        logged = self.only_logged and found.base_file is not None
        batches = self.scan.logged_batches if logged else self.scan.batches
        for batch in batches(store, found):
            conformed = conform(batch, self.schema, stored=True)
            yield from pieces(conformed)


def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Split a batch into batches of at most 65,536 rows and about 16 MiB, which limits the memory of the JVM.

    Each batch has at least one row.
    """
    row_bytes = max(batch.nbytes // max(batch.num_rows, 1), 1)
    step = max(min(_BATCH_ROWS, _BATCH_BYTES // row_bytes), 1)
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


def read_merged(session: Any, slices: Sequence[FileSlice], reader: SliceReader, schema: Any) -> Any:
    """Return the rows of the slices as a DataFrame of this Spark schema; its columns must be those of the reader."""

    def merged_rows(group: tuple[FileSlice, ...]) -> Batches:
        yield from reader.batches(group)

    size_of = decisive_bytes if reader.only_logged else file_bytes
    return by_groups(session, slices, size_of, merged_rows, schema)


def decisive_bytes(found: FileSlice) -> int:
    """Return about how many bytes are read to decide which rows of a slice win: its logs, and keys of its base file."""
    base = 0 if found.base_file is None else found.base_file.size_bytes
    return found.size_bytes - base + base // _KEY_SHARE


def by_groups(
    session: Any,
    slices: Sequence[Item],
    size_of: Callable[[Item], int],
    read: Callable[[tuple[Item, ...]], Batches],
    schema: Any,
) -> Any:
    """Return what `read` yields for groups of slices, or of slices around commits, as a DataFrame of this Spark schema.

    Each group is read in its own task: the tasks keep all cores busy, and none is very small. `size_of` measures a
    slice. The step of Spark's plan has the name of `read`.
    """

    def work(number: int, packed: bytes) -> Batches:
        yield from read(pickle.loads(packed))

    work.__name__ = read.__name__
    total = sum(map(size_of, slices))
    size = _TASK_BYTES_MIN
    if total > _TASK_BYTES_MIN:
        size = min(max(-(-total // SparkEngine(session).parallelism), _TASK_BYTES_MIN), _TASK_BYTES_MAX)
    return each_in_a_task(session, packed_tasks(balanced(slices, size, size_of)), work, schema)
