"""Schedule a compaction: create an instant whose requested file contains the plan. Writers are not blocked.

Implements docs/format/table.md §9.2. The plan contains the log files that exist at this time. Later log files belong to
the file slices that the compaction will create.
"""

from __future__ import annotations

from collections.abc import Mapping

from hoodie.commit.exclusive import check_no_exclusive_service
from hoodie.commit.pending import request
from hoodie.commit.writable import check_writable
from hoodie.config import compaction
from hoodie.errors import UnsupportedError
from hoodie.files.table_properties import finish_update
from hoodie.format.table.call_options import check_call_options, check_texts
from hoodie.format.table.table_config import TableType
from hoodie.services.compaction.plan import plan_compaction
from hoodie.services.compaction.strategy import StrategyOptions, strategy_named
from hoodie.services.compaction.trigger import Trigger
from hoodie.timeline import Action
from hoodie.view.pending_plans import groups_being_clustered, groups_being_compacted
from hoodie.view.slices import list_slices
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView


def schedule_compaction(
    state: TableState,
    *,
    strategy: str | None = None,
    extra_metadata: Mapping[str, str] | None = None,
    properties: Mapping[str, str] | None = None,
    trigger: Trigger | None = None,
) -> str | None:
    """Plan a compaction of the file slices that have log files; return its instant, or None if there are none.

    `strategy` is a short name or the class name in Hudi (default: `hoodie.compaction.strategy`). `properties` override
    the options that the table stores. File groups in a pending compaction or clustering are skipped, so that any number
    of plans can be pending. With a `trigger`, a compaction is planned only if it is due.

    Raises:
        UnsupportedError: the table is not merge-on-read, or this release does not compact tables of its kind.
        InvalidConfigError: an unknown strategy or option; a table property; extra metadata that is not text.
        LockTimeoutError: another process held the table's lock too long.
    """
    extra = dict(extra_metadata or {})
    check_texts("extra_metadata", extra)
    view = TableView.load(state)
    check_call_options(properties or {}, view.config)
    check_compactable(view)
    effective = {**view.config.raw, **(properties or {})}
    chosen = strategy_named(strategy or compaction.COMPACTION_STRATEGY.get(effective))
    limits = StrategyOptions.of(effective)
    if trigger is not None and not trigger.is_due(view):
        return None
    with state.table_lock(properties) as lock:
        finish_update(state.store)
        view = TableView.load(state, lock)
        check_no_exclusive_service(view)
        if trigger is not None and not trigger.is_due(view):
            return None
        busy = groups_being_compacted(view) | groups_being_clustered(view).keys()
        plan = plan_compaction(list_slices(view), busy, chosen, limits, extra)
        if not plan.operations:
            return None
        return request(view, Action.COMPACTION, plan.to_bytes()).requested_time


def check_compactable(view: TableView) -> None:
    """Refuse copy-on-write tables, and tables whose base files this release does not write.

    Raises: UnsupportedError; its message names the unsupported feature and an engine that supports it.
    """
    if view.config.table_type is not TableType.MERGE_ON_READ:
        raise UnsupportedError(f"{view.store.uri('')} is a copy-on-write table: it has no log files to compact")
    check_writable(view, "compact")
