"""Put a compaction on the timeline: an instant whose requested file is the plan. Writers go on.

docs/format/table.md §9.2. What was logged before is in the plan; what is logged from then on belongs to the file slices
that the compaction will make.
"""

from __future__ import annotations

from collections.abc import Mapping

from hoodie import config as options
from hoodie.commit.exclusive import check_no_exclusive_service
from hoodie.commit.pending import request
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.files.table_properties import finish_update
from hoodie.format.table.table_config import BaseFileFormat, TableType
from hoodie.services.compaction.plan import plan_compaction
from hoodie.services.compaction.strategy import StrategyOptions, strategy_named
from hoodie.services.compaction.trigger import Trigger
from hoodie.timeline import Action, TableLock
from hoodie.view.busy_groups import groups_being_clustered, groups_being_compacted
from hoodie.view.table_view import TableState, TableView


def schedule_compaction(
    state: TableState,
    *,
    strategy: str | None = None,
    extra_metadata: Mapping[str, str] | None = None,
    properties: Mapping[str, str] | None = None,
    trigger: Trigger | None = None,
) -> str | None:
    """Plan a compaction of the file slices that have log files; its instant, or None if there is nothing to compact.

    `strategy` is a short name or Hudi's class (default: `hoodie.compaction.strategy`); `properties` go before those
    that the table stores. File groups in a pending compaction or clustering are left out, so that any number of plans
    can be pending. With a `trigger`, nothing is planned unless it is due.

    Raises:
        UnsupportedError: the table is not merge-on-read, or of a kind that this release does not write.
        InvalidConfigError: no such strategy; extra metadata that is no text.
        LockTimeoutError: another writer held the table's lock too long.
    """
    extra = dict(extra_metadata or {})
    if not all(isinstance(text, str) for pair in extra.items() for text in pair):
        raise InvalidConfigError(f"extra_metadata are texts, got {extra}; write e.g. 'true' and '1024'")
    view = TableView.load(state)
    check_compactable(view)
    effective = {**view.config.raw, **(properties or {})}
    chosen = strategy_named(strategy or options.COMPACTION_STRATEGY.get(effective))
    limits = StrategyOptions.of(effective)
    if trigger is not None and not trigger.is_due(view):
        return None
    with TableLock(state.store):
        finish_update(state.store)
        view = TableView.load(state)
        check_no_exclusive_service(view)
        if trigger is not None and not trigger.is_due(view):
            return None
        busy = groups_being_compacted(view) | groups_being_clustered(view)
        plan = plan_compaction(view.slices(), busy, chosen, limits, extra)
        if not plan.operations:
            return None
        return request(view, Action.COMPACTION, plan.to_bytes()).requested_time


def check_compactable(view: TableView) -> None:
    """Refuse tables that have no compactions, or whose base files this release does not write.

    Raises: UnsupportedError, saying what and who can.
    """
    config, where = view.config, view.store.uri("")
    if config.table_type is not TableType.MERGE_ON_READ:
        raise UnsupportedError(f"{where} is a copy-on-write table: it has no log files, and nothing to compact")
    if config.version.value != 9:
        raise UnsupportedError(
            f"{where} has table version {config.version.value}; this release writes version 9 only and never upgrades "
            "a table unasked: compact it with its own engine, or let Hudi 1.1 or later upgrade it to 9"
        )
    missing = {
        "tables without meta fields": not config.populates_meta_fields,
        "tables whose data files lack the partition columns": config.drops_partition_columns,
        "tables with change data capture": config.is_cdc_enabled,
        "bootstrapped tables": config.bootstrap_base_path is not None,
        f"{config.base_file_format} base files": config.base_file_format is not BaseFileFormat.PARQUET,
    }
    for what, found in missing.items():
        if found:
            raise UnsupportedError(f"{where}: this release does not compact {what}; compact it with JVM Hudi")
