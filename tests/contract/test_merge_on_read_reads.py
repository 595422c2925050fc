"""Merge-on-read tables of the JVM, versions 6, 8 and 9: the same rows on every engine.

What a merge must give was made by the JVM too: the copy-on-write twin went through the same first four writes, and the
compaction after the fifth wrote the merged rows into base files.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from tests.contract.table_lanes import Lane
from tests.support.rows import assert_same_rows

FILE_NAME = "_hoodie_file_name"
COMMIT_TIME = "_hoodie_commit_time"
LATE = {"key-000000", "key-000001", "key-000002"}
"""Keys that the last delta commit updated, after the compaction."""


VERSIONS = ["v6", "v8", "v9"]


@dataclass(frozen=True, slots=True)
class Twins:
    """A merge-on-read table, its twin, and the instants of both, oldest first."""

    lane: Lane
    version: str
    table: hoodie.Table
    twin: hoodie.Table
    instants: list[str]
    twin_instants: list[str]

    def read(self, table: hoodie.Table | None = None, **how: object) -> pa.Table:
        """Rows of the table, or of its twin."""
        return self.lane.read(table or self.table, **how)


@pytest.fixture(scope="module", params=VERSIONS)
def twins(shared_lane: Lane, golden_tables: Path, request: pytest.FixtureRequest) -> Twins:
    """The golden tables of one version."""
    mor, cow = (
        hoodie.open(golden_tables / f"{request.param}_{kind}", spark=shared_lane.session or False)
        for kind in ("mor", "cow")
    )
    times = ([one.requested_time for one in table.timeline] for table in (mor, cow))
    return Twins(shared_lane, request.param, mor, cow, *times)


def without_file(rows: pa.Table) -> pa.Table:
    """All columns but the name of the file, which a compaction changes."""
    return rows.drop_columns([FILE_NAME])


def commit_times(rows: pa.Table) -> set[str]:
    """Instants of the commits that wrote the rows."""
    return set(rows[COMMIT_TIME].to_pylist())


@pytest.mark.matrix(keep=1)
def test_snapshots_as_of_every_instant(twins: Twins) -> None:
    pairs = list(zip(twins.instants, twins.twin_instants, strict=False))
    merged = twins.lane.read_each(twins.table, *({"as_of": instant} for instant, _ in pairs))
    plain = twins.lane.read_each(twins.twin, *({"as_of": instant} for _, instant in pairs))
    for rows, expected in zip(merged, plain, strict=True):
        assert_same_rows(rows, expected, key="uuid")
    *_, logged, compacted, last = twins.instants
    base_rows = twins.read(as_of=compacted, columns=None, view="read_optimized")
    assert {Path(name).suffix for name in base_rows[FILE_NAME].to_pylist()} == {".parquet"}
    assert_same_rows(
        without_file(twins.read(as_of=logged, columns=None)), without_file(base_rows), key="uuid", meta=True
    )
    now = twins.read(columns=None)
    assert_same_rows(now, twins.read(as_of=last, columns=None), key="uuid", meta=True)
    is_late = pc.equal(now[COMMIT_TIME], last)
    assert set(now.filter(is_late)["uuid"].to_pylist()) == LATE
    assert set(now.filter(is_late)["ts"].to_pylist()) == {6}
    rest = pc.invert(pc.is_in(base_rows["uuid"], value_set=pa.array(sorted(LATE))))
    assert_same_rows(now.filter(pc.invert(is_late)), base_rows.filter(rest), key="uuid", meta=True)


@pytest.mark.matrix(keep=1)
def test_changes_between_any_two_instants_are_rows_of_the_later_snapshot(twins: Twins) -> None:
    """In process a third of the spans for each version, all of them together; Spark reads those up to the end."""
    spans = list(itertools.combinations(twins.instants, 2))
    if twins.lane.session is None:
        spans = spans[VERSIONS.index(twins.version) :: len(VERSIONS)]
    else:
        spans = [(since, until) for since, until in spans if until == twins.instants[-1]]
    untils = sorted({until for _, until in spans})
    every = {"columns": twins.table.to_arrow().column_names}
    snapshots = dict(
        zip(untils, twins.lane.read_each(twins.table, *({"as_of": at, **every} for at in untils)), strict=True)
    )
    for since, until in spans:
        in_span = pa.array([instant for instant in twins.instants if since < instant <= until])
        expected = snapshots[until].filter(pc.is_in(snapshots[until][COMMIT_TIME], value_set=in_span))
        found = twins.lane.arrow(twins.table.changes(since, until))
        assert_same_rows(found, expected, key="uuid", meta=True)


CONDITIONS = [
    "note = 's1'",
    "ts < 6",
    "city = 'nyc' AND fare > 100",
    "uuid IN ('key-000000', 'key-000010', 'key-000050')",
    "loc.lat = 2 OR array_contains(tags, 'a')",
    "NOT (dec <=> 1.00) AND d >= DATE '2026-01-02'",
]
ONLY_SPARK = "levenshtein(note, 's1') = 0 OR ts < 3"


@pytest.mark.matrix(keep=1)
def test_conditions_look_at_merged_rows(twins: Twins) -> None:
    logged, compacted = twins.instants[-3:-1]
    wheres = [*CONDITIONS, ONLY_SPARK] if twins.lane.session is not None else CONDITIONS
    expected = twins.lane.read_each(twins.table, *({"as_of": compacted, "where": where} for where in wheres))
    found = twins.lane.read_each(twins.table, *({"as_of": logged, "where": where} for where in wheres))
    columns = ["fare", "_hoodie_partition_path", "uuid"]
    some = twins.lane.read_each(
        twins.table, *({"as_of": logged, "where": where, "columns": columns} for where in wheres)
    )
    for where, rows, part, wanted in zip(wheres, found, some, expected, strict=True):
        assert wanted.num_rows, where
        assert_same_rows(rows, wanted, key="uuid")
        assert part.column_names == columns
        assert_same_rows(part, wanted.select(["fare", "uuid"]), key="uuid")
    if twins.lane.session is None:
        with pytest.raises(hoodie.UnsupportedError):
            twins.read(as_of=logged, where=ONLY_SPARK)


@pytest.mark.matrix(keep=1)
def test_types_are_those_of_the_base_files(twins: Twins) -> None:
    merged, plain = (twins.read(columns=None, view=view) for view in ("snapshot", "read_optimized"))
    assert merged.schema == plain.schema
    if twins.lane.session is not None:
        assert twins.table.read().schema == twins.table.read(view="read_optimized").schema


@pytest.mark.matrix(keep=1)
def test_look_ups_find_merged_rows_only(twins: Twins) -> None:
    table, lane = twins.table, twins.lane
    keys = ["key-000000", "key-000010", "key-000299", "nobody"]
    found = lane.arrow(table.read_keys(keys))
    held = [key for key in keys if key in set(twins.read()["uuid"].to_pylist())]
    assert sorted(found["uuid"].to_pylist()) == held
    assert set(found.filter(pc.equal(found["uuid"], keys[0]))[COMMIT_TIME].to_pylist()) == {twins.instants[-1]}
    wanted = lane.data(pa.table({"uuid": keys, "city": ["sf", "sf", "nyc", "sf"]}))
    new = lane.arrow(table.filter_exists(wanted))
    assert sorted(new["uuid"].to_pylist()) == sorted(set(keys) - set(held))
    places = lane.arrow(table.record_locations(lane.data(pa.table({"uuid": keys}))))
    located = dict(zip(*places.select(["_hoodie_record_key", "file_id"]).to_pydict().values(), strict=True))
    assert {key for key, file_id in located.items() if file_id is not None} == set(held)
    assert located[keys[0]] == found.filter(pc.equal(found["uuid"], keys[0]))[FILE_NAME][0].as_py()


@pytest.mark.matrix(keep=1)
def test_counts_and_first_rows(twins: Twins) -> None:
    table = twins.table
    assert [table.count(as_of=instant) for instant in twins.instants] == [300, 350, 340, 340, 340, 340, 340]
    assert table.count("ts = 6") == twins.read(where="ts = 6").num_rows
    assert table.head(7, as_of=twins.instants[4]).num_rows == 7
    assert table.head(1000).num_rows == 340


@pytest.mark.matrix(keep=1)
def test_slices_tell_their_log_files(twins: Twins) -> None:
    slices = twins.table.inspect.slices().to_pylist()
    assert [(row["log_files"], row["base_rows"]) for row in slices] == [(1, 170), (1, 170)]
    assert all(0 < row["log_size_bytes"] < row["base_size_bytes"] for row in slices)
