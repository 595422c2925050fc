"""Archived timelines of the JVM in our hands and the reverse, and both archiving one table in turn."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.storage import LocalStore
from tests.interop.judges import HIVE, Jvm, create_trips, read_with_hudi_rs, to_arrow
from tests.support.archived import OFTEN, active_times, archived_times
from tests.support.deaths import run_until

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("city", pa.string())])
OURS = {**OFTEN, "hoodie.clean.automatic": "false"}
JVM_LIMITS = {**OFTEN, "hoodie.clean.automatic": "false"}

Rows = dict[str, tuple[int, str]]


def batch(rows: Rows) -> pa.Table:
    return pa.table(
        {"id": list(rows), "ts": [ts for ts, _ in rows.values()], "city": [city for _, city in rows.values()]},
        schema=SCHEMA,
    )


def model(found: pa.Table) -> Rows:
    rows = found.select(SCHEMA.names).to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: (row["ts"], row["city"]) for row in rows}


class Both:
    """One table that both write, with the rows as of each commit."""

    def __init__(self, jvm: Jvm, path: Path, table_type: str, version: int = 9) -> None:
        self.jvm, self.path, self.table_type, self.version = jvm, path, table_type, version
        self.jvm_options = {**JVM_LIMITS, **HIVE}
        self.instants: list[str] = []
        self.past: list[Rows] = []
        self.rows: Rows = {}

    def commit(self, by: str, properties: Mapping[str, str] = OURS) -> None:
        """Change two rows."""
        number = len(self.instants)
        change: Rows = {f"k{number % 5}": (number, "sf"), f"n{number % 9}": (number, "sf")}
        if by == "jvm":
            self.jvm.write_trips(
                batch(change), self.path, table_type=self.table_type, table_version=self.version,
                options=self.jvm_options,
            )  # fmt: skip
        else:
            hoodie.open(self.path, spark=False).upsert(batch(change), properties=dict(properties))
        self.rows |= change
        latest = hoodie.open(self.path, spark=False).view().timeline.writes().completed()
        newest = [found for found in latest if found.requested_time not in self.instants and found.action != "commit"]
        newest = newest if self.table_type == "MERGE_ON_READ" else list(latest)
        self.instants.append(newest[-1].requested_time)
        self.past.append(dict(self.rows))

    def changed_since(self, number: int) -> Rows:
        before = self.past[number]
        return {key: row for key, row in self.rows.items() if before.get(key) != row}

    def check_ours(self) -> None:
        """We read the table now, as of any commit, and its changes since any."""
        table = hoodie.open(self.path, spark=False)
        assert model(table.to_arrow()) == self.rows
        for number in (0, len(self.instants) // 2, len(self.instants) - 2):
            assert model(table.to_arrow(as_of=self.instants[number])) == self.past[number], number
            assert model(table.changes(since=self.instants[number])) == self.changed_since(number), number
        history = table.history(archived=True)["instant"].to_pylist()
        assert {*self.instants} <= {*history}
        assert len(history) == len({*zip(history, table.history(archived=True)["action"].to_pylist(), strict=True)})

    def check_jvm(self) -> None:
        """The JVM reads the table now, as of any commit, and its changes since any."""
        assert model(self.jvm.read(self.path)) == self.rows
        for number in (1, len(self.instants) - 2):
            as_of = self.jvm.read(self.path, options={"as.of.instant": self.instants[number]})
            assert model(as_of) == self.past[number], number
            since = self.completed[self.instants[number]]
            assert model(self.jvm.read_incremental(self.path, since)) == self.changed_since(number), number

    @property
    def completed(self) -> dict[str, str]:
        """Completion times of active and archived commits."""
        view = hoodie.open(self.path, spark=False).view()
        found = [*view.archive().completed(), *view.timeline.completed()]
        return {instant.requested_time: instant.completion_time or "" for instant in found}

    def jvm_archived(self) -> list[str]:
        """Requested times of the instants that the JVM finds in the archive."""
        commits = self.jvm.meta_client(self.path).getArchivedTimeline().getCommitsTimeline()
        return [instant.requestedTime() for instant in commits.filterCompletedInstants().getInstants()]


def test_the_jvm_archives_and_we_go_on(jvm: Jvm, tmp_path: Path) -> None:
    both = Both(jvm, tmp_path / "trips", "COPY_ON_WRITE")
    for _ in range(8):
        both.commit("jvm")
    store = hoodie.open(both.path, spark=False).view().store
    archived = archived_times(store)
    assert len(archived) >= 3
    both.check_ours()
    for _ in range(4):
        both.commit("us")
    assert len(archived_times(store)) > len(archived), "we archive on"
    assert not {*archived_times(store)} & {*active_times(store)}
    assert both.jvm_archived() == archived_times(store)
    both.check_jvm()
    both.check_ours()


@pytest.mark.parametrize(
    ("pattern", "nth"), [(r"/manifest_\d+$", 0), (r"\.commit$", 2)], ids=["before it publishes", "while it deletes"]
)
def test_the_jvm_goes_on_where_our_archiving_died(jvm: Jvm, tmp_path: Path, pattern: str, nth: int) -> None:
    path = tmp_path / "trips"
    properties = {**OURS, "hoodie.archive.automatic": "false"}
    create_trips(path, SCHEMA, properties=OFTEN, spark=False)
    both = Both(jvm, path, "COPY_ON_WRITE")
    for _ in range(8):
        both.commit("us", properties)
    shutil.copytree(path, tmp_path / "copy")
    calls = run_until(LocalStore(str(tmp_path / "copy")), lambda table: table.archive(), None).calls
    matching = [number for number, call in enumerate(calls, 1) if re.search(pattern, call.path)]
    run_until(LocalStore(str(path)), lambda table: table.archive(), matching[nth])
    store = LocalStore(str(path))
    published, left = {*archived_times(store)}, {*active_times(store)}
    assert published | left == {*both.instants}
    assert bool(published - left) == bool(published & left) == (nth > 0)
    assert model(read_with_hudi_rs(path)) == both.rows
    for _ in range(2):
        both.commit("jvm")
    archived, active = archived_times(store), active_times(store)
    assert {*archived, *active} == {*both.instants}
    assert not {*archived} & {*active}, "the JVM archived what was left"
    assert sorted({*both.jvm_archived()}) == archived
    both.check_ours()
    assert model(jvm.read(path)) == both.rows


def test_we_archive_and_the_jvm_goes_on(jvm: Jvm, tmp_path: Path) -> None:
    path = tmp_path / "trips"
    create_trips(path, SCHEMA, type="merge_on_read", properties=OFTEN, spark=False)
    both = Both(jvm, path, "MERGE_ON_READ")
    store = hoodie.open(path, spark=False).view().store
    for _ in range(24):
        both.commit("us")
    assert any(name.endswith("_1.parquet") for name in store.names(".hoodie/timeline/history")), "files were merged"
    # By default the call shows commits that are between one and ten days old.
    any_time = f"start_ts => '{'0' * 17}', end_ts => '{'9' * 17}'"
    with jvm.named(path) as name:
        shown = jvm.sql(f"CALL show_archived_commits(table => '{name}', limit => 100, {any_time})")
        assert sorted(shown["commit_time"].to_pylist()) == archived_times(store) == sorted(both.jvm_archived())
        shown = jvm.sql(f"CALL show_commits(table => '{name}', limit => 100)")["commit_time"].to_pylist()
    assert sorted(shown) == active_times(store)
    archived_by: dict[str, int] = {"us": 0, "jvm": 0}
    for number in range(36):
        before, by = len(archived_times(store)), "jvm" if number % 5 == 4 else "us"
        both.commit(by)
        archived_by[by] += len(archived_times(store)) - before
    assert min(archived_by.values()) > 0, "both archived"
    archived = archived_times(store)
    assert sorted({*archived, *active_times(store)}) == sorted([*archived, *active_times(store)])
    assert {*both.instants} <= {*archived, *active_times(store)}
    assert len(both.instants) == 60
    assert sorted(both.jvm_archived()) == archived
    both.check_ours()
    both.check_jvm()


def test_the_archive_of_version_6(jvm: Jvm, tmp_path: Path) -> None:
    both = Both(jvm, tmp_path / "trips", "COPY_ON_WRITE", version=6)
    both.jvm_options["hoodie.metadata.enable"] = "false"
    for _ in range(8):
        both.commit("jvm")
    store = hoodie.open(both.path, spark=False).view().store
    assert len(archived_times(store)) >= 4
    assert both.jvm_archived() == archived_times(store)
    both.check_ours()


def test_overlapping_writers(jvm: Jvm, tmp_path: Path) -> None:
    """The JVM's time travel goes by requested time: a commit that completed late appears in a past state."""
    path = tmp_path / "trips"
    table = create_trips(path, SCHEMA, spark=False)
    table.upsert(batch({"x": (0, "oslo")}))
    first, second = table.insert(batch({"a": (1, "sf")})).instant, table.insert(batch({"b": (1, "nyc")})).instant
    folder = path / ".hoodie" / "timeline"
    (name,), (other,) = list(folder.glob(f"{first}_*")), list(folder.glob(f"{second}_*"))
    later = str(int(other.stem.partition("_")[2]) + 5)
    name.rename(name.with_name(f"{first}_{later}.commit"))

    def ids(found: Any) -> list[str]:
        return sorted(found["id"].to_pylist())

    ours = hoodie.open(path, spark=False)
    assert ids(jvm.read(path, options={"as.of.instant": second})) == ["a", "b", "x"]
    assert ids(ours.to_arrow(as_of=f"requested:{second}")) == ["a", "b", "x"]
    assert ids(jvm.read(path, options={"as.of.instant": first})) == ["a", "x"]
    assert ids(ours.to_arrow(as_of=f"requested:{first}")) == ["a", "x"]
    # By completion time the state as of the second commit never changes.
    assert ids(ours.to_arrow(as_of=second)) == ["b", "x"]
    assert ids(ours.to_arrow(as_of=first)) == ["a", "b", "x"]
    # The JVM's incremental reads go by completion time, as ours do.
    completed = other.stem.partition("_")[2]
    assert ids(jvm.read_incremental(path, completed)) == ids(ours.changes(since=completed)) == ["a"]
    assert ids(jvm.read_incremental(path, "20200101000000000", completed)) == ["b", "x"]
    assert ids(ours.changes(since="20200101000000000", until=completed)) == ["b", "x"]


def test_the_frames_of_a_session(jvm: Jvm, tmp_path: Path) -> None:
    """`changes_since` returns a DataFrame in a Spark session."""
    path = tmp_path / "trips"
    table = create_trips(path, SCHEMA)
    table.upsert(batch({"x": (0, "oslo")}))
    place = table.changes_since().until
    table.upsert(batch({"y": (1, "oslo")}))
    found = table.changes_since(place)
    assert model(to_arrow(found.rows)) == {"y": (1, "oslo")}
    assert table.changes_since(found.until).rows.count() == 0


def test_rollbacks_of_the_jvm(jvm: Jvm, tmp_path: Path) -> None:
    """A consumer is told of a commit that the JVM took back, and not of a dead write that it removed by markers."""
    path = tmp_path / "trips"
    create_trips(path, SCHEMA, type="merge_on_read")
    both = Both(jvm, path, "MERGE_ON_READ")
    both.commit("us")
    both.commit("jvm")
    place = hoodie.open(path, spark=False).changes_since().until
    jvm.rollback(path, both.instants[-1], table_name="trips", table_version=9)
    with pytest.raises(hoodie.HistoryLostError, match=f"commit {both.instants[-1]} of .* was rolled back"):
        hoodie.open(path, spark=False).changes(place)
    with pytest.warns(hoodie.HoodieWarning, match="rolled back"):
        found = hoodie.open(path, spark=False).changes_since(place, fallback="snapshot")
    assert model(found.rows) == both.past[0]
    shutil.copytree(path, tmp_path / "copy")
    change = batch({"dead": (1, "sf"), "gone": (1, "nyc")})
    calls = run_until(LocalStore(str(tmp_path / "copy")), lambda table: table.upsert(change), None).calls
    ours = [call.path.startswith(".hoodie/timeline/") and call.path.endswith(".deltacommit") for call in calls]
    last = 1 + ours.index(True)
    run_until(LocalStore(str(path)), lambda table: table.upsert(change), last)
    (dead,) = hoodie.open(path, spark=False).timeline.pending()
    both.rows = dict(both.past[0])
    both.commit("jvm")
    table = hoodie.open(path, spark=False)
    assert not table.timeline.pending()
    assert [instant.action.value for instant in table.timeline].count("rollback") == 2
    assert model(table.changes(dead.requested_time)) == both.changed_since(0)
    assert model(jvm.read(path)) == model(table.to_arrow()) == both.rows
