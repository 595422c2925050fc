"""The table's lock: only one writer at a time plans or completes an instant.

On-disk format: docs/format/table.md §10.1. The file `.hoodie/lock` is the JVM's `FileSystemBasedLockProvider` lock:
the writer that creates the file holds the lock. hoodie stores the writer in the file, so that another writer can take
over the lock of a dead writer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType

from hoodie.errors import LockTimeoutError
from hoodie.storage import Store
from hoodie.timeline.layout import HOODIE_FOLDER
from hoodie.timeline.owner import Owner

_TAKEOVER_PREFIX = "takeover-"


class TableLock:
    """A context manager that holds the table's lock. Not re-entrant; one object serves one thread at a time.

    The lock of a dead writer is taken over at once: its process on this machine ended, or the writer ended in this
    process without releasing the lock. A JVM's lock does not contain its writer. `acquire` waits for it, unless the
    lock is older than `expire_ms` (`hoodie.write.lock.filesystem.expire`; 0: locks do not expire).
    """

    def __init__(
        self,
        store: Store,
        *,
        wait_ms_max: int = 60_000,
        retry_ms: int = 100,
        expire_ms: int = 0,
        folder: str = HOODIE_FOLDER,
        now_ms: Callable[[], int] | None = None,
        sleep_seconds: Callable[[float], None] = time.sleep,
    ) -> None:
        """Create an unlocked lock. `acquire` waits up to `wait_ms_max` and tries again every `retry_ms`."""
        self._store = store
        self._path = f"{folder}/lock"
        self._takeovers = f"{folder}/.locks"
        self._wait_ms_max = wait_ms_max
        self._retry_ms = retry_ms
        self._expire_ms = expire_ms
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        self._sleep_seconds = sleep_seconds
        self._owner: Owner | None = None

    def acquire(self) -> None:
        """Take the lock.

        Raises:
            LockTimeoutError: another writer held the lock during all of `wait_ms_max`.
            RuntimeError: this object holds the lock already.
        """
        if self._owner is not None:
            raise RuntimeError(f"{self._store.uri(self._path)} is held by this object already: release it first")
        owner = Owner.new()
        owner.run()
        try:
            self._wait_for(owner)
        except BaseException:
            # The file may exist even after an error, if the answer to the create was lost.
            with suppress(Exception):
                self._delete_lock_of(owner)
            owner.forget()
            raise
        self._owner = owner

    def release(self) -> None:
        """Release the lock. If deleting the file fails, the lock counts as the lock of a dead writer."""
        owner, self._owner = self._owner, None
        if owner is None:
            return
        try:
            self._delete_lock_of(owner)
        finally:
            # Not earlier: else another thread could take over the lock, and this writer would delete its file.
            owner.forget()

    def __enter__(self) -> TableLock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _wait_for(self, owner: Owner) -> None:
        deadline_ms = self._now_ms() + self._wait_ms_max
        while not self._create(self._path, owner):
            holder = self._holder(self._path)
            if holder is not None and self._may_remove(holder):
                self._remove(self._path, holder)
                holder = self._holder(self._path)
            if holder is None:
                continue  # the lock was just released or removed: try again without waiting
            if holder.identity == owner.token:
                return  # an object store's client created the file, lost the answer and tried again
            if self._now_ms() >= deadline_ms:
                raise self._timeout(holder)
            self._sleep_seconds(self._retry_ms / 1000)

    def _delete_lock_of(self, owner: Owner) -> None:
        holder = self._holder(self._path)
        if holder is not None and holder.identity == owner.token:
            self._store.delete(self._path)

    def _create(self, path: str, owner: Owner) -> bool:
        try:
            self._store.create(path, owner.to_bytes())
        except FileExistsError:
            return False
        return True

    def _holder(self, path: str) -> _Holder | None:
        info = self._store.head(path)
        if info is None:
            return None
        try:
            return _Holder(Owner.parse(self._store.read(path)), info.modified_ms)
        except FileNotFoundError:
            return None

    def _may_remove(self, holder: _Holder) -> bool:
        running = None if holder.owner is None else holder.owner.is_running()
        if running is not None:
            return not running
        return 0 < self._expire_ms < self._now_ms() - holder.modified_ms

    def _remove(self, path: str, holder: _Holder) -> None:
        """Delete the file of a dead holder, but not the file of a contender that took over the lock just before.

        The contender that creates the takeover file named after this holder has the right to delete the holder's file.
        It creates the takeover file first and then checks that the lock file still is that holder's, so the check
        stays true. The takeover file of a contender that ended in this method is removed in the same way.
        """
        takeover_path = f"{self._takeovers}/{_TAKEOVER_PREFIX}{holder.identity}"
        takeover = Owner.new()
        takeover.run()
        try:
            if self._create(takeover_path, takeover):
                try:
                    current = self._holder(path)
                    if current is not None and current.identity == holder.identity:
                        self._store.delete(path)
                finally:
                    self._store.delete(takeover_path)
            else:
                other = self._holder(takeover_path)
                if other is not None and self._may_remove(other):
                    self._remove(takeover_path, other)
        finally:
            takeover.forget()

    def _timeout(self, holder: _Holder) -> LockTimeoutError:
        who = "another writer" if holder.owner is None else str(holder.owner)
        age_seconds = (self._now_ms() - holder.modified_ms) // 1000
        return LockTimeoutError(
            f"{self._store.uri(self._path)} is held by {who}, taken {age_seconds} s ago; waited {self._wait_ms_max} "
            "ms. Wait longer; or, if that writer does not run any more, delete the file"
        )


def delete_dead_takeovers(store: Store, *, folder: str = HOODIE_FOLDER) -> None:
    """Delete the takeover files of contenders that ended during a takeover. Call it under the lock."""
    for info in store.list(f"{folder}/.locks"):
        if info.name.startswith(_TAKEOVER_PREFIX):
            owner = Owner.parse(store.read(info.path))
            if owner is not None and owner.is_running() is False:
                store.delete(info.path)


@dataclass(frozen=True, slots=True)
class _Holder:
    """Content of a lock file. `owner` is None if hoodie did not write the file, but for example a JVM."""

    owner: Owner | None
    modified_ms: int

    @property
    def identity(self) -> str:
        """Text that is different for every holding of the lock."""
        return self.owner.token if self.owner is not None else f"at-{self.modified_ms}"
