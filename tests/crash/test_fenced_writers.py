"""A writer is stopped at any storage call for so long that another one takes its lock over, rolls its instant back and
commits. Then it goes on: it fails, or what it did is in the table; no acknowledged row is lost.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import hoodie
from hoodie.commit.steps import Step
from hoodie.errors import (
    CommitConflictError,
    HoodieError,
    InvalidConfigError,
    LockTimeoutError,
    StorageError,
    UnsupportedError,
)
from hoodie.storage import LocalStore, MemoryStore, Store
from hoodie.table import Table
from hoodie.timeline import forget_all
from hoodie.write.create import CreateOptions, create_table
from tests.crash.tables import FEW_BUCKETS, SCHEMA, Rows, check_tidy, copy_of, new_table, rows_of, run_until, trips
from tests.support.fault_store import FaultStore
from tests.support.losing_store import LosingStore
from tests.support.samples import sample_numbers
from tests.support.steps import ONE_TRY, once_at

START: Rows = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc")}
OURS: Rows = {"b": (2, "sf"), "x": (1, "la")}
THEIRS: Rows = {"a": (5, "sf"), "y": (1, "nyc")}
Act = Callable[[Table], object]
_STOPS = 8
"""Calls of an operation at which it is stopped in a normal run."""


class StoppedStore(FaultStore):
    """Calls `act` once, before the n-th call that changes something, in a task too."""

    def __init__(self, inner: Store, number: int | None, act: Callable[[], object]) -> None:
        super().__init__(inner)
        self._number = number
        self._act = act

    def _dies_at(self, operation: str, path: str) -> bool:
        super()._dies_at(operation, path)
        if len(self.calls) == self._number:
            self._act()
        return False


def usurp(store: Store) -> None:
    """Another writer finds the lock and the heartbeat of the first dead, and commits."""
    forget_all()
    Table(store).upsert(trips(THEIRS))


def stops(start: Store, first: Act, then: Callable[[Store], object]) -> Iterator[tuple[int, Store, Exception | None]]:
    """Run `first` on copies of the table; `then` runs at a sample of its changing calls, the first and the last too."""
    counted = StoppedStore(copy_of(start), None, lambda: None)
    counted.register()
    first(Table(counted))
    counted.unregister()
    for number in sample_numbers(range(1, len(counted.calls) + 1), _STOPS):
        copied = copy_of(start)
        stopped = StoppedStore(copied, number, lambda copied=copied: then(copied))  # type: ignore[misc]
        stopped.register()
        error: Exception | None = None
        try:
            first(Table(stopped))
        except (HoodieError, OSError) as raised:  # an OSError: its staged rows were deleted
            error = raised
        finally:
            stopped.unregister()
        assert len(stopped.calls) >= number
        yield number, copied, error


def check(store: Store, expected: Rows, note: str, *, has_index: bool = True) -> None:
    """The rows and the index are right, before and after the next write, which leaves a tidy table."""
    assert rows_of(store) == expected, note
    added: Rows = {"next": (1, "sf")}
    Table(store).upsert(trips(added))
    assert rows_of(store) == {**expected, **added}, note
    if has_index:
        report = Table(store).index.verify()
        assert report.ok, f"{note}: {report}"
    check_tidy(store, has_record_index=has_index)


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_an_upsert_that_is_stopped_anywhere(table_type: str) -> None:
    start = MemoryStore()
    new_table(start, table_type=table_type)
    Table(start).upsert(trips(START))
    outcomes: list[bool] = []
    for number, store, error in stops(start, lambda table: table.upsert(trips(OURS)), usurp):
        ours = OURS if error is None else {}
        check(store, {**START, **THEIRS, **ours}, f"stopped at call {number}: {error}")
        outcomes.append(error is None)
    assert outcomes.count(False) > _STOPS // 2


def test_a_rollback_that_is_stopped_anywhere() -> None:
    """The first writer rolls a dead one back before its own write."""
    start = MemoryStore()
    new_table(start)
    Table(start).upsert(trips(START))
    run_until(start, lambda table: table.upsert(trips({"dead": (1, "sf")})), 25)
    assert Table(start).timeline.pending().instants
    for number, store, error in stops(start, lambda table: table.upsert(trips(OURS)), usurp):
        ours = OURS if error is None else {}
        check(store, {**START, **THEIRS, **ours}, f"stopped at call {number}: {error}")


def test_a_compaction_that_is_stopped_anywhere() -> None:
    start = MemoryStore()
    new_table(start, table_type="merge_on_read")
    Table(start).upsert(trips(START))
    Table(start).upsert(trips({"a": (2, "sf"), "c": (2, "nyc")}))
    assert Table(start).schedule_compaction()

    def compact_too(store: Store) -> None:
        usurp(store)
        Table(store).compact()

    for number, store, error in stops(start, lambda table: table.compact(), compact_too):
        note = f"stopped at call {number}: {error}"
        Table(store).compact()
        check(store, {**START, "c": (2, "nyc"), **THEIRS}, note)


def test_an_index_build_that_is_stopped_anywhere() -> None:
    start = MemoryStore()
    wanted = CreateOptions(
        record_key="id", partition_by="city", ordering="ts", index="global_simple", properties=FEW_BUCKETS
    )
    create_table(start, SCHEMA, wanted)
    Table(start).upsert(trips(START))

    def build_too(store: Store) -> None:
        usurp(store)
        Table(store).index.build(buckets=2)

    failed = 0
    for number, store, error in stops(start, lambda table: table.index.build(buckets=2), build_too):
        check(store, {**START, **THEIRS}, f"stopped at call {number}: {error}")
        failed += error is not None
    assert failed > _STOPS // 2


def test_a_build_that_was_taken_over_cancels_nothing() -> None:
    """Its error would cancel a build; the one who resumed the build owns the files now."""
    store = MemoryStore()
    wanted = CreateOptions(record_key="id", partition_by="city", index="global_simple", properties=FEW_BUCKETS)
    create_table(store, SCHEMA, wanted)
    Table(store).upsert(trips(START))
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
    check(store, START, "after the build")


def test_the_options_of_the_lock_are_those_of_a_call_or_of_the_table() -> None:
    store = MemoryStore()
    stored = {**FEW_BUCKETS, "hoodie.write.lock.wait_time_ms": "7"}
    create_table(store, SCHEMA, CreateOptions(record_key="id", properties=stored))
    store.create(".hoodie/lock", b"")  # of a JVM
    with pytest.raises(LockTimeoutError, match="waited 7 ms"):
        Table(store).upsert(trips(START))
    with pytest.raises(LockTimeoutError, match="waited 3 ms"):
        Table(store).upsert(trips(START), properties={"hoodie.write.lock.wait_time_ms": "3"})
    store.set_modified_ms(".hoodie/lock", 1_000_000)
    Table(store).upsert(trips(START), properties={"hoodie.write.lock.filesystem.expire": "1"})
    assert rows_of(store) == START
    with pytest.raises(InvalidConfigError, match=r"hoodie\.write\.lock\.expire"):
        Table(store).upsert(trips(START), properties={"hoodie.write.lock.expire": "1"})


@pytest.mark.parametrize("step", [Step.BEGUN, Step.WRITTEN, Step.LOCATED, Step.CHECKED, Step.RECORDED])
def test_a_lock_file_that_a_person_deleted(tmp_path: Path, step: Step) -> None:
    store = LocalStore(tmp_path)
    new_table(store)
    first, other = hoodie.open(tmp_path), hoodie.open(tmp_path)
    first.upsert(trips(START))

    def act() -> None:
        (tmp_path / ".hoodie" / "lock").unlink(missing_ok=True)
        other.upsert(trips(THEIRS))

    with pytest.raises(CommitConflictError), once_at(step, act):
        first.upsert(trips(OURS), properties=ONE_TRY)
    check(store, {**START, **THEIRS}, step)


def losing_table() -> tuple[LosingStore, Table]:
    store = LosingStore()
    new_table(store)
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
    check(store, {**START, **OURS}, "lost answer")


def test_a_lock_that_another_keeps_after_the_last_step() -> None:
    """The instant is complete, but nobody can look what became of it."""
    store, table = losing_table()
    store.at_last = lambda: store.replace(".hoodie/lock", b"")  # of a JVM
    with pytest.raises(CommitConflictError, match=r"cannot load the table.*outcome is not known"):
        table.upsert(trips(OURS), properties={"hoodie.write.lock.wait_time_ms": "200"})
    store.delete(".hoodie/lock")
    check(store, {**START, **OURS}, "kept lock")


def test_a_lock_that_cannot_be_read_after_the_last_step() -> None:
    """Whether the lock was lost is then looked up, in the same way as if it was."""
    store, table = losing_table()

    def act() -> None:
        store.cannot_read_lock = True

    store.at_last = act
    table.upsert(trips(OURS))
    check(store, {**START, **OURS}, "lock not read")

    def lose() -> None:
        store.replace(".hoodie/lock", b"")
        store.cannot_read_lock = True

    store.at_last = lose
    with pytest.raises(CommitConflictError, match="outcome is not known"):
        table.upsert(trips({"z": (1, "sf")}), properties={"hoodie.write.lock.wait_time_ms": "200"})


PROGRAM = """
import sys
import hoodie
from hoodie.commit.steps import Step, watching
from tests.crash.tables import trips

def wait(step):
    if step is Step.{step}:
        print("reached", flush=True)
        sys.stdin.readline()

try:
    with watching(wait):
        hoodie.open(sys.argv[1]).upsert(trips({{"b": (2, "sf"), "x": (1, "la")}}))
except hoodie.CommitConflictError as error:
    print("refused:", error)
else:
    print("committed")
"""


@pytest.mark.matrix(keep=3)
@pytest.mark.parametrize("step", ["WRITTEN", "CHECKED", "RECORDED"])
def test_a_process_that_is_stopped_and_continued(tmp_path: Path, step: str) -> None:
    """A real process; its lease ends and its heartbeat grows old while it does not run."""
    store = LocalStore(tmp_path)
    new_table(store)
    hoodie.open(tmp_path).upsert(trips(START))
    writer = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(step=step), str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    with writer:
        assert writer.stdout is not None
        assert writer.stdin is not None
        assert writer.stdout.readline() == "reached\n"
        writer.send_signal(signal.SIGSTOP)
        shorten_lease(tmp_path)
        for beat in (tmp_path / ".hoodie" / ".heartbeat").iterdir():
            os.utime(beat, (1, 1))
        hoodie.open(tmp_path).upsert(trips(THEIRS))
        writer.send_signal(signal.SIGCONT)
        out, _ = writer.communicate("go on\n", timeout=60)
        assert out.startswith("refused:"), out
    check(store, {**START, **THEIRS}, step)


def shorten_lease(table: Path) -> None:
    """Let the lock that a process left end soon, as if the waiter had waited for the whole lease."""
    lock = table / ".hoodie" / "lock"
    if lock.exists():
        lock.write_bytes(lock.read_bytes().replace(b'"lease_ms": 30000', b'"lease_ms": 200'))
