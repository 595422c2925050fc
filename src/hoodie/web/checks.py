"""`verify` in the background: one check a table at a time, with its progress, until its report."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

import hoodie
from hoodie.progress import Progress, listening, phase
from hoodie.web.api import error_of

_AT_ONCE: Final = 2
"""Checks of different tables that run at once; more wait."""


@dataclass(slots=True)
class _Check:
    """One check: its state, how far it is, and its outcome."""

    full: bool
    state: str = "running"
    phase: str = "waiting"
    done: int = 0
    total: int = 0
    report: dict[str, Any] | None = None
    error: str | None = None

    def note(self, progress: Progress) -> None:
        self.phase, self.done, self.total = progress.phase, progress.tasks_done, progress.tasks_total


class Checks:
    """The last check of each table. Thread-safe. A check ends with the process."""

    def __init__(self, open_table: Callable[[str], hoodie.Table]) -> None:
        self._open = open_table
        self._checks: dict[str, _Check] = {}
        self._turns = threading.Semaphore(_AT_ONCE)
        self._lock = threading.Lock()

    @property
    def is_busy(self) -> bool:
        return any(check.state == "running" for check in [*self._checks.values()])

    def state(self, table_id: str) -> dict[str, Any]:
        """Return the state of the table's last check; `state` is `none` if there was none."""
        return asdict(self._checks.get(table_id) or _Check(full=False, state="none", phase=""))

    def start(self, table_id: str, *, full: bool) -> threading.Thread | None:
        """Start a check, and return its thread; None if a check of this table runs."""
        with self._lock:
            if self._checks.get(table_id, _Check(full, state="none")).state == "running":
                return None
            check = self._checks[table_id] = _Check(full)
        thread = threading.Thread(target=self._run, args=(table_id, check), name="hoodie-verify", daemon=True)
        thread.start()
        return thread

    def _run(self, table_id: str, check: _Check) -> None:
        with self._turns:
            try:
                with listening(check.note), phase("check"):
                    check.report = self._open(table_id).verify(full=check.full).to_dict()
                check.state = "done"
            except Exception as error:
                check.error, check.state = error_of(error)[1]["error"], "failed"
