"""The last errors of the flows of a job, in a file beside the job file: `trips.toml` has `trips.state.json`.

The process that runs the job writes the file, and `hoodie ingest status` reads it. No table and no place depends on it.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hoodie.cli.terminal import print_note
from hoodie.ingest.runner import FlowState


@dataclass(slots=True)
class StateFile:
    """The file of one job; `take_down` is called by one thread."""

    path: Path
    is_writable: bool = True
    _errors: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def of_job(cls, job: Path) -> StateFile:
        """Return the file of a job file. A file that does not exist, or is damaged, has no errors."""
        found = cls(job.with_name(f"{job.stem}.state.json"))
        found._errors = found._stored()
        return found

    def last_error(self, flow: str) -> tuple[str | None, str | None]:
        """Return the text and the time (ISO, UTC) of the last error of a flow; None after a success."""
        entry = self._errors.get(flow, {})
        return entry.get("last_error"), entry.get("last_error_at")

    def take_down(self, state: FlowState) -> None:
        """Store the error of a flow that failed, or forget it after a success; a file that cannot be written is a note.

        Errors that other processes stored for other flows stay.
        """
        if not state.failures and state.name not in self._errors:
            return
        self._errors = self._stored()
        self._errors.pop(state.name, None)
        if state.failures and state.last_error_at is not None:
            at = datetime.fromtimestamp(state.last_error_at, UTC).isoformat(timespec="seconds")
            self._errors[state.name] = {
                "last_error": state.last_error,
                "last_error_at": at,
                "failures": state.failures,
            }
        self._write()

    def _stored(self) -> dict[str, dict[str, Any]]:
        try:
            found = json.loads(self.path.read_text("utf-8"))["flows"].items()
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return dict(self._errors)
        return {name: entry for name, entry in found if isinstance(entry, dict)}

    def _write(self) -> None:
        if not self.is_writable:
            return
        part = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            part.write_text(json.dumps({"flows": self._errors}, indent=1), "utf-8")
            part.replace(self.path)
        except OSError as error:
            self.is_writable = False
            print_note(f"the errors of flows are not stored for `hoodie ingest status`: {error}")
