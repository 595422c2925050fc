"""Sort the rows of a clustering group in bounded memory: rows that do not fit are spilled and sorted by ranges."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.services.clustering.order import FittedOrder, numbers_of, quantiles
from hoodie.services.clustering.plan import RowOrder
from hoodie.storage import scratch_folder, scratch_input, scratch_output

_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")
_RANGES_MAX = 256
"""Open files of one sort. More rows than this number of ranges hold are sorted in pieces of `memory_bytes`."""
_WAITING = "waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class SortLimits:
    """`memory_bytes`: Arrow bytes that are sorted at once; `sample_rows`: rows that decide the ranges of values."""

    memory_bytes: int = 256 * 1024 * 1024
    sample_rows: int = 200_000
    spill_folder: str | None = None


def sorted_rows(pieces: Iterable[pa.Table], order: RowOrder, limits: SortLimits) -> Iterator[pa.Table]:
    """Yield all rows of the pieces in order, in new pieces.

    Rows that fit into `memory_bytes` are sorted in memory. Otherwise they are written to the local disk, with a random
    sample of their sort columns; then distributed to ranges of the sort keys by the sample; then sorted range by range.
    A range that is larger than `memory_bytes`, because many rows have the same keys, is sorted in pieces.

    Memory: three times `memory_bytes`, and the sample. Local disk: twice the rows, compressed.
    """
    held: list[pa.Table] = []
    held_bytes = 0
    source = iter(pieces)
    for rows in source:
        held.append(rows)
        held_bytes += rows.nbytes
        if held_bytes > limits.memory_bytes:
            with scratch_folder(limits.spill_folder) as folder:
                yield from _Spilled(folder, order, limits).sorted([*held], source)
            return
    if held:
        rows = pa.concat_tables(held).combine_chunks()
        yield FittedOrder.fit(order, _sample_of(rows, order, limits.sample_rows)).sort(rows)


class RowSample:
    """A random sample of rows of a stream: each row has the same chance. Memory: twice the sample."""

    def __init__(self, rows_max: int) -> None:
        self._rows_max = rows_max
        self._random = np.random.default_rng(0)
        self._parts: list[pa.Table] = []
        self._marks: list[npt.NDArray[np.float64]] = []
        self._held = 0

    def add(self, rows: pa.Table) -> None:
        """Add the rows of one piece."""
        self._parts.append(rows)
        self._marks.append(self._random.random(rows.num_rows))
        self._held += rows.num_rows
        if self._held > 2 * self._rows_max:
            self._shrink()

    def rows(self) -> pa.Table:
        """Return the sample."""
        self._shrink()
        return self._parts[0]

    def _shrink(self) -> None:
        """Keep the rows with the lowest random marks."""
        rows, marks = pa.concat_tables(self._parts), np.concatenate(self._marks)
        if len(marks) > self._rows_max:
            kept = np.argpartition(marks, self._rows_max)[: self._rows_max]
            rows, marks = rows.take(pa.array(kept)), marks[kept]
        self._parts, self._marks, self._held = [rows.combine_chunks()], [marks], len(marks)


def _sample_of(rows: pa.Table, order: RowOrder, rows_max: int) -> pa.Table:
    sample = RowSample(rows_max)
    sample.add(rows.select(list(order.columns)))
    return sample.rows()


class _Spilled:
    """The rows of one sort on the local disk."""

    def __init__(self, folder: str, order: RowOrder, limits: SortLimits) -> None:
        self._folder = folder
        self._order = order
        self._limits = limits

    def sorted(self, held: list[pa.Table], rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Yield all rows in order. `held` is emptied."""
        schema = held[0].schema
        sample, total_bytes = self._spill(held, rest, schema)
        fitted = FittedOrder.fit(self._order, sample)
        # Twice as many ranges as fit: the sizes of ranges that a sample defines vary.
        count = min(_RANGES_MAX, math.ceil(2 * total_bytes / self._limits.memory_bytes))
        bounds = quantiles(fitted.keys(sample), count - 1)
        self._distribute(fitted, bounds, schema)
        for number in range(bounds.num_rows + 1):
            yield from self._in_pieces(number, fitted)

    def _spill(self, held: list[pa.Table], rest: Iterator[pa.Table], schema: pa.Schema) -> tuple[pa.Table, int]:
        """Write the rows to one file; return a sample of their sort columns, and the Arrow bytes of all rows."""
        sample, total_bytes = RowSample(self._limits.sample_rows), 0
        with (
            scratch_output(f"{self._folder}/{_WAITING}") as sink,
            pa.ipc.new_stream(sink, schema, options=_OPTIONS) as writer,
        ):
            while (rows := held.pop(0) if held else next(rest, None)) is not None:
                writer.write_table(rows)
                sample.add(rows.select(list(self._order.columns)))
                total_bytes += rows.nbytes
        return sample.rows(), total_bytes

    def _distribute(self, fitted: FittedOrder, bounds: pa.Table, schema: pa.Schema) -> None:
        """Write each row to the file of its range."""
        with contextlib.ExitStack() as stack:
            writers = []
            for number in range(bounds.num_rows + 1):
                sink = stack.enter_context(scratch_output(f"{self._folder}/{_name(number)}"))
                writers.append(stack.enter_context(pa.ipc.new_stream(sink, schema, options=_OPTIONS)))
            for rows in self._read(_WAITING):
                numbers = numbers_of(fitted.keys(rows), bounds)
                places = np.argsort(numbers, kind="stable")
                ends = np.searchsorted(numbers[places], np.arange(len(writers) + 1))
                in_order = rows.take(pa.array(places))
                for number, writer in enumerate(writers):
                    if ends[number] < ends[number + 1]:
                        writer.write_table(in_order.slice(ends[number], ends[number + 1] - ends[number]))

    def _in_pieces(self, number: int, fitted: FittedOrder) -> Iterator[pa.Table]:
        """Yield the rows of one range in order, or in sorted pieces if they do not fit into memory."""
        held: list[pa.Table] = []
        held_bytes = 0
        for rows in self._read(_name(number)):
            held.append(rows)
            held_bytes += rows.nbytes
            if held_bytes > self._limits.memory_bytes:
                yield fitted.sort(pa.concat_tables(held).combine_chunks())
                held, held_bytes = [], 0
        if held:
            yield fitted.sort(pa.concat_tables(held).combine_chunks())

    def _read(self, name: str) -> Iterator[pa.Table]:
        with scratch_input(f"{self._folder}/{name}") as source, pa.ipc.open_stream(source) as reader:
            for batch in reader:
                yield pa.Table.from_batches([batch])


def _name(number: int) -> str:
    return f"range-{number}"
