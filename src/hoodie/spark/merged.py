"""Read slices with log files in Spark: Python workers merge them and return Arrow batches."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hoodie.files.slices import FileSlice
from hoodie.format.schema.conform import conform
from hoodie.read.local import SliceScan
from hoodie.read.slice_groups import balanced
from hoodie.spark.engine import SparkEngine
from hoodie.spark.tasks import Batches, each_in_a_task, packed_tasks
from hoodie.spark.types import arrow_schema_of
from hoodie.storage import Store, StoreSpec, open_store

_TASK_BYTES_MIN = 4 * 1024 * 1024
_TASK_BYTES_MAX = 16 * 1024 * 1024
"""Bytes of files for a Spark task: each task has an overhead of about 50 ms of a core."""
_BATCH_ROWS = 64 * 1024
_BATCH_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SliceReader:
    """The reader of slices in workers. Picklable; `schema` has the types that Spark expects."""

    store: StoreSpec
    scan: SliceScan
    schema: pa.Schema

    def batches(self, slices: tuple[FileSlice, ...]) -> Batches:
        """Read the rows of the slices in batches of bounded size. Memory: as `SliceScan.batches` of one slice."""
        store = open_store(self.store)
        for found in slices:
            yield from self._batches_of(store, found)

    def _batches_of(self, store: Store, found: FileSlice) -> Batches:
        for batch in self.scan.batches(store, found):
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


def read_merged(session: Any, store: StoreSpec, slices: tuple[FileSlice, ...], scan: SliceScan, schema: Any) -> Any:
    """Return the rows of the slices as a DataFrame of this Spark schema; its columns must be those of the scan."""
    reader = SliceReader(store, scan, arrow_schema_of(schema))

    def work(number: int, packed: bytes) -> Batches:
        yield from reader.batches(pickle.loads(packed))

    return each_in_a_task(session, packed_tasks(balanced(slices, _task_bytes(session, slices))), work, schema)


def _task_bytes(session: Any, slices: tuple[FileSlice, ...]) -> int:
    """Return the bytes of files for each task: the tasks keep all cores busy, within the bounds of this module."""
    total = sum(found.size_bytes for found in slices)
    if total <= _TASK_BYTES_MIN:
        return _TASK_BYTES_MIN
    return min(max(-(-total // SparkEngine(session).parallelism), _TASK_BYTES_MIN), _TASK_BYTES_MAX)
