"""Tell whether a table needs a clustering: many small files in a partition. A pure function of file slices."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import groupby

from hoodie.display import size_text
from hoodie.files.slices import FileSlice
from hoodie.services.clustering.plan import group_slices, output_files
from hoodie.services.clustering.settings import PlanLimits
from hoodie.view.pending_plans import FileGroup, groups_being_clustered, groups_being_compacted
from hoodie.view.slices import list_slices
from hoodie.view.table_view import TableView

_FILES_MIN = 10
"""Small files in one partition from which advice is given; fewer cost a read little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallFiles:
    """Small file slices that a clustering would make fewer. `partitions` are paths, most slices to save first."""

    file_slices: int = 0
    files_after: int = 0
    size_bytes: int = 0
    partitions: tuple[str, ...] = ()

    @property
    def is_advised(self) -> bool:
        """Return whether a clustering is worth its work."""
        return self.file_slices > 0

    def __str__(self) -> str:
        if not self.is_advised:
            return "no partition has many small files"
        return (
            f"{self.file_slices:,} small file slices ({size_text(self.size_bytes)}) in {len(self.partitions):,} "
            f"partitions could be {self.files_after:,} base files: call t.cluster(), or run `hoodie cluster`"
        )


def small_files(
    slices: Iterable[FileSlice], busy: Collection[FileGroup] = (), limits: PlanLimits | None = None
) -> SmallFiles:
    """Return the partitions in which clustering would replace at least ten small file slices by at most half as many.

    `slices` are the newest file slices, ordered by partition. `busy` file groups are in a pending plan; they are not
    counted. Memory: the slices of one partition.
    """
    limits = limits or PlanLimits()
    saved: dict[str, int] = {}
    before = after = size_bytes = 0
    free = (found for found in slices if (found.partition_path, found.file_id) not in busy)
    for path, found in groupby(free, key=lambda one: one.partition_path):
        groups = list(group_slices(found, limits, is_sorted=False))
        count = sum(map(len, groups))
        files = sum(output_files(group, limits.target_bytes) for group in groups)
        if count >= _FILES_MIN and files * 2 <= count:
            saved[path] = count - files
            before, after = before + count, after + files
            size_bytes += sum(member.size_bytes for group in groups for member in group)
    partitions = tuple(sorted(saved, key=lambda path: (-saved[path], path)))
    return SmallFiles(file_slices=before, files_after=after, size_bytes=size_bytes, partitions=partitions)


def clustering_advice(view: TableView) -> SmallFiles:
    """Return the small files of a table as of a view, by the options that the table stores. Reads the listing only.

    Raises: CorruptFileError if a pending plan does not parse; InvalidConfigError for a wrong option of the table.
    """
    busy = groups_being_compacted(view) | groups_being_clustered(view).keys()
    return small_files(list_slices(view), busy, PlanLimits.of(view.config.raw))
