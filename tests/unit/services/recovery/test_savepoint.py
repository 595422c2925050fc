"""Savepoints: what they name, when they are refused, and what a dead process leaves of one."""

from __future__ import annotations

import pytest

import hoodie
from hoodie.cli.words import in_words
from hoodie.format.instants.service_metadata import SavepointMetadata
from hoodie.services.recovery import savepoint
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import Action
from hoodie.view.table_view import TableView
from tests.support.deaths import deaths, die
from tests.support.fault_store import CrashPoint
from tests.support.refusals import refused
from tests.support.tables import copy_of, rows_of, trips, trips_store


@pytest.fixture
def store() -> MemoryStore:
    """A table with two commits."""
    return trips_store({"a": (1, "sf"), "b": (1, "la")}, {"a": (2, "sf")})


def test_a_savepoint_names_the_files_as_of_its_commit(store: MemoryStore) -> None:
    table = Table(store)
    first, _ = table.timeline.completed().instants
    done = table.savepoint(first.requested_time, user="ann", comment="before the upgrade")
    assert done.instant == first.requested_time
    assert done.counts == {"partitions": 2, "files": 2}
    (saved,) = table.savepoints()
    assert (saved.user, saved.comment, saved.instant) == ("ann", "before the upgrade", first.requested_time)
    assert all(first.requested_time in name for names in saved.files.values() for name in names)
    again = table.savepoint(first.requested_time)
    assert "exists already" in again.notes[0]


def test_the_newest_commit_is_the_default(store: MemoryStore) -> None:
    table = Table(store)
    latest = table.timeline.latest()
    assert latest is not None
    assert table.savepoint().instant == latest.requested_time
    table.delete_savepoint(latest.requested_time)
    assert table.savepoints() == ()
    assert Table(store).timeline.get(latest.requested_time, Action.SAVEPOINT) is None
    table.upsert(trips({"c": (1, "sf")}))


def test_what_cannot_be_kept_is_refused(store: MemoryStore) -> None:
    table = Table(store)
    for call, told in (table.savepoint, "no completed commit 123"), (table.delete_savepoint, "no savepoint 123"):
        with refused(table, told, error=hoodie.InstantNotFoundError):
            call("123")


def test_a_clean_that_is_planned_meanwhile_is_noticed(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JVM that is the only one to write takes no lock."""
    for version in (3, 4):
        Table(store).upsert(trips({"a": (version, "sf")}))
    other = copy_of(store)
    Table(other).clean(properties={"hoodie.clean.commits.retained": "1"})
    (planned,) = [info for info in other.list(".hoodie/timeline") if info.name.endswith(".clean.requested")]
    plan = savepoint.plan_savepoint

    def overtaken(view: TableView, commit: str, *, user: str = "", comment: str = "") -> SavepointMetadata:
        saved = plan(view, commit, user=user, comment=comment)
        store.create(planned.path, other.read(planned.path))
        return saved

    monkeypatch.setattr(savepoint, "plan_savepoint", overtaken)
    first = Table(store).timeline.completed().instants[0].requested_time
    with pytest.raises(hoodie.UnsupportedError, match="a clean deleted files that it needs"):
        Table(store).savepoint(first)
    assert Table(store).savepoints() == ()


def test_a_dead_savepoint_is_completed_or_deleted(store: MemoryStore) -> None:
    for death in deaths(store, lambda table: table.savepoint()):
        table = Table(death.store)
        assert table.upsert(trips({"z": (1, "sf")})).inserted == 1, str(death)
        instant = table.timeline.completed().writes().instants[1].requested_time
        table.savepoint(instant)
        assert [found.instant for found in table.savepoints()] == [instant]
    for death in deaths(store, lambda table: table.savepoint(), since=".savepoint.inflight"):
        table = Table(death.store)
        instant = table.timeline.completed().writes().instants[1].requested_time
        if table.timeline.get(instant, Action.SAVEPOINT) is not None:
            table.delete_savepoint(instant)
        assert [found for found in table.timeline if found.action is Action.SAVEPOINT] == []


@pytest.mark.parametrize("version", [6, 9])
def test_a_half_done_savepoint_is_named_with_the_calls_that_end_it(version: int) -> None:
    """A rollback, the remedy for other pending instants, would take back its commit."""
    limits = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "2"}
    off = {"hoodie.archive.automatic": "false", "hoodie.metadata.compact.max.delta.commits": "2"}
    store = trips_store({"a": (1, "sf")}, properties={**limits, **off}, table_version=version)
    die(store, lambda table: table.savepoint(), ".savepoint.inflight", point=CrashPoint.AFTER)
    for ts in range(2, 8):
        Table(store).upsert(trips({"a": (ts, "sf")}), properties={"hoodie.clean.automatic": "false"})
    table = Table(store)
    commit = table.timeline.writes().instants[0].requested_time
    ends = f"t.savepoint('{commit}') completes it, t.delete_savepoint('{commit}') removes it"
    assert table.verify().warnings["savepoint-pending"] == 1
    assert ends in table.archive().notes[0]
    move = table.downgrade if version == 9 else table.upgrade
    (named,) = move(8).in_the_way
    assert ends in named
    assert in_words(named, "trips").endswith(f"`hoodie savepoint delete trips {commit}` removes it")
    assert f"`hoodie savepoint create trips {commit}`" in in_words(named, "trips")
    with refused(table, f"unfinished savepoint keeps {commit}", "t.delete_savepoint", error=hoodie.UnsupportedError):
        table.rollback(commit, chain=True)
    table.savepoint(commit)
    assert "savepoint-pending" not in table.verify().warnings
    assert [found.instant for found in table.savepoints()] == [commit]


def test_no_row_vanishes_if_later_commits_are_archived() -> None:
    beyond = {
        "hoodie.clean.automatic": "false",
        "hoodie.archive.automatic": "false",
        "hoodie.archive.beyond.savepoint": "true",
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "4",
        "hoodie.clean.commits.retained": "2",
        "hoodie.metadata.compact.max.delta.commits": "2",
    }
    store = trips_store(properties=beyond)
    saved = ""
    for number in range(6):
        done = Table(store).upsert(trips({f"k{number}": (number, f"p{number}")}))
        if number == 1:
            saved = Table(store).savepoint().instant or ""
    Table(store).archive()
    rows = rows_of(store)
    start = Table(store).timeline.start
    assert start is not None
    assert saved < start
    for death in deaths(store, lambda table: table.delete_savepoint(saved)):
        assert rows_of(death.store) == rows, str(death)
    Table(store).delete_savepoint(saved)
    assert rows_of(store) == rows
    assert Table(store).timeline.start == start
    done = Table(store).upsert(trips({"k2": (99, "p2")}))
    assert (done.inserted, done.updated) == (0, 1)
