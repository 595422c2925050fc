"""Which of two versions of a record wins."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hoodie.errors import InvalidConfigError
from hoodie.format.table.merge_config import MergeMode
from hoodie.records.change import KIND, Kind, change_schema
from hoodie.records.merging.merge import RecordMerger
from tests.support.seeds import seeded
from tests.support.tables import table_of

EVENT, COMMIT = MergeMode.EVENT_TIME_ORDERING, MergeMode.COMMIT_TIME_ORDERING


def changes(*rows: tuple[Any, ...], ordering: int = 1) -> pa.Table:
    """Change rows `(kind, key, path, ordering values…, v)`."""
    fields = [(f"ts{number}", pa.int64()) for number in range(ordering)]
    return table_of(change_schema(pa.schema([*fields, ("v", pa.string())])), *rows)


def stored(table: pa.Table) -> pa.Table:
    return table.drop_columns([KIND, "_hoodie_record_key", "_hoodie_partition_path"])


def row(value: object, text: str, *, kind: int = Kind.ROW, key: str = "k", path: str = "p") -> tuple[Any, ...]:
    return (kind, key, path, value, text)


@pytest.mark.parametrize(
    ("older", "newer", "wins"),
    [
        ((1, 9), (2, 0), True),
        ((2, 0), (1, 9), False),
        ((1, 1), (1, 2), True),
        ((1, 2), (1, 1), False),
        ((1, 1), (1, 1), True),
        ((None, 5), (None, 4), False),
        ((None, None), (None, 4), True),
    ],
)
def test_several_ordering_fields(older: tuple[int | None, ...], newer: tuple[int | None, ...], wins: bool) -> None:
    merger = RecordMerger(EVENT, ("ts0", "ts1"))
    old, new = (Kind.ROW, "k", "p", *older, "old"), (Kind.ROW, "k", "p", *newer, "new")
    merged = merger.merge(stored(changes(old, ordering=2)), changes(new, ordering=2))
    assert (merged.replaced.tolist(), merged.deleted.tolist()) == ([wins], [False])
    assert merged.rows["v"].to_pylist() == (["new"] if wins else [])
    assert merger.reduce(changes(old, new, ordering=2))["v"].to_pylist() == ["new" if wins else "old"]


def test_commit_time_takes_the_newer_row() -> None:
    merger = RecordMerger(COMMIT)
    assert merger.merge(stored(changes(row(9, "old"))), changes(row(1, "new"))).replaced.tolist() == [True]
    assert merger.reduce(changes(row(9, "old"), row(1, "new")))["v"].to_pylist() == ["new"]


@pytest.mark.parametrize(
    ("kind", "value", "deletes"),
    [(Kind.DELETE, None, True), (Kind.DELETE_IN_ORDER, 2, True), (Kind.DELETE_IN_ORDER, 0, False)],
)
def test_deletes(kind: Kind, value: int | None, deletes: bool) -> None:
    merged = RecordMerger(EVENT, ("ts0",)).merge(stored(changes(row(1, "old"))), changes(row(value, "", kind=kind)))
    assert merged.deleted.tolist() == [deletes]
    assert merged.replaced.tolist() == [False]
    assert merged.rows.num_rows == 0


def test_reduce_keeps_one_change_per_partition_and_key_in_their_order() -> None:
    table = changes(
        row(1, "b1", key="b"),
        row(5, "a5", key="a"),
        row(3, "a3", key="a"),
        row(1, "other", key="a", path="q"),
        row(1, "b1 again", key="b"),
        row(0, "c", key="c"),
    )
    merger = RecordMerger(EVENT, ("ts0",))
    assert merger.reduce(table)["v"].to_pylist() == ["a5", "other", "b1 again", "c"]
    assert merger.reduce(table, across_partitions=True)["v"].to_pylist() == ["a5", "b1 again", "c"]


def test_reduce_in_chunks_and_of_nothing() -> None:
    merger = RecordMerger(EVENT, ("ts0",))
    table = pa.concat_tables([changes(row(2, "x")), changes(row(3, "y")), changes(row(1, "z"))])
    assert merger.reduce(table)["v"].to_pylist() == ["y"]
    assert merger.reduce(table.slice(0, 0)).num_rows == 0


def test_a_delete_in_a_batch_outranks_rows_by_the_same_rule() -> None:
    merger = RecordMerger(EVENT, ("ts0",))
    later = changes(row(1, "row"), row(2, "gone", kind=Kind.DELETE_IN_ORDER))
    earlier = changes(row(3, "row"), row(2, "gone", kind=Kind.DELETE_IN_ORDER))
    assert merger.reduce(later)["v"].to_pylist() == ["gone"]
    assert merger.reduce(earlier)["v"].to_pylist() == ["row"]


def join(older: pa.Table, newer: pa.Table) -> pa.Table:
    """Append the texts of all versions."""
    texts = [f"{a}+{b}" for a, b in zip(older["v"].to_pylist(), newer["v"].to_pylist(), strict=True)]
    return newer.set_column(newer.schema.get_field_index("v"), "v", pa.array(texts))


def drop_x(older: pa.Table, newer: pa.Table) -> tuple[pa.Table, pa.BooleanArray]:
    """Delete the record when the newer text is x."""
    return join(older, newer), pa.array([text == "x" or None for text in newer["v"].to_pylist()])


def test_a_custom_merger_merges_rows() -> None:
    merger = RecordMerger(MergeMode.CUSTOM, ("ts0",), join)
    older = stored(changes(row(9, "a"), row(9, "b"), row(9, "c")))
    newer = changes(row(1, "1", key="a"), row(1, "2", key="b", kind=Kind.DELETE), row(1, "3", key="c"))
    merged = merger.merge(older, newer)
    assert merged.rows["v"].to_pylist() == ["a+1", "c+3"]
    assert merged.rows["_hoodie_record_key"].to_pylist() == ["a", "c"]
    assert merged.replaced.tolist() == [True, False, True]
    assert merged.deleted.tolist() == [False, True, False]


def test_a_custom_merger_deletes_rows() -> None:
    merger = RecordMerger(MergeMode.CUSTOM, (), drop_x)
    merged = merger.merge(
        stored(changes(row(1, "a"), row(1, "b"))), changes(row(1, "x", key="a"), row(1, "y", key="b"))
    )
    assert merged.rows["v"].to_pylist() == ["b+y"]
    assert merged.replaced.tolist() == [False, True]
    assert merged.deleted.tolist() == [True, False]


def test_a_custom_merger_folds_duplicates_in_their_order() -> None:
    table = changes(row(1, "1"), row(1, "n", key="l"), row(1, "2"), row(1, "3"), row(1, "m", key="l"))
    reduced = RecordMerger(MergeMode.CUSTOM, (), join).reduce(table)
    assert dict(zip(reduced["_hoodie_record_key"].to_pylist(), reduced["v"].to_pylist(), strict=True)) == {
        "k": "1+2+3",
        "l": "n+m",
    }


def test_a_custom_merger_begins_anew_after_a_delete_in_the_batch() -> None:
    table = changes(row(1, "1"), row(1, "", kind=Kind.DELETE), row(1, "3"))
    reduced = RecordMerger(MergeMode.CUSTOM, (), join).reduce(table)
    assert reduced["v"].to_pylist() == ["3"]
    assert reduced[KIND].to_pylist() == [Kind.ROW]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (lambda newer: newer.slice(1), "table of 1 rows.* returned 0 rows"),
        (lambda newer: None, "table of 1 rows.* returned None"),
        (lambda newer: newer.to_batches()[0], "table of 1 rows.* returned pyarrow.RecordBatch"),
        (lambda newer: (newer,), "table of 1 rows.*one for each row"),
        (lambda newer: newer.drop_columns("v"), "'v' is not one of them"),
        (lambda newer: newer.append_column("v", newer["v"]), "'v' is not one of them, or twice"),
        (lambda newer: (newer, pa.array([True, False])), "array of 1 booleans"),
        (lambda newer: (newer, [True]), "array of 1 booleans"),
    ],
    ids=[
        "fewer rows",
        "nothing",
        "a batch",
        "a tuple of one",
        "a column less",
        "a column twice",
        "more flags",
        "a list",
    ],
)
def test_a_custom_merger_must_return_every_row(answer: Callable[[pa.Table], Any], problem: str) -> None:
    merger = RecordMerger(MergeMode.CUSTOM, (), lambda older, newer: answer(newer))
    with pytest.raises(InvalidConfigError, match=f"(?s){problem}"):
        merger.merge(stored(changes(row(1, "a"))), changes(row(1, "b")))


def test_a_custom_merger_that_deletes_no_record_may_return_nulls() -> None:
    merger = RecordMerger(MergeMode.CUSTOM, (), lambda older, newer: (newer, pa.nulls(newer.num_rows)))
    assert merger.merge(stored(changes(row(1, "a"))), changes(row(1, "b"))).rows["v"].to_pylist() == ["b"]


@seeded(7)
def test_a_large_reduce_is_the_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = 5000
    rows = [
        (int(Kind.ROW), f"k{key}", f"p{path}", None if ts == 0 else int(ts), str(number))
        for number, (key, path, ts) in enumerate(
            zip(rng.integers(0, 500, count), rng.integers(0, 3, count), rng.integers(0, 9, count), strict=True)
        )
    ]
    best: dict[tuple[str, str], tuple[Any, ...]] = {}
    for change in rows:
        known = best.get(change[1:3])
        if known is None or (-1 if change[3] is None else change[3]) >= (-1 if known[3] is None else known[3]):
            best[change[1:3]] = change
    reduced = RecordMerger(EVENT, ("ts0",)).reduce(changes(*rows))
    assert reduced["v"].to_pylist() == [change[4] for change in sorted(best.values(), key=lambda found: int(found[4]))]


# The order of ordering values, as JVM Hudi 1.2.0 compares them (tests/interop/test_merge_rules.py asks it)

# Ascending; values in one tuple are equal.
ORDERS: dict[str, tuple[pa.DataType, list[tuple[Any, ...]]]] = {
    "double": (
        pa.float64(),
        [(None,), (-np.inf,), (-1.5,), (-5e-324,), (-0.0,), (0.0,), (5e-324,), (1.5,), (np.inf,), (np.nan, -np.nan)],
    ),
    "float": (pa.float32(), [(None,), (-np.inf,), (-1.5,), (-0.0,), (0.0,), (1.5,), (np.inf,), (np.nan,)]),
    "bytes are signed": (
        pa.binary(),
        [(None,), (b"",), (b"\x80",), (b"\xff",), (b"\x00",), (b"\x00\x80",), (b"\x7f",)],
    ),
    "boolean": (pa.bool_(), [(None,), (False,), (True,)]),
    "text by UTF-8": (pa.string(), [(None,), ("",), ("10",), ("9",), ("Z",), ("a",), ("é",), ("\uffff",), ("😀",)]),
    "a null int is 0": (pa.int32(), [(-1,), (0, None), (1,)]),
    "long": (pa.int64(), [(None,), (-1,), (0,), (1,)]),
    "timestamp": (pa.timestamp("us"), [(None,), (-1,), (0,), (1,)]),
    "decimal": (pa.decimal128(10, 2), [(None,), (-1,), (0,), (1,)]),
}


def _ordered(kind: pa.DataType, values: list[Any], keys: list[str]) -> pa.Table:
    schema = change_schema(pa.schema([("at", kind)]))
    count = len(values)
    columns = [pa.array([int(Kind.ROW)] * count, pa.int8()), pa.array(keys), pa.array([""] * count)]
    return pa.table([*columns, pa.array(values, kind)], schema=schema)


@pytest.mark.parametrize("name", ORDERS)
def test_every_pair_of_values(name: str) -> None:
    kind, groups = ORDERS[name]
    ranked = [(value, rank) for rank, group in enumerate(groups) for value in group]
    pairs = list(itertools.product(ranked, ranked))
    older = [stored for (stored, _), _ in pairs]
    newer = [incoming for _, (incoming, _) in pairs]
    wins = [incoming_rank >= stored_rank for (_, stored_rank), (_, incoming_rank) in pairs]
    keys = [str(number) for number in range(len(pairs))]
    merger = RecordMerger(MergeMode.EVENT_TIME_ORDERING, ("at",))

    changes = _ordered(kind, newer, keys)
    assert merger.newer_wins(_ordered(kind, older, keys), changes).tolist() == wins

    both = pa.concat_tables([_ordered(kind, older, keys), changes])
    winners = merger.reduce(both.append_column("second", pa.array([False] * len(pairs) + [True] * len(pairs))))
    order = sorted(range(len(pairs)), key=lambda place: int(winners["_hoodie_record_key"][place].as_py()))
    assert [winners["second"][place].as_py() for place in order] == wins


def test_slices_of_arrays_are_compared_from_their_own_start() -> None:
    older = _ordered(pa.binary(), [b"zzz", b"\x00", b"a"], ["x", "a", "b"]).slice(1)
    newer = _ordered(pa.binary(), [b"zzz", b"\x80", b"b"], ["x", "a", "b"]).slice(1)
    merger = RecordMerger(MergeMode.EVENT_TIME_ORDERING, ("at",))
    assert merger.newer_wins(older, newer).tolist() == [False, True]
