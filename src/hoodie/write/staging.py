"""Stage a write's changes: evaluate the caller's data once, validate it, and write it to runs of one partition each."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import Dataset, Engine, Exchange, TaskContext
from hoodie.files.staging.staged import StagedRun, StageWriter
from hoodie.files.staging.staged_keys import KeyGroups, KeyStage, KeyWriter, StagedKeys
from hoodie.records.change import change_schema
from hoodie.records.keys.automatic_keys import consumer_of
from hoodie.records.merging.merge import RecordMerger
from hoodie.storage import StoreSpec, explained, open_store
from hoodie.write.prepare import BUCKET, ROW_NUMBER, Preparation


@dataclass(frozen=True, slots=True)
class Staged:
    """The staged data of one write: rows in runs, in the order of the input, and keys if the index requires them.

    `duplicates`: rows that were merged into another row with the same key before they were staged.
    """

    runs: tuple[StagedRun, ...]
    keys: tuple[StagedKeys, ...]
    key_groups: KeyGroups | None
    duplicates: int = 0

    @property
    def rows(self) -> int:
        """Return the number of staged rows."""
        return sum(run.rows for run in self.runs)


def stage(
    engine: Engine,
    data: Dataset,
    preparation: Preparation,
    store: StoreSpec,
    folder: str,
    *,
    merger: RecordMerger | None = None,
    key_stage: KeyStage | None = None,
) -> Staged:
    """Stage all rows under `folder`, and their keys if `key_stage` is given.

    `merger`: rows with the same key are merged first, in the hash buckets of the preparation. If keys are unique in the
    whole table, these rows may have different partition paths. Automatic keys are staged without their commit time.
    """
    exchange = Exchange(bucket_by=BUCKET, tasks=preparation.buckets) if preparation.buckets else None
    consume = consumer_of(
        preparation.key_source, _Stage(store, folder, change_schema(preparation.schema), merger, key_stage)
    )
    files: list[_StagedFile] = engine.process(data, preparation, preparation.prepared_schema, consume, exchange)
    start = 0
    runs: list[StagedRun] = []
    keys: list[StagedKeys] = []
    for file in files:
        keys += [dataclasses.replace(found, start=start) for found in file.keys]
        for run in file.runs:
            runs.append(dataclasses.replace(run, start=start))
            start += run.rows
    key_groups = None if key_stage is None else key_stage.groups
    return Staged(tuple(runs), tuple(keys), key_groups, sum(file.duplicates for file in files))


@dataclass(frozen=True, slots=True)
class _StagedFile:
    runs: list[StagedRun]
    keys: list[StagedKeys]
    duplicates: int


@dataclass(frozen=True, slots=True)
class _Stage:
    """Callable for workers: write the change batches of one task attempt to its own Arrow IPC file."""

    store: StoreSpec
    folder: str
    schema: pa.Schema
    merger: RecordMerger | None
    key_stage: KeyStage | None

    def __call__(self, batches: Iterator[pa.RecordBatch], context: TaskContext) -> list[_StagedFile]:
        """Stage the batches. Memory: 64 MiB; with a merger, all rows of the hash bucket."""
        store = open_store(self.store)
        attempt = f"{context.partition}-{context.stage}-{context.attempt}.arrow"
        keys = None
        if self.key_stage is not None:
            keys = KeyWriter(store, f"{self.folder}/keys-{attempt}", self.schema, self.key_stage)
        writer = StageWriter(store, f"{self.folder}/rows-{attempt}", self.schema, keys)
        duplicates = 0
        if self.merger is not None:
            gathered = list(batches)
            batches = iter(self._reduced(gathered, self.merger))
            duplicates = sum(batch.num_rows for batch in gathered)
        for batch in batches:
            duplicates -= 0 if self.merger is None else batch.num_rows
            with explained(store.uri(self.folder)):
                writer.write(batch)
        with explained(store.uri(self.folder)):
            return [_StagedFile(writer.close(), [] if keys is None else keys.close(), duplicates)]

    def _reduced(self, gathered: list[pa.RecordBatch], merger: RecordMerger) -> list[pa.RecordBatch]:
        if not gathered:
            return []
        rows = pa.Table.from_batches(gathered)
        ordered = rows.take(pc.sort_indices(rows[ROW_NUMBER])).select(self.schema.names).cast(self.schema)
        batches_out: list[pa.RecordBatch] = merger.reduce(ordered, across_partitions=True).combine_chunks().to_batches()
        return batches_out
