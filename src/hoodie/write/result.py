"""Summarise the work of a write in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from hoodie.services.result import ServiceResult

if TYPE_CHECKING:
    from hoodie.index import LookUpCost

WRITE_PHASES: Final = ("stage", "tag", "write", "index", "commit")
"""The phases whose seconds every write reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """The outcome of one write: records inserted, updated and deleted, files, bytes, and seconds by phase.

    `seconds` has the keys stage, tag, write, index, commit and total, and compact if a compaction followed. `backlog`
    is the number of log files that wait for compaction, per file slice of the touched partitions (0 for copy-on-write
    tables). `look_up` is the cost of tagging with the record index. `compaction` is the result of the compaction that
    was executed or scheduled after the write. `notes` report other events, such as the rollback of a dead write.
    """

    instant: str
    action: str
    operation: str
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    files_created: int = 0
    files_updated: int = 0
    log_files_appended: int = 0
    bytes_written: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    backlog: float = 0.0
    look_up: LookUpCost | None = None
    compaction: ServiceResult | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        changed = f"{self.inserted:,} inserted, {self.updated:,} updated, {self.deleted:,} deleted"
        logs = f", {self.log_files_appended} log files" if self.log_files_appended else ""
        written = f"{self.bytes_written / 1e6:,.1f} MB"
        files = f"{self.files_created} new and {self.files_updated} rewritten files{logs}, {written}"
        phases = ", ".join(
            f"{name} {took:.2f}" for name, took in self.seconds.items() if name != "total" and took >= 0.005
        )
        lines = [
            f"{self.operation} at {self.instant}: {changed}",
            f"  {files} in {self.seconds.get('total', 0.0):.2f} s ({phases})",
            *([] if self.look_up is None else [f"  {self.look_up}"]),
            *([f"  {self.backlog:.1f} log files per file slice wait for compaction"] if self.backlog else []),
            *([] if self.compaction is None else [f"  {line}" for line in str(self.compaction).splitlines()]),
            *(f"  note: {note}" for note in self.notes),
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return an HTML table, for notebooks."""
        rows = {**self.to_dict(), "seconds": ", ".join(f"{k} {v:.2f}" for k, v in self.seconds.items())}
        cells = "".join(f"<tr><th style='text-align:left'>{k}</th><td>{v}</td></tr>" for k, v in rows.items())
        return f"<table>{cells}</table>"
