"""Refuse changes of a table while an exclusive service is pending: a service during which the table must not change."""

from __future__ import annotations

from typing import Final

from hoodie.errors import InstantNotFoundError, UnsupportedError
from hoodie.format.instants.service_metadata import IndexPlan, RestorePlan
from hoodie.index.record.building.plan import build_of
from hoodie.metadata.kinds.registry import KINDS
from hoodie.timeline import Action, Instant, State, read_instant
from hoodie.view.table_view import TableView

OUR_BUILD: Final = "hoodie.python.statistics"
"""In the extra metadata of the plan of a build by this library. On disk: do not change."""


def built_of_files(view: TableView, instant: Instant) -> tuple[str, ...]:
    """Return the metadata partitions that a pending instant of this library builds from data files; empty for others.

    Raises: CorruptFileError if the plan does not parse.
    """
    if instant.action is not Action.INDEXING:
        return ()
    try:
        content = read_instant(view.store, view.layout, instant, State.REQUESTED)
    except InstantNotFoundError:
        return ()
    plan = IndexPlan.parse(content, path=str(instant)) if content else IndexPlan()
    ours = [info for info in plan.index_partition_infos if (info.extra_metadata or {}).get(OUR_BUILD) == "true"]
    return tuple(name for info in ours if (name := info.metadata_partition_path) and KINDS.builder(name) is not None)


def check_no_exclusive_service(view: TableView) -> None:
    """Refuse to write while a restore or an index build of the JVM is pending.

    Writes are allowed while this library builds an index. Raises: UnsupportedError, naming the instant.
    """
    for instant in view.timeline.pending().instants:
        is_ours = instant.action is Action.INDEXING and (
            build_of(view, instant) is not None or bool(built_of_files(view, instant))
        )
        if is_ours:
            continue
        if instant.action in (Action.RESTORE, Action.INDEXING):
            raise UnsupportedError(
                f"{view.store.uri('')} has a pending {instant.action} ({instant.requested_time}), during which nothing "
                f"else can be written; {_remedy(view, instant)}, then try again"
            )


def restore_plan(view: TableView, restore: Instant) -> RestorePlan | None:
    """Return the plan of a pending restore; None if its process died before it stored the plan.

    Raises: CorruptFileError if the plan does not parse.
    """
    try:
        content = read_instant(view.store, view.layout, restore, State.REQUESTED)
    except InstantNotFoundError:
        return None
    return RestorePlan.parse(content, path=str(restore)) if content else None


def restored_to(plan: RestorePlan) -> str:
    """Return the commit to which a plan restores the table; empty if a plan of version 1 names none."""
    return plan.savepoint_to_restore_timestamp or ""


def _remedy(view: TableView, instant: Instant) -> str:
    plan = restore_plan(view, instant) if instant.action is Action.RESTORE else None
    if plan is not None and restored_to(plan):
        return f"if its process does not run any more, complete it with t.restore('{restored_to(plan)}')"
    return "complete it with the engine that started it"
