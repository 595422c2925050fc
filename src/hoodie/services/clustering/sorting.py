"""Order rows by sort keys, any type that Arrow sorts, and sort the rows of a clustering group in bounded memory.

A fitted order turns rows into sort keys: the columns themselves (linear), or one number, the position on a
space-filling curve (z-order or Hilbert order). Points that are close on a curve are close in every dimension, so a file
that holds a piece of the curve has a narrow range of values of each column. NaN follows all numbers, and null follows
NaN. Rows that do not fit into memory are spilled and sorted by ranges.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidConfigError
from hoodie.services.clustering.plan import RowOrder
from hoodie.storage import scratch_folder, scratch_input, scratch_output

Ranks = npt.NDArray[np.uint64]
_KEY_BITS = 63
_RANK_BITS_MAX = 16
_ONE = np.uint64(1)


def bits_of(dimensions: int) -> int:
    """Return how many bits of each dimension go into a key of 63 bits: at most 16.

    >>> [bits_of(dimensions) for dimensions in (1, 2, 4, 8)]
    [16, 16, 15, 7]
    """
    return max(1, min(_RANK_BITS_MAX, _KEY_BITS // dimensions))


def z_order(ranks: Sequence[Ranks], bits: int) -> Ranks:
    """Interleave the low `bits` bits of each dimension, highest bit first; the first dimension has the highest bit.

    >>> z_order([np.array([0, 0, 1, 1], np.uint64), np.array([0, 1, 0, 1], np.uint64)], 1).tolist()
    [0, 1, 2, 3]
    """
    key = np.zeros(len(ranks[0]), np.uint64)
    for bit in range(bits - 1, -1, -1):
        for rank in ranks:
            key = (key << _ONE) | ((rank >> np.uint64(bit)) & _ONE)
    return key


def hilbert_order(ranks: Sequence[Ranks], bits: int) -> Ranks:
    """Return the position of each point on the Hilbert curve through all points of `bits` bits in each dimension.

    J. Skilling, "Programming the Hilbert curve" (2004): the points are transformed in place, then interleaved.

    >>> hilbert_order([np.array([0, 0, 1, 1], np.uint64), np.array([0, 1, 1, 0], np.uint64)], 1).tolist()
    [0, 1, 2, 3]
    """
    axes = [rank.astype(np.uint64, copy=True) for rank in ranks]
    _undo_rotations(axes, bits)
    for place in range(1, len(axes)):
        axes[place] ^= axes[place - 1]
    gray = np.zeros(len(axes[0]), np.uint64)
    for bit in range(bits - 1, 0, -1):
        is_set = (axes[-1] >> np.uint64(bit)) & _ONE == _ONE
        gray ^= np.where(is_set, np.uint64((1 << bit) - 1), np.uint64(0))
    return z_order([axis ^ gray for axis in axes], bits)


def _undo_rotations(axes: list[Ranks], bits: int) -> None:
    """Rotate and reflect the lower bits of the axes by each higher bit, in place."""
    for bit in range(bits - 1, 0, -1):
        lower = np.uint64((1 << bit) - 1)
        for place, axis in enumerate(axes):
            is_set = (axis >> np.uint64(bit)) & _ONE == _ONE
            exchanged = np.where(is_set, np.uint64(0), (axes[0] ^ axis) & lower)
            axes[0] = axes[0] ^ np.where(is_set, lower, exchanged)
            if place:
                axes[place] = axis ^ exchanged


_CURVE = "curve"
_IS_ROW = "is_row"
_CURVES = {"zorder": z_order, "hilbert": hilbert_order}


def check_order(order: RowOrder, schema: pa.Schema) -> None:
    """Refuse columns that the table does not have, and columns with nested values, which have no order.

    Raises: InvalidConfigError.
    """
    for name in order.columns:
        if schema.get_field_index(name) < 0:
            raise InvalidConfigError(f"cluster by {name!r}: expected columns of the table, {', '.join(schema.names)}")
        if pa.types.is_nested(schema.field(name).type):
            raise InvalidConfigError(
                f"cluster by {name!r}: its values are of type {schema.field(name).type}, which have no order; choose a "
                "column with simple values"
            )
    if len(set(order.columns)) != len(order.columns):
        raise InvalidConfigError(f"cluster by {', '.join(order.columns)}: each column once expected")


@dataclass(frozen=True, slots=True)
class FittedOrder:
    """An order of rows. `bounds`: for a curve, the distinct values of each column in a sample, ascending."""

    order: RowOrder
    bounds: tuple[pa.Table, ...] = ()

    @classmethod
    def fit(cls, order: RowOrder, sample: pa.Table) -> FittedOrder:
        """Return the order with the value ranges of a sample of the rows; the sample may be empty."""
        if order.layout == "linear" or len(order.columns) == 1:
            return cls(order)
        bounds_max = (1 << bits_of(len(order.columns))) - 1
        return cls(order, tuple(_bounds(sample.select([name]), bounds_max) for name in order.columns))

    def keys(self, rows: pa.Table) -> pa.Table:
        """Return the sort keys of the rows."""
        if not self.bounds:
            return rows.select(list(self.order.columns))
        bits = bits_of(len(self.order.columns))
        ranks = [
            _scaled(numbers_of(rows.select([name]), bounds), bounds.num_rows, bits)
            for name, bounds in zip(self.order.columns, self.bounds, strict=True)
        ]
        return pa.table({_CURVE: _CURVES[self.order.layout](ranks, bits)})

    def sort(self, rows: pa.Table) -> pa.Table:
        """Return the rows in order. Memory: the rows twice."""
        return rows.take(sorted_places(self.keys(rows)))


def sorted_places(keys: pa.Table) -> pa.Array:
    """Return the row numbers of sort keys in ascending order."""
    return pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names])


def numbers_of(keys: pa.Table, bounds: pa.Table) -> npt.NDArray[np.int64]:
    """Return for each row how many of the ascending `bounds` are less than or equal to its keys."""
    count = bounds.num_rows
    flags = pa.array(np.repeat([False, True], [count, keys.num_rows]))
    # A row that equals a bound follows it, by the last sort key.
    places = np.asarray(sorted_places(pa.concat_tables([bounds, keys]).append_column(_IS_ROW, flags)))
    is_bound = places < count
    numbers = np.empty(keys.num_rows, np.int64)
    numbers[places[~is_bound].astype(np.int64) - count] = np.cumsum(is_bound)[~is_bound]
    return numbers


def quantiles(keys: pa.Table, count: int) -> pa.Table:
    """Return at most `count` rows of the keys, ascending, that divide them into parts of about the same size."""
    rows = keys.num_rows
    places = np.unique(np.arange(1, count + 1) * rows // (count + 1)) if rows else np.zeros(0, np.int64)
    return keys.take(sorted_places(keys).take(pa.array(places)))


def _bounds(column: pa.Table, bounds_max: int) -> pa.Table:
    """Return the distinct values of one column, ascending; at most `bounds_max` of them, at equal distances."""
    (name,) = column.column_names
    distinct = column.group_by(name).aggregate([])
    return quantiles(distinct, bounds_max) if distinct.num_rows > bounds_max else distinct.take(sorted_places(distinct))


def _scaled(numbers: npt.NDArray[np.int64], count: int, bits: int) -> Ranks:
    """Return numbers from 0 to `count` as ranks that use the highest of `bits` bits, whatever the count is.

    Else a column with few values would only have low bits, and the other columns would decide the order.
    """
    return numbers.astype(np.uint64) << np.uint64(max(0, bits - count.bit_length()))


_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")
_RANGES_MAX = 256
"""Open files of one sort. More rows than this number of ranges hold are sorted in pieces of `memory_bytes`."""
_WAITING = "waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class SortLimits:
    """`memory_bytes`: Arrow bytes that are sorted at once; `sample_rows`: rows that decide the ranges of values."""

    memory_bytes: int = 256 * 1024 * 1024
    sample_rows: int = 200_000


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
            with scratch_folder() as folder:
                yield from _Spilled(folder, order, limits).sorted([*held], source)
            return
    if held:
        rows = pa.concat_tables(held).combine_chunks()
        sample = RowSample(limits.sample_rows)
        sample.add(rows.select(list(order.columns)))
        yield FittedOrder.fit(order, sample.rows()).sort(rows)


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
                sink = stack.enter_context(scratch_output(f"{self._folder}/range-{number}"))
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
        for rows in self._read(f"range-{number}"):
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
