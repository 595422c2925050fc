"""The rows of a read as a stream: threads read file slices ahead of the consumer."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from hoodie.engine import LocalEngine
from hoodie.engine.ahead import ahead, reader_of
from hoodie.errors import InvalidConfigError
from hoodie.files.slices import FileSlice
from hoodie.read.local import SliceScan
from hoodie.read.plan import ScanPlan

_WAITING = 2
"""Batches of each thread that wait for the consumer."""


def read_batches(
    plan: ScanPlan, batch_rows: int | None = None, *, scan: SliceScan | None = None
) -> pa.RecordBatchReader:
    """Return the rows of a scan as a stream, in no defined order.

    `batch_rows`: the most rows of a batch, at least 1; None for batches as they are read. `scan`: other rules to read
    the slices of the plan by; its columns are those of the batches.

    Memory: for each thread what `SliceScan.batches` holds, and three batches. Raises: InvalidConfigError for another
    `batch_rows`; as `SliceScan.of` now, and errors of files while the stream is read.
    """
    if batch_rows is not None and batch_rows < 1:
        raise InvalidConfigError(f"batch_rows={batch_rows}: expected a whole number from 1")
    scan = scan or SliceScan.of(plan)
    schema = scan.output_schema
    return reader_of(schema, _batches(plan, scan, batch_rows))


def _batches(plan: ScanPlan, scan: SliceScan, batch_rows: int | None) -> Iterator[pa.RecordBatch]:
    def read(found: FileSlice) -> Iterator[pa.RecordBatch]:
        return scan.batches(plan.view.store, found)

    # Slices with log files take longest: a thread that begins with them does not end last.
    slices = sorted(plan.slices, key=lambda found: not found.log_files)
    threads = min(LocalEngine().threads, len(slices))
    if threads == 0:
        return
    rows = ahead((partial(read, file_slice) for file_slice in slices), threads=threads, waiting=threads * _WAITING)
    for batch in rows:
        for start in range(0, batch.num_rows, batch_rows or max(batch.num_rows, 1)):
            yield batch.slice(start, batch_rows)
