"""How many file slices a planned read leaves out, and by what."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hoodie.display import html_facts, size_text

if TYPE_CHECKING:
    from hoodie.read.plan import ScanPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Numbers of file slices that a condition left out of a read, in the order in which they are left out."""

    by_record_index: int = 0
    by_partition_path: int = 0
    by_bucket: int = 0
    by_partition_stats: int = 0
    by_column_stats: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReadExplained:
    """The files that a read opens: `file_slices` of the table's `all_file_slices`; others are left out by `skipped`.

    `size_bytes`: the files of these slices. Row groups and rows are left out later.
    """

    all_file_slices: int
    file_slices: int
    size_bytes: int
    skipped: Skipped = field(default_factory=Skipped)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        by = {name: getattr(self.skipped, name) for name in Skipped.__dataclass_fields__}
        return {
            "all_file_slices": self.all_file_slices,
            "file_slices": self.file_slices,
            "size_bytes": self.size_bytes,
            **{f"skipped_{name}": count for name, count in by.items()},
        }

    def __str__(self) -> str:
        found = self.to_dict()
        reasons = [
            f"{count:,} {name.removeprefix('skipped_').replace('_', ' ')}"
            for name, count in found.items()
            if name.startswith("skipped_") and count
        ]
        left_out = f"; left out: {', '.join(reasons)}" if reasons else ""
        size = size_text(self.size_bytes)
        return f"reads {self.file_slices:,} of {self.all_file_slices:,} file slices, {size}{left_out}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return an HTML table, for notebooks."""
        return html_facts({name.replace("_", " "): value for name, value in self.to_dict().items()})


def explain(plan: ScanPlan) -> ReadExplained:
    """Return what a planned read opens. No data file is opened.

    The table is listed again only if the plan did not list all its partitions.

    Raises: ViewOvertakenError if others took files of the view between the two listings.
    """
    total, told = plan.count_table_slices(), plan.skipped
    others = told.by_partition_path + told.by_bucket + told.by_partition_stats + told.by_column_stats
    unlisted = total - len(plan.slices) - others
    if plan.listed_by_partition:
        skipped = replace(told, by_partition_path=told.by_partition_path + unlisted)
    else:
        skipped = replace(told, by_record_index=unlisted)
    return ReadExplained(
        all_file_slices=total,
        file_slices=len(plan.slices),
        size_bytes=sum(found.size_bytes for found in plan.slices),
        skipped=skipped,
    )
