"""Stage the source of a merge in files, so that it is evaluated once, however often its rows are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hoodie.engine import Dataset, Engine, TaskContext
from hoodie.files.staging.staged import new_staged_file, staged_input
from hoodie.format.schema.conform import conform
from hoodie.storage import Store, StoreSpec, explained, open_store


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The rows of one task, in an Arrow IPC file. `size_bytes`: their size in memory."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class StagedSource:
    """The staged rows of a source, in the order of its tasks. Picklable."""

    store: StoreSpec
    schema: pa.Schema
    files: tuple[SourceFile, ...]

    @property
    def size_bytes(self) -> int:
        """The size of all rows in memory."""
        return sum(file.size_bytes for file in self.files)

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all rows, or some of their columns, in the order of the schema. Memory: the result."""
        wanted = set(self.schema.names if columns is None else columns)
        kept = [number for number, name in enumerate(self.schema.names) if name in wanted]
        schema = pa.schema([self.schema.field(number) for number in kept])
        batches = [batch for file in self.files for batch in self.batches(file, kept)]
        return pa.Table.from_batches(batches, schema)

    def batches(self, file: SourceFile, columns: Sequence[int] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a file; `columns`: the numbers of the columns to read, None for all."""
        options = pa.ipc.IpcReadOptions(included_fields=None if columns is None else list(columns))
        store = open_store(self.store)
        with explained(store.uri(file.path)), staged_input(store, file.path) as opened:
            reader = pa.ipc.open_file(opened, options=options)
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)


def stage_source(engine: Engine, data: Dataset, store: Store, folder: str) -> StagedSource:
    """Write all rows of a source under the folder. Raises: as `Engine.process`; StorageError."""
    schema = pa.schema([field.with_nullable(True) for field in data.schema])
    stage = _Stage(store.spec, folder, schema)
    files: list[SourceFile] = engine.process(data, lambda batches, _: batches, schema, stage)
    return StagedSource(store.spec, schema, tuple(files))


@dataclass(frozen=True, slots=True)
class _Stage:
    """Callable for workers: write the batches of one task attempt to a file of its own."""

    store: StoreSpec
    folder: str
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch], context: TaskContext) -> list[SourceFile]:
        """Write the batches. Memory: one batch."""
        store = open_store(self.store)
        path = f"{self.folder}/source-{context.partition}-{context.stage}-{context.attempt}.arrow"
        rows = size_bytes = 0
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with new_staged_file(store, path) as sink, pa.ipc.new_file(sink, self.schema, options=options) as writer:
            for batch in batches:
                with explained(store.uri(self.folder)):
                    writer.write_batch(conform(batch, self.schema))
                rows, size_bytes = rows + batch.num_rows, size_bytes + batch.nbytes
        return [SourceFile(path, size_bytes)] if rows else []
