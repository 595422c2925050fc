"""Archive a table's oldest instants under its lock: `t.archive()`, and the archiving that follows a write.

docs/format/table.md §2.7, §9.6. Instants are added to the archive first, then deleted from the active timeline. So
each step can be repeated, and a reader finds each instant in one of both places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from hoodie.commit.call import Call, Occasion
from hoodie.commit.writable import check_version_written
from hoodie.config import concurrency, retention
from hoodie.progress import PhaseTimes
from hoodie.services.archiving.plan import (
    ArchivePlan,
    ArchiveRules,
    hold_of,
    is_archiving_due,
    is_held_by_timeline,
    plan_archiving,
)
from hoodie.services.cleaning.partitions import CleanOptions
from hoodie.services.cleaning.plan import earliest_to_retain
from hoodie.services.inline import InlineService
from hoodie.services.results import ServiceResult
from hoodie.timeline import ArchiveLimits, archive_instants
from hoodie.view.table_view import TableView

OPERATION: Final = "archive"
_WAIT_MS_AFTER_WRITE: Final = 2_000
"""How long the archiving after a write waits for the lock; if it gets none, a later write archives."""


def archive(call: Call, *, dry_run: bool = False) -> ServiceResult:
    """Move the oldest instants to the archive if there are more commits than `hoodie.keep.max.commits`.

    It creates no instant. With `dry_run` nothing is changed. A note says what keeps further instants on the active
    timeline. If the process dies at any step, the next archiving completes the work.

    Memory: the contents of instants with files of at most 32 MiB, and a merge of the archive's files.

    Raises:
        UnsupportedError: the table is of a version that this release does not write.
        LockTimeoutError: another writer holds the table's lock.
        CommitConflictError: this process lost the lock.
        CorruptFileError: the archive, or a commit, is damaged.
    """
    times = PhaseTimes()
    view = TableView.load(call.state)
    check_version_written(view, "archive")
    if dry_run:
        with times.phase("plan"):
            plan = plan_archiving(view, _rules(call, view))
        return _result(plan, times, dry_run=True)
    with call.state.table_lock(call.properties) as lock:
        view = TableView.load(call.state, lock)
        with times.phase("plan"):
            rules = _rules(call, view)
            plan = plan_archiving(view, rules)
        is_held = not plan.instants and is_archiving_due(view, rules)
        view.state.commits.archiving_hold = hold_of(view, rules) if is_held else None
        if not plan.instants:
            return _result(plan, times)
        with times.phase("archive"):
            archive_instants(
                view.store,
                view.layout,
                plan.instants,
                history_path=view.config.history_path,
                limits=ArchiveLimits.of(_options(call, view)),
                fence=lock,
            )
    return _result(plan, times)


def _options(call: Call, view: TableView) -> Mapping[str, str]:
    return {**view.config.raw, **call.properties}


def _rules(call: Call, view: TableView) -> ArchiveRules:
    properties = _options(call, view)
    retained = earliest_to_retain(view, CleanOptions.of(properties), None, datetime.now(UTC))
    return ArchiveRules.of(properties, None if retained is None else retained.requested_time)


def _result(plan: ArchivePlan, times: PhaseTimes, *, dry_run: bool = False) -> ServiceResult:
    commits = sum(instant.action.writes_data for instant in plan.instants)
    counts = {"commits": commits, "other_instants": len(plan.instants) - commits} if plan.instants else {}
    notes = (f"more instants are kept by {plan.held_back}",) if plan.held_back else ()
    return ServiceResult(
        operation=OPERATION,
        counts=counts,
        seconds=times.seconds(),
        dry_run=dry_run,
        notes=notes,
    )


def _is_due(call: Call, view: TableView) -> bool:
    """Return whether there are instants to archive, as far as the timeline and the last archiving tell.

    Takes no lock and reads no file, so that writes cost the same while something holds the instants back.
    """
    if not view.config.version.is_written:
        return False
    rules = _rules(call, view)
    if not is_archiving_due(view, rules):
        return False
    hold = view.state.commits.archiving_hold
    if hold is not None and hold.holds(hold_of(view, rules)):
        return False
    return call.occasion is Occasion.ROUND or not is_held_by_timeline(view, rules)


def _run(call: Call) -> ServiceResult | None:
    if call.occasion is Occasion.ROUND:
        done = archive(call)
        return done if done.counts or done.notes else None
    properties = {**call.properties, concurrency.LOCK_WAIT_MS.key: str(_WAIT_MS_AFTER_WRITE)}
    done = archive(replace(call, properties=properties))
    # What holds instants back is news to a caller of `archive` or in a round, but not after each write.
    return replace(done, notes=()) if done.counts else None


ARCHIVE: Final = InlineService(name=OPERATION, is_on=retention.ARCHIVE_AUTOMATIC.get, is_due=_is_due, run=_run)
"""The archiving that follows a write, which it never fails (see `services.registry`), or runs in a round."""
