"""All table services that `hoodie services run` can run, in the order in which one round runs them.

First what makes new file slices, then what deletes old ones, then what shortens the timeline: each service of a round
works on what the earlier ones left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hoodie.commit.call import Call
from hoodie.config import compaction
from hoodie.format.table import table_keys as keys
from hoodie.format.table.table_config import TableType
from hoodie.services.after_write import SERVICES
from hoodie.services.clustering.inline import INLINE_CLUSTERING, cluster_if_due, has_waiting_plan
from hoodie.services.clustering.plan import Trigger as ClusteringTrigger
from hoodie.services.clustering.run import execute_waiting
from hoodie.services.compaction.compactor import compact_once
from hoodie.services.compaction.log_compaction import schedule_log_compaction
from hoodie.services.compaction.plan import Trigger
from hoodie.services.inline import InlineService
from hoodie.services.planned.coordination import Coordinator, TableCoordinator
from hoodie.services.results import OnResult, ServiceResult
from hoodie.timeline import Action
from hoodie.view.table_view import TableView


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnableService:
    """A service of a round; as `InlineService`, but `run` reports each of its results, and may have several."""

    name: str
    is_on: Callable[[Mapping[str, str]], bool]
    is_due: Callable[[Call, TableView], bool]
    run: Callable[[Call, OnResult], None]

    @classmethod
    def of(cls, service: InlineService) -> RunnableService:
        """Return a service that can follow a write as one of a round."""

        def run(call: Call, report: OnResult) -> None:
            result = service.run(call)
            if result is not None:
                report(result)

        return cls(name=service.name, is_on=service.is_on, is_due=service.is_due, run=run)


def all_services(coordinator: Coordinator | None = None, *, schedule: bool = True) -> tuple[RunnableService, ...]:
    """Return every service. A service that follows a write is in `services/after_write.py`, and thereby here.

    `coordinator` grants claims of compactions if several machines share the work. Without `schedule`, the pending
    compactions and clusterings are executed, and none is planned.
    """
    compaction = RunnableService(
        name="compact",
        is_on=_is_merge_on_read,
        is_due=lambda call, view: _is_compaction_due(call, view, schedule=schedule),
        run=lambda call, report: _compact(call, report, coordinator or TableCoordinator(), schedule=schedule),
    )
    logs = RunnableService(name="log-compact", is_on=_folds_logs, is_due=_has_logs, run=_plan_log_compaction)
    clustering = RunnableService(
        name=INLINE_CLUSTERING.name,
        is_on=INLINE_CLUSTERING.is_on,
        is_due=lambda call, view: _is_clustering_due(call, view, schedule=schedule),
        run=lambda call, report: _cluster(call, report, schedule=schedule),
    )
    others = (service for service in SERVICES if service is not INLINE_CLUSTERING)
    return (logs, compaction, clustering, *map(RunnableService.of, others))


def _is_merge_on_read(properties: Mapping[str, str]) -> bool:
    return properties.get(keys.TYPE, "").upper() == TableType.MERGE_ON_READ.value


def _folds_logs(properties: Mapping[str, str]) -> bool:
    return _is_merge_on_read(properties) and compaction.LOG_COMPACTION_INLINE.get(properties)


def _has_logs(call: Call, view: TableView) -> bool:
    return view.config.table_type is TableType.MERGE_ON_READ


def _is_compaction_due(call: Call, view: TableView, *, schedule: bool) -> bool:
    """Return whether a plan is pending, or a compaction is due by its trigger."""
    if any(found.action in (Action.COMPACTION, Action.LOG_COMPACTION) for found in view.timeline.pending()):
        return True
    return schedule and Trigger.of({**view.config.raw, **call.properties}).is_due(view)


def _compact(call: Call, report: OnResult, coordinator: Coordinator, *, schedule: bool) -> None:
    """Schedule a compaction if one is due, then execute every pending plan that no process executes."""
    try:
        compact_once(call, coordinator=coordinator, schedule=schedule, report=report)
    finally:
        coordinator.close()


def _is_clustering_due(call: Call, view: TableView, *, schedule: bool) -> bool:
    """Return whether a plan waits, or a clustering is due by its trigger."""
    if has_waiting_plan(view):
        return True
    return schedule and ClusteringTrigger.of({**view.config.raw, **call.properties}).is_due(view)


def _cluster(call: Call, report: OnResult, *, schedule: bool) -> None:
    """Execute every pending plan that no process executes, then a new one if it is due."""
    if not schedule:
        for result in execute_waiting(call):
            report(result)
        return
    done = cluster_if_due(call)
    if done is not None:
        report(done)


def _plan_log_compaction(call: Call, report: OnResult) -> None:
    """Schedule a log compaction of the file slices with many log blocks; the compactions of the round execute it."""
    planned = schedule_log_compaction(call.state)
    if planned is not None:
        report(ServiceResult(operation="schedule log compaction", instant=planned))
