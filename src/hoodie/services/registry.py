"""All table services: those that follow a write, and those that `hoodie services run` runs, in their order.

A service that follows a write never fails it: the write is committed already, so an error becomes a note.

First what makes new file slices, then what deletes old ones, then what shortens the timeline: each service of a round
works on what the earlier ones left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import takewhile
from typing import Final

from hoodie.commit.call import Call, Occasion
from hoodie.config import compaction
from hoodie.errors import CommitConflictError
from hoodie.format.table import table_keys as keys
from hoodie.format.table.call_options import effective_options
from hoodie.format.table.table_config import TableType
from hoodie.progress import PhaseTimes
from hoodie.results import OnResult, ServiceResult
from hoodie.services.archiving import ARCHIVE
from hoodie.services.cleaning.clean import CLEAN, DISK_FULL, clean_under_lock
from hoodie.services.clustering.clustering import CLUSTERING, INLINE_CLUSTERING, cluster_if_due
from hoodie.services.clustering.plan import Trigger as ClusteringTrigger
from hoodie.services.compaction.compaction import compact_once, is_inline_due
from hoodie.services.compaction.log_compaction import schedule_log_compaction
from hoodie.services.compaction.plan import Trigger
from hoodie.services.planned.coordination import Coordinator, TableCoordinator
from hoodie.services.planned.executor import execute_waiting, has_waiting_plan
from hoodie.services.service import TableService
from hoodie.services.ttl import EXPIRE
from hoodie.timeline import Action
from hoodie.view.table_view import TableView

SERVICES: Final[tuple[TableService, ...]] = (INLINE_CLUSTERING, EXPIRE, CLEAN, ARCHIVE)
"""The services in the order in which they run. Compaction runs before them: see `write/outcome.py`."""


def clean_with_write(call: Call, watch: PhaseTimes, view: TableView) -> tuple[TableView, list[ServiceResult] | None]:
    """Run the clean that is due, if it is small, under the lock of the write that has just completed.

    `view` is the table with the write, under that lock; returned is the table after the clean, and its results. None
    instead of results leaves the clean to `run_after_write`: a service before it is due, or it cannot run under this
    lock. Never raises an error: it becomes a note.
    """
    call = replace(call, occasion=Occasion.AFTER_WRITE)
    earlier = takewhile(lambda service: service.name != CLEAN.name, SERVICES)
    try:
        options = effective_options(view.config, call.properties)
        if not CLEAN.is_on(options) or not CLEAN.is_due(call, view):
            return view, None
        if any(service.is_on(options) and service.is_due(call, view) for service in earlier):
            return view, None
        if view.config.table_type is TableType.MERGE_ON_READ and is_inline_due(call, view):
            return view, None
    except Exception:
        return view, None  # `run_after_write` notes what failed
    try:
        with watch.phase(CLEAN.name):
            cleaned = clean_under_lock(call, view)
    except CommitConflictError:
        return view, None  # the lock was lost
    except Exception as error:
        is_full = isinstance(error, OSError) and error.errno in DISK_FULL
        return view, None if is_full else [_failed(CLEAN, error)]
    if cleaned is None:
        return view, None
    result, view = cleaned
    return view, [result] if result.instant is not None or result.notes else []


def run_after_write(
    call: Call, watch: PhaseTimes, view: TableView | None = None, *, is_cleaned: bool = False
) -> list[ServiceResult]:
    """Run each service that is on and due, by the table's properties and the options of the write.

    `is_cleaned`: `clean_with_write` has run the clean. `view`: the table after the write, by default loaded here; it is
    loaded again after a service that changed the table. Each service that runs is a phase.
    """
    call = replace(call, occasion=Occasion.AFTER_WRITE)
    results: list[ServiceResult] = []
    for service in SERVICES:
        if is_cleaned and service.name == CLEAN.name:
            continue
        try:
            if not service.is_on(effective_options(call.state.last_config(), call.properties)):
                continue
            if view is None:
                view = call.load()
            if not service.is_due(call, view):
                continue
            seen, view = view, None
            with watch.phase(service.name):
                service.run(replace(call, seen=seen), results.append)
        except Exception as error:
            # Also errors of Arrow or Spark: a caller that sees an error would write the rows again.
            results.append(_failed(service, error))
    return results


def _failed(service: TableService, error: Exception) -> ServiceResult:
    note = f"{service.name} failed after this write, which is committed: {error}"
    return ServiceResult(operation=service.name, notes=(note,))


def all_services(coordinator: Coordinator | None = None, *, schedule: bool = True) -> tuple[TableService, ...]:
    """Return every service. A service that follows a write is a line of `SERVICES`.

    `coordinator` grants claims of compactions if several machines share the work. Without `schedule`, the pending
    compactions and clusterings are executed, and none is planned.
    """
    logs = TableService(
        name="log-compact",
        about="Fold many small log blocks into one.",
        is_on=lambda properties: _is_merge_on_read(properties) and compaction.LOG_COMPACTION_INLINE.get(properties),
        is_due=lambda _call, view: view.config.table_type is TableType.MERGE_ON_READ,
        run=_plan_log_compaction,
    )
    compactions = TableService(
        name="compact",
        about="Compact log files.",
        is_on=_is_merge_on_read,
        is_due=lambda call, view: _is_compaction_due(call, view, schedule=schedule),
        run=lambda call, report: _compact(call, report, coordinator or TableCoordinator(), schedule=schedule),
    )
    clustering = replace(
        INLINE_CLUSTERING,
        is_due=lambda call, view: _is_clustering_due(call, view, schedule=schedule),
        run=lambda call, report: _cluster(call, report, schedule=schedule),
    )
    return (logs, compactions, clustering, *(service for service in SERVICES if service is not INLINE_CLUSTERING))


def _is_merge_on_read(properties: Mapping[str, str]) -> bool:
    return properties.get(keys.TYPE, "").upper() == TableType.MERGE_ON_READ.value


def _is_compaction_due(call: Call, view: TableView, *, schedule: bool) -> bool:
    """Return whether a plan is pending, or a compaction is due by its trigger."""
    if any(found.action in (Action.COMPACTION, Action.LOG_COMPACTION) for found in view.timeline.pending()):
        return True
    return schedule and Trigger.of(effective_options(view.config, call.properties)).is_due(view)


def _compact(call: Call, report: OnResult, coordinator: Coordinator, *, schedule: bool) -> None:
    """Schedule a compaction if one is due, then execute every pending plan that no process executes."""
    try:
        compact_once(call, coordinator=coordinator, schedule=schedule, report=report)
    finally:
        coordinator.close()


def _is_clustering_due(call: Call, view: TableView, *, schedule: bool) -> bool:
    """Return whether a plan waits, or a clustering is due by its trigger."""
    if has_waiting_plan(CLUSTERING, view):
        return True
    return schedule and ClusteringTrigger.of(effective_options(view.config, call.properties)).is_due(view)


def _cluster(call: Call, report: OnResult, *, schedule: bool) -> None:
    """Execute every pending plan that no process executes, then a new one if it is due."""
    if schedule:
        cluster_if_due(call, report)
    else:
        for result in execute_waiting(CLUSTERING, call):
            report(result)


def _plan_log_compaction(call: Call, report: OnResult) -> None:
    """Schedule a log compaction of the file slices with many log blocks; the compactions of the round execute it."""
    least = compaction.LOG_COMPACTION_BLOCKS.get(effective_options(call.state.last_config(), call.properties))
    planned = schedule_log_compaction(call.state, blocks_min=least)
    if planned is not None:
        report(ServiceResult(operation="schedule log compaction", instant=planned))
