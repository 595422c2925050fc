"""The order of clustered rows: every row once, close points in few files, in bounded memory."""

from __future__ import annotations

import datetime
import decimal
import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.errors import InvalidConfigError
from hoodie.services.clustering.plan import RowOrder
from hoodie.services.clustering.sorting import (
    FittedOrder,
    RowSample,
    SortLimits,
    bits_of,
    check_order,
    hilbert_order,
    numbers_of,
    quantiles,
    sorted_rows,
    z_order,
)
from tests.support.seeds import examples
from tests.support.tables import table_of

TYPES = {
    "text": (pa.string(), st.text(max_size=5)),
    "number": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "real": (pa.float64(), st.floats()),
    "day": (pa.date32(), st.dates()),
    "moment": (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(datetime.UTC))),
    "amount": (pa.decimal128(12, 2), st.decimals(-(10**9), 10**9, places=2)),
    "flag": (pa.bool_(), st.booleans()),
    "raw": (pa.binary(), st.binary(max_size=4)),
}
SCHEMA = pa.schema([("id", pa.int64()), *((name, found) for name, (found, _) in TYPES.items())])
ROWS = st.lists(st.tuples(*(st.none() | values for _, values in TYPES.values())), max_size=40)


@settings(max_examples=examples(15))
@given(ROWS, st.sampled_from(["linear", "zorder", "hilbert"]), st.permutations(list(TYPES)), st.integers(1, 8))
def test_sorted_rows_are_a_permutation_and_spilled_rows_have_the_same_order(
    rows: list[tuple[object, ...]], layout: str, names: list[str], count: int
) -> None:
    table = table_of(SCHEMA, *((number, *row) for number, row in enumerate(rows)))
    order = RowOrder(columns=tuple(names[:count]), layout=layout)
    check_order(order, SCHEMA)
    pieces = [table.slice(start, 7) for start in range(0, table.num_rows, 7)]
    in_memory = pa.concat_tables([table.slice(0, 0), *sorted_rows(pieces, order, SortLimits())])
    assert sorted(in_memory["id"].to_pylist()) == list(range(table.num_rows))
    spilled = pa.concat_tables([table.slice(0, 0), *sorted_rows(pieces, order, SortLimits(memory_bytes=200))])
    assert sorted(spilled["id"].to_pylist()) == list(range(table.num_rows))
    if layout == "linear":
        expected, first = FittedOrder.fit(order, table).sort(table), order.columns[0]
        assert str(in_memory[first].to_pylist()) == str(expected[first].to_pylist())


@pytest.mark.parametrize(("dimensions", "bits"), [(1, 3), (2, 1), (2, 4), (3, 3), (4, 2), (5, 2)])
def test_a_curve_visits_each_point_once_and_hilbert_takes_single_steps(dimensions: int, bits: int) -> None:
    points = np.array(list(itertools.product(range(1 << bits), repeat=dimensions)), np.uint64).T
    for curve in (z_order, hilbert_order):
        keys = curve(list(points), bits)
        assert sorted(keys.tolist()) == list(range(len(points[0])))
    path = points[:, np.argsort(hilbert_order(list(points), bits))].astype(np.int64)
    assert (np.abs(np.diff(path, axis=1)).sum(axis=0) == 1).all()


@pytest.mark.parametrize("values", ["uniform", "skewed"])
def test_a_box_of_two_columns_is_in_fewer_files_on_a_curve(values: str) -> None:
    random = np.random.default_rng(7)
    x, y = random.random(10_000), random.random(10_000)
    if values == "skewed":
        x = np.exp(20 * x)
    rows = pa.table({"x": x, "y": y})

    def files_read(layout: str) -> tuple[int, int]:
        """Return the files of 100 rows that 8 boxes touch, and those that 8 ranges of the second column touch."""
        done = pa.concat_tables(sorted_rows([rows], RowOrder(columns=("x", "y"), layout=layout), SortLimits()))
        xs, ys = (np.asarray(done[name]).reshape(100, 100) for name in ("x", "y"))
        boxes = ranges = 0
        for start in np.arange(0.05, 0.85, 0.1):
            low, high = np.quantile(x, [start, start + 0.1])
            in_range = (ys.max(axis=1) >= start) & (ys.min(axis=1) <= start + 0.1)
            ranges += int(in_range.sum())
            boxes += int((in_range & (xs.max(axis=1) >= low) & (xs.min(axis=1) <= high)).sum())
        return boxes, ranges

    linear = files_read("linear")
    for layout in ("zorder", "hilbert"):
        boxes, ranges = files_read(layout)
        assert boxes <= 0.8 * linear[0]
        assert ranges <= 0.5 * linear[1]


def test_spilled_rows_are_sorted_across_ranges_and_large_ranges_in_pieces() -> None:
    random = np.random.default_rng(3)
    pieces = [pa.table({"x": random.integers(0, 10**9, 2_000)}) for _ in range(20)]
    limits = SortLimits(memory_bytes=64_000, sample_rows=500)
    done = list(sorted_rows(pieces, RowOrder(columns=("x",)), limits))
    values = np.concatenate([np.asarray(piece["x"]) for piece in done])
    assert (np.diff(values) >= 0).all()
    assert len(values) == 40_000
    same = [pa.table({"x": pa.nulls(2_000, pa.int64())}) for _ in range(20)]
    assert max(piece.nbytes for piece in sorted_rows(same, RowOrder(columns=("x",)), limits)) < 100_000


def test_numbers_of_counts_bounds_up_to_each_row() -> None:
    keys = pa.table({"x": pa.array([5.0, None, 1.0, 9.0, float("nan"), 2.0])})
    bounds = pa.table({"x": pa.array([2.0, 5.0])})
    assert numbers_of(keys, bounds).tolist() == [2, 2, 0, 2, 2, 1]
    assert quantiles(pa.table({"x": list(range(100))}), 3)["x"].to_pylist() == [25, 50, 75]
    assert quantiles(keys.slice(0, 0), 3).num_rows == 0


def test_a_sample_has_the_rows_of_the_whole_stream() -> None:
    sample = RowSample(1_000)
    for start in range(0, 100_000, 2_500):
        sample.add(pa.table({"x": np.arange(start, start + 2_500)}))
    rows = np.sort(np.asarray(sample.rows()["x"]))
    assert len(np.unique(rows)) == 1_000
    assert abs(rows.mean() - 50_000) < 5_000


def test_columns_that_cannot_be_sorted_are_refused() -> None:
    schema = pa.schema([("x", pa.int64()), ("list", pa.list_(pa.int64()))])
    for columns, told in (
        (("z",), "expected columns of the table, x, list"),
        (("list",), "no order"),
        (("x", "x"), "once"),
    ):
        with pytest.raises(InvalidConfigError, match=told):
            check_order(RowOrder(columns=columns), schema)
    assert bits_of(1) == bits_of(3) == 16
    assert decimal.Decimal(bits_of(9)) * 9 <= 63
