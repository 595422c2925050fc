"""Actions of tests/support/actions.py that die, and what must hold after it: old rows or new ones, and a recovery."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

import hoodie
from hoodie.format.filenames import BaseFileName, LogFileName
from hoodie.index.record.file_groups import list_index_files
from hoodie.index.record.state import partitioned_index, record_index
from hoodie.metadata.folder import MetadataFolder
from hoodie.storage import MemoryStore, Store
from hoodie.table import Table
from hoodie.timeline import forget_all
from tests.support.actions import START, Cell, is_restoring, whole_run
from tests.support.deaths import check_tidy, run_until
from tests.support.samples import IS_WHOLE, draw, sample_of
from tests.support.tables import Rows, copy_of, rows_of, trips, values_of

NEXT: Rows = {"next": (1, "rome")}
LAST: Rows = {"last": (1, "rome")}
_LOSE_INDEX = ("index.drop", "index.rebuild", "index.switch", "downgrade", "drop_old_timeline")
"""After these the record index may be gone; `rebuild` says in its notes that it does not build a partitioned one."""

_BUILDS = ("build of the record index", "build of another number of buckets", "drop of the record index")
"""They leave no file in the folder of the index that it does not have."""


@contextmanager
def noted(*facts: object) -> Iterator[None]:
    """Add the facts to the message of a failure; after it all writers of this process are dead."""
    try:
        yield
    except BaseException as error:
        error.add_note(", ".join(map(str, facts)))
        raise
    finally:
        forget_all()


def prepared(cell: Cell) -> MemoryStore:
    """A table with the rows of `START`, ready for the action."""
    store = cell.prepared()
    assert rows_of(store) == START
    return store


def numbers_of_calls(cell: Cell, store: MemoryStore) -> range:
    """The calls of the action by number; a run to its end gives the rows that the case promises."""
    copied = copy_of(store)
    calls = whole_run(cell, copied).calls
    assert rows_of(copied) == cell.rows
    until = cell.action.until
    last = next((n for n, call in enumerate(calls, 1) if until and call.path.endswith(until)), len(calls))
    return range(1, last + 1)


def recover(cell: Cell, table: Table, *, writes_first: bool) -> None:
    """The next writer comes, and what takes the action up; which one comes first differs from death to death."""
    if cell.action.needs_it:
        if is_restoring(table) or cell.action.method != "restore":
            cell.action.take_up(table)
    elif not writes_first:
        cell.action.take_up(table)
    table.upsert(trips(NEXT))
    if not cell.action.needs_it and writes_first:
        cell.action.take_up(table)


def check_recovery(cell: Cell, store: MemoryStore, number: int) -> None:
    """Rows of before or after; the recovery keeps them; then nothing of the dead process is left."""
    allowed, writes_first = cell.possible_rows, number % 2 == 0
    if is_restoring(Table(store)):
        with pytest.raises(hoodie.UnsupportedError, match=r"t\.restore"):
            Table(store).upsert(trips(NEXT))
        allowed = [cell.rows]
    else:
        found = rows_of(store)
        assert without(found, NEXT) in allowed
        if cell.action.method != "rollback":  # the next writer completes a rollback that was begun
            allowed = [without(found, NEXT)]
    recover(cell, Table(store), writes_first=writes_first)
    after = rows_of(store)
    assert after in [{**rows, **NEXT} for rows in allowed]
    if writes_first:  # else the next writer came after the action was taken up
        Table(store).upsert(trips(LAST))
        after |= LAST
    check_table(cell, store, after)


def without(rows: Rows, others: Rows) -> Rows:
    """The rows without those of the other keys."""
    return {key: row for key, row in rows.items() if key not in others}


def commit_times(store: Store) -> dict[str, tuple[str, str]]:
    """Commit time and number of each row of `START`: what services keep."""
    found = values_of(Table(store), "id", "_hoodie_commit_time", "_hoodie_commit_seqno")
    return {key: (time, number) for key, time, number in found if key in START}


def check_table(cell: Cell, store: Store, rows: Rows) -> None:
    """Nothing is pending or orphaned; index, listing and statistics agree with the data, and reads by them too."""
    assert rows_of(store) == rows
    view = Table(store).view()
    index = record_index(view)
    has_index = index is not None or partitioned_index(view) is not None
    assert has_index or not cell.kind.has_record_index or cell.action.method in _LOSE_INDEX
    if cell.action.name.startswith(_BUILDS):
        # Of another number of buckets, or of a dead build.
        known = set() if index is None else {bucket.file_slice.file_id for bucket in index.file_groups}
        timeline = MetadataFolder(store, view.config).timeline()
        for info in list_index_files(store).values():
            name = BaseFileName.parse(info.name) or LogFileName.parse(info.name)
            assert info.name == ".hoodie_partition_metadata" or (name and name.file_id in known), info.name
            assert name is None or timeline.contains_or_before_start(name.instant_time), info.name
    check_tidy(store, has_record_index=has_index)
    report = Table(store).verify(full=True)
    assert report.ok, str(report)
    by_statistics = Table(store).to_arrow("id", where="ts = 1")["id"].to_pylist()
    assert sorted(by_statistics) == sorted(key for key, (ts, _) in rows.items() if ts == 1)


def check_deaths(
    cell: Cell, deaths: int, also: Callable[[Store], None] = lambda store: None, *, whole: int | None = None
) -> None:
    """Let the action die at a sample of its storage calls, and check each recovery; `also` is checked after it.

    In `make test-all` it dies at each call, or at `whole` of them.
    """
    start = prepared(cell)
    numbers, name = numbers_of_calls(cell, start), f"calls of {cell}"
    for number in draw(numbers, whole, name) if IS_WHOLE and whole else sample_of(numbers, deaths, name):
        store = copy_of(start)
        died = run_until(store, cell.action.act, number)
        forget_all()
        with noted(f"{cell}: death before call {number}, {died.calls[-1]}"):
            assert died.crashed
            check_recovery(cell, store, number)
            if cell.rows == START:  # a service
                assert commit_times(store) == commit_times(start)
            also(store)
