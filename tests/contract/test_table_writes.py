"""What each write does to a table's rows: the same on every engine."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from tests.contract.table_lanes import ON_WORKERS, TRIPS, Lane, trips
from tests.support.rows import assert_same_rows

FIRST = trips(("a", 1, 1.0, "sf"), ("b", 1, 2.0, "nyc"), ("c", 1, 3.0, "sf"))
SMALL_AND_ON_WORKERS = pytest.mark.parametrize("properties", [{}, ON_WORKERS], ids=["small", "on-workers"])


def counts(result: hoodie.WriteResult) -> tuple[int, int, int | None]:
    """Inserted, updated, deleted."""
    return result.inserted, result.updated, result.deleted


@pytest.mark.surface
def test_a_table_is_created_opened_and_empty(lane: Lane) -> None:
    assert not hoodie.exists(lane.path)
    with pytest.raises(hoodie.TableNotFoundError):
        lane.open()
    data = lane.data(FIRST)
    table = lane.create(data, partition_by="city")
    assert {child.name: child.type for child in table.schema} == {child.name: child.type for child in TRIPS}
    assert hoodie.exists(lane.path)
    with pytest.raises(hoodie.TableExistsError):
        lane.create(partition_by="city")
    assert lane.create(partition_by="city", exist_ok=True).schema.names == TRIPS.names
    assert_same_rows(lane.read(table), trips())
    assert_same_rows(lane.read(table, where="fare > 1"), trips())
    assert_same_rows(lane.arrow(table.changes()).select(TRIPS.names), trips())
    assert_same_rows(lane.arrow(table.read_keys(["a"])).select(TRIPS.names), trips())
    assert counts(table.insert(data)) == (3, 0, 0)
    assert_same_rows(lane.read(lane.open()), FIRST, key="id")


@pytest.mark.surface
@SMALL_AND_ON_WORKERS
def test_upsert_inserts_new_keys_and_updates_known_ones(lane: Lane, properties: dict[str, str]) -> None:
    table = lane.create(partition_by="city", properties=properties)
    first = table.upsert(lane.data(FIRST), extra_metadata={"job": "night", "größe": "ja"})
    assert counts(first) == (3, 0, 0)
    extra = table.view().commit_metadata(table.timeline.instants[0]).extra_metadata
    assert (extra["job"], extra["größe"]) == ("night", "ja")
    result = table.upsert(lane.data(trips(("a", 2, 9.0, "sf"), ("d", 2, 4.0, "la"), ("e", 2, 5.0, "nyc"))))
    assert counts(result) == (2, 1, 0)
    assert (result.files_created, result.files_updated) == (1, 2)
    expected = trips(
        ("a", 2, 9.0, "sf"), ("b", 1, 2.0, "nyc"), ("c", 1, 3.0, "sf"), ("d", 2, 4.0, "la"), ("e", 2, 5.0, "nyc")
    )
    assert_same_rows(lane.read(table), expected, key="id")


Write = Callable[[Lane, hoodie.Table], hoodie.WriteResult]
SAME_KEY, OVER = trips(("a", 2, 9.0, "nyc")), trips(("x", 2, 8.0, "sf"), ("y", 2, 9.0, "la"))
WRITES: dict[str, tuple[Write, tuple[int, int, int], pa.Table]] = {
    "an upsert looks in the partition of the row only": (
        lambda lane, table: table.upsert(lane.data(SAME_KEY)),
        (1, 0, 0),
        pa.concat_tables([FIRST, SAME_KEY]),
    ),
    "an insert keeps duplicates of stored keys": (
        lambda lane, table: table.insert(lane.data(trips(("a", 2, 9.0, "sf")))),
        (1, 0, 0),
        pa.concat_tables([FIRST, trips(("a", 2, 9.0, "sf"))]),
    ),
    "delete_where": (lambda lane, table: table.delete_where("fare >= 2 AND city = 'sf'"), (0, 0, 1), FIRST.slice(0, 2)),
    "delete_where of no row": (lambda lane, table: table.delete_where("fare > 100"), (0, 0, 0), FIRST),
    "delete_partitions": (lambda lane, table: table.delete_partitions(["city=sf"]), (0, 0, 2), FIRST.slice(1, 1)),
    "insert_overwrite replaces the partitions it touches": (
        lambda lane, table: table.insert_overwrite(lane.data(OVER)),
        (2, 0, 2),
        pa.concat_tables([FIRST.slice(1, 1), OVER]),
    ),
    "insert_overwrite replaces the partitions it names": (
        lambda lane, table: table.insert_overwrite(lane.data(OVER.slice(0, 0)), partitions=[{"city": "sf"}]),
        (0, 0, 2),
        FIRST.slice(1, 1),
    ),
    "insert_overwrite_table replaces everything": (
        lambda lane, table: table.insert_overwrite_table(lane.data(OVER)),
        (2, 0, 3),
        OVER,
    ),
    "update sets columns where a condition holds": (
        lambda lane, table: table.update({"fare": "fare * 2 + ts"}, where="city = 'sf'"),
        (0, 2, 0),
        trips(("a", 1, 3.0, "sf"), ("b", 1, 2.0, "nyc"), ("c", 1, 7.0, "sf")),
    ),
    "update sets nulls and ordering values": (
        lambda lane, table: table.update({"ts": "ts + 1", "fare": "NULL"}, where="id = 'b'"),
        (0, 1, 0),
        trips(("a", 1, 1.0, "sf"), ("b", 2, None, "nyc"), ("c", 1, 3.0, "sf")),
    ),
}


@pytest.mark.parametrize("case", WRITES)
def test_a_write_changes_its_rows_and_no_others(lane: Lane, case: str) -> None:
    """And the table as of the commit before stays what it was; the next write finds it in order."""
    write, expected_counts, expected = WRITES[case]
    table = lane.table(FIRST, partition_by="city", ordering="ts", index="simple")
    before = table.timeline.instants[0].requested_time
    assert counts(write(lane, table)) == expected_counts
    assert_same_rows(lane.read(table), expected)
    assert_same_rows(table.to_arrow(TRIPS.names, as_of=before), FIRST, key="id")
    new = trips(("new", 3, 3.0, "sf"))
    assert table.upsert(new).inserted == 1
    assert_same_rows(table.to_arrow(TRIPS.names), pa.concat_tables([expected, new]))


def test_an_update_of_what_cannot_be_set_is_refused(lane: Lane) -> None:
    table = lane.table(FIRST, partition_by="city")
    with pytest.raises(hoodie.InvalidConfigError, match="city"):
        table.update({"city": "'la'"})
    with pytest.raises(hoodie.SchemaMismatchError, match="no_such"):
        table.update({"no_such": "1"})
    with pytest.raises(hoodie.InvalidConfigError, match="no_such"):
        table.bulk_insert(lane.data(FIRST), sort="no_such")
    assert len(table.timeline.instants) == 1


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("sort", [None, "partition", "global", ["city", "fare"]])
def test_bulk_insert_writes_every_row_whatever_the_order(lane: Lane, sort: Any) -> None:
    """Of a global order, the rows lie sorted in their files."""
    rows = trips(*((f"k{number * 7 % 20:02}", number, None if number < 2 else 1.0, "sf") for number in range(20)))
    table = lane.table(FIRST, partition_by="city")
    assert counts(table.bulk_insert(lane.data(rows), sort=sort)) == (20, 0, 0)
    found = lane.read(table, columns=["_hoodie_file_name", *TRIPS.names])
    assert_same_rows(found, pa.concat_tables([FIRST, rows]), key="id")
    if sort == "global":
        keys_by_file: dict[str, list[str]] = {}
        for row in table.to_arrow(columns=["_hoodie_file_name", "id"], where="id LIKE 'k%'").to_pylist():
            keys_by_file.setdefault(row["_hoodie_file_name"], []).append(row["id"])
        assert all(keys == sorted(keys) for keys in keys_by_file.values())
        ranges = sorted((keys[0], keys[-1]) for keys in keys_by_file.values())
        assert all(before[1] < after[0] for before, after in itertools.pairwise(ranges))


@SMALL_AND_ON_WORKERS
def test_delete_by_key_columns_and_by_rows_read(lane: Lane, properties: dict[str, str]) -> None:
    """And a deleted key may come back, also with a lower ordering value."""
    table = lane.table(FIRST, partition_by="city", ordering="ts", properties=properties)
    keys = lane.data(FIRST.slice(0, 1).select(["id", "city"]))
    assert counts(table.delete(keys)) == (0, 0, 1)
    rows = table.to_arrow(where="id = 'b'") if lane.session is None else table.read(where="id = 'b'")
    assert counts(table.delete(rows)) == (0, 0, 1)
    assert counts(table.delete(lane.data(trips(("zzz", 1, 1.0, "sf"))))) == (0, 0, 0)
    assert_same_rows(lane.read(table), trips(("c", 1, 3.0, "sf")), key="id")
    assert counts(table.upsert(lane.data(trips(("a", 0, 7.0, "sf"))))) == (1, 0, 0)
    assert_same_rows(table.to_arrow(TRIPS.names), trips(("a", 0, 7.0, "sf"), ("c", 1, 3.0, "sf")), key="id")


def test_empty_data_changes_nothing(lane: Lane) -> None:
    table, empty = lane.create(partition_by="city"), lane.data(trips())
    writes = (table.bulk_insert, table.upsert, table.insert, table.insert_overwrite, table.delete)
    for write in writes:
        assert counts(write(empty)) == (0, 0, 0)
    table.upsert(FIRST)
    for write in writes:
        assert counts(write(empty)) == (0, 0, 0)
    assert_same_rows(lane.read(table), FIRST, key="id")
    table.insert_overwrite_table(empty)
    assert_same_rows(lane.read(table), trips())
