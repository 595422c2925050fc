"""Compaction as a planned service: its actions and its stored plans."""

from __future__ import annotations

from typing import Final

from hoodie.format.instants.service_metadata import CompactionPlan
from hoodie.services.planned.service import PlannedService
from hoodie.timeline import Action
from hoodie.view.pending_plans import stored_plan


def _partitions_of(plan: CompactionPlan) -> set[str]:
    return {operation.partition_path for operation in plan.operations}


COMPACTION: Final = PlannedService(
    name="compaction",
    actions=frozenset({Action.COMPACTION, Action.LOG_COMPACTION}),
    stored_plan=stored_plan,
    partitions_of=_partitions_of,
)
"""Compaction and log compaction: a pending plan of one of them excludes its file groups from plans of both."""
