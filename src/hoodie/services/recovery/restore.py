"""Restore a table to a savepoint or another commit: roll back everything after it (docs/format/table.md §9.5).

The plan is in the requested file of the restore. While a restore is pending nothing else can be written; the next call
for the same commit, of this library or of the JVM, goes on with it. Every step can be repeated.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from hoodie.commit.begin import prepare_table
from hoodie.commit.call import Call
from hoodie.commit.metadata_table import ensure_metadata_table
from hoodie.commit.pending import Completion, PendingInstant, delete_pending_files, request_last
from hoodie.commit.rollback import RolledBack, execute_rollback, metadata_of, roll_back
from hoodie.commit.writable import restore_plan, restored_to, target_of_restore
from hoodie.display import command_text
from hoodie.errors import CorruptFileError, UnsupportedError
from hoodie.format.instants.service_metadata import InstantInfo, RestoreMetadata, RestorePlan, RollbackPlan
from hoodie.progress import PhaseTimes
from hoodie.results import ServiceResult
from hoodie.services.recovery.plan import check_index_without, plan_restore
from hoodie.services.recovery.rollback import notes_of, preview, what_goes
from hoodie.timeline import Action, Instant, State
from hoodie.view.pending_plans import stored_rollback_plan
from hoodie.view.table_view import TableView

OPERATION = "restore"
_ACTIONS = frozenset(Action)


def restore(call: Call, commit: str, *, dry_run: bool = False) -> ServiceResult:
    """Restore the table to a commit, usually one with a savepoint; complete a pending restore to the same commit.

    All instants after the commit are rolled back, the newest first, and so are pending plans of table services. The
    table's lock is held meanwhile. If the process dies, writers are refused until a second call completes the restore.

    Raises: as `Table.restore`; UnsupportedError too if the index of today, to which the table was switched after
        the commit, would not find all rows; InvalidConfigError for a wrong option.
    """
    view = call.checked_view()
    if dry_run:
        begun = _begun(view, commit)
        return preview(view, OPERATION, _checked(call, view, commit) if begun is None else _still_there(view, begun[1]))
    times = PhaseTimes()
    with times.phase("restore"), TableView.locked(call.state, call.properties) as view:
        begun = _begun(view, commit) or _begin(call, view, commit)
        if begun is None:
            return ServiceResult(operation=OPERATION, seconds=times.seconds())
        counts = dict(what_goes(view, OPERATION, _still_there(view, begun[1])).counts)
        done = _execute(view, *begun)
    notes = notes_of(call, done)
    instant = begun[0].requested_time
    return ServiceResult(operation=OPERATION, instant=instant, counts=counts, seconds=times.seconds(), notes=notes)


def finish_restores(call: Call) -> None:
    """Complete the pending restores whose process died; a restore without a plan did nothing and is removed.

    A restore whose plan is damaged is removed if it was not begun.

    Raises: as `restore`; UnsupportedError too if a plan is damaged, or does not name the commit to restore to.
    """
    for found in _pending(call.load()):
        if to := target_of_restore(call.load(), found):
            restore(call, to)
            continue
        with TableView.locked(call.state, call.properties) as view:
            did_nothing, reason = _did_nothing(view, found)
            if did_nothing:
                delete_pending_files(view, found.requested_time, Action.RESTORE)
        if not did_nothing:
            command = command_text("hoodie restore TABLE COMMIT", call.state.store.uri(""))
            raise UnsupportedError(
                f"{call.state.store.uri('')}: the plan of {found} {reason}: complete it with the engine that started "
                f"it, or with t.restore(COMMIT) (`{command}`)"
            )


def _did_nothing(view: TableView, restore: Instant) -> tuple[bool, str]:
    """Return whether a restore has taken back nothing, and what is wrong with its plan."""
    try:
        plan = restore_plan(view, restore)
    except CorruptFileError as error:
        return restore.state is State.REQUESTED, f"is damaged ({error})"
    return plan is None, "does not name the commit to restore to"


def _pending(view: TableView) -> list[Instant]:
    return [found for found in view.timeline.pending() if found.action is Action.RESTORE]


def _begun(view: TableView, commit: str) -> tuple[Instant, RestorePlan] | None:
    """Return the pending restore and its plan; None if there is none, or if it has no plan and so did nothing.

    A damaged plan counts as none: what it took back stays, and a new plan has the rest.
    """
    for found in _pending(view):
        plan = None
        with suppress(CorruptFileError):
            plan = restore_plan(view, found)
        if plan is None:
            continue
        to = restored_to(plan)
        if to and to != commit:
            raise UnsupportedError(
                f"{view.store.uri('')}: a restore to {to} is pending ({found.requested_time}); complete it first, with "
                f"t.restore('{to}')"
            )
        for info in plan.instants_to_rollback:
            if info.action not in _ACTIONS or not info.commit_time.isdigit():
                raise CorruptFileError(f"the restore plan names no instant, found {info}", path=str(found))
        return found, plan
    return None


def _begin(call: Call, view: TableView, commit: str) -> tuple[Instant, RestorePlan] | None:
    """Plan the restore and store the plan; None if the commit is the newest write already."""
    pending = _pending(view)
    _checked(call, view.refreshed(), commit)  # refuses before anything is changed
    for found in pending:
        delete_pending_files(view, found.requested_time, Action.RESTORE)  # without a plan, see `_begun`
    view, _ = prepare_table(call.state, view.held_lock)
    instants = plan_restore(view, commit)
    if not instants:
        return None
    plan = RestorePlan(
        instants_to_rollback=tuple(
            InstantInfo(commit_time=found.requested_time, action=found.action.value) for found in instants
        ),
        savepoint_to_restore_timestamp=commit,
    )
    return request_last(view, Action.RESTORE, plan.to_bytes()), plan


def _checked(call: Call, view: TableView, commit: str) -> tuple[Instant, ...]:
    """Return the planned instants, after a check that the index finds the rows of the table without them."""
    instants = plan_restore(view, commit)
    check_index_without(call, view, instants)
    return instants


def _still_there(view: TableView, plan: RestorePlan) -> list[Instant]:
    found = (view.timeline.get(info.commit_time, Action(info.action)) for info in plan.instants_to_rollback)
    return [instant for instant in found if instant is not None]


def _execute(view: TableView, restore: Instant, plan: RestorePlan) -> list[RolledBack]:
    """Roll back the instants of the plan, complete the restore, then delete its rollback instants."""
    started = time.monotonic()
    pending = PendingInstant.resume(view.refreshed(), restore)
    begun = dict(_begun_rollbacks(view, plan))
    done: list[RolledBack] = []
    for info in plan.instants_to_rollback:
        now = view.refreshed()
        now.held_lock.ensure_held()
        known = begun.get(info.commit_time)
        found = now.timeline.get(info.commit_time, Action(info.action))
        if known is not None:
            done.append(execute_rollback(now, *known, is_published=False))
        elif found is not None:
            done.append(roll_back(now, found, is_published=False))
    now = view.refreshed()
    rollbacks = dict(_begun_rollbacks(now, plan))
    pending.complete(now, _Restored(restore.requested_time, plan, rollbacks, started))
    now = ensure_metadata_table(now.refreshed())
    for rollback, _ in rollbacks.values():
        delete_pending_files(now, rollback.requested_time, Action.ROLLBACK)
    return done


def _begun_rollbacks(view: TableView, plan: RestorePlan) -> Iterator[tuple[str, tuple[Instant, RollbackPlan]]]:
    """Yield the pending rollbacks of the restore by the time of the instant that each rolls back.

    A rollback without a plan did nothing; its files are deleted.
    """
    times = {info.commit_time for info in plan.instants_to_rollback}
    for found in view.timeline.pending():
        if found.action is not Action.ROLLBACK:
            continue
        stored = stored_rollback_plan(view, found)
        if stored is None:
            delete_pending_files(view, found.requested_time, Action.ROLLBACK)
        elif stored.instant_to_rollback is not None and stored.instant_to_rollback.commit_time in times:
            yield stored.instant_to_rollback.commit_time, (found, stored)


@dataclass(frozen=True, slots=True)
class _Restored(Completion):
    """The completion of a restore. `started`: monotonic clock.

    No other instant can complete while a restore is pending, and each instant was rolled back in the metadata table.
    """

    restore_time: str
    plan: RestorePlan
    rollbacks: Mapping[str, tuple[Instant, RollbackPlan]]
    started: float

    def content(self, now: TableView) -> bytes:
        infos = self.plan.instants_to_rollback
        done = RestoreMetadata(
            start_restore_time=self.restore_time,
            time_taken_in_millis=int((time.monotonic() - self.started) * 1000),
            instants_to_rollback=tuple(info.commit_time for info in infos),
            hoodie_restore_metadata={
                target: (metadata_of(rollback.requested_time, plan),)
                for target, (rollback, plan) in self.rollbacks.items()
            },
            restore_instant_info=infos,
        )
        return done.to_bytes()
