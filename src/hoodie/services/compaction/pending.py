"""Compaction as a planned service, and its pending plans: the work of each, and the process that executes it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from hoodie.display import size_text
from hoodie.files.compaction_operation import LOG_BYTES, work_bytes
from hoodie.format.instants.service_metadata import CompactionPlan
from hoodie.services.planned.claim import runner_of
from hoodie.services.planned.pending import PendingPlans
from hoodie.services.planned.service import PlannedService
from hoodie.timeline import Action, parse_instant_time
from hoodie.view.pending_plans import stored_plan
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView


def _partitions_of(plan: CompactionPlan) -> set[str]:
    return {operation.partition_path for operation in plan.operations}


COMPACTION: Final = PlannedService(
    name="compaction",
    actions=frozenset({Action.COMPACTION, Action.LOG_COMPACTION}),
    stored_plan=stored_plan,
    partitions_of=_partitions_of,
)
"""Compaction and log compaction: a pending plan of one of them excludes its file groups from plans of both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCompaction:
    """One pending plan. `action`: compaction or logcompaction; `state`: waiting, running or interrupted.

    `runner` is the process that executes, or executed, the plan. `bytes_to_read` counts base and log files, `log_bytes`
    counts log files only.
    """

    instant: str
    action: str
    state: str
    runner: str
    file_slices: int
    log_files: int
    log_bytes: int
    bytes_to_read: int
    age_seconds: float

    def __str__(self) -> str:
        who = f" ({self.runner})" if self.runner else ""
        return (
            f"{self.instant} {self.action}  {self.state}{who}: {self.file_slices:,} file slices, "
            f"{self.log_files:,} log files, {size_text(self.bytes_to_read)} to read, "
            f"scheduled {self.age_seconds:,.0f} s ago"
        )


PendingCompactions = PendingPlans[PendingCompaction]
"""The pending plans of a table, oldest first."""


def pending_compactions(state: TableState) -> PendingCompactions:
    """Return the pending compactions and log compactions of a table; one small file is read for each.

    The result contains plans of this library and of the JVM.

    Raises: CorruptFileError if a plan does not parse.
    """
    view = TableView.load(state)
    found = []
    for instant in COMPACTION.pending_plans(view):
        plan = COMPACTION.stored_plan(view, instant)
        operations = () if plan is None else plan.operations
        runner = runner_of(view, instant)
        requested = parse_instant_time(instant.requested_time, view.layout.zone).timestamp()
        found.append(
            PendingCompaction(
                instant=instant.requested_time,
                action=instant.action.value,
                state=runner.state.value,
                runner=str(runner),
                file_slices=len(operations),
                log_files=sum(len(operation.delta_file_paths) for operation in operations),
                log_bytes=sum(int((operation.metrics or {}).get(LOG_BYTES, 0)) for operation in operations),
                bytes_to_read=sum(map(work_bytes, operations)),
                age_seconds=max(0.0, time.time() - requested),
            )
        )
    return PendingPlans(COMPACTION.name, tuple(found))
