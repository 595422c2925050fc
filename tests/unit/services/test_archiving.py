"""Archiving of the data table's timeline: what is archived, what stays, and tables that live on with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from hoodie.errors import InvalidConfigError
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import Action, Heartbeat, TimelineArchive, create_completed
from hoodie.view.table_view import TableView
from tests.support.archived import OFTEN, active_times, archived_times
from tests.support.deaths import check_tidy
from tests.support.fault_store import Call, FaultStore
from tests.support.refusals import refused
from tests.support.steps import begin
from tests.support.tables import Rows, made_once, rows_of, trips, trips_store

OFF = {"hoodie.archive.automatic": "false", "hoodie.clean.automatic": "false"}


@pytest.fixture
def store() -> MemoryStore:
    """An empty copy-on-write table whose limits are small."""
    return trips_store(properties=OFTEN)


def write(store: MemoryStore, count: int, *, first: int = 0, options: Mapping[str, str] = OFF) -> list[str]:
    """Commit `count` times one changing row; return the instants."""
    table = Table(store)
    return [
        table.upsert(trips({f"k{number % 4}": (number, "sf")}), properties=options).instant
        for number in range(first, first + count)
    ]


@made_once
def written(count: int) -> MemoryStore:
    """The table with so many commits, of which none was archived."""
    store = trips_store(properties=OFTEN)
    write(store, count)
    return store


@pytest.mark.parametrize(("table_type", "commits"), [("copy_on_write", 20), ("merge_on_read", 32)])
def test_a_table_lives_through_many_commits(table_type: str, commits: int) -> None:
    store = trips_store(table_type=table_type, properties={**OFTEN, "hoodie.compact.inline": "true"})
    table, rows, instants = Table(store), Rows(), list[str]()
    for number in range(commits):
        change = {f"k{number % 7}": (number, "sf")}
        result = table.upsert(trips(change))
        rows |= change
        instants.append(result.instant)
        assert not [note for service in result.services for note in service.notes]
    assert rows_of(store) == rows
    check_tidy(store)
    archived, active = archived_times(store), active_times(store)
    assert sorted({*archived, *active} & {*instants}) == instants
    assert not {*archived} & {*active}
    assert len(active) <= 8
    names = [info.path for info in store.list(".hoodie/timeline", recursive=True)]
    assert len(names) <= 45, "the folder of the timeline grows"
    assert Table(store).changes(since=instants[-2]).num_rows == 1


def test_more_commits_than_the_maximum_are_archived() -> None:
    store = written(9)
    instants = active_times(store)
    planned = Table(store).archive(dry_run=True)
    assert planned.dry_run
    assert planned.counts["commits"] == 6
    assert active_times(store) == instants
    done = Table(store).archive()
    assert {**done.counts} == {**planned.counts}
    assert archived_times(store) == instants[:6]
    assert active_times(store) == instants[6:]
    again = Table(store).archive()
    assert again.counts == {}
    assert "nothing to do" in str(again)


def test_a_write_archives_by_itself_unless_told_not_to() -> None:
    store = written(9)
    assert archived_times(store) == []
    result = Table(store).upsert(trips({"a": (1, "sf")}))
    assert [service.operation for service in result.services if service.operation == "archive"] == ["archive"]
    assert len(active_times(store)) == 3


def test_a_write_does_not_fail_with_its_archiving() -> None:
    store = written(9)
    history = TimelineArchive.of(store, Table(store).view().layout)
    store.create(f"{history.folder}/_version_", b"no number")
    result = Table(store).upsert(trips({"a": (1, "sf")}), properties={"hoodie.clean.automatic": "false"})
    (note,) = (note for service in result.services for note in service.notes)
    assert "archive failed after this write, which is committed" in note
    assert rows_of(store)["a"] == (1, "sf")


def pending_after(store: MemoryStore, instant: str) -> str:
    """A pending instant of another process, requested after this one."""
    return begin(Table(store), Action.INDEXING, at=str(int(instant) + 1))


def test_what_a_pending_instant_needs_stays() -> None:
    store = written(9)
    instants = active_times(store)
    waiting = pending_after(store, instants[2])
    done = Table(store).archive()
    assert archived_times(store) == instants[:2], "the last commit before the pending instant stays"
    assert waiting in done.notes[0]
    assert "must complete" in done.notes[0]


def test_commits_that_completed_since_a_pending_instant_began_stay() -> None:
    store = written(9)
    first, second, third, *_ = active_times(store)
    pending_after(store, third)
    (name,) = (name for name in store.names(".hoodie/timeline") if name.startswith(f"{second}_"))
    store.move(f".hoodie/timeline/{name}", f".hoodie/timeline/{second}_{int(third) + 2}.commit")
    Table(store).archive()
    assert archived_times(store) == [first], "the conflict check of the pending instant looks for the second commit"


@pytest.mark.parametrize("beyond", ["false", "true"])
def test_savepointed_commits_stay(store: MemoryStore, beyond: str) -> None:
    instants = write(store, 3)
    view = Table(store).view()
    end = view.clock.next_time(view.timeline)
    create_completed(store, view.layout, instants[1], Action.SAVEPOINT, b"", completion_time=end)
    write(store, 6, first=3)
    done = Table(store).archive(properties={"hoodie.archive.beyond.savepoint": beyond})
    if beyond == "false":
        assert archived_times(store) == instants[:1]
        assert instants[1] in done.notes[0]
    else:
        assert instants[1] in active_times(store)
        assert len(archived_times(store)) == 6
    assert rows_of(store) == {f"k{number % 4}": (number, "sf") for number in range(5, 9)}


def test_replaced_file_groups_with_files_keep_their_replace_commit(store: MemoryStore) -> None:
    write(store, 2)
    replaced = Table(store).insert_overwrite(trips({"k0": (50, "sf")}), properties=OFF).instant
    write(store, 6)
    done = Table(store).archive()
    assert replaced in active_times(store)
    assert "replaced still have files" in done.notes[0]
    gone = Table(store).view().commit_facts(Table(store).view().timeline.get(replaced)).replaced  # type: ignore[arg-type]
    names = {info.path for info in store.list("city=sf")}
    assert any(file_id in path for path in names for file_id in gone["city=sf"])


def test_nothing_is_archived_before_the_metadata_table_was_compacted() -> None:
    store = trips_store(properties={**OFTEN, "hoodie.metadata.compact.max.delta.commits": "50"})
    write(store, 9)
    done = Table(store).archive()
    assert archived_times(store) == []
    assert "it was not compacted yet" in done.notes[0]


def test_delta_commits_that_make_a_compaction_due_stay() -> None:
    store = trips_store(table_type="merge_on_read", properties=OFTEN)
    instants = write(store, 12, options={**OFF, "hoodie.compact.schedule.inline": "false"})
    Table(store).archive(properties={"hoodie.compact.inline.max.delta.commits": "7"})
    assert active_times(store) == instants[-7:]


def test_the_minimum_is_below_the_maximum(store: MemoryStore) -> None:
    write(store, 1)
    four = {"hoodie.keep.min.commits": "4"}
    with refused(Table(store), "must be below", error=InvalidConfigError):
        Table(store).archive(properties=four)
    with refused(Table(store), "must be below", error=InvalidConfigError):
        write(store, 1, options=four)


def test_a_view_reads_commits_that_were_archived_after_it_was_loaded() -> None:
    store = written(9)
    instants = active_times(store)
    view = Table(store).view()
    fresh = TableView.load(type(view.state)(store))
    Table(store).archive()
    first = fresh.timeline.get(instants[0])
    assert first is not None
    assert fresh.commit_metadata(first).operation_type == "UPSERT"
    assert first.requested_time in archived_times(store)


SELDOM = {**OFTEN, "hoodie.keep.max.commits": "6", "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS"}
"""Three commits lie between the minimum and the maximum; pending instants do not change the maximum."""
LOCKED = Call("delete", ".hoodie/lock")


def hold_by_savepoint(store: MemoryStore) -> Callable[[], object]:
    """A savepoint on the first commit."""
    Table(store).savepoint()
    (saved,) = Table(store).savepoints()
    return lambda: Table(store).delete_savepoint(saved.instant)


def hold_by_pending(store: MemoryStore) -> Callable[[], object]:
    """A write that runs since the first commit; once it stops, the next write rolls it back."""
    running = Heartbeat(store, begin(Table(store), Action.COMMIT, only_requested=True))
    running.start()
    return running.stop


def hold_by_replaced(store: MemoryStore) -> Callable[[], object]:
    """A replace commit whose replaced file groups no clean deleted yet."""
    Table(store).insert_overwrite(trips({"k0": (50, "sf")}), properties=OFF)
    return lambda: Table(store).clean(properties={"hoodie.clean.fileversions.retained": "1"})


@pytest.mark.parametrize("hold", [hold_by_savepoint, hold_by_pending, hold_by_replaced])
def test_archiving_that_is_held_back_costs_later_writes_nothing(
    hold: Callable[[MemoryStore], Callable[[], object]],
) -> None:
    """Writes take no further lock and plan nothing while all commits are held back; then one of them archives."""
    store = trips_store(index="simple", properties=SELDOM)
    write(store, 1)
    release = hold(store)
    counting = FaultStore(store, count_reads=True)
    counting.register()
    table, locks, requests = Table(counting), list[int](), list[int]()
    for number in range(14):
        counting.calls.clear()
        table.upsert(trips({"k1": (100 + number, "sf")}), properties={"hoodie.clean.automatic": "false"})
        locks.append(counting.calls.count(LOCKED))
        requests.append(len(counting.calls))
    assert len(archived_times(store)) <= 1, "something of the table holds no commit back"
    usual, since = locks[2], 7
    # Only a listing tells whether replaced files are still there, at every third commit.
    assert sum(locks[since:]) - usual * len(locks[since:]) <= (3 if hold is hold_by_replaced else 0), locks
    assert min(requests[since:]) <= max(requests[1:4]), requests
    release()
    for number in range(3):
        table.upsert(trips({"k2": (number, "sf")}), properties={"hoodie.clean.automatic": "false"})
    counting.unregister()
    assert len(archived_times(store)) > 5
