"""The card of a table: what its properties, its timeline and its metadata table say of it, as text by heading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hoodie.display import command_text, counted, size_text
from hoodie.errors import HoodieError
from hoodie.files.slices import FileSlice
from hoodie.read.inspect import RowCounts
from hoodie.services.check.timeline_check import pending_problems
from hoodie.view.slices import list_slices
from hoodie.view.table_view import TableView

_SLICES_MAX: Final = 20_000
"""File slices whose rows are counted: each commit that wrote one of them is read."""


def card_of(view: TableView) -> dict[str, str]:
    """Return name, type, keys, partition columns, rows, size, newest commit, findings and columns.

    No data file is opened, and no folder of data is listed: rows and size are left out without a metadata table. Rows
    are those of base files whose commits are on the active timeline. `findings` has the errors of reads.
    """
    config = view.config
    completed = view.timeline.completed()
    facts = {
        "name": config.name,
        "type": f"{config.table_type.value.lower()}, version {config.version.value}",
        "record key": ", ".join(config.record_key_fields) or "automatic",
        "partitioned by": ", ".join(config.partition_fields),
        "ordering": ", ".join(config.ordering_fields),
        "index": ", ".join(config.metadata_partitions),
        "newest commit": "none: the table has no rows yet",
    }
    if commits := completed.writes().instants:
        facts["newest commit"] = f"{commits[-1]}, the newest of {len(commits):,} on the active timeline"
    findings = []
    try:
        if view.config.has_metadata_table and completed.instants:
            slices = list_slices(view)
            facts |= {"rows": _rows(view, slices), "size": _size(slices)}
    except (HoodieError, OSError) as error:
        findings.append(str(error))
    try:
        facts["columns"] = ", ".join(f"{field.name} {field.type}" for field in view.schema().arrow)
        findings += (f"{found.kind.name}: {found.key}: {found.kind.meaning}" for found in pending_problems(view))
    except (HoodieError, OSError) as error:
        findings.append(str(error))
    verify = f"t.verify() or `{command_text('hoodie verify TABLE', view.store.uri(''))}`"
    advice = f"{verify} has details" if findings else f"none on the timeline; {verify} checks the files"
    return {**facts, "findings": "\n".join([*dict.fromkeys(findings), advice])}


def timeline_findings(view: TableView) -> list[dict[str, str]]:
    """Return what is wrong on the timeline: kind, severity, key, meaning and remedy of each finding.

    One request for each pending instant. Raises: CorruptFileError, StorageError.
    """
    table = view.store.uri("")
    return [
        {
            "kind": found.kind.name,
            "severity": found.kind.severity.value,
            "key": found.key,
            "meaning": found.kind.meaning,
            "remedy": found.kind.remedy_for(table, found.key),
        }
        for found in pending_problems(view)
    ]


def card_text(title: str, facts: Mapping[str, str]) -> str:
    """Return the facts of a card that have a value, one or more lines each, below the title.

    >>> print(card_text("trips", {"rows": "2", "ordering": "", "findings": "a\\nb"}))
    trips
      rows      2
      findings  a
                b
    """
    width = max((len(name) for name, fact in facts.items() if fact), default=0)
    lines = [
        f"  {name if not place else '':<{width}}  {line}"
        for name, fact in facts.items()
        for place, line in enumerate(fact.splitlines())
    ]
    return "\n".join([title, *lines])


def _rows(view: TableView, slices: Sequence[FileSlice]) -> str:
    """Count the rows of base files, as their commits recorded them."""
    if len(slices) > _SLICES_MAX:
        return f"not counted, in {len(slices):,} file slices; t.count() counts them"
    row_counts = RowCounts(view)
    bases = [found.base_file for found in slices if found.base_file is not None]
    counts = [row_counts.get(base.instant_time, base.path) for base in bases]
    known = [count for count in counts if count is not None]
    parts = []
    if len(known) < len(counts):
        parts.append(f"in {len(known):,} of {len(counts):,} base files; the commits of the others are archived")
    if any(found.log_files for found in slices):
        parts.append("without the changes in log files")
    return "; ".join([f"{sum(known):,}", *parts, *(["t.count() counts all"] if parts else [])])


def _size(slices: Sequence[FileSlice]) -> str:
    files = sum(len([*found.paths]) for found in slices)
    partitions = len({found.partition_path for found in slices})
    size = size_text(sum(found.size_bytes for found in slices))
    return f"{size} in {counted(files, 'files')} of {counted(partitions, 'partitions')}"
