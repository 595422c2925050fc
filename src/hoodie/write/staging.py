"""Stage a write's changes: evaluate the caller's data once, validate it, and spill it in runs of one partition each."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import Dataset, Engine, Exchange, TaskContext
from hoodie.files.staged import StagedRun, StageWriter
from hoodie.records.change import change_schema
from hoodie.records.merge import RecordMerger
from hoodie.storage import StoreSpec, open_store
from hoodie.write.prepare import BUCKET, ROW_NUMBER, Preparation


def stage(
    engine: Engine, data: Dataset, preparation: Preparation, store: StoreSpec, folder: str, merger: RecordMerger | None
) -> tuple[StagedRun, ...]:
    """Stage all rows under `folder`; the runs come back with their ordinals, in the order of the input.

    `merger`: where keys are unique in the whole table, rows of one key must meet before anything else, since they may
    name different partitions; then the preparation has buckets.
    """
    exchange = Exchange(bucket_by=BUCKET, tasks=preparation.buckets) if preparation.buckets else None
    consume = _Stage(store, folder, change_schema(preparation.schema), merger)
    runs: list[StagedRun] = engine.process(data, preparation, preparation.prepared_schema, consume, exchange)
    start = 0
    numbered = []
    for run in runs:
        numbered.append(dataclasses.replace(run, start=start))
        start += run.rows
    return tuple(numbered)


@dataclass(frozen=True, slots=True)
class _Stage:
    """Worker: write the change batches of one task to one IPC file of this attempt's own."""

    store: StoreSpec
    folder: str
    schema: pa.Schema
    merger: RecordMerger | None

    def __call__(self, batches: Iterator[pa.RecordBatch], context: TaskContext) -> list[StagedRun]:
        """Memory: 64 MiB; with a rule, the rows of the bucket."""
        path = f"{self.folder}/rows-{context.partition}-{context.stage}-{context.attempt}.arrow"
        writer = StageWriter(open_store(self.store), path, self.schema)
        for batch in batches if self.merger is None else self._reduced(batches, self.merger):
            writer.write(batch)
        return writer.close()

    def _reduced(self, batches: Iterator[pa.RecordBatch], merger: RecordMerger) -> list[pa.RecordBatch]:
        gathered = list(batches)
        if not gathered:
            return []
        rows = pa.Table.from_batches(gathered)
        ordered = rows.take(pc.sort_indices(rows[ROW_NUMBER])).select(self.schema.names).cast(self.schema)
        batches_out: list[pa.RecordBatch] = merger.reduce(ordered, across_partitions=True).combine_chunks().to_batches()
        return batches_out
