"""What each write does to a table's rows: the same on every engine."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from tests.contract.table_lanes import ON_WORKERS, TRIPS, Lane, trips
from tests.support.rows import assert_same_rows

FIRST = trips(("a", 1, 1.0, "sf"), ("b", 1, 2.0, "nyc"), ("c", 1, 3.0, "sf"))


def counts(result: hoodie.WriteResult) -> tuple[int, int, int | None]:
    """Inserted, updated, deleted."""
    return result.inserted, result.updated, result.deleted


def test_a_table_is_created_opened_and_empty(lane: Lane) -> None:
    assert not hoodie.exists(lane.path)
    with pytest.raises(hoodie.TableNotFoundError):
        lane.open()
    table = lane.create(partition_by="city")
    assert hoodie.exists(lane.path)
    with pytest.raises(hoodie.TableExistsError):
        lane.create(partition_by="city")
    assert lane.create(partition_by="city", exist_ok=True).schema.names == TRIPS.names
    assert_same_rows(lane.read(table), trips())
    assert_same_rows(lane.read(table, where="fare > 1"), trips())
    assert_same_rows(lane.arrow(table.changes()).select(TRIPS.names), trips())
    assert_same_rows(lane.arrow(table.read_keys(["a"])).select(TRIPS.names), trips())


def test_a_data_frame_tells_the_schema_of_a_new_table(lane: Lane) -> None:
    data = lane.data(FIRST)
    table = lane.create(data, partition_by="city")
    assert {child.name: child.type for child in table.schema} == {child.name: child.type for child in TRIPS}
    assert counts(table.insert(data)) == (3, 0, 0)
    assert_same_rows(lane.read(lane.open()), FIRST, key="id")


@pytest.mark.parametrize("properties", [{}, ON_WORKERS], ids=["small", "on-workers"])
def test_upsert_inserts_new_keys_and_updates_known_ones(lane: Lane, properties: dict[str, str]) -> None:
    table = lane.create(partition_by="city", properties=properties)
    assert counts(table.upsert(lane.data(FIRST))) == (3, 0, 0)
    result = table.upsert(lane.data(trips(("a", 2, 9.0, "sf"), ("d", 2, 4.0, "la"), ("e", 2, 5.0, "nyc"))))
    assert counts(result) == (2, 1, 0)
    assert (result.files_created, result.files_updated) == (1, 2)
    expected = trips(
        ("a", 2, 9.0, "sf"), ("b", 1, 2.0, "nyc"), ("c", 1, 3.0, "sf"), ("d", 2, 4.0, "la"), ("e", 2, 5.0, "nyc")
    )
    assert_same_rows(lane.read(table), expected, key="id")


def test_upsert_looks_in_the_partition_of_the_row_only(lane: Lane) -> None:
    table = lane.create(partition_by="city", index="simple")
    table.upsert(lane.data(FIRST))
    table.upsert(lane.data(trips(("a", 2, 9.0, "nyc"))))
    expected = pa.concat_tables([FIRST, trips(("a", 2, 9.0, "nyc"))])
    assert_same_rows(lane.read(table), expected, key=["id", "city"])


def test_insert_keeps_duplicates_of_stored_keys(lane: Lane) -> None:
    table = lane.create(partition_by="city")
    table.insert(lane.data(FIRST))
    assert counts(table.insert(lane.data(trips(("a", 2, 9.0, "sf"))))) == (1, 0, 0)
    assert_same_rows(lane.read(table), pa.concat_tables([FIRST, trips(("a", 2, 9.0, "sf"))]))


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("sort", [None, "partition", "global", ["city", "fare"]])
def test_bulk_insert_writes_every_row_whatever_the_order(lane: Lane, sort: Any) -> None:
    table = lane.create(partition_by="city")
    assert counts(table.bulk_insert(lane.data(FIRST), sort=sort)) == (3, 0, 0)
    table.bulk_insert(lane.data(trips(("d", 1, None, None))), sort=sort)
    assert_same_rows(lane.read(table), pa.concat_tables([FIRST, trips(("d", 1, None, None))]), key="id")


def test_rows_lie_sorted_after_a_global_bulk_insert(lane: Lane) -> None:
    rows = trips(*((f"k{number * 7 % 20:02}", number, None, "sf") for number in range(20)))
    table = lane.create(partition_by="city")
    table.bulk_insert(lane.data(rows), sort="global")
    keys_by_file: dict[str, list[str]] = {}
    for row in table.to_arrow(columns=["_hoodie_file_name", "id"]).to_pylist():
        keys_by_file.setdefault(row["_hoodie_file_name"], []).append(row["id"])
    assert all(keys == sorted(keys) for keys in keys_by_file.values())
    ranges = sorted((keys[0], keys[-1]) for keys in keys_by_file.values())
    assert all(before[1] < after[0] for before, after in itertools.pairwise(ranges))


def test_bulk_insert_by_an_unknown_order_is_refused(lane: Lane) -> None:
    table = lane.create(partition_by="city")
    with pytest.raises(hoodie.InvalidConfigError, match="no_such"):
        table.bulk_insert(lane.data(FIRST), sort="no_such")
    assert table.timeline.latest() is None


@pytest.mark.parametrize("properties", [{}, ON_WORKERS], ids=["small", "on-workers"])
def test_delete_by_key_columns_and_by_rows_read(lane: Lane, properties: dict[str, str]) -> None:
    table = lane.create(partition_by="city", ordering="ts", properties=properties)
    table.upsert(lane.data(FIRST))
    keys = lane.data(FIRST.slice(0, 1).select(["id", "city"]))
    assert counts(table.delete(keys)) == (0, 0, 1)
    rows = table.to_arrow(where="id = 'b'") if lane.session is None else table.read(where="id = 'b'")
    assert counts(table.delete(rows)) == (0, 0, 1)
    assert counts(table.delete(lane.data(trips(("zzz", 1, 1.0, "sf"))))) == (0, 0, 0)
    assert_same_rows(lane.read(table), trips(("c", 1, 3.0, "sf")), key="id")


def test_a_deleted_key_may_come_back(lane: Lane) -> None:
    table = lane.create(partition_by="city", ordering="ts")
    table.upsert(lane.data(trips(("a", 5, 1.0, "sf"))))
    table.delete(lane.data(trips(("a", 0, None, "sf"))))
    assert_same_rows(lane.read(table), trips())
    table.upsert(lane.data(trips(("a", 1, 7.0, "sf"))))
    assert_same_rows(lane.read(table), trips(("a", 1, 7.0, "sf")), key="id")


def test_delete_where(lane: Lane) -> None:
    table = lane.create(partition_by="city")
    table.upsert(lane.data(FIRST))
    assert counts(table.delete_where("fare >= 2 AND city = 'sf'")) == (0, 0, 1)
    assert counts(table.delete_where("fare > 100")) == (0, 0, 0)
    assert_same_rows(lane.read(table), FIRST.slice(0, 2), key="id")


def test_update_sets_columns_where_a_condition_holds(lane: Lane) -> None:
    table = lane.create(partition_by="city", ordering="ts")
    table.upsert(lane.data(FIRST))
    assert counts(table.update({"fare": "fare * 2 + ts"}, where="city = 'sf'")) == (0, 2, 0)
    assert counts(table.update({"ts": "ts + 1", "fare": "NULL"}, where="id = 'b'")) == (0, 1, 0)
    expected = trips(("a", 1, 3.0, "sf"), ("b", 2, None, "nyc"), ("c", 1, 7.0, "sf"))
    assert_same_rows(lane.read(table), expected, key="id")
    with pytest.raises(hoodie.InvalidConfigError, match="city"):
        table.update({"city": "'la'"})
    with pytest.raises(hoodie.SchemaMismatchError, match="no_such"):
        table.update({"no_such": "1"})


def test_delete_partitions(lane: Lane) -> None:
    table = lane.create(partition_by="city")
    before = table.upsert(lane.data(FIRST))
    table.delete_partitions(["city=sf"])
    assert_same_rows(lane.read(table), FIRST.slice(1, 1), key="id")
    assert_same_rows(lane.read(table, as_of=before.instant), FIRST, key="id")


def test_insert_overwrite_replaces_the_partitions_it_touches(lane: Lane) -> None:
    table = lane.create(partition_by="city")
    before = table.upsert(lane.data(FIRST))
    table.insert_overwrite(lane.data(trips(("x", 2, 8.0, "sf"), ("y", 2, 9.0, "la"))))
    expected = trips(("b", 1, 2.0, "nyc"), ("x", 2, 8.0, "sf"), ("y", 2, 9.0, "la"))
    assert_same_rows(lane.read(table), expected, key="id")
    assert_same_rows(lane.read(table, as_of=before.instant), FIRST, key="id")


def test_insert_overwrite_table_replaces_everything(lane: Lane) -> None:
    table = lane.create(partition_by="city")
    table.upsert(lane.data(FIRST))
    table.insert_overwrite_table(lane.data(trips(("x", 2, 8.0, "la"))))
    assert_same_rows(lane.read(table), trips(("x", 2, 8.0, "la")), key="id")
    table.upsert(lane.data(trips(("a", 3, 3.0, "sf"))))
    assert_same_rows(lane.read(table), trips(("x", 2, 8.0, "la"), ("a", 3, 3.0, "sf")), key="id")


def test_empty_data_changes_nothing(lane: Lane) -> None:
    table = lane.create(partition_by="city")
    for write in (table.bulk_insert, table.upsert, table.insert, table.insert_overwrite, table.delete):
        assert counts(write(lane.data(trips()))) == (0, 0, 0)
    table.upsert(lane.data(FIRST))
    for write in (table.bulk_insert, table.upsert, table.insert, table.insert_overwrite, table.delete):
        write(lane.data(trips()))
    assert_same_rows(lane.read(table), FIRST, key="id")
    table.insert_overwrite_table(lane.data(trips()))
    assert_same_rows(lane.read(table), trips())


def test_extra_metadata_is_kept_with_the_commit(lane: Lane) -> None:
    table = lane.create(partition_by="city")
    result = table.upsert(lane.data(FIRST), extra_metadata={"job": "night", "größe": "ja"})
    instant = table.timeline.get(result.instant)
    assert instant is not None
    extra = table.view().commit_metadata(instant).extra_metadata
    assert (extra["job"], extra["größe"]) == ("night", "ja")
