"""Which version of a record stays, and in which partition: the same on every engine."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from tests.contract.table_lanes import ON_WORKERS, TRIPS, Lane, table_of, trips
from tests.support.rows import assert_same_rows

DELETABLE = TRIPS.append(pa.field("_hoodie_is_deleted", pa.bool_()))


def test_event_time_keeps_the_higher_ordering_value(lane: Lane) -> None:
    table = lane.create(partition_by="city", ordering="ts")
    table.upsert(
        lane.data(trips(("a", 5, 1.0, "sf"), ("b", 5, 1.0, "sf"), ("c", 5, 1.0, "sf"), ("d", None, 1.0, "sf")))
    )
    table.upsert(lane.data(trips(("a", 4, 2.0, "sf"), ("b", 5, 2.0, "sf"), ("c", 6, 2.0, "sf"), ("d", 0, 2.0, "sf"))))
    expected = trips(("a", 5, 1.0, "sf"), ("b", 5, 2.0, "sf"), ("c", 6, 2.0, "sf"), ("d", 0, 2.0, "sf"))
    assert_same_rows(lane.read(table), expected, key="id")


def test_commit_time_keeps_the_later_commit(lane: Lane) -> None:
    table = lane.create(partition_by="city", ordering="ts", merge_mode="commit_time")
    table.upsert(lane.data(trips(("a", 5, 1.0, "sf"))))
    table.upsert(lane.data(trips(("a", 4, 2.0, "sf"))))
    assert_same_rows(lane.read(table), trips(("a", 4, 2.0, "sf")), key="id")


@pytest.mark.parametrize("index", ["simple", "global_simple", "record"])
def test_duplicates_inside_a_batch_are_merged_by_the_same_rule(lane: Lane, index: str) -> None:
    rows = trips(
        ("a", 1, 1.0, "sf"), ("a", 3, 3.0, "sf"), ("b", 2, 1.0, "sf"), ("b", 2, 2.0, "sf"), ("a", 2, 2.0, "sf")
    )
    table = lane.create(partition_by="city", ordering="ts", index=index)
    expected = trips(("a", 3, 3.0, "sf"), ("b", 2, 2.0, "sf"))
    for _ in range(2):
        table.upsert(lane.data(rows))
        assert_same_rows(lane.read(table), expected, key="id")


def test_the_last_duplicate_of_a_batch_wins_without_ordering(lane: Lane) -> None:
    table = lane.create(partition_by="city")
    table.upsert(lane.data(trips(("a", 3, 1.0, "sf"), ("a", 1, 2.0, "sf"), ("a", 2, 3.0, "sf"))))
    assert_same_rows(lane.read(table), trips(("a", 2, 3.0, "sf")), key="id")


@pytest.mark.parametrize("properties", [{}, ON_WORKERS], ids=["small", "on-workers"])
def test_a_custom_merger_of_the_program_decides(lane: Lane, properties: dict[str, str]) -> None:
    def sum_fares(older: pa.Table, newer: pa.Table) -> tuple[pa.Table, pa.BooleanArray]:
        import pyarrow.compute

        fares = pyarrow.compute.add(older["fare"], newer["fare"])
        merged = newer.set_column(newer.schema.get_field_index("fare"), newer.schema.field("fare"), fares)
        return merged, pyarrow.compute.equal(fares, 0.0).combine_chunks()

    table = lane.create(partition_by="city", merge_mode=sum_fares, properties=properties)
    table.upsert(lane.data(trips(("a", 1, 1.0, "sf"), ("a", 2, 2.0, "sf"), ("b", 1, 5.0, "sf"), ("c", 1, 7.0, "nyc"))))
    table.upsert(lane.data(trips(("a", 3, 10.0, "sf"), ("b", 2, -5.0, "sf"))))
    assert_same_rows(lane.read(table), trips(("a", 3, 13.0, "sf"), ("c", 1, 7.0, "nyc")), key="id")


def test_rows_that_say_so_delete_their_key(lane: Lane) -> None:
    def rows(*found: tuple[str, int, bool | None]) -> pa.Table:
        return table_of(DELETABLE, *((key, ts, 1.0, "sf", gone) for key, ts, gone in found))

    table = lane.create(DELETABLE, partition_by="city", ordering="ts")
    table.upsert(lane.data(rows(("a", 5, False), ("b", 5, None), ("c", 5, False), ("d", 5, True))))
    result = table.upsert(lane.data(rows(("a", 6, True), ("b", 4, True), ("z", 1, True))))
    assert (result.inserted, result.updated, result.deleted) == (0, 0, 1)
    assert_same_rows(lane.read(table), rows(("b", 5, None), ("c", 5, False)), key="id")


def test_the_marker_of_a_delete_field_deletes(lane: Lane) -> None:
    schema = TRIPS.append(pa.field("op", pa.string()))
    properties = {"hoodie.payload.delete.field": "op", "hoodie.payload.delete.marker": "D"}
    table = lane.create(schema, partition_by="city", properties=properties)
    table.upsert(lane.data(table_of(schema, ("a", 1, 1.0, "sf", "I"), ("b", 1, 1.0, "sf", "I"))))
    table.upsert(lane.data(table_of(schema, ("a", 2, 1.0, "sf", "D"), ("b", 2, 2.0, "sf", "U"))))
    assert_same_rows(lane.read(table), table_of(schema, ("b", 2, 2.0, "sf", "U")), key="id")


@pytest.mark.parametrize(
    ("index", "properties"),
    [("global_simple", {}), ("global_simple", ON_WORKERS), ("global_bloom", ON_WORKERS)],
    ids=["small", "on-workers", "bloom-on-workers"],
)
def test_a_record_moves_to_its_new_partition_with_a_global_index(
    lane: Lane, index: str, properties: dict[str, str]
) -> None:
    table = lane.create(partition_by="city", ordering="ts", index=index, properties=properties)
    table.upsert(lane.data(trips(("a", 5, 1.0, "sf"), ("b", 5, 1.0, "sf"), ("c", 5, 1.0, "nyc"))))
    result = table.upsert(lane.data(trips(("a", 6, 2.0, "nyc"), ("b", 4, 2.0, "la"), ("c", 6, 2.0, "nyc"))))
    assert (result.inserted, result.updated, result.deleted) == (0, 2, 0)
    expected = trips(("a", 6, 2.0, "nyc"), ("b", 5, 1.0, "sf"), ("c", 6, 2.0, "nyc"))
    assert_same_rows(lane.read(table), expected, key="id")
    paths = lane.read(table, columns=["_hoodie_record_key", "_hoodie_partition_path"])
    assert dict(zip(*paths.to_pydict().values(), strict=True)) == {"a": "city=nyc", "b": "city=sf", "c": "city=nyc"}


def test_a_record_stays_in_its_partition_if_it_is_not_to_move(lane: Lane) -> None:
    properties = {"hoodie.simple.index.update.partition.path": "false"}
    table = lane.create(partition_by="city", index="global_simple", properties=properties)
    table.upsert(lane.data(trips(("a", 1, 1.0, "sf"))))
    table.upsert(lane.data(trips(("a", 2, 2.0, "nyc"), ("b", 2, 2.0, "nyc"))))
    found = lane.read(table, columns=["_hoodie_partition_path", "id", "ts"])
    assert sorted(found.to_pylist(), key=lambda row: row["id"]) == [
        {"_hoodie_partition_path": "city=sf", "id": "a", "ts": 2},
        {"_hoodie_partition_path": "city=nyc", "id": "b", "ts": 2},
    ]


def test_keys_of_one_batch_meet_across_partitions_with_a_global_index(lane: Lane) -> None:
    table = lane.create(partition_by="city", ordering="ts", index="global_simple")
    table.upsert(lane.data(trips(("a", 1, 1.0, "sf"), ("a", 3, 3.0, "nyc"), ("a", 2, 2.0, "la"))))
    assert_same_rows(lane.read(table), trips(("a", 3, 3.0, "nyc")), key="id")


@pytest.mark.parametrize("index", ["global_simple", "global_bloom", "record"])
def test_the_newest_of_a_row_and_a_delete_counts_though_the_record_lies_elsewhere(lane: Lane, index: str) -> None:
    def rows(*found: tuple[str, int, str, bool]) -> pa.Table:
        return table_of(DELETABLE, *((key, ts, 1.0, city, gone) for key, ts, city, gone in found))

    table = lane.create(DELETABLE, partition_by="city", ordering="ts", index=index)
    table.upsert(lane.data(rows(*((key, 5, "sf", False) for key in "abcd"))))
    batch = [("a", 7, "nyc", True), ("a", 6, "nyc", False), ("b", 6, "nyc", True), ("b", 7, "nyc", False)]
    batch += [("c", 4, "nyc", True), ("c", 3, "nyc", False), ("new", 2, "nyc", True), ("new", 1, "nyc", False)]
    table.upsert(lane.data(rows(*batch)))
    expected = rows(("b", 7, "nyc", False), ("c", 5, "sf", False), ("d", 5, "sf", False))
    assert_same_rows(lane.read(table), expected, key="id")


def test_a_global_index_deletes_by_key_alone(lane: Lane) -> None:
    table = lane.create(partition_by="city", ordering="ts", index="global_simple")
    table.upsert(lane.data(trips(("a", 5, 1.0, "sf"), ("b", 5, 1.0, "nyc"))))
    assert table.delete(lane.data(pa.table({"id": ["b", "nobody"]}))).deleted == 1
    assert_same_rows(lane.read(table), trips(("a", 5, 1.0, "sf")), key="id")


def test_a_table_without_partitions_and_with_a_key_of_two_columns(lane: Lane) -> None:
    table = lane.create(record_key=["id", "city"], ordering=["ts", "fare"])
    table.upsert(lane.data(trips(("a", 1, 1.0, "sf"), ("a", 1, 1.0, "nyc"), ("b", 1, None, "sf"))))
    table.upsert(lane.data(trips(("a", 1, 0.5, "sf"), ("a", 1, 2.0, "nyc"), ("b", 1, 0.0, "sf"))))
    expected = trips(("a", 1, 1.0, "sf"), ("a", 1, 2.0, "nyc"), ("b", 1, 0.0, "sf"))
    assert_same_rows(lane.read(table), expected, key=["id", "city"])
    keys = lane.read(table, columns=["_hoodie_record_key"])["_hoodie_record_key"]
    assert pc.all(pc.is_in(keys, pa.array(["id:a,city:sf", "id:a,city:nyc", "id:b,city:sf"]))).as_py()


def test_a_merger_nobody_registered_is_named(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    def keep_newer(older: pa.Table, newer: pa.Table) -> pa.Table:
        return newer

    table = lane.create(merge_mode=keep_newer)
    monkeypatch.setattr("hoodie.records.merging.mergers._REGISTERED", {})
    with pytest.raises(hoodie.InvalidConfigError, match="keep_newer"):
        table.upsert(lane.data(trips(("a", 1, 1.0, "sf"))))
