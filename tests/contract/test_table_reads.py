"""Reads, time travel, incremental reads and look-ups give the same rows on every engine."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from tests.contract.table_lanes import TRIPS, Lane, trips
from tests.support.rows import META_COLUMNS, assert_same_rows

FIRST = trips(("a", 1, 1.0, "sf"), ("b", 1, 2.0, "nyc"), ("c", 1, 3.0, "sf"))
SECOND = trips(("a", 2, 9.0, "sf"), ("d", 2, 4.0, "la"))
AFTER_SECOND = trips(("a", 2, 9.0, "sf"), ("b", 1, 2.0, "nyc"), ("c", 1, 3.0, "sf"), ("d", 2, 4.0, "la"))
AFTER_DELETE = AFTER_SECOND.slice(0, 1), AFTER_SECOND.slice(2, 2)


def ids(table: pa.Table) -> list[str]:
    """The sorted values of the key column."""
    return sorted(table["id"].to_pylist())


@dataclass(frozen=True, slots=True)
class Story:
    """A table after two upserts and a delete, and the instants of its writes."""

    lane: Lane
    table: hoodie.Table
    instants: tuple[str, str, str]


@pytest.fixture(scope="module")
def story(shared_lane: Lane) -> Story:
    """The table that most of these tests read."""
    lane = shared_lane
    table = lane.table(FIRST, SECOND, partition_by="city", ordering="ts")
    table.delete(lane.data(trips(("b", 0, None, "nyc"))))
    first, second, third = (found.requested_time for found in table.timeline)
    return Story(lane, table, (first, second, third))


@pytest.mark.surface
def test_meta_columns_come_first_and_columns_in_the_order_asked_for(story: Story) -> None:
    lane, table, (first, second, _) = story.lane, story.table, story.instants
    everything = lane.read(table, columns=None)
    assert everything.schema.names == [*META_COLUMNS, *TRIPS.names]
    assert set(everything["_hoodie_commit_time"].to_pylist()) == {first, second}
    assert everything["_hoodie_record_key"].to_pylist() == everything["id"].to_pylist()
    some = lane.read(table, columns=["fare", "_hoodie_partition_path", "id"])
    assert some.schema.names == ["fare", "_hoodie_partition_path", "id"]
    with pytest.raises(hoodie.SchemaMismatchError, match="no_such"):
        lane.read(table, columns=["no_such"])


CONDITIONS = {
    "city = 'sf'": ["a", "c"],
    "city IN ('la', 'nyc') OR fare > 8": ["a", "d"],
    "fare BETWEEN 3 AND 4": ["c", "d"],
    "NOT (city = 'sf') AND ts >= 1": ["d"],
    "_hoodie_record_key = 'c'": ["c"],
    "city IS NULL": [],
    "ID LIKE '%a%' AND Fare <> 1": ["a"],
}


def test_conditions_keep_the_same_rows(story: Story) -> None:
    for columns in (TRIPS.names, ["id"]):
        found = story.lane.read_each(story.table, *({"where": where, "columns": columns} for where in CONDITIONS))
        assert dict(zip(CONDITIONS, map(ids, found), strict=True)) == CONDITIONS


def test_a_condition_on_the_partition_reads_its_files_only(story: Story) -> None:
    lane, table = story.lane, story.table
    if lane.session is not None:
        files = table.read(where="city = 'la' AND fare > 0").inputFiles()
        assert [file.rpartition("/")[0].rpartition("/")[2] for file in files] == ["city=la"]
    assert ids(lane.read(table, where="city = 'la' AND fare > 0")) == ["d"]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_fields_of_structs_are_columns(lane: Lane, kind: str) -> None:
    """In a merge-on-read table some rows come from logs."""
    inner = pa.struct([("d", pa.int64()), ("e", pa.string())])
    schema = pa.schema([("id", pa.string()), ("st", pa.struct([("A_b", pa.int64()), ("c", inner)]))])
    nested = [{"A_b": 1, "c": {"d": 10, "e": "x"}}, None, {"A_b": 3, "c": None}]
    rows = pa.table({"id": ["a", "b", "c"], "st": pa.array(nested, schema.field("st").type)}, schema=schema)
    table = lane.table(rows, rows.slice(0, 2), schema=schema, type=kind)
    expected = pa.table({"d": [10, None, None], "id": ["a", "b", "c"], "A_b": [1, None, 3]})
    assert_same_rows(lane.read(table, columns=["ST.C.D", "id", "st.a_b"]), expected, key="id")
    assert lane.read(table, columns="st.c.e", where="st.`A_b` = 1").to_pylist() == [{"e": "x"}]
    assert lane.arrow(table.read_keys(["c"], columns=["st.A_b"])).to_pylist() == [{"A_b": 3}]
    with pytest.raises(hoodie.SchemaMismatchError, match=r"st\.c\.z"):
        lane.read(table, columns=["st.c.z"])


@pytest.mark.surface
@pytest.mark.filterwarnings("ignore::hoodie.HoodieWarning")  # of the time before the first commit
def test_time_travel_shows_the_table_as_it_was(story: Story) -> None:
    lane, table, (first, second, third) = story.lane, story.table, story.instants
    between = datetime.strptime(second + "+0000", "%Y%m%d%H%M%S%f%z") - timedelta(milliseconds=1)
    now = pa.concat_tables(AFTER_DELETE)
    expected: list[tuple[dict[str, Any], pa.Table]] = [
        ({"as_of": first}, FIRST),
        ({"as_of": second}, AFTER_SECOND),
        ({"as_of": third}, now),
        ({"as_of": between}, FIRST),
        ({"as_of": datetime.now(UTC)}, now),
        ({"as_of": "2001-02-03"}, trips()),
        ({"as_of": first, "where": "city = 'nyc'"}, FIRST.slice(1, 1)),
    ]
    for found, (_, rows) in zip(lane.read_each(table, *(how for how, _ in expected)), expected, strict=True):
        assert_same_rows(found, rows, key="id")


@pytest.mark.surface
def test_changes_are_the_rows_of_the_commits_in_the_span(story: Story) -> None:
    lane, table, (first, second, third) = story.lane, story.table, story.instants

    def changed(since: str | None = None, until: str | None = None) -> pa.Table:
        return lane.arrow(table.changes(since, until)).select(TRIPS.names)

    assert_same_rows(changed(), pa.concat_tables(AFTER_DELETE), key="id")
    assert_same_rows(changed(first), SECOND, key="id")
    assert_same_rows(changed(first, second), SECOND, key="id")
    assert_same_rows(changed(second, third), trips())
    assert_same_rows(changed(third), trips())
    assert_same_rows(changed(until=first), FIRST, key="id")
    with pytest.raises(hoodie.InvalidConfigError, match="later"):
        table.changes(second, first)


def test_change_data_has_the_images_of_each_change(story: Story) -> None:
    lane, table, (first, second, third) = story.lane, story.table, story.instants
    found = lane.arrow(table.changes(mode="cdc"))
    assert found.schema.names == ["op", "ts_ms", "before", "after"]
    in_process = hoodie.open(lane.path, spark=False)
    assert_same_rows(found, in_process.changes(mode="cdc"))
    by_commit = {time: found.filter(pc.equal(found["ts_ms"], time)) for time in (first, second, third)}
    assert {*by_commit[first]["op"].to_pylist()} == {"i"}
    assert_same_rows(pa.Table.from_pylist(by_commit[first]["after"].to_pylist(), TRIPS), FIRST)
    flat = lane.arrow(table.changes(since=first, mode="cdc", flat=True))
    assert flat.schema.names[2:4] == ["before_id", "before_ts"]
    assert flat.num_rows == by_commit[second].num_rows + by_commit[third].num_rows > 0
    with pytest.raises(hoodie.InvalidConfigError, match="mode"):
        table.changes(mode="all")


def test_change_data_has_rows_that_keep_their_commit_time(lane: Lane) -> None:
    """A late row makes the deleted row of the base file visible again."""
    stored = trips(("a", 9, 1.0, "sf"), ("b", 9, 1.0, "sf"))
    table = lane.table(stored, type="mor", index="simple", ordering="ts")
    since = table.delete(["a"]).instant
    table.upsert(lane.data(trips(("a", 3, 2.0, "sf"), ("b", 3, 2.0, "sf"))))
    (change,) = lane.arrow(table.changes(since, mode="cdc")).to_pylist()
    row = {"id": "a", "ts": 9, "fare": 1.0, "city": "sf"}
    assert (change["op"], change["before"], change["after"]) == ("i", None, row)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("fare > 3", [("u", 1.0, 9.0), ("i", None, 4.0)]),
        ("fare < 2", [("u", 1.0, 9.0)]),
        ("city = 'nyc'", [("d", 2.0, None)]),
        ("length(id) = 1 AND ts IS NULL", []),
        ("`op` = 'u'", None),
    ],
)
def test_changes_have_columns_and_conditions(
    story: Story, where: str, expected: list[tuple[str, float | None, float | None]] | None
) -> None:
    lane, table, (first, second, _) = story.lane, story.table, story.instants
    if expected is None:
        with pytest.raises(hoodie.SchemaMismatchError, match="op"):
            table.changes(first, mode="cdc", where=where)
        return
    flat = lane.arrow(table.changes(first, mode="cdc", columns="fare", where=where, flat=True))
    assert flat.schema.names == ["op", "ts_ms", "before_fare", "after_fare"]
    rows = [(row["op"], row["before_fare"], row["after_fare"]) for row in flat.to_pylist()]
    assert sorted(rows, key=str) == sorted(expected, key=str)
    images = lane.arrow(table.changes(first, mode="cdc", columns=["FARE"], where=where))
    assert_same_rows(
        images, hoodie.open(lane.path, spark=False).changes(first, mode="cdc", columns="fare", where=where)
    )
    latest = lane.arrow(table.changes(first, second, columns=["id", "fare"], where=where))
    matching = lane.read(table, columns=["id", "fare"], where=f"({where}) AND id IN ('a', 'd')", as_of=second)
    assert_same_rows(latest, matching)
    batch = table.changes_since(first, second, columns=["id", "fare"], where=where)
    assert_same_rows(lane.arrow(batch.rows), matching)
    assert batch.until == table.changes_since(first, second).until


@pytest.mark.surface
def test_keys_are_looked_up_in_every_form(story: Story) -> None:
    lane, table = story.lane, story.table
    forms = {
        "list": ["a", "d", "b", "nobody"],
        "key columns": lane.data(pa.table({"id": ["a", "d", "b", "nobody"]})),
        "key and partition columns": lane.data(trips(("a", 0, 0.0, "sf"), ("d", 0, 0.0, "la"), ("c", 0, 0.0, "la"))),
        "meta columns": pa.table({"_hoodie_record_key": ["a", "d"], "_hoodie_partition_path": ["city=sf", "city=la"]}),
        "dicts": [{"id": "d"}, {"id": "a"}],
    }
    for form, keys in forms.items():
        found = lane.arrow(table.read_keys(keys)).select(TRIPS.names)
        assert ids(found) == ["a", "d"], form
    assert lane.arrow(table.read_keys("a"))["id"].to_pylist() == ["a"]


def test_none_and_many_keys_are_looked_up(story: Story) -> None:
    """More keys than a condition takes are joined."""
    lane, table = story.lane, story.table
    none: list[Any] = [[], pa.table({"id": pa.array([], pa.string())}), trips()]
    for keys in none:
        assert lane.arrow(table.read_keys(keys)).num_rows == 0
    assert ids(lane.arrow(table.read_keys(["a", *(f"nobody-{number}" for number in range(2000))]))) == ["a"]


@pytest.mark.parametrize(("index", "expected"), [("simple", ["a", "x"]), ("global_simple", ["x"])])
def test_filter_exists_keeps_rows_with_new_keys(lane: Lane, index: str, expected: list[str]) -> None:
    table = lane.create(partition_by="city", index=index)
    rows = trips(("a", 1, 1.0, "nyc"), ("c", 1, 1.0, "sf"), ("x", 1, None, "sf"))
    assert ids(lane.arrow(table.filter_exists(lane.data(rows)))) == ["a", "c", "x"]
    table.upsert(FIRST)
    new = lane.arrow(table.filter_exists(lane.data(rows)))
    assert ids(new) == expected
    assert_same_rows(new, rows.filter(pa.array([key in expected for key in rows["id"].to_pylist()])), key="id")


def test_filter_exists_takes_rows_read_from_the_table(story: Story) -> None:
    lane, table = story.lane, story.table
    rows = table.to_arrow() if lane.session is None else table.read()
    assert lane.arrow(table.filter_exists(rows)).num_rows == 0


def test_a_session_is_found_by_itself(story: Story) -> None:
    lane = story.lane
    table = hoodie.open(lane.path) if lane.session is not None else lane.open()
    assert ids(lane.arrow(table.changes())) == ["a", "c", "d"]


def test_every_commit_is_seen_at_once_by_other_handles(lane: Lane) -> None:
    table = lane.create(partition_by="city")
    other = lane.open()
    table.upsert(FIRST)
    assert ids(lane.read(other)) == ["a", "b", "c"]
    table.upsert(lane.data(SECOND))
    assert ids(lane.read(other)) == ["a", "b", "c", "d"]
