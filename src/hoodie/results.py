"""Results of table services: `ServiceResult` has the numbers of one run, `Report` the findings of one check.

A report has what was checked, the number of problems of each kind, and a few examples of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from hoodie.display import Result, counted, seconds_text, size_text

_VERBS: Final = MappingProxyType(
    {
        "deleted": "delete",
        "freed": "free",
        "dropped": "drop",
        "kept": "keep",
        "mended": "mend",
        "lost": "lose",
        "written": "write",
    }
)
"""The verb of a dry run for the last word of a count's name, as in `files_deleted`."""
_VERBS_OF_OPERATIONS: Final = MappingProxyType({"rollback": "roll back", "restore": "roll back", "archive": "archive"})
"""The verb of a dry run for the counts whose names have no verb."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ServiceResult(Result):
    """The outcome of one table service: its counts, bytes written, and seconds by phase (including `total`).

    `instant` is None if there was nothing to do. `dry_run`: nothing was changed; the counts are those of a real run.
    """

    operation: str
    instant: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    bytes_written: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    dry_run: bool = False
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether all of it was done; False for a repair that left errors."""
        return True

    def __str__(self) -> str:
        when = f" at {self.instant}" if self.instant else ""
        said, notes = self._headline()
        return "\n".join([f"{self.operation}{when}{': ' if said else ''}{said}", *self._below(notes)])

    def _below(self, notes: Sequence[str]) -> Sequence[str]:
        """Return the lines below the first one."""
        written = "dry run: nothing was changed; took" if self.dry_run else f"{size_text(self.bytes_written)} in"
        return [f"  {written} {seconds_text(self.seconds)}", *(f"  note: {note}" for note in notes)]

    def _headline(self) -> tuple[str, Sequence[str]]:
        """Return what was done, and the notes below it: a note alone stands for counts and an instant."""
        said, notes = self._said(), self.notes
        if said or self.instant or len(notes) > 1:
            return said, notes
        return notes[0] if notes else "nothing to do", ()

    def details(self) -> Sequence[str]:
        """Return further lines, which the command line prints below the text: single files or partitions."""
        return ()

    def facts(self) -> Mapping[str, object]:
        said, notes = self._headline()
        amounts = {} if self.dry_run else dict(_named(self._amounts()))
        return {
            "operation": self.operation + (" (dry run)" if self.dry_run else ""),
            "instant": self.instant or "",
            **(amounts or {"result": said}),
            "written": "" if self.dry_run else size_text(self.bytes_written),
            "took": seconds_text(self.seconds),
            "notes": "\n".join(notes),
        }

    def _amounts(self) -> Mapping[str, int]:
        """Return the counts that a person reads."""
        return self.counts

    def _said(self) -> str:
        """Return the counts as text: what was done, or what a dry run would do; empty without counts."""
        if not self.dry_run:
            return ", ".join(counted(count, name) for name, count in _named(self._amounts()))
        would: dict[str, list[str]] = {}
        facts = []
        for name, count in self._amounts().items():
            noun, _, last = name.rpartition("_")
            if verb := _VERBS.get(last):
                amount = size_text(count) if noun == "bytes" else counted(count, noun)
            else:
                verb, amount = _VERBS_OF_OPERATIONS.get(self.operation, ""), counted(count, name.replace("_", " "))
            if not verb:
                facts.append(amount)
            elif count:
                would.setdefault(verb, []).append(amount)
        deeds = ", ".join(f"{verb} {_listed(amounts)}" for verb, amounts in would.items())
        return ", ".join([*([f"would {deeds}"] if deeds else []), *facts])


def _listed(amounts: Sequence[str]) -> str:
    *most, last = amounts
    return f"{', '.join(most)} and {last}" if most else last


def _named(amounts: Mapping[str, int]) -> Iterable[tuple[str, int]]:
    return ((name.replace("_", " "), count) for name, count in amounts.items())


OnResult = Callable[[ServiceResult], None]


EXAMPLES_MAX = 10
"""Number of examples of one kind of problem that a report contains."""


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    """Rows are wrong or missing, or a reader or writer of the table fails, now or after a further service."""
    WARNING = "warning"
    """All rows are right; something is left over, or a service is overdue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding: its kind, its record key, path or instant, the expected value and the value found.

    `remedy` is the command that mends it.
    """

    kind: str
    key: str
    expected: str | None = None
    found: str | None = None
    severity: Severity = Severity.ERROR
    remedy: str = ""

    def __str__(self) -> str:
        facts = (("expected", self.expected), ("found", self.found))
        text = ", ".join(f"{name} {fact}" for name, fact in facts if fact is not None)
        return f"{self.kind}: {self.key}" + (f": {text}" if text else "")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Report(Result):
    """The outcome of one check.

    `problems` and `warnings` count all findings of the two severities by kind; `findings` has at most ten of each kind.
    `notes` say what was not checked, and why.
    """

    subject: str
    checked: Mapping[str, int] = field(default_factory=dict)
    problems: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0
    warnings: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Return whether there are no problems; warnings do not count."""
        return not any(self.problems.values())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON: the keys are stable."""
        return {"ok": self.ok, **asdict(self)}

    def __str__(self) -> str:
        checked = ", ".join(counted(count, name) for name, count in _named(self.checked))
        wrong = ", ".join(f"{count:,} {kind}" for kind, count in self.problems.items() if count) or "OK"
        warned = sum(self.warnings.values())
        warnings = f" ({warned:,} warning{'s' if warned > 1 else ''})" if warned else ""
        lines = [f"{self.subject}: {wrong}{warnings}", f"  {checked} in {self.seconds:.2f} s"]
        by_kind: dict[tuple[Severity, str], list[Finding]] = {}
        for finding in sorted(self.findings, key=lambda finding: finding.severity is Severity.WARNING):
            by_kind.setdefault((finding.severity, finding.kind), []).append(finding)
        for (severity, kind), findings in by_kind.items():
            if remedy := findings[0].remedy:
                numbers = self.problems if severity is Severity.ERROR else self.warnings
                lines.append(f"  {severity} {kind}: {numbers.get(kind, len(findings)):,} -> {remedy}")
            lines += [f"  {'  ' if remedy else ''}{finding}" for finding in findings]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def facts(self) -> Mapping[str, object]:
        return {
            "subject": self.subject,
            "result": "OK" if self.ok else "problems found",
            **{name.replace("_", " "): count for name, count in self.checked.items()},
            **{f"problem: {kind}": count for kind, count in self.problems.items() if count},
            **{f"warning: {kind}": count for kind, count in self.warnings.items() if count},
            "examples": "\n".join(map(str, self.findings)),
            "mended by": "\n".join(dict.fromkeys(f"{one.kind}: {one.remedy}" for one in self.findings if one.remedy)),
            "notes": "\n".join(self.notes),
            "took": f"{self.seconds:.2f} s",
        }


def few_of_each_kind(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the first `EXAMPLES_MAX` findings of each kind, in their order."""
    kept: dict[str, list[Finding]] = {}
    for finding in findings:
        known = kept.setdefault(finding.kind, [])
        if len(known) < EXAMPLES_MAX:
            known.append(finding)
    return tuple(finding for found in kept.values() for finding in found)
