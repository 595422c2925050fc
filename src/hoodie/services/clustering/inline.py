"""Clustering after a write: schedule it, and execute it, if it is due (`hoodie.clustering.inline` and others)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hoodie.commit.call import Call
from hoodie.config import clustering
from hoodie.services.clustering.pending import CLUSTERING
from hoodie.services.clustering.plan import Trigger
from hoodie.services.clustering.run import OPERATION, cluster
from hoodie.services.clustering.schedule import Wish, schedule_clustering
from hoodie.services.inline import InlineService
from hoodie.services.planned.claim import RunState, runner_of
from hoodie.services.results import ServiceResult
from hoodie.view.table_view import TableView


def _is_on(properties: Mapping[str, str]) -> bool:
    return clustering.CLUSTER_INLINE.get(properties) or clustering.CLUSTER_SCHEDULE_INLINE.get(properties)


def _is_due(call: Call, view: TableView) -> bool:
    """Return whether a plan is due, or an interrupted plan can be executed by a write that clusters inline."""
    effective = {**view.config.raw, **call.properties}
    if clustering.CLUSTER_INLINE.get(effective) and has_waiting_plan(view):
        return True
    return Trigger.of(effective).is_due(view)


def has_waiting_plan(view: TableView) -> bool:
    """Return whether a clustering is pending that no process executes."""
    return any(runner_of(view, found).state is not RunState.RUNNING for found in CLUSTERING.pending_plans(view))


def _run(call: Call) -> ServiceResult | None:
    effective = {**call.state.last_config().raw, **call.properties}
    if clustering.CLUSTER_INLINE.get(effective):
        return cluster_if_due(call)
    scheduled = schedule_clustering(call.state, Wish(properties=call.properties), Trigger.of(effective))
    return None if scheduled is None else ServiceResult(operation=f"schedule {OPERATION}", instant=scheduled.instant)


def cluster_if_due(call: Call) -> ServiceResult | None:
    """Execute the plans that wait, and a new plan if one is due; None if there was nothing to do.

    Raises: as `cluster`.
    """
    trigger = Trigger.of({**call.state.last_config().raw, **call.properties})
    result = cluster(call, Wish(properties=call.properties), trigger=trigger)
    return result if result.instant is not None or result.notes else None


INLINE_CLUSTERING: Final = InlineService(name="cluster", is_on=_is_on, is_due=_is_due, run=_run)
"""Clustering as a service that can follow a write; off by default."""
