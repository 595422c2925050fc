"""The holder of a lock file, and whether its lock may be removed.

On-disk format: docs/format/table.md §10.1. Why ages are observed and not computed: docs/decisions/0014-fencing.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hoodie.storage import Store
from hoodie.timeline.owner import Owner

LOOK_EVERY_MS_MAX = 5_000
"""A waiter sleeps at most for this time between two looks, whatever its options say."""

_COUNTED_MS_MAX = 6_000.0


@dataclass(frozen=True, slots=True)
class Holder:
    """Content of a lock file. `owner` is None if hoodie did not write the file, but for example a JVM."""

    owner: Owner | None
    modified_ms: int
    size_bytes: int

    @classmethod
    def read(cls, store: Store, path: str) -> Holder | None:
        """Read a lock file; None if there is no file of this name."""
        info = store.head(path)
        if info is None:
            return None
        try:
            return cls(Owner.read(store, path), info.modified_ms, info.size_bytes)
        except FileNotFoundError:
            return None

    @property
    def identity(self) -> str:
        """Text that is different for every holding of the lock."""
        return self.owner.token if self.owner is not None else f"at-{self.modified_ms}"

    def __str__(self) -> str:
        if self.owner is not None:
            return str(self.owner)
        return "another writer" if self.size_bytes == 0 else "an unknown writer (the file does not name it)"


@dataclass(slots=True)
class HolderWatch:
    """One waiter's observations of lock files: for how long it has seen each of them without a change.

    The clocks of two machines may differ, so the age of a file proves nothing about a writer on another machine. The
    waiter counts by its own clock. Between two looks it counts at most 6 s, a little more than `LOOK_EVERY_MS_MAX`: if
    this process was stopped too, the holder had no chance to renew the lock either.
    """

    monotonic_ms: Callable[[], float] = field(default=lambda: time.monotonic() * 1000)
    _seen: dict[str, tuple[tuple[str, int], float, float]] = field(default_factory=dict)

    def unchanged_ms(self, path: str, holder: Holder) -> float:
        """Note what the file is now, and return for how long it has been that."""
        now = self.monotonic_ms()
        state = (holder.identity, holder.modified_ms)
        known, unchanged, last = self._seen.get(path, (None, 0.0, now))
        unchanged = unchanged + min(now - last, _COUNTED_MS_MAX) if known == state else 0.0
        self._seen[path] = (state, unchanged, now)
        return unchanged
