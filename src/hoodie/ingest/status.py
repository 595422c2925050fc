"""Where a flow stands: the place of its newest commit, and what its source has behind it. No rows are read."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from hoodie.display import counted
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.ingest.flow import Begun, Flow
from hoodie.ingest.result import described
from hoodie.timeline.zone import parse_instant_time


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowStatus:
    """The place, lag and errors of a flow.

    `place`, `instant` and `committed_at` (ISO, UTC): of the newest commit with a place; None without one.
    `age_seconds`: since then. `is_current`: the source has nothing new; None if not known. `about`: what the next batch
    reads. `lag_rows`: the rows behind `place`; None if not known. `lag_seconds`: the age of the oldest row that the
    next batch does not read. `last_error` and `last_error_at`: of the process that ran the flow last, until its next
    success. `problem`: why the source or the table cannot be read now.
    """

    flow: str
    table: str
    place: str | None = None
    instant: str | None = None
    committed_at: str | None = None
    age_seconds: float | None = None
    is_current: bool | None = None
    about: str = ""
    lag_rows: int | None = None
    lag_seconds: float | None = None
    last_error: str | None = None
    last_error_at: str | None = None
    problem: str | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        at = f"{self.committed_at}, {age_text(self.age_seconds)} ago" if self.committed_at else "none yet"
        return described(
            f"{self.flow}: {self.lag}",
            f"table: {self.table}",
            f"last commit: {at}",
            self.place and f"place: {self.place}",
            self.about and f"next batch: {self.about}",
            self.last_error and f"last error, {self.last_error_at}: {self.last_error}",
            self.problem and f"problem: {self.problem}",
            *(f"note: {note}" for note in self.notes),
        )

    @property
    def lag(self) -> str:
        """What is left in the source, in words."""
        if self.is_current is None:
            return "lag not known"
        if self.is_current:
            return "up to date"
        rows = "new rows" if self.lag_rows is None else f"{counted(self.lag_rows, 'rows')} behind"
        return rows if self.lag_seconds is None else f"{rows}, the oldest of the later batches {self.lag_seconds:.0f} s"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)


def age_text(seconds: float | None) -> str:
    """Return an age in seconds, minutes, hours or days.

    >>> age_text(90), age_text(7200.0), age_text(400_000), age_text(None)
    ('90 s', '120 min', '111 h', '')
    """
    if seconds is None:
        return ""
    for unit, least, length in (("d", 604_800, 86_400), ("h", 14_400, 3600), ("min", 120, 60)):
        if seconds >= least:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def status_of(
    flow: Flow, *, plans: bool = True, last_error: str | None = None, last_error_at: str | None = None
) -> FlowStatus:
    """Return the status of a flow; the source plans its next batch, but reads no rows.

    Without `plans`, the source is left alone, and the lag is not known; it may not be known either if the flow needs
    Spark and has no session. `last_error` and `last_error_at` were stored by the process that ran the flow. An error
    now becomes `problem`.
    """
    found: dict[str, object] = {"last_error": last_error, "last_error_at": last_error_at}
    try:
        begun = flow.begun()
        found |= _committed(begun)
        if plans:
            found |= _left(flow, begun)
    except Exception as error:  # also of a source of the user: the status of the other flows is printed
        found["problem"] = str(error) or type(error).__name__
    return FlowStatus(flow=flow.name, table=flow.target.path, **found)  # type: ignore[arg-type]


def _committed(begun: Begun) -> dict[str, object]:
    stored, view = begun.stored, begun.view
    place = stored.checkpoint.place if stored.checkpoint else None
    if view is None or stored.instant is None:
        return {"place": place}
    completed = view.timeline.completion_time_of(stored.instant) or stored.instant
    at = parse_instant_time(completed, view.config.timezone).astimezone(UTC)
    return {
        "place": place,
        "instant": stored.instant,
        "committed_at": at.isoformat(timespec="seconds"),
        "age_seconds": (datetime.now(UTC) - at).total_seconds(),
    }


def _left(flow: Flow, begun: Begun) -> dict[str, object]:
    try:
        batch = flow.source.plan(flow.request(begun, is_look=True))
    except (UnsupportedError, InvalidConfigError) as error:
        if not flow.needs_spark or (flow.spark is not None and isinstance(error, InvalidConfigError)):
            raise
        without = "" if flow.spark is not None else " without Spark (--spark)"
        return {"notes": (f"the lag is not known{without}: {error}",)}
    if batch is None:
        return {"is_current": True, "lag_rows": 0, "lag_seconds": 0.0}
    is_known = batch.rows is not None and batch.lag_rows is not None
    return {
        "is_current": False,
        "about": batch.about,
        "lag_rows": (batch.rows or 0) + (batch.lag_rows or 0) if is_known else None,
        "lag_seconds": batch.lag_seconds,
        "notes": batch.notes,
    }
