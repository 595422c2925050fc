"""Execute scans in bounded memory: read rows as a stream, read the first rows, or count rows."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from hoodie.engine import LocalEngine, TaskContext
from hoodie.files.base_file import open_base_file
from hoodie.files.slices import FileSlice
from hoodie.read.local import SliceScan
from hoodie.read.plan import ScanPlan


def stream(plan: ScanPlan) -> pa.RecordBatchReader:
    """Return the scan's rows as a stream, slice by slice; slices without log files come first.

    Memory: as `SliceScan.batches` of one slice.
    """
    scan = SliceScan.of(plan)

    def batches() -> Iterator[pa.RecordBatch]:
        for found in sorted(plan.slices, key=lambda one: bool(one.log_files)):
            yield from scan.batches(plan.view.store, found)

    return pa.RecordBatchReader.from_batches(plan.output_schema, batches())


def first_rows(plan: ScanPlan, limit: int) -> pa.Table:
    """Return the first `limit` rows of the scan; the read stops after them. Memory: as `stream`, and the rows."""
    kept: list[pa.RecordBatch] = []
    missing = limit
    for batch in stream(plan) if limit > 0 else ():
        kept.append(batch.slice(0, min(missing, batch.num_rows)))
        missing -= kept[-1].num_rows
        if missing <= 0:
            break
    return pa.Table.from_batches(kept, plan.output_schema)


def count_rows(plan: ScanPlan) -> int:
    """Count the rows of the scan.

    If the scan has no filter, the counts of slices without log files come from Parquet footers.
    """
    scan = SliceScan.of(plan)
    store = plan.view.store

    def count(found: FileSlice, context: TaskContext) -> int:
        if scan.filters_rows or found.log_files:
            return sum(batch.num_rows for batch in scan.batches(store, found))
        assert found.base_file is not None
        with open_base_file(store, found.base_file) as (parquet, _):
            return int(parquet.metadata.num_rows)

    return sum(LocalEngine().run(count, plan.slices))
