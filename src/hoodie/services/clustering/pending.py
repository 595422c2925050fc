"""List the pending clusterings: their plans, the amount of work of each, and the process that executes it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from hoodie.display import size_text
from hoodie.files.compaction_operation import LOG_BYTES, READ_MIB
from hoodie.services.clustering.plan import RowOrder
from hoodie.services.clustering.planned import CLUSTERING
from hoodie.services.planned.claim import runner_of
from hoodie.services.planned.listing import PendingPlans
from hoodie.timeline import parse_instant_time
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingClustering:
    """One pending plan. `state`: waiting, running or interrupted; `runner` is the process that executes it, or did.

    `by` are the columns by which rows are sorted; `layout` is empty if the executor's options decide it, or if rows are
    not sorted. `bytes_to_read` is approximate.
    """

    instant: str
    state: str
    runner: str
    groups: int
    file_slices: int
    files_after: int
    bytes_to_read: int
    by: tuple[str, ...]
    layout: str
    age_seconds: float

    def __str__(self) -> str:
        who = f" ({self.runner})" if self.runner else ""
        order = f" {self.layout} by {', '.join(self.by)}".replace("  ", " ") if self.by else ""
        return (
            f"{self.instant} clustering{order}  {self.state}{who}: {self.file_slices:,} file slices in {self.groups:,} "
            f"groups to {self.files_after:,} files, {size_text(self.bytes_to_read)} to read, scheduled "
            f"{self.age_seconds:,.0f} s ago"
        )


PendingClusterings = PendingPlans[PendingClustering]
"""The pending plans of a table, oldest first."""


def pending_clusterings(state: TableState) -> PendingClusterings:
    """Return the pending clusterings of a table, those of the JVM too; one small file is read for each.

    Raises: CorruptFileError if a plan does not parse.
    """
    view = TableView.load(state)
    found = []
    for instant in CLUSTERING.pending_plans(view):
        plan = CLUSTERING.stored_plan(view, instant)
        groups = () if plan is None else plan.input_groups
        params = (plan.strategy.strategy_params or {}) if plan is not None and plan.strategy is not None else {}
        order = RowOrder.of(params)
        metrics = [group.metrics or {} for group in groups]
        runner = runner_of(view, instant)
        requested = parse_instant_time(instant.requested_time, view.layout.zone).timestamp()
        found.append(
            PendingClustering(
                instant=instant.requested_time,
                state=runner.state.value,
                runner=str(runner),
                groups=len(groups),
                file_slices=sum(len(group.slices) for group in groups),
                files_after=sum(group.num_output_file_groups or 1 for group in groups),
                bytes_to_read=sum(int(one.get(READ_MIB, 0) * _MIB or one.get(LOG_BYTES, 0)) for one in metrics),
                by=order.columns,
                layout=order.layout if order.columns else "",
                age_seconds=max(0.0, time.time() - requested),
            )
        )
    return PendingPlans(CLUSTERING.name, tuple(found))
