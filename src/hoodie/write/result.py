"""Summarise the work of a write in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hoodie.display import Result, seconds_text, size_text
from hoodie.index.api import LookUpCost
from hoodie.results import ServiceResult

WRITE_PHASES: Final = ("stage", "tag", "write", "index", "commit")
"""The phases whose seconds every write reports."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WriteResult(Result):
    """The outcome of one write: records inserted, updated and deleted, files, bytes, and seconds by phase.

    `deleted` includes the records of replaced file groups. `ignored` rows changed nothing: they lost against the stored
    row by their ordering values, or deleted a key that the table does not have. Rows that equal the stored row, as
    those of a batch that is sent again, count as updated, also where no file had to be written. `duplicates` were
    merged into another row of the batch with the same key. None means: not counted. A merge-on-read table logs rows of
    known keys without a look at the stored rows; if ordering values decide, the rows count as updated, and `ignored` is
    None. `deleted` is None if the table has no record index, and replaced file groups have log files, or are too many
    or damaged (a note).

    `seconds` has the keys stage, tag, write, index, commit and total, and the name of each service that followed.
    `backlog` is the number of log files that wait for compaction, per file slice of the touched partitions (0 for
    copy-on-write tables). `look_up` is the cost of tagging with the record index. `compaction` is the result of the
    compaction that was executed or scheduled after the write, and `services` are the results of the other table
    services that followed it. `notes` report other events, such as the rollback of a dead write.
    """

    instant: str
    action: str
    operation: str
    inserted: int = 0
    updated: int = 0
    deleted: int | None = 0
    ignored: int | None = 0
    duplicates: int = 0
    files_created: int = 0
    files_updated: int = 0
    log_files_appended: int = 0
    bytes_written: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    backlog: float = 0.0
    look_up: LookUpCost | None = None
    compaction: ServiceResult | None = None
    services: tuple[ServiceResult, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        counts = [("inserted", self.inserted), ("updated", self.updated), ("deleted", self.deleted)]
        counts += [(name, n) for name, n in (("ignored", self.ignored), ("duplicates", self.duplicates)) if n != 0]
        changed = ", ".join(f"{name} not counted" if n is None else f"{n:,} {name}" for name, n in counts)
        lines = [
            f"{self.operation} at {self.instant}: {changed}",
            f"  {self._files()}, {size_text(self.bytes_written)} in {seconds_text(self.seconds)}",
            *([] if self.look_up is None else [f"  {self.look_up}"]),
            *([f"  {self.backlog:.1f} log files per file slice wait for compaction"] if self.backlog else []),
            *([] if self.compaction is None else [f"  {line}" for line in str(self.compaction).splitlines()]),
            *(f"  {line}" for service in self.services for line in str(service).splitlines()),
            *(f"  note: {note}" for note in self.notes),
        ]
        return "\n".join(lines)

    def _files(self) -> str:
        logs = f", {self.log_files_appended} log files" if self.log_files_appended else ""
        return f"{self.files_created} new and {self.files_updated} rewritten files{logs}"

    def facts(self) -> Mapping[str, object]:
        counts = {name: getattr(self, name) for name in ("inserted", "updated", "deleted", "ignored", "duplicates")}
        return {
            "operation": self.operation,
            "instant": self.instant,
            **{name: "not counted" if count is None else count for name, count in counts.items()},
            "files": self._files(),
            "written": size_text(self.bytes_written),
            "took": seconds_text(self.seconds),
            "look-up": self.look_up or "",
            "log files per file slice": f"{self.backlog:.1f}" if self.backlog else "",
            "compaction": self.compaction or "",
            "services": "\n".join(map(str, self.services)),
            "notes": "\n".join(self.notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AlterResult(Result):
    """The outcome of a change of columns or properties. `changes` describes each of them.

    `instant` is None if no commit was needed: nothing changed, or only properties did.
    """

    operation: str
    instant: str | None = None
    changes: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        when = f" at {self.instant}" if self.instant else ""
        said = "; ".join(self.changes) or "nothing to do"
        lines = [f"{self.operation}{when}: {said}", f"  in {seconds_text(self.seconds)}"]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def facts(self) -> Mapping[str, object]:
        return {
            "operation": self.operation,
            "instant": self.instant or "",
            "changes": "\n".join(self.changes) or "nothing to do",
            "took": seconds_text(self.seconds),
            "notes": "\n".join(self.notes),
        }
