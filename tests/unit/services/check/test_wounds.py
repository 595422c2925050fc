"""Each wound gives its findings; the repair mends it, or says that it does not; a second repair has nothing to do."""

from __future__ import annotations

import pytest

from hoodie.services.check.kinds import KINDS
from hoodie.table import Table
from tests.support.deaths import check_tidy, deaths, run_until
from tests.support.tables import Rows, contents, copy_of, rows_of, trips
from tests.unit.services.check.wounds import (
    SECOND,
    START,
    TIMELINE,
    WOUNDS,
    Wound,
    aged,
    orphan_of_no_instant,
    paths,
    sound,
)

INCIDENTAL = {"leftover-stage", "leftover-lock", "leftover-markers", "leftover-heartbeat"}
"""What a dead writer leaves beside the wound that a case is about."""
each_wound = pytest.mark.parametrize("wound", WOUNDS, ids=lambda wound: wound.name)


def found(table: Table, wound: Wound) -> set[str]:
    report = table.verify(wound.full)
    return {*report.problems, *report.warnings}


@pytest.mark.matrix(keep=35)
@each_wound
def test_a_wound_is_found_and_mended(wound: Wound) -> None:
    store = wound.make()
    before = contents(store)
    table = Table(store)
    names = {kind.name for kind in wound.findings}
    assert names <= found(table, wound) <= names | INCIDENTAL
    if wound.rows_before is not None:
        assert rows_of(store) == wound.rows_before
    told = table.repair(full=wound.full)
    assert told.dry_run
    assert contents(store) == before, "changed in a dry run"
    if wound.rows is None:
        assert not told.counts
        assert all(KINDS[name].severity == "warning" or any(name in note for note in told.notes) for name in names)
        return
    assert told.counts
    done = table.repair(dry_run=False, full=wound.full)
    assert done.counts == told.counts
    assert not [note for note in done.notes if note.startswith("failed")]
    again = Table(store)
    assert found(again, wound) == {kind.name for kind in wound.left}
    assert not again.repair(full=wound.full).counts
    assert rows_of(store) == wound.rows
    added: Rows = {"next": (1, "sf"), "other": (1, "oslo")}
    again.upsert(trips(added))
    assert rows_of(store) == {**wound.rows, **added}
    if again.view().config.raw["hoodie.table.type"] == "COPY_ON_WRITE":
        check_tidy(store)
    assert again.verify(full=True).ok


@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read"])
def test_a_torn_write_without_a_requested_file_is_written_anew(kind: str) -> None:
    """A commit of a merge-on-read table is a compaction."""
    store = sound(kind)
    if kind == "merge_on_read":
        Table(store).compact(Table(store).schedule_compaction())
    newest = paths(store, TIMELINE, r"\.commit$")[-1]
    store.replace(newest, store.read(newest)[:-40])
    requested = paths(store, TIMELINE, r"\.(commit|compaction)\.requested$")[-1]
    store.delete(requested)
    aged(store)
    report = Table(store).verify()
    assert (report.problems, report.warnings) == ({"completion-lost": 1}, {"instant-not-requested": 1})
    Table(store).repair(dry_run=False)
    report = Table(store).verify(full=True)
    assert (report.problems, report.warnings) == ({}, {"instant-not-requested": 1})
    assert rows_of(store) == SECOND


def test_young_files_and_running_writers_are_kept() -> None:
    store = sound()
    orphan_of_no_instant(store)
    table = Table(store)
    assert table.verify().problems == {"file-orphaned": 1}
    kept = table.repair(dry_run=False)
    assert not kept.counts
    assert any("kept" in note for note in kept.notes)
    assert table.verify().problems == {"file-orphaned": 1}
    assert table.repair(dry_run=False, min_age_seconds=0).counts == {"orphans": 1}
    assert table.verify().ok


def test_a_restore_that_may_run_is_kept() -> None:
    """A JVM that restores has no heartbeat: only the age of the restore's files tells that it died."""
    store = sound()
    first = Table(store).timeline.writes().instants[0].requested_time
    calls = run_until(copy_of(store), lambda table: table.restore(first), None).calls
    run_until(store, lambda table: table.restore(first), len(calls) // 2)
    table = Table(store)
    report = table.verify()
    assert report.problems == {"restore-pending": 1}
    assert first in str(report)
    assert not {"rollback-pending", "write-dead"} & report.warnings.keys()
    kept = table.repair(dry_run=False)
    assert any("kept" in note for note in kept.notes)
    assert table.verify().problems == {"restore-pending": 1}
    assert "restore" in table.repair(dry_run=False, min_age_seconds=0).counts
    assert rows_of(store) == START
    assert table.verify(full=True).ok


MENDED_AGAIN = ("a torn completed file", "a torn completed clean", "a compaction with half a plan")


@pytest.mark.parametrize("name", MENDED_AGAIN)
def test_a_repair_that_dies_is_done_again(name: str) -> None:
    wound = next(one for one in WOUNDS if one.name == name)
    for death in deaths(wound.make(), lambda table: table.repair(dry_run=False)):
        aged(death.store)
        again = Table(death.store)
        again.repair(dry_run=False)
        aged(death.store)
        again.repair(dry_run=False)
        assert not {*again.verify(full=True).problems}, death
        assert rows_of(death.store) == wound.rows, death


def test_an_accepted_loss_that_dies_is_accepted_again() -> None:
    wound = next(one for one in WOUNDS if one.name == "all instant files of a commit are missing")
    store = wound.make()
    path = next(finding.key for finding in Table(store).verify().findings)
    for death in deaths(store, lambda table: table.repair(dry_run=False, accept_loss=path)):
        aged(death.store)
        report = Table(death.store).verify()
        if "instant-lost" in report.problems:
            Table(death.store).repair(dry_run=False, accept_loss=report.findings[0].key)
        else:
            Table(death.store).repair(dry_run=False)
        assert Table(death.store).verify(full=True).ok, death
        assert rows_of(death.store) == START, death
