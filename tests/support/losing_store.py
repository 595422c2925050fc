"""A store whose writer loses the table's lock, or cannot read it, right after the step that completes an instant."""

from __future__ import annotations

from collections.abc import Callable

from hoodie.errors import StorageError
from hoodie.storage import MemoryStore

LOCK = ".hoodie/lock"


class LosingStore(MemoryStore):
    """Calls `at_last` once, right after the step that completes an instant of the data table."""

    at_last: Callable[[], object] | None = None
    cannot_read_lock = False

    def move(self, source: str, target: str) -> None:
        """Move, then maybe act."""
        super().move(source, target)
        if target.startswith(".hoodie/timeline/") and self.at_last is not None:
            act, self.at_last = self.at_last, None
            act()

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Read, unless it is the lock."""
        if path == LOCK and self.cannot_read_lock:
            self.cannot_read_lock = False
            raise StorageError("503 slow down")
        return super().read_range(path, start, length)
