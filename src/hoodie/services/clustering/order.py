"""Order rows by sort keys: whole Arrow batches, any type that Arrow sorts.

A fitted order turns rows into sort keys: the columns themselves (linear), or one number, the position on a
space-filling curve (z-order or Hilbert order). Points that are close on a curve are close in every dimension, so a file
that holds a piece of the curve has a narrow range of values of each column. NaN follows all numbers, and null follows
NaN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidConfigError
from hoodie.services.clustering.plan import RowOrder

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
