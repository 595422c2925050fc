"""Plan a compaction: which file slices become one base file each. Pure functions of file slices.

docs/format/table.md §9.2.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from hoodie.files.compaction_operation import operation_of
from hoodie.files.slices import FileSlice
from hoodie.format.instants.service_metadata import CompactionPlan
from hoodie.services.compaction.strategy import Strategy, StrategyOptions
from hoodie.view.busy_groups import FileGroup


def plan_compaction(
    slices: Iterable[FileSlice],
    busy: Collection[FileGroup],
    strategy: Strategy,
    limits: StrategyOptions,
    extra_metadata: Mapping[str, str] | None = None,
) -> CompactionPlan:
    """The plan that a strategy makes of the newest file slices; without operations if there is nothing to compact.

    Slices without log files are left out, and those of `busy` file groups, on which another plan works: a file group
    is in one pending plan at most, so that several may be carried out at the same time.
    """
    operations = [
        operation_of(found.partition_path, found)
        for found in slices
        if found.log_files and (found.partition_path, found.file_id) not in busy
    ]
    return CompactionPlan(operations=tuple(strategy(operations, limits)), extra_metadata=dict(extra_metadata or {}))
