"""The clusterings on the timeline, and what was written since the last one: from the timeline and commit metadata."""

from __future__ import annotations

from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.timeline import Action, Instant
from hoodie.view.pending_plans import stored_clustering
from hoodie.view.table_view import TableView


def last_clustering(view: TableView) -> Instant | None:
    """Return the completed or pending clustering with the latest requested time; None if the timeline has none.

    Reads the metadata of completed replace commits that is not cached, newest first.
    """
    for instant in reversed(view.timeline.instants):
        if instant.action is Action.CLUSTERING:
            return instant
        if (
            instant.action is Action.REPLACE_COMMIT
            and instant.is_completed
            and view.commit_facts(instant).operation_type == WriteOperation.CLUSTER
        ):
            return instant
    return None


def writes_since(view: TableView, clustering: Instant | None) -> list[Instant]:
    """Return the completed writes and services that wrote data and were requested after a clustering, oldest first."""
    start = "" if clustering is None else clustering.requested_time
    return [found for found in view.completed_writes() if found.requested_time > start]


def changed_partitions(view: TableView) -> frozenset[str] | None:
    """Return the partitions that the next incremental plan must examine; None: all, as there was no clustering yet.

    These are the partitions written by commits that completed after the last plan was made, and the partitions that
    this plan did not cover. Reads the metadata of these commits and the last plan.
    """
    last = last_clustering(view)
    if last is None:
        return None
    plan = stored_clustering(view, last)
    changed = set(plan.missing_schedule_partitions or ()) if plan is not None else set()
    for instant in view.completed_writes():
        if (instant.completion_time or instant.requested_time) > last.requested_time and instant != last:
            changed |= {stat.partition_path or "" for stat in view.commit_metadata(instant).write_stats()}
    return frozenset(changed)
