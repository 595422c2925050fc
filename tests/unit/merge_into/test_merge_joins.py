"""Merges whose `on` is not the record key: which rows meet, what they become, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.merge_into.changes import joined_places
from hoodie.merge_into.matching import Equality
from tests.support.rows import assert_same_rows
from tests.support.tables import TYPES
from tests.unit.write.tables import SCHEMA, new_table, trips, untouched

STORED = trips(("a", 5, 1.0, "sf"), ("b", 5, 2.0, "sf"), ("c", 5, None, "la"), ("d", 5, 4.0, "ny"))


def pairs(
    target: list[Any], source: list[Any], /, *, null_safe: bool = False, **types: pa.DataType
) -> set[tuple[int, int]]:
    """Places of the rows that meet, by one column of each side."""
    left = pa.table({"x": pa.array(target, types.get("target"))})
    right = pa.table({"y": pa.array(source, types.get("source"))})
    places = joined_places(left, right, [Equality("x", "y", null_safe)])
    return set(zip(*(side.tolist() for side in places), strict=True))


def test_values_are_equal_as_in_spark() -> None:
    assert pairs([-math.nan, 1.0], [math.nan]) == {(0, 0)}
    assert pairs([1, 2, None, 1], [1, None, 3]) == {(0, 0), (3, 0)}
    assert pairs([1, None], [None, 2], null_safe=True) == {(1, 0)}
    assert pairs([1, 2], [2, 2], target=pa.int32(), source=pa.int64()) == {(1, 0), (1, 1)}
    assert pairs([math.nan, 0.0, -0.0], [math.nan, 0.0, -0.0]) == {(0, 0), (1, 1), (1, 2), (2, 1), (2, 2)}
    assert pairs(["a", "b"], ["b", None], source=pa.dictionary(pa.int8(), pa.string())) == {(1, 0)}
    assert pairs(["a"], ["a"], target=pa.string_view(), source=pa.large_string()) == {(0, 0)}
    assert pairs([1, None], [None, None], source=pa.null()) == set()
    assert pairs([], [1], target=pa.int64()) == pairs([1], [], source=pa.int64()) == set()
    left = pa.table({"x": [1, 1, 2, None], "y": ["p", "q", "p", "p"]})
    both = [Equality("x", "x", False), Equality("y", "y", False)]
    places = joined_places(left, left, both)
    assert [side.tolist() for side in places] == [[0, 1, 2], [0, 1, 2]]
    assert [side.tolist() for side in joined_places(left, left.slice(0, 0), both)] == [[], []]


@pytest.mark.parametrize("table_type", TYPES)
def test_one_source_row_changes_every_row_that_it_meets(table_type: str) -> None:
    table = new_table(STORED, type=table_type)
    before = len(table.timeline.completed())
    source = {"town": ["sf", "la", "rome"], "more": [10.0, 20.0, 30.0], "key": ["x", "y", "z"]}
    merge = table.merge(source, "t.city = s.town").when_matched_update(
        {"fare": "t.fare + s.more"}, "t.fare IS NOT NULL"
    )
    merge = merge.when_matched_delete().when_not_matched_by_source_update({"fare": "0.0"})
    insert = {"id": "s.key", "city": "s.town", "ts": "1", "fare": "s.more"}
    result = merge.when_not_matched_insert(insert).execute()
    assert (result.inserted, result.updated, result.deleted) == (1, 3, 1)
    assert len(table.timeline.completed()) == before + 1
    expected = trips(("a", 5, 11.0, "sf"), ("b", 5, 12.0, "sf"), ("d", 5, 0.0, "ny"), ("z", 1, 30.0, "rome"))
    assert_same_rows(table.to_arrow(SCHEMA.names), expected, key="id")


@pytest.mark.parametrize("index", ["simple", "record"])
def test_the_record_key_without_the_partition_meets_rows_of_every_partition(index: str) -> None:
    table = new_table(pa.concat_tables([STORED, trips(("e", 5, 9.0, "ny"))]), index=index)
    source = [{"id": "a", "fare": 7.0, "ts": 9}, {"id": "d", "fare": 8.0, "ts": 4}, {"id": "n", "fare": 1.0, "ts": 9}]
    merge = table.merge(source, "t.id = s.id").when_matched_update({"fare": "s.fare", "ts": "s.ts"})
    assert merge.execute().updated == 1
    assert table.to_arrow(["fare"], "id IN ('a', 'd') AND city <> 'x'")["fare"].to_pylist() in ([7.0, 4.0], [4.0, 7.0])
    # A key and one more column, and rows whose key meets without it.
    both = table.merge(source, "t.id = s.id AND t.fare = s.fare").when_matched_delete()
    assert (both.execute().deleted, table.count()) == (1, 4)


def test_what_would_change_a_record_twice_or_replace_another_is_refused() -> None:
    table = new_table(STORED)
    twice = pa.table({"city": ["sf", "sf"], "fare": [1.0, 2.0]})
    known = trips(("d", 9, 9.0, "rome"))
    insert = table.merge(known, "t.city = s.city").when_not_matched_insert_all()
    for merge, message in (
        (table.merge(twice, "t.city = s.city").when_matched_update({"fare": "s.fare"}), "at most one source row"),
        (insert, "the table has their record keys"),
        (insert.when_not_matched_by_source_delete(), "the table has their record keys"),
    ):
        with untouched(table, f"{message}.*nothing was committed", hoodie.RecordKeyError):
            merge.execute()
    assert table.merge(twice, "t.city = s.city").when_matched_delete().execute().deleted == 2
