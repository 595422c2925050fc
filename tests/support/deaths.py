"""Writers that die at a storage call, what they leave, and what must hold after the next writer came by."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hoodie.files.markers import TEMP_FOLDER
from hoodie.files.table_properties import BACKUP, read_table_config
from hoodie.format.filenames import BaseFileName, LogFileName
from hoodie.metadata.table import MetadataTable
from hoodie.storage import LocalStore, MemoryStore, Store
from hoodie.table import Table
from hoodie.timeline import forget_all
from hoodie.view.listing import list_from_storage
from tests.support.fault_store import CrashError, CrashPoint, FaultStore
from tests.support.index_check import check_index
from tests.support.samples import sample_numbers
from tests.support.tables import Rows, Write, copy_of, rows_of, trips

SECONDS_MAX = 20.0
"""Far below any wait for a lock (60 s) or a heartbeat (120 s), far above what a write takes on a busy machine."""


DEATHS_KEPT = 8
"""Calls at which an operation dies in a normal run, if its test asks for no other number."""


def run_until(store: Store, write: Write, number: int | None, point: CrashPoint = CrashPoint.BEFORE) -> FaultStore:
    """Run the write, dying at a call; the returned store tells whether it got that far, and which calls there were."""
    dying = FaultStore(store, number, crash_point=point)
    dying.register()
    try:
        write(Table(dying))
    except CrashError:
        assert dying.crashed
    finally:
        dying.unregister()
    return dying


def die(
    store: Store,
    write: Write,
    ending: str,
    operation: str = "",
    point: CrashPoint = CrashPoint.BEFORE,
    *,
    is_last: bool = False,
) -> None:
    """Let a write die at its first such call on a path with this ending, or at its last; a copy tells the number."""
    calls = run_until(copy_of(store), write, None).calls
    places = [n for n, call in enumerate(calls, 1) if operation in call.operation and call.path.endswith(ending)]
    assert run_until(store, write, places[-1 if is_last else 0], point).crashed
    forget_all()


def die_at(path: Path, write: Write, operation: str, ending: str, point: CrashPoint, scratch: Path) -> None:
    """Let a write die at its first such call on a path with this ending; it is counted on a copy of the table."""
    shutil.copytree(path, scratch)
    calls = run_until(LocalStore(str(scratch)), write, None).calls
    places = [n for n, call in enumerate(calls, 1) if call.operation == operation and call.path.endswith(ending)]
    assert run_until(LocalStore(str(path)), write, places[0], point).crashed
    forget_all()


@dataclass(frozen=True)
class Death:
    """A writer that died at call `number`, and what it left."""

    number: int
    point: CrashPoint
    store: MemoryStore

    def __str__(self) -> str:
        return f"death {self.point.value} call {self.number}"


def deaths(
    store: MemoryStore,
    write: Write,
    *,
    every_point: bool = False,
    since: str = "",
    until: str | None = None,
    keep: int = DEATHS_KEPT,
) -> Iterator[Death]:
    """Copies of the table on which the write died at its first, second, … call, up to the last one.

    What a death after call n leaves is what a death before call n + 1 leaves, unless that one closes a streamed file:
    dying there leaves half of it. Only then, and at the last call, both are tried, or with `every_point`.
    `since`, `until`: from, or up to, the first call on a path with this ending. `keep`: a sample of this many calls,
    the first and the last among them (`make test-all` tries every call; HOODIE_TEST_SEED chooses another sample).
    """
    calls = run_until(copy_of(store), write, None).calls
    first = next(number for number, call in enumerate(calls, 1) if call.path.endswith(since))
    last = next((number for number, call in enumerate(calls, 1) if until and call.path.endswith(until)), len(calls))
    for number in sample_numbers(range(first, last + 1), keep):
        is_same = number < len(calls) and calls[number].operation != "close_output"
        for point in CrashPoint:
            if point is CrashPoint.AFTER and is_same and not every_point:
                continue
            copied = copy_of(store)
            run_until(copied, write, number, point)
            yield Death(number, point, copied)


def check_recovery(store: Store, old: Rows, new: Rows, *, has_record_index: bool = True) -> None:
    """Old rows or new rows, never between; then the next writer succeeds at once and leaves a tidy table."""
    found = rows_of(store)
    assert found in (old, new), f"neither the rows before nor after: {found}"
    added = {"next": (1, "sf"), "other": (1, "oslo")}
    started = time.monotonic()
    Table(store).upsert(trips(added))
    assert time.monotonic() - started < SECONDS_MAX, "the next writer waited for a dead one"
    assert rows_of(store) == {**found, **added}
    check_tidy(store, has_record_index=has_record_index)


def is_released_lock(store: Store, path: str) -> bool:
    """Whether the file is that of the storage-based lock, which stays for ever, and nobody holds the lock."""
    return path == ".hoodie/.locks/table_lock.json" and b'"expired":true' in store.read(path)


def check_tidy(store: Store, *, has_record_index: bool = True) -> None:
    """Nothing of a dead writer is left: no pending instant, no file that a listing would believe, nothing temporary."""
    view = Table(store).view()
    assert list(view.timeline.pending()) == []
    config = read_table_config(store)
    in_storage = list_from_storage(store, config, view.timeline, view.archive())
    metadata_table = MetadataTable.open(store, config)
    assert metadata_table is not None
    listed = metadata_table.listing(view.timeline)
    # The folder of a partition may outlive the writer that died before its first file there.
    assert {path: files for path, files in in_storage.items() if files} == {path: f for path, f in listed.items() if f}
    if has_record_index:
        check_index(view)
    files = store.list("", recursive=True)
    named = {info.path for info in files if BaseFileName.parse(info.name) or LogFileName.parse(info.name)}
    believed = {f"{path}/{name}" for path, files in in_storage.items() for name in files}
    orphans = {path for path in named - believed if not path.startswith(".hoodie/")}
    assert orphans == set(), f"files that count as committed once the timeline starts later: {orphans}"
    abandoned = [
        f
        for folder in (TEMP_FOLDER, ".hoodie/.heartbeat", ".hoodie/.locks")
        for f in store.list(folder, recursive=True)
        if not is_released_lock(store, f.path)
    ]
    assert abandoned == []
    assert store.folders(TEMP_FOLDER) == []
    assert store.head(".hoodie/lock") is None
    assert store.head(BACKUP) is None
    dead = [
        info.path
        for info in store.list(".hoodie/metadata/.hoodie/timeline")
        if not info.size_bytes and "rollback" in info.name
    ]
    assert [path for path in dead if not path.endswith("inflight")] == []
