"""Roll back an instant that the caller names: a pending one, or a completed write that is the newest, or a chain.

A pending instant is a dead write, or the plan of a compaction or clustering.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from hoodie.commit.begin import prepare_table
from hoodie.commit.call import Call
from hoodie.commit.metadata_table import ensure_metadata_table
from hoodie.commit.rollback import (
    RolledBack,
    check_no_running_rollback,
    committed_files,
    plan_rollback,
    roll_back,
    roll_back_pending,
)
from hoodie.commit.writable import check_no_exclusive_service
from hoodie.errors import CommitConflictError, HoodieError, InstantNotFoundError, UnsupportedError
from hoodie.metadata.kinds.registry import KINDS
from hoodie.metadata.table import MetadataTable
from hoodie.progress import PhaseTimes
from hoodie.results import ServiceResult
from hoodie.services.clustering.clustering import CLUSTERING
from hoodie.services.compaction.compaction import COMPACTION
from hoodie.services.indexing.file_builds import build_partition
from hoodie.services.indexing.rebuild import build_lost_index
from hoodie.services.planned.claim import PlannedService
from hoodie.services.planned.pending import check_plan_can_go, roll_back_plan
from hoodie.services.recovery.plan import check_index_without, plan_chain
from hoodie.timeline import Instant
from hoodie.timeline.heartbeat import is_live
from hoodie.view.slices import data_table
from hoodie.view.table_view import TableView

OPERATION = "rollback"
_PLANNED: Final[tuple[PlannedService[Any], ...]] = (COMPACTION, CLUSTERING)


def _roll_back_pending(view: TableView, instant_time: str, *, dry_run: bool) -> ServiceResult:
    """Roll back a pending instant: delete its data files and its instant files.

    The plan of a compaction or clustering is deleted too, so that another plan can include its file slices.
    """
    times, state = PhaseTimes(), view.state
    instant = _pending(view, instant_time)
    check_no_exclusive_service(view)
    service = next((known for known in _PLANNED if instant.action in known.actions), None)
    if dry_run:
        if service is None:
            _check_stopped(view, instant)
        else:
            check_plan_can_go(service, view, instant_time, remove_plan=True)
        requests = plan_rollback(view, instant).rollback_requests
        files = sum(len(request.files_to_be_deleted) for request in requests)
        counts = {"instants": 1, "files_deleted": files}
        notes = (f"{instant} would be rolled back", *_would_build_anew(view, [instant]))
        return ServiceResult(operation=OPERATION, counts=counts, dry_run=True, notes=notes)
    if service is not None:
        with times.phase("rollback"):
            done = roll_back_plan(service, state, instant_time, remove_plan=True)
    else:
        with times.phase("rollback"), TableView.locked(state) as view:
            instant = _pending(view, instant_time)
            check_no_exclusive_service(view)
            _check_stopped(view, instant)
            done = roll_back_pending(view, instant)
    counts = {"instants": 1, "files_deleted": done.files_deleted}
    return ServiceResult(operation=OPERATION, instant=done.instant_time, counts=counts, seconds=times.seconds())


def _check_stopped(view: TableView, instant: Instant) -> None:
    """Refuse to roll back a write that runs, or that another process rolls back. Raises: CommitConflictError."""
    if is_live(view.store, instant.requested_time):
        raise CommitConflictError(f"the writer of {instant} is running: stop it first, or wait until it ends")
    check_no_running_rollback(view, instant)


def _pending(view: TableView, instant_time: str) -> Instant:
    instant = view.timeline.get(instant_time)
    where = view.store.uri("")
    if instant is None:
        raise InstantNotFoundError(
            f"{where} has no instant {instant_time}; t.timeline.pending() returns the pending instants"
        )
    if instant.is_completed:
        raise CommitConflictError(f"{instant} of {where} completed meanwhile; call t.rollback again")
    if not instant.action.writes_data:
        raise UnsupportedError(f"{instant} of {where}: writes, compactions and clusterings can be rolled back")
    return instant


DROPPED_NOTE = (
    "the metadata table had compacted rows of the instants, so it was deleted and built anew from the files in storage"
)


def roll_back_instant(call: Call, instant_time: str, *, chain: bool = False, dry_run: bool = False) -> ServiceResult:
    """Roll back a pending instant, or a completed write together with all later ones, the newest first.

    `chain` allows later instants to go too; `dry_run` only lists what would go. Each instant is rolled back under a
    rollback instant of its own. If the process dies, the next writer completes the rollback that was begun; the
    instants before it stay, and can be rolled back by a second call.

    Raises: as `Table.rollback`; InvalidConfigError for a wrong option.
    """
    view = call.checked_view()
    instant = _instant(view, instant_time)
    if not instant.is_completed:
        return _roll_back_pending(view, instant_time, dry_run=dry_run)
    check_no_exclusive_service(view)
    instants = plan_chain(view, instant, chain=chain)
    check_index_without(call, view, instants)
    if dry_run:
        return preview(view, OPERATION, instants)
    times = PhaseTimes()
    with times.phase("rollback"), call.state.table_lock(call.properties) as lock:
        view, finished = prepare_table(call.state, lock)
        begun = next((one for one in finished if one.instant_time == instant_time), None)
        if begun is not None:  # a rollback of it had begun, and is complete now
            counts = {"instants": 1, "files_deleted": begun.files_deleted}
            return ServiceResult(operation=OPERATION, instant=instant_time, counts=counts, notes=(begun.note,))
        instants = plan_chain(view, _instant(view, instant_time), chain=chain)
        check_index_without(call, view, instants)
        counts = dict(what_goes(view, OPERATION, instants).counts)
        done = []
        for found in instants:
            lock.ensure_held()
            done.append(roll_back(view, found))
            view = view.refreshed()
        ensure_metadata_table(view)
    notes = notes_of(call, done)
    return ServiceResult(operation=OPERATION, instant=instant_time, counts=counts, seconds=times.seconds(), notes=notes)


def preview(view: TableView, operation: str, instants: Sequence[Instant]) -> ServiceResult:
    """Return the result of a dry run, with a note if the metadata table would be built anew."""
    found = what_goes(view, operation, instants)
    return replace(found, notes=(*found.notes, *_would_build_anew(view, instants)))


def _would_build_anew(view: TableView, instants: Sequence[Instant]) -> tuple[str, ...]:
    """Return the note of a dry run whose real run drops the metadata table, see `RolledBack`."""
    table = MetadataTable.open(view.store, view.config)
    if table is None or all(
        table.can_roll_back(found.requested_time, was_completed=found.is_completed) for found in instants
    ):
        return ()
    lost = sorted({*view.config.metadata_partitions} - {kind.name for kind in KINDS.required})
    indexes = f", with {', '.join(lost)}" if lost else ""
    return (
        "the metadata table has compacted rows of the instants, so it would be deleted and built anew from the files "
        f"in storage{indexes}",
    )


def what_goes(view: TableView, operation: str, instants: Sequence[Instant]) -> ServiceResult:
    """Return the result of a dry run: how many instants, rows, files and bytes would go, and which instants.

    The rows are those that the commits recorded as inserted, updated and deleted; no file is read.
    """
    sizes: dict[str, int] = {}
    rows: Counter[str] = Counter()
    for found in instants:
        if found.is_completed:
            sizes |= committed_files(view, found)
            rows.update(view.commit_metadata(found).changed_records() or {})
    counts = {
        "instants": len(instants),
        **{f"{change}_rows": rows[change] for change in ("inserted", "updated", "deleted")},
        "files_deleted": len(sizes),
        "bytes_deleted": sum(sizes.values()),
    }
    notes = tuple(f"{found} would be rolled back" for found in instants)
    return ServiceResult(operation=operation, counts=counts if instants else {}, dry_run=True, notes=notes)


def notes_of(call: Call, done: Sequence[RolledBack]) -> tuple[str, ...]:
    """Return notes about what was built anew; build the index and statistics that the table requires and lacks.

    They went with the metadata table, in this call or in a call that died. Call it without the table's lock: an index
    is built beside writers.
    """
    is_dropped = any(found.dropped_metadata_table for found in done)
    notes = [DROPPED_NOTE] if is_dropped else []
    notes += build_lost_index(call, bytes_max=_ANY_SIZE)
    lost = KINDS.lost(data_table(TableView.load(call.state)))
    return (*notes, *(_built_anew(call, kind.name) for kind in lost))


def _built_anew(call: Call, name: str) -> str:
    """Build a metadata partition that was lost; return a note about it."""
    try:
        build_partition(call, name)
    except HoodieError as error:
        return f'the metadata partition {name} is missing and was not built: {error}; see t.index.build("{name}")'
    return f"the metadata partition {name} was missing and was built anew"


_ANY_SIZE = 1 << 62


def _instant(view: TableView, instant_time: str) -> Instant:
    found = view.timeline.get(instant_time)
    where = view.store.uri("")
    if found is None:
        raise InstantNotFoundError(
            f"{where} has no instant {instant_time} on its active timeline; t.timeline returns the instants"
        )
    if found.is_completed and not found.action.writes_data:
        raise UnsupportedError(f"{found} of {where}: commits can be rolled back, and no completed {found.action}")
    return found
