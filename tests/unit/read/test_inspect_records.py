"""What one write changed, and the states of one record, on tables of every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.format.json_values import rows_of, to_json
from hoodie.read.inspect import notes_of
from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.support.archived import OFTEN
from tests.support.tables import Rows, new_table, trips, trips_store

START = {"a": (1, "sf"), "b": (1, "nyc"), "c": (1, "sf")}
GOLDEN = [f"{version}_{kind}" for version in ("v6", "v8", "v9") for kind in ("cow", "mor")]
KINDS = [
    (table_type, index, version)
    for table_type in ("copy_on_write", "merge_on_read")
    for index, version in (("record", 9), ("simple", 9), ("record", 8), ("simple", 6))
]


def _written(table_type: str, index: str, version: int) -> Table:
    """Inserts, an update, a deletion, and an insert after it."""
    changed: Rows = {"a": (2, "sf"), "d": (1, "nyc")}
    store = trips_store(START, changed, table_type=table_type, index=index, table_version=version)
    table = Table(store)
    table.delete(trips({"b": (1, "nyc")}))
    table.upsert(trips({"b": (7, "nyc")}))
    return table


def _row(key: str, ts: int, city: str) -> dict[str, Any]:
    return {"id": key, "ts": ts, "city": city, "_hoodie_is_deleted": False}


def _times(table: Table) -> list[str]:
    return [instant.requested_time for instant in table.timeline.completed().writes()]


@pytest.mark.parametrize(("table_type", "index", "version"), KINDS)
def test_what_each_write_changed(table_type: str, index: str, version: int) -> None:
    table = _written(table_type, index, version)
    first, second, third, fourth = _times(table)
    changed = {time: table.inspect.changed(time) for time in _times(table)}
    rows = {time: {row["key"]: (row["before"], row["after"]) for row in changed[time].to_pylist()} for time in changed}
    assert rows[first] == {key: (None, _row(key, *row)) for key, row in START.items()}
    assert rows[second] == {"a": (_row("a", 1, "sf"), _row("a", 2, "sf")), "d": (None, _row("d", 1, "nyc"))}
    assert rows[third] == {"b": (_row("b", 1, "nyc"), None)}
    assert rows[fourth] == {"b": (None, _row("b", 7, "nyc"))}
    assert not any(notes_of(found) for found in changed.values())
    assert table.inspect.changed(first, 2).num_rows == 2
    assert table.inspect.changed(first, 0).num_rows == 0


@pytest.mark.parametrize(("table_type", "index", "version"), KINDS)
def test_the_states_of_a_record(table_type: str, index: str, version: int) -> None:
    table = _written(table_type, index, version)
    first, second, third, fourth = _times(table)
    found = table.inspect.record("a")
    assert (found["key"], found["row"], found["notes"]) == ("a", _row("a", 2, "sf"), [])
    assert _states(found) == [(second, _row("a", 2, "sf")), (first, _row("a", 1, "sf"))]
    slices = {row["file_id"]: row for row in table.inspect.slices().to_pylist()}
    place = found["location"]
    assert slices[place["file_id"]]["partition_path"] == place["partition_path"] == "city=sf"
    assert place["instant"] == second, "the write of the row, not of its key"
    assert place["file"] in {row["file"] for row in table.inspect.files().to_pylist()}
    again = table.inspect.record("b")
    assert _states(again) == [(fourth, _row("b", 7, "nyc")), (third, None), (first, _row("b", 1, "nyc"))]
    assert _states(table.inspect.record("b", 2)) == [(fourth, _row("b", 7, "nyc")), (third, None)]
    table.delete(trips({"a": (2, "sf")}))
    gone = table.inspect.record("a")
    assert (gone["row"], gone["location"]) == (None, None)
    assert _states(gone) == [(_times(table)[-1], None), (second, _row("a", 2, "sf")), (first, _row("a", 1, "sf"))]
    unknown = table.inspect.record("z")
    assert (unknown["row"], unknown["location"], unknown["versions"]) == (None, None, [])
    assert table.inspect.record("a", 0)["versions"] == []


def _states(found: Any) -> list[tuple[str, Any]]:
    return [(state["instant"], state["row"]) for state in found["versions"]]


@pytest.mark.parametrize("name", GOLDEN)
def test_tables_of_the_jvm(golden_tables: Path, name: str) -> None:
    """The changes of all writes, one after the other, lead to the rows of the table."""
    table = hoodie.open(golden_tables / name, spark=False)
    rows: dict[str, Any] = {}
    for time in _times(table):
        for row in table.inspect.changed(time, 10_000).to_pylist():
            assert row["before"] == rows.get(row["key"])
            rows[row["key"]] = row["after"]
    whole = table.to_arrow(columns=table.schema.names)
    assert {key: row for key, row in rows.items() if row is not None} == {row["uuid"]: row for row in whole.to_pylist()}
    now = {row["uuid"]: row for row in rows_of(whole)}
    for key in (next(key for key in rows if rows[key] is None), next(iter(now))):
        found = table.inspect.record(key)
        assert found["row"] == now.get(key)
        assert found["versions"][0]["row"] == now.get(key)
        assert (found["location"] is None) == (key not in now)


def test_a_record_that_moves_is_found_in_both_partitions() -> None:
    table = Table(trips_store(START))
    table.upsert(trips({"a": (5, "nyc")}))
    changed = {
        (row["before"] is None, row["after"] is None) for row in table.inspect.changed(_times(table)[1]).to_pylist()
    }
    assert changed == {(True, False), (False, True)}
    found = table.inspect.record("a")
    assert [state["row"]["city"] for state in found["versions"]] == ["nyc", "sf"]
    assert found["location"]["partition_path"] == "city=nyc"


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_the_states_are_of_one_record_if_two_partitions_have_its_key(table_type: str) -> None:
    nyc, sf = {"a": (1, "nyc")}, {"a": (2, "sf")}
    table = Table(trips_store(nyc, sf, {"a": (3, "nyc")}, index="simple", table_type=table_type))
    first, second, third = _times(table)
    found = table.inspect.record("a")
    assert _states(found) == [(third, _row("a", 3, "nyc")), (first, _row("a", 1, "nyc"))]
    assert found["location"]["partition_path"] == "city=nyc"
    assert found["notes"] == ["other records have this key, in the partitions city=sf: the states here are of city=nyc"]
    table.delete(trips({"a": (3, "nyc")}))
    other = table.inspect.record("a")
    assert (_states(other), other["notes"]) == ([(second, _row("a", 2, "sf"))], [])
    table.delete(trips(sf))
    gone = table.inspect.record("a")
    assert (gone["row"], _states(gone)) == (None, [(_times(table)[-1], None), (second, _row("a", 2, "sf"))])


def test_dates_after_the_year_9999() -> None:
    columns = {"id": ["a"], "day": pa.array([4_000_000], pa.int32()).cast(pa.date32())}
    table = new_table(pa.table(columns).schema)
    table.upsert(pa.table(columns))
    found = table.inspect.record("a")
    assert found["row"] == found["versions"][0]["row"] == {"id": "a", "day": "+12921-08-18"}
    assert "+12921-08-18" in to_json(found)


@pytest.mark.parametrize("index", ["record", "simple"])
def test_a_record_before_a_clustering(index: str) -> None:
    table = Table(trips_store(START, {"a": (2, "sf")}, index=index))
    assert table.schedule_clustering("ts")
    table.cluster()
    table.upsert(trips({"a": (3, "sf")}))
    first, second, clustering, last = _times(table)
    assert _states(table.inspect.record("a")) == [
        (time, _row("a", ts, "sf")) for time, ts in ((last, 3), (second, 2), (first, 1))
    ]
    moved = table.inspect.changed(clustering)
    assert (moved.num_rows, notes_of(moved)) == (0, ("the operation cluster moves rows and changes none",))


def test_states_whose_files_a_clean_deleted_end_with_a_note() -> None:
    store = trips_store(*({"a": (ts, "sf")} for ts in range(1, 6)))
    table = Table(store)
    table.clean(properties={"hoodie.clean.commits.retained": "1"})
    found = table.inspect.record("a", 10)
    assert 0 < len(found["versions"]) < 5
    assert "cannot be read any more" in found["notes"][0]
    lost = table.inspect.changed(_times(table)[1])
    assert lost.num_rows == 0
    assert "not all changes can be read any more" in notes_of(lost)[0]


def test_archived_states_end_with_a_note() -> None:
    store = trips_store({"b": (1, "sf")})
    table = Table(store)
    for ts in range(1, 12):
        table.upsert(trips({"a": (ts, "sf")}), properties={**OFTEN, "hoodie.clean.commits.retained": "20"})
    table.upsert(trips({"a": (12, "sf")}), properties=OFTEN)
    assert table.view().has_archived_instants()
    found = table.inspect.record("a", 100)
    assert found["versions"][0]["row"]["ts"] == 12
    assert len(found["notes"]) == 1


def test_an_archived_deletion_ends_with_a_note() -> None:
    table = Table(trips_store({"a": (1, "sf"), "b": (1, "sf")}))
    table.delete(trips({"a": (1, "sf")}))
    for ts in range(2, 12):
        table.upsert(trips({"b": (ts, "sf")}), properties=OFTEN)
    assert table.view().has_archived_instants()
    found = table.inspect.record("a")
    assert (found["row"], found["versions"]) == (None, [])
    assert found["notes"] == ["earlier states may be of archived writes, which are not looked up"]


def test_late_rows_have_their_own_key() -> None:
    """In a table with ordering columns a late row does not win, and keeps the key of the record in the answer."""
    table = Table(trips_store({"a": (5, "sf")}, {"a": (3, "sf")}, {"a": (9, "sf")}, table_type="merge_on_read"))
    found = [table.inspect.changed(time).to_pylist() for time in _times(table)]
    assert [[row["key"] for row in rows] for rows in found] == [["a"], [], ["a"]]


def test_automatic_keys() -> None:
    rows = pa.table({"x": [1, 2]})
    table = hoodie.create(MemoryStore().uri(""), rows.schema, spark=False)
    table.insert(rows)
    changed = table.inspect.changed(_times(table)[0]).to_pylist()
    assert [row["after"] for row in changed] == [{"x": 1}, {"x": 2}]
    found = table.inspect.record(changed[0]["key"])
    assert (found["row"], len(found["versions"])) == ({"x": 1}, 1)


def test_what_is_no_completed_write_is_refused() -> None:
    table = Table(trips_store(START))
    with pytest.raises(hoodie.InstantNotFoundError, match="20200101000000000"):
        table.inspect.changed("20200101000000000")
    time = table.timeline.completed().instants[0].requested_time
    plain = new_table(properties={"hoodie.populate.meta.fields": "false"}, index="simple")
    plain.upsert({"id": ["a"], "ts": [1], "city": ["sf"]})
    for call in (lambda: plain.inspect.changed(time), lambda: plain.inspect.record("a")):
        with pytest.raises(hoodie.UnsupportedError, match="without meta fields"):
            call()
