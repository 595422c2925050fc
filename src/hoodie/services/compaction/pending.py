"""What waits for compaction: the pending plans, how much each has to do, and who is at it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from hoodie.files.compaction_operation import LOG_BYTES, work_bytes
from hoodie.services.compaction.claim import pending_plans, runner_of
from hoodie.timeline import parse_instant_time
from hoodie.view.busy_groups import stored_plan
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCompaction:
    """One plan. `action`: compaction or logcompaction; `state`: waiting, running or interrupted.

    `runner` is who works on it, or did. `bytes_to_read` are those of base and log files, `log_bytes` of the logs alone.
    """

    instant: str
    action: str
    state: str
    runner: str
    file_slices: int
    log_files: int
    log_bytes: int
    bytes_to_read: int
    age_seconds: float

    def __str__(self) -> str:
        who = f" ({self.runner})" if self.runner else ""
        return (
            f"{self.instant} {self.action}  {self.state}{who}: {self.file_slices:,} file slices, "
            f"{self.log_files:,} log files, {self.bytes_to_read / 1e6:,.1f} MB to read, "
            f"scheduled {self.age_seconds:,.0f} s ago"
        )


@dataclass(frozen=True, slots=True)
class PendingCompactions:
    """The pending plans of a table, oldest first; a sequence of them that can be printed."""

    plans: tuple[PendingCompaction, ...] = ()

    def __len__(self) -> int:
        return len(self.plans)

    def __iter__(self) -> Iterator[PendingCompaction]:
        return iter(self.plans)

    def __getitem__(self, place: int) -> PendingCompaction:
        return self.plans[place]

    @property
    def instants(self) -> list[str]:
        """Their instants."""
        return [plan.instant for plan in self.plans]

    def to_dicts(self) -> list[dict[str, Any]]:
        """Plain values, for JSON."""
        return [asdict(plan) for plan in self.plans]

    def __str__(self) -> str:
        return "\n".join(map(str, self.plans)) or "no compaction is pending"

    def _repr_html_(self) -> str:
        """Notebook form."""
        if not self.plans:
            return "no compaction is pending"
        rows = self.to_dicts()
        head = "".join(f"<th>{name}</th>" for name in rows[0])
        body = "".join(f"<tr>{''.join(f'<td>{value}</td>' for value in row.values())}</tr>" for row in rows)
        return f"<table><tr>{head}</tr>{body}</table>"


def pending_compactions(state: TableState) -> PendingCompactions:
    """The pending compactions and log compactions of a table, ours and the JVM's. One small file is read for each.

    Raises: CorruptFileError if a plan does not parse.
    """
    view = TableView.load(state)
    found = []
    for instant in pending_plans(view):
        plan = stored_plan(view, instant)
        operations = () if plan is None else plan.operations
        runner = runner_of(view, instant)
        requested = parse_instant_time(instant.requested_time, view.layout.zone).timestamp()
        found.append(
            PendingCompaction(
                instant=instant.requested_time,
                action=instant.action.value,
                state=runner.state.value,
                runner=str(runner),
                file_slices=len(operations),
                log_files=sum(len(operation.delta_file_paths) for operation in operations),
                log_bytes=sum(int((operation.metrics or {}).get(LOG_BYTES, 0)) for operation in operations),
                bytes_to_read=sum(map(work_bytes, operations)),
                age_seconds=max(0.0, time.time() - requested),
            )
        )
    return PendingCompactions(tuple(found))
