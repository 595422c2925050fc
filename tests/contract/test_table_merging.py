"""Which version of a record stays, and in which partition: the same on every engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from tests.contract.table_lanes import ON_WORKERS, TRIPS, Lane, trips
from tests.support.rows import assert_same_rows
from tests.support.tables import table_of

DELETABLE = TRIPS.append(pa.field("_hoodie_is_deleted", pa.bool_()))
MARKED = TRIPS.append(pa.field("op", pa.string()))


@dataclass(frozen=True)
class Case:
    """A table with the rows of `stored`, a write of `rows` by the engine, and what is there then."""

    stored: pa.Table | None
    rows: pa.Table
    expected: pa.Table
    options: dict[str, Any] = field(default_factory=dict)
    counts: tuple[int, int, int] | None = None
    key: tuple[str, ...] = ("id",)


def deletable(*rows: tuple[str, int, str, bool | None]) -> pa.Table:
    """Rows that say whether they delete their key: id, ts, city, deleted."""
    return table_of(DELETABLE, *((key, ts, 1.0, city, deleted) for key, ts, city, deleted in rows))


def marked(*rows: tuple[str, int, str]) -> pa.Table:
    """Rows with a marker: id, ts, op."""
    return table_of(MARKED, *((key, ts, 1.0, "sf", op) for key, ts, op in rows))


DOUBLED = trips(("a", 1, 1.0, "sf"), ("a", 3, 3.0, "sf"), ("b", 2, 1.0, "sf"), ("b", 2, 2.0, "sf"), ("a", 2, 2.0, "sf"))
MERGED = trips(("a", 3, 3.0, "sf"), ("b", 2, 2.0, "sf"))
GLOBAL = {"ordering": "ts", "index": "global_simple"}
STAYS = {"index": "global_simple", "properties": {"hoodie.simple.index.update.partition.path": "false"}}
CASES = {
    "event time keeps the higher ordering value": Case(
        trips(("a", 5, 1.0, "sf"), ("b", 5, 1.0, "sf"), ("c", 5, 1.0, "sf"), ("d", None, 1.0, "sf")),
        trips(("a", 4, 2.0, "sf"), ("b", 5, 2.0, "sf"), ("c", 6, 2.0, "sf"), ("d", 0, 2.0, "sf")),
        trips(("a", 5, 1.0, "sf"), ("b", 5, 2.0, "sf"), ("c", 6, 2.0, "sf"), ("d", 0, 2.0, "sf")),
        {"ordering": "ts"},
    ),
    **{
        f"duplicates of a batch are merged by the same rule, {index}, {name}": Case(
            stored, DOUBLED, MERGED, {"ordering": "ts", "index": index}
        )
        for index in ("simple", "global_simple", "record")
        for name, stored in (("new", None), ("stored", MERGED))
    },
    "the last duplicate of a batch wins without ordering": Case(
        None, trips(("a", 3, 1.0, "sf"), ("a", 1, 2.0, "sf"), ("a", 2, 3.0, "sf")), trips(("a", 2, 3.0, "sf"))
    ),
    "rows that say so delete their key": Case(
        deletable(("a", 5, "sf", False), ("b", 5, "sf", None), ("c", 5, "sf", False), ("d", 5, "sf", True)),
        deletable(("a", 6, "sf", True), ("b", 4, "sf", True), ("z", 1, "sf", True)),
        deletable(("b", 5, "sf", None), ("c", 5, "sf", False)),
        {"ordering": "ts"},
        (0, 0, 1),
    ),
    "the marker of a delete field deletes": Case(
        marked(("a", 1, "I"), ("b", 1, "I")),
        marked(("a", 2, "D"), ("b", 2, "U")),
        marked(("b", 2, "U")),
        {"properties": {"hoodie.payload.delete.field": "op", "hoodie.payload.delete.marker": "D"}},
    ),
    **{
        f"a record moves to its new partition with {index}, {name}": Case(
            trips(("a", 5, 1.0, "sf"), ("b", 5, 1.0, "sf"), ("c", 5, 1.0, "nyc")),
            trips(("a", 6, 2.0, "nyc"), ("b", 4, 2.0, "la"), ("c", 6, 2.0, "nyc")),
            trips(("a", 6, 2.0, "nyc"), ("b", 5, 1.0, "sf"), ("c", 6, 2.0, "nyc")),
            {"ordering": "ts", "index": index, "properties": properties},
            (0, 2, 0),
        )
        for index, name, properties in (
            ("global_simple", "small", {}),
            ("global_simple", "on workers", ON_WORKERS),
            ("global_bloom", "on workers", ON_WORKERS),
        )
    },
    "keys of one batch meet across partitions with a global index": Case(
        None, trips(("a", 1, 1.0, "sf"), ("a", 3, 3.0, "nyc"), ("a", 2, 2.0, "la")), trips(("a", 3, 3.0, "nyc")), GLOBAL
    ),
    **{
        f"the newest of a row and a delete counts though the record lies elsewhere, {index}": Case(
            deletable(*((key, 5, "sf", False) for key in "abcd")),
            deletable(
                *(("a", 7, "nyc", True), ("a", 6, "nyc", False), ("b", 6, "nyc", True), ("b", 7, "nyc", False)),
                *(("c", 4, "nyc", True), ("c", 3, "nyc", False), ("n", 2, "nyc", True), ("n", 1, "nyc", False)),
            ),
            deletable(("b", 7, "nyc", False), ("c", 5, "sf", False), ("d", 5, "sf", False)),
            {"ordering": "ts", "index": index},
        )
        for index in ("global_simple", "global_bloom", "record")
    },
    "a table without partitions and with a key of two columns": Case(
        trips(("a", 1, 1.0, "sf"), ("a", 1, 1.0, "nyc"), ("b", 1, None, "sf")),
        trips(("a", 1, 0.5, "sf"), ("a", 1, 2.0, "nyc"), ("b", 1, 0.0, "sf")),
        trips(("a", 1, 1.0, "sf"), ("a", 1, 2.0, "nyc"), ("b", 1, 0.0, "sf")),
        {"record_key": ["id", "city"], "ordering": ["ts", "fare"], "partition_by": None},
        key=("id", "city"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_write_leaves_the_versions_and_places_that_count(lane: Lane, name: str) -> None:
    case = CASES[name]
    options = {"partition_by": "city", **case.options}
    stored = () if case.stored is None else (case.stored,)
    table = lane.table(*stored, schema=case.rows.schema, **options)
    result = table.upsert(lane.data(case.rows))
    if case.counts is not None:
        assert (result.inserted, result.updated, result.deleted) == case.counts
    found = lane.read(table, columns=["_hoodie_record_key", "_hoodie_partition_path", *table.schema.names])
    assert_same_rows(found, case.expected, key=case.key)
    for row in found.to_pylist():
        assert row["_hoodie_partition_path"] == (f"city={row['city']}" if options["partition_by"] else "")
        is_one = case.key == ("id",)
        assert row["_hoodie_record_key"] == (row["id"] if is_one else f"id:{row['id']},city:{row['city']}")


def test_a_record_stays_in_its_partition_if_it_is_not_to_move(lane: Lane) -> None:
    table = lane.table(trips(("a", 1, 1.0, "sf")), partition_by="city", **STAYS)
    table.upsert(lane.data(trips(("a", 2, 2.0, "nyc"), ("b", 2, 2.0, "nyc"))))
    found = lane.read(table, columns=["_hoodie_partition_path", "id", "ts"])
    assert sorted(tuple(row.values()) for row in found.to_pylist()) == [("city=nyc", "b", 2), ("city=sf", "a", 2)]


def test_a_global_index_deletes_by_key_alone(lane: Lane) -> None:
    table = lane.table(trips(("a", 5, 1.0, "sf"), ("b", 5, 1.0, "nyc")), partition_by="city", **GLOBAL)
    assert table.delete(lane.data(pa.table({"id": ["b", "nobody"]}))).deleted == 1
    assert_same_rows(lane.read(table), trips(("a", 5, 1.0, "sf")), key="id")


@pytest.mark.parametrize("properties", [{}, ON_WORKERS], ids=["small", "on-workers"])
def test_a_custom_merger_of_the_program_decides(
    lane: Lane, properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is named where nobody registered it."""

    def sum_fares(older: pa.Table, newer: pa.Table) -> tuple[pa.Table, pa.BooleanArray]:
        import pyarrow.compute

        fares = pyarrow.compute.add(older["fare"], newer["fare"])
        merged = newer.set_column(newer.schema.get_field_index("fare"), newer.schema.field("fare"), fares)
        return merged, pyarrow.compute.equal(fares, 0.0).combine_chunks()

    table = lane.create(partition_by="city", merge_mode=sum_fares, properties=properties)
    table.upsert(lane.data(trips(("a", 1, 1.0, "sf"), ("a", 2, 2.0, "sf"), ("b", 1, 5.0, "sf"), ("c", 1, 7.0, "nyc"))))
    table.upsert(lane.data(trips(("a", 3, 10.0, "sf"), ("b", 2, -5.0, "sf"))))
    assert_same_rows(lane.read(table), trips(("a", 3, 13.0, "sf"), ("c", 1, 7.0, "nyc")), key="id")
    monkeypatch.setattr("hoodie.records.merging.mergers._REGISTERED", {})
    with pytest.raises(hoodie.InvalidConfigError, match="sum_fares"):
        table.upsert(lane.data(trips(("a", 1, 1.0, "sf"))))
