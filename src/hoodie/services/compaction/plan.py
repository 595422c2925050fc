"""Plan a compaction: choose the file slices that become one new base file each. Pure functions of file slices.

Implements docs/format/table.md §9.2.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from hoodie.files.compaction_operation import operation_of
from hoodie.files.slices import FileSlice
from hoodie.format.instants.service_metadata import CompactionPlan
from hoodie.services.compaction.strategy import Strategy, StrategyOptions
from hoodie.view.pending_plans import FileGroup


def plan_compaction(
    slices: Iterable[FileSlice],
    busy: Collection[FileGroup],
    strategy: Strategy,
    limits: StrategyOptions,
    extra_metadata: Mapping[str, str] | None = None,
) -> CompactionPlan:
    """Return the compaction plan of a strategy for the newest file slices; it may have no operations.

    Slices without log files are skipped. Slices of `busy` file groups, which are in another pending plan, are skipped
    too: a file group is in at most one pending plan, so that several plans can be executed at the same time.
    """
    operations = [
        operation_of(found.partition_path, found)
        for found in slices
        if found.log_files and (found.partition_path, found.file_id) not in busy
    ]
    return CompactionPlan(operations=tuple(strategy(operations, limits)), extra_metadata=dict(extra_metadata or {}))
