"""What a merge does to a table's rows: the same on every engine."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import hoodie
from tests.contract.table_lanes import ON_WORKERS, Lane, trips
from tests.support.rows import assert_same_rows

FIRST = trips(("a", 1, 1.0, "sf"), ("b", 1, 2.0, "nyc"), ("c", 1, 3.0, "sf"), ("z", 1, None, "sf"))


def counts(result: hoodie.WriteResult) -> tuple[int, int, int | None]:
    """Inserted, updated, deleted."""
    return result.inserted, result.updated, result.deleted


@pytest.mark.surface
@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_a_merge_updates_inserts_and_deletes_in_one_commit(lane: Lane, table_type: str) -> None:
    table = lane.table(FIRST, partition_by="city", index="simple", type=table_type, properties=ON_WORKERS)
    source = trips(
        ("a", 5, 10.0, "sf"),
        ("b", 5, -1.0, "nyc"),
        ("c", None, None, "sf"),
        ("c", 5, 4.0, "la"),
        ("n", 5, None, "sf"),
    )
    merge = table.merge(lane.data(source), on="T.id = s.id AND s.city = t.city").when_matched_delete("s.fare < 0")
    merge = merge.when_matched_update({"fare": "t.fare + s.fare", "t.TS": "s.ts", "id": "s.id"}, "s.ts > t.ts")
    merge = merge.when_not_matched_insert({"id": "s.id", "city": "s.city", "ts": "s.ts * 2"}, "s.fare IS NOT NULL")
    merge = merge.when_not_matched_by_source_update({"fare": "coalesce(fare, 0) + t.ts"}, "fare IS NULL")
    before = len(table.timeline.completed())
    assert counts(merge.execute()) == (1, 2, 1)
    assert len(table.timeline.completed()) == before + 1
    expected = trips(("a", 5, 11.0, "sf"), ("c", 1, 3.0, "sf"), ("c", 10, None, "la"), ("z", 1, 1.0, "sf"))
    assert_same_rows(lane.read(table), expected, key=["id", "city"])


def test_a_merge_of_all_rows_is_an_upsert_with_one_row_for_each_key(lane: Lane) -> None:
    table = lane.table(FIRST, partition_by="city")
    source = trips(("a", 5, 10.0, "sf"), ("n", 5, 7.0, "la"))
    more = source.append_column("more", pa.array(["x", "y"]))
    merge = table.merge(lane.data(more), on="t.id = s.id").when_matched_update_all().when_not_matched_insert_all()
    assert counts(merge.execute()) == (1, 1, 0)
    expected = pa.concat_tables([source, FIRST.slice(1)])
    assert_same_rows(lane.read(table), expected, key="id")

    twice = lane.data(trips(("a", 6, 10.0, "sf"), ("a", 7, 10.0, "sf")))
    before = len(table.timeline.completed())
    for refused in (
        table.merge(twice, on="t.id = s.id").when_matched_update_all().when_not_matched_insert_all(),
        table.merge(twice, on="t.id = s.id").when_matched_update({"fare": "s.fare"}),
    ):
        with pytest.raises(hoodie.RecordKeyError, match="at most one source row"):
            refused.execute()
    assert len(table.timeline.completed()) == before
    assert_same_rows(lane.read(table), expected, key="id")
    assert counts(table.merge(twice, on="t.id = s.id").when_matched_delete().execute()) == (0, 0, 1)


def test_rows_without_a_source_row_are_deleted(lane: Lane) -> None:
    table = lane.table(FIRST)
    source: Any = lane.data(trips(("a", 9, 9.0, "sf"), ("n", 9, 9.0, "sf")))
    merge = table.merge(source, on="new.id = old.id", target_alias="old", source_alias="new")
    merge = merge.when_not_matched_by_source_delete().when_matched_update_all("new.ts > old.ts")
    assert counts(merge.when_not_matched_insert_all("new.fare > 10").execute()) == (0, 1, 3)
    assert_same_rows(lane.read(table), trips(("a", 9, 9.0, "sf")))


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_a_partial_upsert_keeps_the_values_of_missing_columns(lane: Lane, table_type: str) -> None:
    table = lane.table(
        FIRST, partition_by="city", ordering="ts", index="simple", type=table_type, properties=ON_WORKERS
    )
    rows = trips(("a", 5, 0.0, "sf"), ("b", 0, 0.0, "nyc"), ("c", 5, 0.0, "la")).drop_columns(["fare"])
    result = table.upsert(lane.data(rows), partial=True)
    assert counts(result)[:2] == (1, 1)
    changed = trips(("a", 5, 1.0, "sf"), ("c", 5, None, "la"))
    assert_same_rows(lane.read(table), pa.concat_tables([changed, FIRST.slice(1)]), key=["id", "city"])
    before = len(table.timeline.completed())
    with pytest.raises(hoodie.SchemaMismatchError, match="more"):
        table.upsert(lane.data(rows.append_column("more", pa.array([1, 2, 3]))), partial=True)
    assert len(table.timeline.completed()) == before


def test_a_merge_by_other_columns_changes_every_row_that_meets(lane: Lane) -> None:
    table = lane.table(FIRST, partition_by="city", ordering="ts")
    source = trips(("a", None, 10.0, "sf"), ("n", 7, 20.0, "la"), ("m", 7, None, None))
    merge = table.merge(lane.data(source), on="t.city = s.city").when_matched_update({"fare": "t.fare + s.fare"})
    assert counts(merge.when_not_matched_insert_all("s.city = 'la'").execute()) == (1, 3, 0)
    changed = trips(("a", 1, 11.0, "sf"), ("c", 1, 13.0, "sf"), ("n", 7, 20.0, "la"), ("z", 1, None, "sf"))
    assert_same_rows(lane.read(table), pa.concat_tables([changed, FIRST.slice(1, 1)]), key="id")
    before = len(table.timeline.completed())
    known = lane.data(trips(("b", 9, 9.0, "rome")))
    with pytest.raises(hoodie.RecordKeyError, match="the table has their record keys"):
        table.merge(known, on="t.city = s.city").when_not_matched_insert_all().execute()
    assert len(table.timeline.completed()) == before
