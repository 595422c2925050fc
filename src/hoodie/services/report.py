"""Report the outcome of a check: what was checked, the number of problems of each kind, and a few examples of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from hoodie.display import html_facts

EXAMPLES_MAX = 10
"""Number of examples of one kind of problem that a report contains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One problem: its kind, its record key (or path), the expected value and the value found."""

    kind: str
    key: str
    expected: str | None = None
    found: str | None = None

    def __str__(self) -> str:
        facts = (("expected", self.expected), ("found", self.found))
        told = ", ".join(f"{name} {fact}" for name, fact in facts if fact is not None)
        return f"{self.kind}: {self.key}" + (f": {told}" if told else "")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Report:
    """The outcome of one check. `problems` counts all problems by kind; `findings` has at most ten of each kind."""

    subject: str
    checked: Mapping[str, int] = field(default_factory=dict)
    problems: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Return whether there are no problems."""
        return not any(self.problems.values())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {"ok": self.ok, **asdict(self)}

    def __str__(self) -> str:
        checked = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in self.checked.items())
        wrong = ", ".join(f"{count:,} {kind}" for kind, count in self.problems.items() if count)
        lines = [f"{self.subject}: {'OK' if self.ok else wrong}", f"  {checked} in {self.seconds:.2f} s"]
        return "\n".join([*lines, *(f"  {finding}" for finding in self.findings)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return HTML, for notebooks."""
        facts = {
            "subject": self.subject,
            "result": "OK" if self.ok else "problems found",
            **{name.replace("_", " "): count for name, count in self.checked.items()},
            **{f"problem: {kind}": count for kind, count in self.problems.items() if count},
            "examples": "\n".join(map(str, self.findings)),
            "took": f"{self.seconds:.2f} s",
        }
        return html_facts(facts)


def few_of_each_kind(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the first `EXAMPLES_MAX` findings of each kind, in their order."""
    kept: dict[str, list[Finding]] = {}
    for finding in findings:
        known = kept.setdefault(finding.kind, [])
        if len(known) < EXAMPLES_MAX:
            known.append(finding)
    return tuple(finding for found in kept.values() for finding in found)
