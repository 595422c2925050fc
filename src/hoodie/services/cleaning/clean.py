"""Clean a table: finish pending cleans, then plan and execute a new one (docs/format/table.md §9.4).

A clean is pending if its process died, or failed before all files were deleted. The inflight file of a clean names the
process that executes it, and its heartbeat shows whether that process runs. The JVM writes an empty inflight file and
no heartbeat; whether it executes the clean is derived from the age of the files.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from hoodie.commit.begin import prepare_table
from hoodie.commit.call import Call, Occasion
from hoodie.commit.idle import JVM_IDLE_MS, idle_ms
from hoodie.commit.metadata_table import ensure_metadata_partitions
from hoodie.commit.pending import EXECUTOR, PendingInstant, inflight_content, request
from hoodie.commit.rollback import RolledBack, dead_writes
from hoodie.commit.steps import Step, reached
from hoodie.commit.writable import check_no_exclusive_service
from hoodie.config import retention
from hoodie.display import size_text
from hoodie.errors import CommitConflictError, CorruptFileError, StorageError
from hoodie.files.staging.staged import dead_stages
from hoodie.format.filenames import name_of
from hoodie.format.instants.service_metadata import CleanerPlan
from hoodie.format.table.call_options import check_call_options
from hoodie.progress import PhaseTimes
from hoodie.results import OnResult, ServiceResult
from hoodie.services.cleaning.execution import CleanCompletion, delete_files, files_to_delete
from hoodie.services.cleaning.partitions import CleanOptions
from hoodie.services.cleaning.plan import PlannedClean, commits_since, earliest_to_retain, examine, plan_clean
from hoodie.services.service import TableService
from hoodie.timeline import (
    Action,
    Instant,
    State,
    delete_instant_files,
    is_live,
    parse_instant_time,
)
from hoodie.timeline.owner import Owner
from hoodie.view.ahead import LISTING, ask_for_partitions
from hoodie.view.commit_cache import CleanFacts
from hoodie.view.history import last_clean, oldest_readable_instant, readable_savepoints, stable_since
from hoodie.view.listing import note_unknown
from hoodie.view.lost_instants import check_no_write_is_lost
from hoodie.view.table_view import TableView


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CleanResult(ServiceResult):
    """The outcome of a clean. `counts` has `files_deleted`, `bytes_freed` and `partitions_dropped`.

    `files`: the names of the files by partition path; only a dry run fills it. `oldest_readable`: the requested time of
    the oldest instant from which on every snapshot stays readable; None if all do. `readable_savepoints`: older commits
    whose snapshots stay readable, because a savepoint keeps their files.
    """

    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    oldest_readable: str | None = None
    readable_savepoints: tuple[str, ...] = ()

    def details(self) -> Sequence[str]:
        """Return the files, and which snapshots stay readable, one a line."""
        named = ((partition, name) for partition, names in self.files.items() for name in names)
        lines = [f"  {partition}/{name}" if partition else f"  {name}" for partition, name in named]
        if self.oldest_readable is not None:
            lines.append(f"  snapshots from {self.oldest_readable} on stay readable")
        saved = (f"  the snapshot of {time} stays readable: it has a savepoint" for time in self.readable_savepoints)
        return [*lines, *saved]


_FOREIGN_IDLE_MS = {State.REQUESTED: 60_000, State.INFLIGHT: JVM_IDLE_MS}
"""Milliseconds after which a clean without an owner counts as interrupted, unless the caller requested a clean."""


def pending_cleans(view: TableView) -> list[Instant]:
    """Return the pending cleans, oldest first."""
    return [found for found in view.timeline.pending() if found.action is Action.CLEAN]


def is_running(view: TableView, clean: Instant, *, is_asked_for: bool) -> bool:
    """Return whether a process executes the pending clean.

    `is_asked_for`: a person requested a clean. Then a clean of the JVM counts as running only with a live heartbeat;
    two processes that execute one clean delete the same files.
    """
    if is_live(view.store, clean.requested_time):
        return True
    if is_asked_for:
        return False
    content = inflight_content(view, clean) if clean.state is State.INFLIGHT else None
    if content is not None and _owner_of(content) is not None:
        return False
    idle = idle_ms(view, clean, State.REQUESTED, State.INFLIGHT, with_markers=False)
    return idle < _FOREIGN_IDLE_MS[clean.state]


def take_up(
    view: TableView, clean: Instant, properties: Mapping[str, str]
) -> tuple[PendingInstant, CleanerPlan] | None:
    """Claim a pending clean that no process executes, under the table's lock; return it with its plan.

    None if it has no plan: the process that requested it died first. Then its files are deleted from the timeline.

    Raises: CorruptFileError if the plan does not parse.
    """
    content = view.pending_content(clean)
    if not content:
        states = (State.INFLIGHT, State.REQUESTED)
        delete_instant_files(view.store, view.layout, clean.requested_time, clean.action, *states)
        return None
    plan = CleanerPlan.parse(content, path=view.path_of(clean))
    return claim(ensure_metadata_partitions(view), clean, plan, properties), plan


def claim(view: TableView, clean: Instant, plan: CleanerPlan, properties: Mapping[str, str]) -> PendingInstant:
    """Make this process the owner of a requested clean, under the table's lock.

    In version 6 the inflight file contains the plan too: JVM Hudi 0.15 reads it there, also to archive the clean.
    """
    token = Owner.new().to_bytes()
    if view.config.version.inflight_clean_has_plan:
        token = replace(plan, extra_metadata={**(plan.extra_metadata or {}), EXECUTOR: token.decode()}).to_bytes()
    return PendingInstant.claim(view, clean, token, properties)


def _owner_of(content: bytes) -> Owner | None:
    """Return the process that the inflight file of a clean names; None if a JVM wrote it."""
    try:
        plan = CleanerPlan.parse(content)
    except CorruptFileError:
        return Owner.parse(content)
    return Owner.parse((plan.extra_metadata or {}).get(EXECUTOR, "").encode())


OPERATION: Final = "clean"
_COMMITS_IN_VAIN: Final = 10
"""Commits after which a clean without files is put on the timeline: later cleans need not look at them again."""


def clean(call: Call, *, dry_run: bool = False) -> CleanResult:
    """Delete the files that only snapshots before the retained window need; see `CleanOptions` for what is retained.

    Never deleted: files of the newest file slices, files that a savepoint, a pending compaction, log compaction or
    clustering needs, and files of a partition that a pending write may be filling. A pending clean whose process died
    is finished first. With `dry_run` nothing is changed, and the result names the files. A clean that does not follow a
    write also rolls back dead writes, with a note of each.

    Memory: the listings of the partitions that changed since the last clean; of the whole table if planning is not
    incremental.

    Raises:
        UnsupportedError: a pending restore.
        InvalidConfigError: a wrong option.
        CorruptFileError: a plan, a savepoint or a commit does not parse, or a plan names a file outside of the table.
        LockTimeoutError: another process held the table's lock too long.
        StorageError: the disk is so full that the plan cannot be stored; the message names the bytes needed.
    """
    try:
        return _cleaned(call, dry_run=dry_run)
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        full = error
    # Staged rows of dead writers are deleted without the lock: no process reads them, and the lock needs space.
    dead, freed = dead_stages(call.state.store, now_ms=time.time_ns() // 1_000_000)
    for folder in dead:
        call.state.store.delete_folder(folder)
    try:
        if not freed:
            raise full
        result = _cleaned(call, dry_run=dry_run)
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        raise _disk_full(call, error) from error
    note = f"the disk was full: staged rows of dead writers were deleted first, {size_text(freed)}"
    return replace(result, notes=(note, *result.notes))


DISK_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""The numbers of errors of a full disk."""
_ROOM_BYTES: Final = 64 * 1024
"""Enough for the lock, the heartbeat, and the files by which a clean begins; each file of the plan needs more."""
_PLAN_BYTES_PER_FILE: Final = 300


def _disk_full(call: Call, error: OSError) -> StorageError:
    """Return the error of a clean that cannot begin: it deletes nothing before its plan is stored."""
    view = call.load()
    planned = _planned(view, CleanOptions.of(view.config.raw, call.properties))
    needed = size_text(_ROOM_BYTES + _PLAN_BYTES_PER_FILE * planned.files)
    said = str(error).partition("; ")[0]
    gain = f"to free {size_text(planned.bytes)}" if planned.files else "with options by which it has files to delete"
    return StorageError(
        f"{view.store.uri('')} was not cleaned, as its disk is full ({said}). A clean stores its lock and its plan "
        f"before it deletes: free {needed} outside of the table, then clean again {gain}",
        error.errno,
    )


def _cleaned(call: Call, *, dry_run: bool) -> CleanResult:
    """Clean, as `clean`, on a disk that has space for it."""
    times = PhaseTimes()
    view = call.view()
    check_call_options(call.properties, view.config)
    options = CleanOptions.of(view.config.raw, call.properties)
    if dry_run:
        with times.phase("plan"):
            check_no_exclusive_service(view)
            view, dead = _without_dead_writes(view)
            planned = _planned(view, options)
        result = _preview(view, options, planned, times)
        notes = (f"{found} would be rolled back first: its writer had died" for found in dead)
        return replace(result, notes=(*_note_unknown(call, view, options), *notes, *result.notes))
    rolled_back: tuple[RolledBack, ...] = ()
    if call.occasion is not Occasion.AFTER_WRITE:
        with call.state.table_lock(call.properties) as lock:
            view, rolled_back = prepare_table(call.state, lock)
    unknown = _note_unknown(call, view, options)
    result = _finish_pending(call, view, times) or _clean(call, view, options, times)
    return replace(result, notes=(*unknown, *(done.note for done in rolled_back), *result.notes))


def _note_unknown(call: Call, view: TableView, options: CleanOptions) -> tuple[str, ...]:
    """Return a note of partitions that a call selects and the table does not have."""
    if call.occasion is not Occasion.CALL:
        return ()
    return note_unknown(view, options.partitions, retention.CLEAN_PARTITIONS_SELECTED.key)


def _without_dead_writes(view: TableView) -> tuple[TableView, list[Instant]]:
    """Return the view as it is after dead writes were rolled back, and these writes; nothing is changed.

    Raises: CorruptFileError if a write completed that looks dead.
    """
    dead = dead_writes(view)
    check_no_write_is_lost(view, dead)
    if not dead:
        return view, dead
    left = view.timeline.filter(lambda found: found not in dead)
    never = view.timeline.never_completed | {found.requested_time for found in dead}
    return replace(view, timeline=replace(left, never_completed=never)), dead


def _clean(call: Call, view: TableView, options: CleanOptions, times: PhaseTimes) -> CleanResult:
    """Plan and execute a new clean."""
    with times.phase("plan"):
        planned = _planned(view, options)
        begun = _begin(call, view, options, planned)
    if isinstance(begun, str):
        return replace(_nothing(view, times), notes=(begun,) if begun else ())
    pending, planned = begun
    return _carry_out(call, pending, planned.plan, times, freed=planned.bytes)


_PARTITIONS_UNDER_LOCK_MAX: Final = 100
_FILES_UNDER_LOCK_MAX: Final = 1000
"""A clean that looks at more partitions, or deletes more files, takes the lock of its own: other writers wait less."""


def clean_under_lock(call: Call, view: TableView) -> tuple[CleanResult, TableView] | None:
    """Clean under the lock of the write that has just completed; `view` is the table with it, under that lock.

    A clean is due. None, and nothing is changed, if it is not small, or if another one is pending: `clean` does it
    without that lock. Returns the result, and the table after the clean.

    Raises: as `clean`, but it frees no space on a full disk; CommitConflictError if the lock was lost. The write stays
    committed.
    """
    if pending_cleans(view):
        return None
    times = PhaseTimes()
    options = CleanOptions.of(view.config.raw, call.properties)
    examined = examine(view, options, _last_planned(view))
    if examined.partitions is None or len(examined.partitions) > _PARTITIONS_UNDER_LOCK_MAX:
        return None
    with times.phase("plan"):
        ask_for_partitions(view, LISTING)
        view.held_lock.ask()
        if not view.held_lock.is_held:
            return None
        planned = plan_clean(view, options, examined)
        if planned.files > _FILES_UNDER_LOCK_MAX:
            return None
        if not _is_worthwhile(view, options, planned):
            _remember(view, planned)
            return _nothing(view, times), view
        pending = _claimed(call, view, planned.plan)
    now = view.with_instant(pending.instant)
    pending.ask(now)
    result = _carry_out(call, pending, planned.plan, times, freed=planned.bytes, now=now)
    return result, pending.completed_view or now


def finish_cleans(call: Call) -> tuple[str, ...]:
    """Execute the pending cleans that no process executes, and plan no other one; return notes.

    Raises: as `clean`.
    """
    view = TableView.load(call.state)
    # The caller requested no clean: a clean that a JVM may be executing is left to it.
    done = _finish_pending(replace(call, occasion=Occasion.ROUND), view, PhaseTimes())
    return () if done is None else done.notes


def _is_clean_due(call: Call, view: TableView) -> bool:
    """Return whether a clean may have something to delete, or, in a round, a dead write to roll back.

    Reads the timeline, and the last clean once; in a round also the heartbeats of pending writes.
    """
    if pending_cleans(view) or (call.occasion is Occasion.ROUND and dead_writes(view)):
        return True
    options = CleanOptions.of(view.config.raw, call.properties)
    last = _last_planned(view)
    if commits_since(view, last) < options.trigger_commits:
        return False
    earliest = earliest_to_retain(view, options, last, datetime.now(UTC))
    if earliest is None:
        return options.policy.counts_versions
    return last is None or last.earliest < earliest.requested_time


def has_waited(view: TableView, commits: int) -> bool:
    """Return whether a clean is pending, or this number of commits completed after the last clean was planned."""
    return bool(pending_cleans(view)) or commits_since(view, last_clean(view)) >= commits


def _planned(view: TableView, options: CleanOptions) -> PlannedClean:
    return plan_clean(view, options, examine(view, options, _last_planned(view)))


def _last_planned(view: TableView) -> CleanFacts | None:
    """Return the facts of the last clean, or of a later clean that this process planned and that had nothing to do."""
    done, in_vain = last_clean(view), view.state.commits.nothing_to_clean
    if in_vain is None or (done is not None and done.planned_at > in_vain.planned_at):
        return done
    return in_vain


def _finish_pending(call: Call, view: TableView, times: PhaseTimes) -> CleanResult | None:
    """Execute the pending cleans that no process executes; None if there are none.

    Returns the result of the last one. While another process executes a clean, no further one is planned: it would
    contain the same files.
    """
    result: CleanResult | None = None
    for clean in pending_cleans(view):
        with TableView.locked(call.state, call.properties, finishes_update=True) as loaded:
            now = _prepared(loaded)
            found = now.timeline.get(clean.requested_time, Action.CLEAN)
            if found is None or found.is_completed:
                continue
            if is_running(now, found, is_asked_for=call.occasion is Occasion.CALL):
                note = f"{found} is being executed by another process"
                return replace(_nothing(now, times), notes=(note,))
            taken = take_up(now, found, call.properties)
        if taken is not None:
            note = f"finished {clean}, which another process had begun"
            done = _carry_out(call, *taken, times)
            result = replace(done, notes=(note, *done.notes))
    return result


def _begin(
    call: Call, view: TableView, options: CleanOptions, planned: PlannedClean
) -> tuple[PendingInstant, PlannedClean] | str:
    """Request the planned clean and claim it.

    Returns a note instead if another process requested a clean meanwhile, and no text if there is nothing to do. The
    plan was made without the lock. It is made again if a savepoint or a service that it must respect came since.
    """
    if not _is_worthwhile(view, options, planned):
        _remember(view, planned)
        return ""
    with TableView.locked(call.state, call.properties, finishes_update=True) as loaded:
        now = _prepared(loaded)
        if others := list(pending_cleans(now)):
            return f"{others[0]} was requested by another process meanwhile: this call leaves it to that one"
        if _ground(now) != _ground(view):
            planned = _planned(now, options)
            if not _is_worthwhile(now, options, planned):
                return ""
        pending = _claimed(call, now, planned.plan)
    reached(Step.BEGUN)
    return pending, planned


def _claimed(call: Call, view: TableView, plan: CleanerPlan) -> PendingInstant:
    """Request a clean and claim it, under the table's lock."""
    requested = request(view, Action.CLEAN, plan.to_bytes())
    reached(Step.REQUESTED)
    return claim(view, requested, plan, call.properties)


def _prepared(view: TableView) -> TableView:
    """Return the table that was loaded under its lock, ready for a change."""
    check_no_exclusive_service(view)
    return ensure_metadata_partitions(view)


def _ground(view: TableView) -> list[tuple[str, str, int]]:
    """Return the instants that a plan must respect: all but completed writes, and but pending writes.

    A write that came since adds newer file slices only.
    """
    return [
        (found.requested_time, found.action.value, found.state)
        for found in view.timeline
        if found.action not in (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
    ]


def _is_worthwhile(view: TableView, options: CleanOptions, planned: PlannedClean) -> bool:
    """Return whether a plan is put on the timeline: it has work, or saves later cleans from looking again."""
    if not planned.is_empty:
        return True
    last, earliest = last_clean(view), planned.plan.earliest_instant_to_retain
    if earliest is None or not options.is_incremental or (last is not None and earliest.timestamp <= last.earliest):
        return False
    if planned.is_full or planned.commits >= _COMMITS_IN_VAIN:
        return True
    if options.empty_clean_hours < 0:
        return False
    if last is None:
        return True
    age = datetime.now(UTC) - parse_instant_time(last.planned_at, view.layout.zone).astimezone(UTC)
    return age > timedelta(hours=options.empty_clean_hours)


def _remember(view: TableView, planned: PlannedClean) -> None:
    """Note in this process that nothing was to be deleted, so that the next plan looks at later commits only."""
    completed = (found.completion_time or "" for found in view.timeline.writes().completed())
    if planned.plan.earliest_instant_to_retain is not None:
        view.state.commits.nothing_to_clean = planned.facts(max(completed, default=""))


def _carry_out(
    call: Call,
    pending: PendingInstant,
    plan: CleanerPlan,
    times: PhaseTimes,
    *,
    freed: int = 0,
    now: TableView | None = None,
) -> CleanResult:
    """Delete the files of a claimed plan, and complete the clean. After an error the plan stays for the next clean.

    `now`: the table with the claimed clean, under the lock that the caller holds; None: the lock is taken to complete.
    """
    started = time.monotonic()
    view, instant_time = pending.view, pending.instant_time
    # `undo` would wait for the caller's lock. The claim stays instead: without a heartbeat the next clean takes it.
    undo = pending.undo if now is None else pending.end
    try:
        where = f"{view.store.uri('')}: the plan of the clean {instant_time}"
        files = files_to_delete(view, plan, by=where)
        with times.phase("delete"):
            delete_files(pending, files, call.engine_for)
        completion = CleanCompletion(
            instant_time=instant_time, plan=plan, files=files, started=started, engine_for=call.engine_for
        )
        reached(Step.LOCATED)
        with times.phase("commit"):
            pending.finish(completion) if now is None else pending.finish_under(now, completion)
    except CommitConflictError:
        undo()
        found = view.refreshed().timeline.get(instant_time, Action.CLEAN)
        if found is None or not found.is_completed:
            raise
        return replace(_nothing(view, times), notes=(f"{found} was completed by another process",))
    except BaseException:
        undo()
        raise
    counts = {
        "files_deleted": sum(map(len, files.values())),
        "bytes_freed": freed,
        "partitions_dropped": len(completion.dropped),
    }
    view.state.commits.cleans[instant_time] = completion.facts()
    bound = max(oldest_readable_instant(view), completion.facts().bound)
    return CleanResult(
        operation=OPERATION,
        instant=instant_time,
        counts=counts,
        seconds=times.seconds(),
        notes=tuple(completion.notes),
        oldest_readable=stable_since(view, bound) or None,
        readable_savepoints=readable_savepoints(view, bound),
    )


def _preview(view: TableView, options: CleanOptions, planned: PlannedClean, times: PhaseTimes) -> CleanResult:
    """Return the result of a dry run, with a note if a clean without files would go on the timeline."""
    plan = planned.plan
    files: Mapping[str, tuple[str, ...]] = {
        path: tuple(name_of(info.file_path) for info in infos)
        for path, infos in (plan.file_paths_to_be_deleted_per_partition or {}).items()
    }
    counts = {
        "files_deleted": planned.files,
        "bytes_freed": planned.bytes,
        "partitions_dropped": len(plan.partitions_to_be_deleted or ()),
    }
    notes = [f"{found} is pending: the next clean finishes it first" for found in pending_cleans(view)]
    bound = oldest_readable_instant(view)
    if _is_worthwhile(view, options, planned):
        bound = max(bound, planned.facts("").bound)
        if planned.is_empty:
            notes.append(
                f"no file would be deleted, but the clean goes on the timeline: snapshots from before {bound} cannot "
                "be read any more"
            )
    return CleanResult(
        operation=OPERATION,
        counts=counts,
        seconds=times.seconds(),
        dry_run=True,
        notes=tuple(notes),
        files=files,
        oldest_readable=stable_since(view, bound) or None,
        readable_savepoints=readable_savepoints(view, bound),
    )


def _nothing(view: TableView, times: PhaseTimes) -> CleanResult:
    bound = oldest_readable_instant(view)
    return CleanResult(
        operation=OPERATION,
        seconds=times.seconds(),
        oldest_readable=stable_since(view, bound) or None,
        readable_savepoints=readable_savepoints(view, bound),
    )


def _run(call: Call, report: OnResult) -> None:
    result = clean(call)
    if result.instant is not None or result.notes:
        report(result)


CLEAN = TableService(
    name=OPERATION,
    about="Delete files that no retained snapshot needs.",
    is_on=retention.CLEAN_AUTOMATIC.get,
    is_due=_is_clean_due,
    run=_run,
)
