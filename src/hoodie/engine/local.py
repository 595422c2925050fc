"""The in-process engine: threads that run in parallel, as Arrow, Parquet and NumPy release the interpreter's lock."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie import progress
from hoodie.engine.api import Consume, Dataset, Engine, Exchange, Prepare, TaskContext
from hoodie.errors import HoodieError, InputFailedError, SchemaMismatchError
from hoodie.format.schema.plain_types import plain_batches, plain_schema
from hoodie.storage import StoreSpec

Task = TypeVar("Task")
Result = TypeVar("Result")

_PART_ROWS_MIN = 10_000
"""Minimum rows of a part: with fewer rows another thread saves no time, and creates more and smaller files."""

_JOINED_BYTES_MAX = 1 << 31
"""Bytes of a column whose chunks Arrow can join."""
_WIDE: Final = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}

_stages = itertools.count()
"""A number for every job of this process, so that the write tokens of two jobs are never equal."""


@runtime_checkable
class PartedDataset(Dataset, Protocol):
    """Rows that threads of this process read, once."""

    def parts(self, count: int) -> list[Iterator[pa.RecordBatch]]:
        """Return up to `count` streams that together contain every row."""
        ...


@dataclass(frozen=True, slots=True)
class ArrowDataset:
    """A reader of record batches that can be read once, or a table in memory. The door by which rows come in.

    Its batches have plain types, and their texts are valid UTF-8 (`format/schema/plain_types.py`). `untyped`: names of
    columns whose type was inferred from their values. `is_computed`: the rows are results of this package, which are
    passed on as they are.
    """

    source: pa.RecordBatchReader | pa.Table
    untyped: frozenset[str] = frozenset()
    is_computed: bool = False

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the batches. Raises: UnsupportedError: columns nest too deep."""
        return self.source.schema if self.is_computed else plain_schema(self.source.schema)

    def parts(self, count: int) -> list[Iterator[pa.RecordBatch]]:
        """Return up to `count` streams that together contain every row: slices of a table, or the one reader.

        Their batches raise: SchemaMismatchError: a value has no plain type, a text is not valid UTF-8, or the reader
        fails.
        """
        if isinstance(self.source, pa.RecordBatchReader):
            return [self._plain(_batches(self.source), 0)]
        rows = self.source.num_rows
        step = max(-(-rows // count), _PART_ROWS_MIN)
        starts = range(0, max(rows, 1), step)
        return [self._plain(iter(self.source.slice(start, step).to_batches()), start) for start in starts]

    def table(self) -> pa.Table:
        """Return all rows. Memory: all rows. Raises: as the batches of `parts`."""
        return pa.Table.from_batches([batch for part in self.parts(1) for batch in part], self.schema)

    def _plain(self, batches: Iterator[pa.RecordBatch], row: int) -> Iterator[pa.RecordBatch]:
        schema = self.schema
        for batch in batches:
            yield from (batch,) if self.is_computed else plain_batches(batch, schema, row)
            row += batch.num_rows


def known_bytes_of(data: Dataset) -> int | None:
    """Return the bytes of rows that are a table in memory; None for other data."""
    return data.source.nbytes if isinstance(data, ArrowDataset) and isinstance(data.source, pa.Table) else None


@contextmanager
def errors_of_input() -> Iterator[None]:
    """Raise errors of the caller's data, which may run any code, as errors of this package.

    Raises: InputFailedError.
    """
    try:
        yield
    except (HoodieError, MemoryError):
        raise
    except Exception as error:
        raise _input_failed(error) from error


def _input_failed(error: Exception, place: str = "") -> InputFailedError:
    reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return InputFailedError(f"the data cannot be read{place} ({reason}); nothing was written")


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """Runs tasks on threads of this process.

    Memory: an exchange holds all prepared rows in memory, as the caller's Arrow data usually is in memory already.
    Without an exchange a stream is processed batch by batch; use that for streams that do not fit in memory.
    """

    threads: int = os.cpu_count() or 1
    waiting: int = 0
    """How many tasks run at once at least: more than `threads` if they mostly wait for a storage."""

    @property
    def parallelism(self) -> int:
        """Number of threads."""
        return self.threads

    def run(
        self,
        function: Callable[[Task, TaskContext], Result],
        tasks: Sequence[Task],
        sizes: Sequence[int] | None = None,
    ) -> list[Result]:
        """Call the function for every task on the threads; the first error cancels waiting tasks and is raised.

        `sizes` change nothing.
        """
        stage = next(_stages)
        contexts = [TaskContext(number, stage, 0) for number in range(len(tasks))]
        threads = max(self.threads, self.waiting)
        if len(tasks) <= 1 or threads <= 1:
            return [function(task, context) for task, context in zip(tasks, contexts, strict=True)]
        with ThreadPoolExecutor(min(threads, len(tasks))) as pool:
            futures = [pool.submit(function, task, context) for task, context in zip(tasks, contexts, strict=True)]
            try:
                for done, future in enumerate(as_completed(futures), 1):
                    future.result()
                    progress.report(done, len(futures))
                return [future.result() for future in futures]
            except BaseException:
                for future in futures:
                    future.cancel()
                raise

    def process(
        self,
        data: Dataset,
        prepare: Prepare,
        prepared_schema: pa.Schema,
        consume: Consume[Result],
        exchange: Exchange | None = None,
    ) -> list[Result]:
        """See `Engine.process`."""
        if not isinstance(data, ArrowDataset | PartedDataset):
            raise TypeError(f"the in-process engine accepts only Arrow data, got {type(data).__name__}")
        parts = data.parts(self.threads)
        if exchange is None:
            found = self.run(lambda part, context: list(consume(prepare(part, context), context)), parts)
        else:
            prepared = self.run(lambda part, context: list(prepare(part, context)), parts)
            table = pa.Table.from_batches(itertools.chain.from_iterable(prepared), prepared_schema)
            exchanged = _exchange(table, exchange, self.threads)
            found = self.run(lambda part, context: list(consume(iter(part.to_batches()), context)), exchanged)
        return [result for results in found for result in results]


_WAITING_THREADS: Final = 16
_WAITING_BYTES_MAX: Final = 64 * 1024 * 1024
"""More bytes keep the cores busy, and each thread holds some of them in memory."""
_LITTLE_BYTES_MAX: Final = 256 * 1024
"""Threads save no time on fewer bytes: most of the work is Python code, and one thread runs it at a time."""


def engine_beside(spec: StoreSpec, work_bytes: int) -> LocalEngine:
    """Return the engine of work on so many bytes: more threads if they mostly wait, one thread for little work."""
    if spec.is_remote and work_bytes <= _WAITING_BYTES_MAX:
        return LocalEngine(waiting=_WAITING_THREADS)
    return LocalEngine(threads=1) if work_bytes <= _LITTLE_BYTES_MAX else LocalEngine()


def local_engine(work_bytes: int) -> Engine:
    """Return the engine that uses threads of this process, for any amount of work."""
    return LocalEngine()


def _batches(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a reader. Raises: SchemaMismatchError: Arrow cannot read one of them; InputFailedError."""
    rows = 0
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except pa.ArrowException as error:
            raise SchemaMismatchError(f"the data: Arrow cannot read the rows from row {rows:,} on ({error})") from error
        except (HoodieError, MemoryError):
            raise
        except Exception as error:  # of a reader that runs code of the caller
            raise _input_failed(error, f" from row {rows:,} on") from error
        yield batch
        rows += batch.num_rows


def _exchange(table: pa.Table, exchange: Exchange, threads: int) -> list[pa.Table]:
    """Split a table into the parts that the consume tasks receive."""
    if exchange.range_by:
        ordered = _sorted(table, (*exchange.range_by, *exchange.sort_by))
        count = exchange.tasks or threads
        step = max(-(-ordered.num_rows // count), 1)
        return [ordered.slice(start, step) for start in range(0, max(ordered.num_rows, 1), step)]
    if exchange.bucket_by is None:
        return [_sorted(table, exchange.sort_by)]
    count = exchange.tasks or threads
    buckets = np.asarray(table[exchange.bucket_by].combine_chunks()) % count
    parts = [_taken(table, pa.array(np.flatnonzero(buckets == bucket))) for bucket in range(count)]
    return [_sorted(part, exchange.sort_by) for part in parts if part.num_rows]


def _sorted(table: pa.Table, columns: tuple[str, ...]) -> pa.Table:
    """Return the table sorted by the columns; equal rows keep their order."""
    if not columns:
        return table
    keyed = table.select(list(dict.fromkeys(columns))).append_column("#", pa.array(np.arange(table.num_rows)))
    keys = [(name, "ascending") for name in dict.fromkeys(columns)]
    return _taken(table, pc.sort_indices(keyed, sort_keys=[*keys, ("#", "ascending")]))


def _taken(table: pa.Table, places: pa.Array) -> pa.Table:
    """Return rows of a table. Arrow joins the chunks of a column first, so that its texts may not exceed 2 GiB."""
    if all(column.nbytes < _JOINED_BYTES_MAX for column in table.columns):
        return table.take(places)
    wide = pa.schema([child.with_type(_WIDE.get(child.type, child.type)) for child in table.schema])
    batches = table.cast(wide).take(places).to_batches()
    parts = (part for batch in batches for part in plain_batches(batch, table.schema, 0))
    return pa.Table.from_batches(parts, table.schema)
