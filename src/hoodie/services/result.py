"""Summarise the work of a table service in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
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
        phases = ", ".join(
            f"{name} {took:.2f}" for name, took in self.seconds.items() if name != "total" and took >= 0.005
        )
        when = f" at {self.instant}" if self.instant else ""
        took = f"  {self.bytes_written / 1e6:,.1f} MB in {self.seconds.get('total', 0.0):.2f} s ({phases})"
        lines = [f"{self.operation}{when}: {counts or 'nothing to do'}", took]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        """Return an HTML table, for notebooks."""
        cells = "".join(f"<tr><th style='text-align:left'>{k}</th><td>{v}</td></tr>" for k, v in self.to_dict().items())
        return f"<table>{cells}</table>"
