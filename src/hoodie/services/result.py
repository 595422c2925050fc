"""Summarise the work of a table service in numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from hoodie.display import html_facts, seconds_text, size_text


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ServiceResult:
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

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        counts = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in self.counts.items())
        when = f" at {self.instant}" if self.instant else ""
        took = f"  {size_text(self.bytes_written)} in {seconds_text(self.seconds)}"
        lines = [f"{self.operation}{when}: {counts or 'nothing to do'}", took]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return an HTML table, for notebooks."""
        facts = {
            "operation": self.operation + (" (dry run)" if self.dry_run else ""),
            "instant": self.instant or "",
            **{name.replace("_", " "): count for name, count in self.counts.items()},
            "written": size_text(self.bytes_written),
            "took": seconds_text(self.seconds),
            "notes": "\n".join(self.notes),
        }
        return html_facts(facts)


OnResult = Callable[[ServiceResult], None]
