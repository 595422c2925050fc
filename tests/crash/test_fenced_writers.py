"""A writer is stopped at any storage call for so long that another one takes its lock over, rolls its instant back and
commits. Then it goes on: it fails, or what it did is in the table; no acknowledged row is lost. With every lock.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import hoodie
from hoodie.commit.steps import Step
from hoodie.errors import (
    CommitConflictError,
    HoodieError,
    LockTimeoutError,
    StorageError,
    UnsupportedError,
)
from hoodie.storage import LocalStore, Store
from hoodie.table import Table
from hoodie.timeline import forget_all
from hoodie.timeline.locks import in_process, storage_based
from tests.support.archived import OFTEN, active_times, archived_times
from tests.support.cloud_store import CloudStore
from tests.support.deaths import check_tidy, run_until
from tests.support.fault_store import Call, CrashPoint, FaultStore
from tests.support.losing_store import LOCK, LosingStore
from tests.support.recoveries import noted
from tests.support.samples import draw, sample_numbers
from tests.support.steps import ONE_TRY, SleepingWrite, once_at
from tests.support.tables import Rows, copy_of, create_in, rows_of, trips, trips_store

START: Rows = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc")}
OURS: Rows = {"b": (2, "sf"), "x": (1, "la")}
THEIRS: Rows = {"a": (5, "sf"), "y": (1, "nyc")}
Act = Callable[[Table], object]
JSON = ".hoodie/.locks/table_lock.json"
OFF = {"hoodie.archive.automatic": "false", "hoodie.clean.automatic": "false"}
_STOPS = 6
"""Calls of an operation at which it is stopped in a normal run."""


class StoppedStore(FaultStore):
    """Calls `act` once, before the n-th call that changes something, in a task too."""

    def __init__(self, inner: Store, number: int | None, act: Act) -> None:
        super().__init__(inner)
        self._number, self._act = number, act

    def stop_at(self, number: int) -> None:
        """Call `act` before this call instead."""
        self._number = number

    def last_calls(self) -> Sequence[Call]:
        """The calls from that one on."""
        return self.calls[(self._number or 0) - 1 :]

    def _dies_at(self, operation: str, path: str) -> bool:
        super()._dies_at(operation, path)
        if len(self.calls) == self._number:
            self._act(Table(self.inner))
        return False


def usurp(table: Table) -> None:
    """Another writer finds the lock and the heartbeat of the first dead, and commits."""
    forget_all()
    store = table.view().store
    if store.head(JSON) is not None:  # the time of a storage-based lock is over
        store.replace(JSON, json.dumps({**json.loads(store.read(JSON)), "validUntil": 1}).encode())
    table.upsert(trips(THEIRS))


@contextmanager
def stopping(store: Store, number: int, act: Act) -> Iterator[Table]:
    """A table whose `number`-th changing call waits for the act."""
    stopped = StoppedStore(store, number, act)
    stopped.register()
    try:
        yield Table(stopped)
    finally:
        stopped.unregister()
    assert len(stopped.calls) >= number


def check(store: Store, expected: Rows) -> None:
    """The rows and the index are right, before and after the next write, which leaves a tidy table."""
    assert rows_of(store) == expected
    added: Rows = {"next": (1, "sf")}
    Table(store).upsert(trips(added))
    assert rows_of(store) == {**expected, **added}
    assert Table(store).index.verify().ok
    check_tidy(store)


def _nothing(table: Table) -> None:
    return None


@dataclass(frozen=True)
class Stopped:
    """What is stopped, on which table, and what is done meanwhile after `usurp`, and at the end.

    `ours`: rows that it adds if it succeeds; `is_refused`: whether it fails wherever it is stopped between the creation
    of its inflight instant and its last step.
    """

    act: Act = lambda table: table.upsert(trips(OURS))
    ours: Rows = field(default_factory=lambda: OURS)
    options: Mapping[str, Any] = field(default_factory=dict)
    prepare: Act = _nothing
    meanwhile: Act = _nothing
    at_end: Act = _nothing
    is_refused: bool = False


def _log_and_plan(table: Table) -> None:
    table.upsert(trips({"a": (2, "sf"), "c": START["c"]}))
    assert table.schedule_compaction()


def _die(table: Table) -> None:
    assert run_until(table.view().store, lambda dying: dying.upsert(trips({"dead": (1, "sf")})), 15).crashed
    assert table.timeline.pending().instants


def _of(provider: str) -> dict[str, Any]:
    return {"properties": {"hoodie.write.lock.provider": provider}}


MOR = {"table_type": "merge_on_read"}
STOPPED = {
    "upsert, copy on write": Stopped(is_refused=True),
    "upsert, merge on read": Stopped(options=MOR, is_refused=True),
    "rollback of a dead writer before its own write": Stopped(prepare=_die),
    "compaction": Stopped(lambda table: table.compact(), {}, MOR, _log_and_plan, Table.compact, Table.compact),
    "index build": Stopped(
        lambda table: table.index.build(buckets=2),
        {},
        {"index": "global_simple"},
        meanwhile=lambda table: table.index.build(buckets=2),
        is_refused=True,
    ),
    # ZooKeeper needs a server: its test is tests/interop/test_locks.py.
    "upsert, storage-based lock, copy on write": Stopped(options=_of(storage_based.NAME), is_refused=True),
    "upsert, storage-based lock, merge on read": Stopped(options={**MOR, **_of(storage_based.NAME)}, is_refused=True),
    "upsert, lock in process, copy on write": Stopped(options=_of(in_process.NAME), is_refused=True),
    "upsert, lock in process, merge on read": Stopped(options={**MOR, **_of(in_process.NAME)}, is_refused=True),
}


@pytest.mark.matrix(keep=6)
@pytest.mark.parametrize("name", STOPPED)
def test_an_act_that_is_stopped_anywhere(name: str) -> None:
    case = STOPPED[name]
    start = trips_store(START, **case.options)
    case.prepare(Table(start))

    def meanwhile(table: Table) -> None:
        usurp(table)
        case.meanwhile(table)

    calls = run_until(copy_of(start), case.act, None).calls
    refused = _begun(calls) if case.is_refused else range(0)
    numbers = {*sample_numbers(range(1, len(calls) + 1), _STOPS), *draw(refused, 2, f"refused stops of {name}")}
    for number in sorted(numbers):
        store = copy_of(start)
        error: Exception | None = None
        with noted(f"stopped before call {number}: {calls[number - 1]}"):
            with stopping(store, number, meanwhile) as table:
                try:
                    case.act(table)
                except (HoodieError, OSError) as raised:  # an OSError: its staged rows were deleted
                    error = raised
            case.at_end(Table(store))
            check(store, {**START, **THEIRS, **({} if error else case.ours)})
            assert error is not None or number not in refused


def _begun(calls: Sequence[Call]) -> range:
    """The calls after the creation of the inflight instant, until the one that completes the instant (inclusive)."""
    of_timeline = [number for number, call in enumerate(calls, 1) if call.path.startswith(".hoodie/timeline/")]
    begun = next(number for number in of_timeline if calls[number - 1].path.endswith(".inflight"))
    return range(begun + 1, of_timeline[-1] + 1)


def _rolling_back(calls: Sequence[Call]) -> range:
    """The calls with which a write rolls a dead one back, from the move of its plan to its name to the completion."""
    first = next(number for number, call in enumerate(calls, 1) if call.path.endswith("rollback.requested"))
    last = next(number for number, call in enumerate(calls, 1) if call.path.endswith(".rollback"))
    return range(first, last + 1)


REVIVED: dict[str, dict[str, Any]] = {
    "copy on write": {},
    "merge on read": MOR,
    "copy on write, version 6": {"table_version": 6},
    "merge on read, version 6": {**MOR, "table_version": 6},
    "merge on read, version 8": {**MOR, "table_version": 8},
}


@pytest.mark.matrix(keep=5)
@pytest.mark.parametrize("is_stopped", [False, True], ids=["dead usurper", "stopped usurper"])
@pytest.mark.parametrize("name", REVIVED)
def test_a_writer_that_wakes_while_its_instant_is_rolled_back(name: str, is_stopped: bool) -> None:
    """The usurper died, or is stopped, anywhere in the rollback: the writer fails, or its rows stay for ever."""
    start = trips_store(START, **REVIVED[name])

    def asleep(store: Store) -> SleepingWrite:
        woken = SleepingWrite(store, lambda table: table.upsert(trips(OURS)), Step.LOCATED)
        forget_all()
        return woken

    counted = copy_of(start)
    woken = asleep(counted)
    calls = run_until(counted, lambda table: table.upsert(trips(THEIRS)), None).calls
    woken.wake()
    assert isinstance(woken.error, CommitConflictError)
    rolling_back = _rolling_back(calls)
    for number in (rolling_back.start - 1, *sample_numbers(rolling_back, 2 * _STOPS)):
        store = copy_of(start)
        woken = asleep(store)
        theirs: Rows = {}

        def wake(_: Table, woken: SleepingWrite = woken) -> None:
            forget_all()
            woken.wake()

        with noted(f"call {number}: {calls[number - 1]}"):
            if is_stopped:
                with contextlib.suppress(CommitConflictError), stopping(store, number, wake) as table:
                    table.upsert(trips(THEIRS), properties=ONE_TRY)
                    theirs = THEIRS
            else:
                assert run_until(store, lambda table: table.upsert(trips(THEIRS)), number).crashed
                wake(Table(store))
            assert isinstance(woken.error, CommitConflictError | None)
            # Until the plan has its name, the usurper has changed nothing.
            assert (woken.error is None) == (number <= rolling_back.start)
            check(store, {**START, **theirs, **({} if woken.error else OURS)})


@pytest.mark.parametrize("name", REVIVED)
def test_a_writer_that_is_stopped_while_it_gives_up(name: str) -> None:
    """Another writer rolls it back meanwhile. In version 6 the rollback lists log files, which it must not delete."""
    start = trips_store(START, {"a": (2, "sf")}, **REVIVED[name])
    rows = rows_of(start)

    def fail(store: Store, number: int) -> Sequence[Call]:
        """Stop before the call of this number of the undo; return the calls of the undo."""
        stopped = StoppedStore(store, None, usurp)
        stopped.register()

        def give_up() -> None:
            stopped.stop_at(len(stopped.calls) + number)
            raise StorageError("no network")

        with once_at(Step.LOCATED, give_up), pytest.raises(StorageError):
            Table(stopped).upsert(trips(OURS), properties=ONE_TRY)
        stopped.unregister()
        return stopped.last_calls()

    calls = fail(copy_of(start), 1)
    for number, call in enumerate(calls, 1):
        store = copy_of(start)
        with noted(f"stopped before call {number}: {call}"):
            fail(store, number)
            check(store, {**rows, **THEIRS})


@pytest.mark.parametrize("operation", ["replace", "move"])
def test_a_restore_that_lost_the_lock_leaves_no_plan(operation: str) -> None:
    """Its plan would refuse every writer, and would take back what the next holder of the lock has committed."""
    store = trips_store({"a": (1, "sf")}, {"a": (2, "sf")})
    first = Table(store).timeline.instants[0].requested_time
    calls = run_until(copy_of(store), lambda table: table.restore(first), None).calls
    planned = next(number for number, call in enumerate(calls) if call.path.endswith("restore.requested"))
    number = next(n for n in range(planned + 1, 0, -1) if calls[n - 1].operation == operation)
    with pytest.raises(CommitConflictError), stopping(store, number, usurp) as table:
        table.restore(first)
    check(store, {"a": (5, "sf"), "y": (1, "nyc")})


class _WakingStore(CloudStore):
    """Calls `wake` once, before the first call of an operation on a path that has a text in it."""

    def __init__(self, inner: Store, operation: str, text: str, wake: Callable[[], None]) -> None:
        super().__init__(inner, seed=f"{operation} {text}")
        self._at, self._wake = (operation, text), [wake]

    def _change(
        self, operation: str, path: str, action: Callable[[], None], *, instead: Callable[[], None] | None = None
    ) -> None:
        if self._wake and operation == self._at[0] and self._at[1] in path:
            self._wake.pop()()
        super()._change(operation, path, action, instead=instead)


@pytest.mark.parametrize("index", [None, "record"])
@pytest.mark.parametrize(("operation", "text"), [("replace", "prepared-"), ("copy", ".rollback.requested")])
def test_the_first_writer_wakes_before_its_rollback_has_a_plan(operation: str, text: str, index: str | None) -> None:
    """The usurper's handle knew no metadata table, so it looked at the lock ahead: older than its plan."""
    store, writes = trips_store(index=index), list[SleepingWrite]()

    def sleep() -> None:
        writes.append(SleepingWrite(store, lambda table: table.upsert(trips(OURS)), Step.LOCATED))
        forget_all()

    def wake() -> None:
        if writes:
            forget_all()
            writes[0].wake()

    cloud = _WakingStore(store, operation, text, wake)
    cloud.register()
    with once_at(Step.PREPARED, sleep), pytest.raises(CommitConflictError):
        Table(cloud).upsert(trips(THEIRS), properties=ONE_TRY)
    cloud.unregister()
    assert writes[0].error is None
    check(store, OURS)


@pytest.mark.parametrize("version", [6, 9])
def test_a_compaction_of_the_metadata_table_that_another_process_completes_meanwhile(version: int) -> None:
    """Both write files of the same names: the process that lost the lock must not delete those of the completed one."""
    rows: Rows = {key: (2, city) for key, (_, city) in START.items()}
    start = trips_store(
        START, rows, table_version=version, properties={"hoodie.metadata.compact.max.delta.commits": "1"}
    )
    calls = run_until(copy_of(start), lambda table: table.upsert(trips(OURS)), None).calls
    written = [n for n, call in enumerate(calls, 1) if call.operation == "replace" and call.path.endswith(".hfile")]
    died = run_until(start, lambda table: table.upsert(trips(OURS)), written[-1], CrashPoint.AFTER)
    path = died.calls[written[-1] - 1].path
    assert died.crashed
    forget_all()
    resumed = run_until(copy_of(start), lambda table: table.upsert(trips(OURS)), None).calls
    touched = [n for n, call in enumerate(resumed, 1) if call.path.endswith(".hfile")]
    # Without them, a death before they are written again would damage the completed compaction.
    assert Call("delete", path) not in resumed
    for number in (touched[0], touched[-1]):
        store = copy_of(start)
        with noted(f"stopped before call {number}: {resumed[number - 1]}"), contextlib.suppress(CommitConflictError):
            with stopping(store, number, usurp) as table:
                table.upsert(trips(OURS), properties=ONE_TRY)
            raise AssertionError("the process that lost the lock committed")
        check(store, {**rows, **THEIRS})


def test_the_storage_based_lock_of_a_writer_that_died_ends_by_itself() -> None:
    """No person is needed: a later writer waits until the validity is over, and rolls the dead write back."""
    store = trips_store(**_of(storage_based.NAME))
    table = Table(store)
    with pytest.raises(ZeroDivisionError), table.view().state.table_lock():
        _ = 1 / 0
    assert json.loads(store.read(JSON))["expired"] is True
    lock = table.view().state.table_lock()
    lock.acquire()
    text = store.read(JSON)
    forget_all()
    del lock
    store.replace(JSON, text.replace(str(json.loads(text)["validUntil"]).encode(), b"1"))
    table.upsert(trips(OURS))
    check(store, OURS)


def test_a_writer_that_lost_the_lock_changes_no_archive() -> None:
    store = trips_store(properties=OFTEN)
    for number in range(8):
        Table(store).upsert(trips({"k": (number, "sf")}), properties=OFF)
    before = active_times(store)
    replace, stolen = store.replace, list[str]()

    def lose_the_lock(path: str, data: bytes) -> None:
        replace(path, data)
        if path.endswith(".parquet") and not stolen:
            stolen.append(path)
            store.delete(LOCK)

    store.replace = lose_the_lock  # type: ignore[method-assign]
    with pytest.raises(HoodieError, match="does not name this writer any more"):
        Table(store).archive()
    assert stolen
    assert (active_times(store), archived_times(store)) == (before, [])


def test_a_build_that_was_taken_over_cancels_nothing() -> None:
    """Its error would cancel a build; the one who resumed the build owns the files now."""
    store = trips_store(START, index="global_simple")
    resumed: list[object] = []

    def take_over_and_die() -> None:
        forget_all()
        dying = run_until(store, lambda table: resumed.append(table.index.build(buckets=2)), 12)
        assert dying.crashed
        raise UnsupportedError("an error after which a build is cancelled")

    with pytest.raises(UnsupportedError), once_at(Step.BEGUN, take_over_and_die):
        Table(store).index.build(buckets=2)
    assert resumed == []
    assert len(Table(store).timeline.pending()) == 1
    assert "resumed the build" in str(Table(store).index.build(buckets=2))
    check(store, START)


def test_the_options_of_the_lock_are_those_of_a_call_or_of_the_table() -> None:
    store = trips_store(properties={"hoodie.write.lock.wait_time_ms": "7"})
    store.create(LOCK, b"")  # of a JVM
    with pytest.raises(LockTimeoutError, match="waited 7 ms"):
        Table(store).upsert(trips(START))
    with pytest.raises(LockTimeoutError, match="waited 3 ms"):
        Table(store).upsert(trips(START), properties={"hoodie.write.lock.wait_time_ms": "3"})
    store.set_modified_ms(LOCK, 1_000_000)
    Table(store).upsert(trips(START), properties={"hoodie.write.lock.filesystem.expire": "1"})
    assert rows_of(store) == START


@pytest.mark.parametrize("step", [Step.BEGUN, Step.WRITTEN, Step.LOCATED, Step.CHECKED, Step.RECORDED])
def test_a_lock_file_that_a_person_deleted(tmp_path: Path, step: Step) -> None:
    store = LocalStore(tmp_path)
    create_in(store)
    first, other = hoodie.open(tmp_path), hoodie.open(tmp_path)
    first.upsert(trips(START))

    def act() -> None:
        (tmp_path / ".hoodie" / "lock").unlink(missing_ok=True)
        other.upsert(trips(THEIRS))

    with pytest.raises(CommitConflictError), once_at(step, act):
        first.upsert(trips(OURS), properties=ONE_TRY)
    check(store, {**START, **THEIRS})


def losing_table() -> tuple[LosingStore, Table]:
    store = LosingStore()
    create_in(store)
    table = Table(store)
    table.upsert(trips(START))
    return store, table


def test_a_lost_answer_to_the_last_step_is_no_error() -> None:
    """The caller would run the operation again: rows without keys would be stored twice."""
    store, table = losing_table()

    def lose() -> None:
        raise StorageError("the service did not answer in time")

    store.at_last = lose
    table.upsert(trips(OURS))
    check(store, {**START, **OURS})


def test_a_lock_that_another_keeps_after_the_last_step() -> None:
    """The instant is complete, but nobody can look what became of it."""
    store, table = losing_table()
    store.at_last = lambda: store.replace(LOCK, b"")  # of a JVM
    with pytest.raises(CommitConflictError, match=r"cannot load the table.*outcome is not known"):
        table.upsert(trips(OURS), properties={"hoodie.write.lock.wait_time_ms": "200"})
    store.delete(LOCK)
    check(store, {**START, **OURS})


def test_a_lock_that_cannot_be_read_after_the_last_step() -> None:
    """Whether the lock was lost is then looked up, in the same way as if it was."""
    store, table = losing_table()

    def act() -> None:
        store.cannot_read_lock = True

    store.at_last = act
    table.upsert(trips(OURS))
    check(store, {**START, **OURS})

    def lose() -> None:
        store.replace(LOCK, b"")
        store.cannot_read_lock = True

    store.at_last = lose
    with pytest.raises(CommitConflictError, match="outcome is not known"):
        table.upsert(trips({"z": (1, "sf")}), properties={"hoodie.write.lock.wait_time_ms": "200"})
