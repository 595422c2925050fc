"""A file of an older instant is lost (a partial copy, a hand): no reader and no writer goes on as if it had been dead.

For each action, and each of the files of its instants: reads give the rows or refuse, a write goes on or refuses
without a trace, `verify` names what is lost, and after `repair` the table is what it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.pending import PendingInstant
from hoodie.commit.steps import Step, watching
from hoodie.errors import CommitConflictError, CorruptFileError, UnsupportedError
from hoodie.storage import MemoryStore, Store
from hoodie.table import Table
from hoodie.timeline import Action, Instant, State
from hoodie.timeline.heartbeat import heartbeat_path
from tests.support.actions import CELLS, COVER, Cell, sampled_cells
from tests.support.deaths import check_tidy, die
from tests.support.losing_store import LOCK
from tests.support.recoveries import LAST, NEXT, noted
from tests.support.samples import sample_of
from tests.support.steps import ONE_TRY, once_at
from tests.support.tables import Rows, copy_of, rows_of, trips, trips_store

pytestmark = pytest.mark.timeout(900)  # for all files of a cell in `make test-all`

_LOSSES = 1
"""Lost files of an action in a normal run, besides the completed file of its first write."""
_OTHERS = 2
"""Instants that reads ask for in a normal run, besides the lost one and the one before it."""
ALL = "all"
Loss = tuple[str, Action, str]
"""Requested time and completed action of an instant, and the name of the state whose file is lost."""
NOT_REBUILT = ("delete_partitions", "expire_partitions")
"""What they deleted is in the completed file only."""


def states_of(store: MemoryStore, lost: Loss) -> Iterator[tuple[str, str]]:
    """Path and state of each file of the instant."""
    layout = Table(store).view().layout
    for info in store.list(layout.instant_folder()):
        found = layout.parse(info)
        if found is not None and (found.requested_time, found.action.completed_as) == lost[:2]:
            yield info.path, found.state.name


def timeline_files(store: MemoryStore) -> list[str]:
    return store.names(Table(store).view().layout.instant_folder())


def losses_of(cell: Cell, instants: list[Instant]) -> list[Loss]:
    """The files of the instants of the action, and each of its instants as a whole."""
    states = tuple(state.name for state in State)
    found = [(one.requested_time, one.action, name) for one, name in product(instants, (*states, ALL))]
    # Without any file of an instant, only its data files show that it was there.
    has_files = cell.action.method not in NOT_REBUILT
    # In version 6 the names of log files do not have their instants, and the JVM keeps the delta commits of what it
    # rolled back: nothing shows that such an instant is lost.
    has_names = cell.kind.version != 6 or cell.kind.table_type == "copy_on_write"
    found = [one for one in found if one[2] != ALL or (has_files and has_names and one[1].writes_data)]
    if cell.kind.version == 6 and not has_files:
        # Nothing shows that such an instant completed: one that failed leaves the same.
        found = [one for one in found if one[2] != State.COMPLETED.name]
    first = [one for one in found if one[1].writes_data and one[2] == State.COMPLETED.name][:1]
    return [*first, *sample_of([one for one in found if one not in first], _LOSSES, f"lost files of {cell}")]


def reads_of(store: MemoryStore, lost: str) -> dict[str, Callable[[Store], Rows]]:
    """Reads: of the newest rows, and as of and since the lost instant, the one before, and a sample of the others."""

    def at(time: str | None, store: Store) -> Rows:
        rows = Table(store).to_arrow(columns=["id", "ts", "city"], as_of=time).to_pylist()
        assert len({row["id"] for row in rows}) == len(rows)
        return {row["id"]: (row["ts"], row["city"]) for row in rows}

    def since(time: str, store: Store) -> Rows:
        rows = Table(store).changes(since=time).to_pylist()
        return {row["id"]: (row["ts"], row["city"]) for row in rows}

    times = [found.requested_time for found in Table(store).timeline.writes().completed()]
    near = [time for time in times if time <= lost][-2:]
    others = sample_of([time for time in times if time not in near], _OTHERS, f"instants besides {len(near)}")
    reads = {f"{read.__name__} {time}": partial(read, time) for time in (*near, *others) for read in (at, since)}
    return {"now": partial(at, None), **reads}


def result_of(read: Callable[[Store], Rows], store: MemoryStore) -> Rows | None:
    """The rows of the read; None if the table does not have them any more."""
    try:
        return read(store)
    except hoodie.HistoryLostError:
        return None


def check_loss(cell: Cell, store: MemoryStore, lost: Loss, before: MemoryStore) -> None:
    """`before`: the table before the action, which may have cleaned what some reads need."""
    reads, last_before = reads_of(store, lost[0]), max(found.requested_time for found in Table(before).timeline)
    expected = {name: result_of(read, store) for name, read in reads.items()}
    for path, state in list(states_of(store, lost)):
        if lost[2] in (state, ALL):
            store.delete(path)
    refused = set[str]()
    for name, rows in expected.items():
        try:
            found = reads[name](store)
            # Without the lost instant, the cleaner may seem to have kept a snapshot; then its rows must be right.
            # `before` does not have the snapshots of the action's own writes.
            if rows is not None or name.rpartition(" ")[2] <= last_before:
                assert found == (result_of(reads[name], before) if rows is None else rows), name
        except hoodie.HistoryLostError:
            # Nothing shows which commits a restore without a plan took back, or which a clean kept, of lost instants.
            assert rows is None or lost[2] == ALL or lost[1:] == (Action.RESTORE, State.REQUESTED.name), name
        except (CorruptFileError, UnsupportedError) as error:
            # In version 6, changes that a pending write would add to are refused.
            refused |= {name} if lost[0] in str(error) else {f"{name} without a name"}
    files = timeline_files(store)
    copied = copy_of(store)
    if lost[1:] == (Action.RESTORE, State.COMPLETED.name):
        complete_restore(copied, lost[0])
    try:
        Table(copied).upsert(trips(NEXT))
        if not refused:
            assert rows_of(copied) == {**(expected["now"] or {}), **NEXT}
    except CorruptFileError as error:
        refused |= {"write"} if lost[0] in str(error) else {"write without a name"}
    if "write" in refused:
        assert timeline_files(copied) == files, "a refused write leaves no trace"
    assert not any("without a name" in found for found in refused)
    report = Table(store).verify()
    if not refused:
        return
    assert any(lost[0] in finding.key for finding in report.findings), str(report)
    told = Table(store).repair()
    assert timeline_files(store) == files, "a dry run changes nothing"
    if lost[2] == ALL or cell.action.method in NOT_REBUILT:
        done = Table(store).repair(dry_run=False, min_age_seconds=0)
        assert any("is not repaired" in note or "from a copy" in note for note in done.notes)
        return
    assert any(lost[0] in note for note in told.notes)
    done = Table(store).repair(dry_run=False, min_age_seconds=0)
    assert any("estimates" in note for note in done.notes), done.notes
    assert {name: result_of(read, store) for name, read in reads.items()} == expected
    report = Table(store).verify(full=True)
    assert report.ok, str(report)
    Table(store).upsert(trips(NEXT))
    assert rows_of(store) == {**(expected["now"] or {}), **NEXT}


def complete_restore(store: MemoryStore, lost: str) -> None:
    """A restore without its completed file is pending: writes are refused, and name the command that completes it."""
    files = timeline_files(store)
    with pytest.raises(UnsupportedError, match=lost) as refused:
        Table(store).upsert(trips(NEXT))
    assert timeline_files(store) == files, "a refused write leaves no trace"
    named = re.search(r"t\.restore\('(\d+)'\)", str(refused.value))
    assert named is not None
    Table(store).restore(named[1])


@pytest.mark.parametrize("cell", sampled_cells("actions whose files are lost", COVER), ids=str)
def test_a_lost_file_of_an_instant(cell: Cell) -> None:
    start = cell.prepared()
    before, known = copy_of(start), {found.requested_time for found in Table(start).timeline}
    cell.action.act(Table(start))
    instants = [found for found in Table(start).timeline.completed() if found.requested_time not in known]
    # The newest write is none of them: it could have died before its completed file.
    Table(start).upsert(trips(LAST))
    for lost in losses_of(cell, instants):
        with noted(cell, lost):
            check_loss(cell, copy_of(start), lost, before)


def test_a_compaction_is_lost_and_a_clean_deleted_its_log_files() -> None:
    """Found by a seed: the log files without a base file would be a file group without its older rows."""
    cell = next(one for one in CELLS if str(one) == "services, merge_on_read, global_simple")
    start = cell.prepared()
    before = copy_of(start)
    cell.action.act(Table(start))
    Table(start).upsert(trips(LAST))
    compaction = Table(start).timeline.completed().filter(lambda found: found.action is Action.COMMIT).latest()
    assert compaction is not None
    check_loss(cell, start, (compaction.requested_time, compaction.action, State.COMPLETED.name), before)


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_a_newest_write_that_died_before_its_completed_file_is_rolled_back(table_type: str) -> None:
    """The metadata table has its delta commit, but nobody wrote later: nothing proves that it completed."""
    store = trips_store(NEXT, table_type=table_type)
    die(store, lambda table: table.upsert(trips(LAST)), "commit", "move", is_last=True)
    assert rows_of(store) == NEXT
    report = Table(store).verify()
    assert report.ok
    assert "write-dead" in report.warnings
    Table(store).upsert(trips({"z": (1, "sf")}))
    assert rows_of(store) == {**NEXT, "z": (1, "sf")}
    assert Table(store).verify(full=True).ok


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_failed_deletion_of_partitions_is_not_taken_for_a_completed_one(version: int) -> None:
    """It has no markers, and another write began and completed while it ran: nothing proves that it completed."""
    store = trips_store(NEXT, table_version=version)
    others = list[bool]()

    def act(step: Step) -> None:
        if step is Step.BEGUN and not others:
            others.append(True)
            Table(store).upsert(trips({"y": (1, "oslo")}))
            others.append(True)
        elif step is Step.RECORDED and len(others) > 1:
            raise hoodie.StorageError("the completed file cannot be created")

    with watching(act), pytest.raises(hoodie.StorageError):
        Table(store).delete_partitions(["city=rome"])
    rows = {**NEXT, "y": (1, "oslo")}
    assert rows_of(store) == rows
    Table(store).upsert(trips({"z": (1, "rome")}))
    assert rows_of(store) == {**rows, "z": (1, "rome")}
    assert Table(store).verify(full=True).ok


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_write_that_begins_after_a_failed_one_released_the_lock_rolls_it_back(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The heartbeat of the failed one ends before the lock is free."""
    store = trips_store(NEXT, table_version=version)
    undo = PendingInstant.undo

    def write_and_undo(pending: PendingInstant) -> None:
        monkeypatch.undo()
        notes = Table(store).upsert(trips({"y": (1, "oslo")})).notes
        assert any(pending.instant_time in note for note in notes)
        undo(pending)

    def fail() -> None:
        raise hoodie.StorageError("the completed file cannot be created")

    monkeypatch.setattr(PendingInstant, "undo", write_and_undo)
    with once_at(Step.RECORDED, fail), pytest.raises(hoodie.StorageError):
        Table(store).delete_partitions(["city=rome"])
    assert rows_of(store) == {**NEXT, "y": (1, "oslo")}
    assert Table(store).verify(full=True).ok


ACTS: dict[str, Callable[[Table], object]] = {
    "delete_partitions": lambda table: table.delete_partitions(["city=rome"], properties=ONE_TRY),
    "alter": lambda table: table.alter.add_column("c", pa.int64()),
    "upsert": lambda table: table.upsert(trips(LAST), properties=ONE_TRY),
}


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("act", ACTS)
def test_a_write_that_lost_the_lock_after_it_was_recorded_is_rolled_back(version: int, act: str) -> None:
    """Stopped for longer than its lease and shorter than its heartbeat: the next writer began without a rollback."""
    store = trips_store(NEXT, table_version=version)
    before = Table(store).schema.names

    def take_over() -> None:
        store.delete(LOCK)
        Table(store).upsert(trips({"y": (1, "oslo")}))

    with once_at(Step.RECORDED, take_over), pytest.raises(CommitConflictError):
        ACTS[act](Table(store))
    rows = {**NEXT, "y": (1, "oslo")}
    assert rows_of(store) == rows
    (dead,) = Table(store).timeline.pending()
    assert store.head(heartbeat_path(dead.requested_time)) is not None, "its presence refutes the proof"
    Table(store).upsert(trips({"z": (1, "rome")}))
    assert rows_of(store) == {**rows, "z": (1, "rome")}
    assert Table(store).schema.names == before
    assert Table(store).verify(full=True).ok
    check_tidy(store)
