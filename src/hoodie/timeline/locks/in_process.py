"""A lock among the threads of this process: for tables that no other process writes.

The JVM's provider of the same name excludes the threads of one JVM only; the two do not exclude each other.
"""

from __future__ import annotations

import os
import threading

from hoodie.storage.paths import one_spelling
from hoodie.timeline.layout import HOODIE_FOLDER
from hoodie.timeline.locks.provider import LockProvider, LockSite, Refusal
from hoodie.timeline.owner import Owner, runs_here

NAME = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"

_HOLDERS: dict[str, tuple[int, str]] = {}
"""The process id and the token of the holder, by table. A process that was forked inherits holders that it has not."""
_HOLDERS_LOCK = threading.Lock()


class InProcessLock(LockProvider):
    """The lock of a table in this process (see `LockProvider`). A holder that was deleted counts as dead."""

    def __init__(self, site: LockSite) -> None:
        self.place = f"the in-process lock of {site.store.uri('')}"
        # Handles of one table may spell its path in different ways.
        self._key = f"{one_spelling(site.store.uri(''))}/{HOODIE_FOLDER}"

    def take(self, owner: Owner) -> Refusal | None:
        with _HOLDERS_LOCK:
            pid, token = _HOLDERS.get(self._key, (0, ""))
            if pid == os.getpid() and token != owner.token and runs_here(token):
                return Refusal(" is held by another thread or table handle of this process", "Wait until it ends")
            _HOLDERS[self._key] = (os.getpid(), owner.token)
        return None

    def is_held(self, owner: Owner) -> bool:
        return _HOLDERS.get(self._key) == (os.getpid(), owner.token)

    def give_back(self, owner: Owner) -> bool:
        with _HOLDERS_LOCK:
            is_held = self.is_held(owner)
            if is_held:
                del _HOLDERS[self._key]
            return is_held
