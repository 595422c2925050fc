"""The table's lock: only one writer at a time plans or completes an instant.

On-disk format: docs/format/table.md §10.1. The file `.hoodie/lock` is the JVM's `FileSystemBasedLockProvider` lock:
the writer that creates the file holds the lock. hoodie stores the writer in the file and renews the file while it holds
the lock, so that other writers can take over the lock of a dead writer. A writer whose lock was taken over cannot
complete an instant: docs/decisions/0014-fencing.md.
"""

from __future__ import annotations

import functools
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType

from hoodie import config as options
from hoodie.errors import CommitConflictError, LockTimeoutError
from hoodie.storage import Store, UnsyncedError
from hoodie.timeline.layout import HOODIE_FOLDER
from hoodie.timeline.lock_holder import LOOK_EVERY_MS_MAX, Holder, HolderWatch
from hoodie.timeline.owner import Owner, forget
from hoodie.timeline.renewal import Renewal

LEASE_MS = 30_000
"""Time without a renewal after which other writers may take over the lock of a writer that they cannot see."""

OUTCOME_NOT_KNOWN = "The outcome is not known: read the rows, and run the operation again if they are missing"
"""End of the message if it cannot be seen whether the last step of an instant was done."""

_RENEWALS_PER_LEASE = 6
_TAKEOVER_PREFIX = "takeover-"
_PREPARED_PREFIX = "prepared-"
_TAKEOVERS_DEEP_MAX = 8
_TRIES_WITHOUT_SLEEP_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LockOptions:
    """How to wait for the lock, and when the lock of another writer ends.

    `expire_ms`: age of the lock file of a JVM at which the lock ends (0: never), because a JVM does not renew its lock.
    `lease_ms`: what this writer promises when it holds the lock; it renews the lock six times as often.
    """

    wait_ms_max: int = 60_000
    retry_ms: int = 100
    expire_ms: int = 0
    lease_ms: int = LEASE_MS

    @classmethod
    def of(cls, *properties: Mapping[str, str]) -> LockOptions:
        """Return the options `hoodie.write.lock.*`, from the first mapping that contains each of them."""
        return cls(
            wait_ms_max=options.LOCK_WAIT_MS.get(*properties),
            retry_ms=options.LOCK_RETRY_MS.get(*properties),
            expire_ms=options.LOCK_EXPIRE_MINUTES.get(*properties) * 60_000,
        )


class TableLock:
    """A context manager that holds the table's lock. Not re-entrant; one object serves one thread at a time.

    `acquire` takes over the lock of a writer that is certainly dead at once: its process on this machine ended, this
    machine was restarted since, or the writer ended in this process without releasing the lock. It takes over the lock
    of any other writer of this library after it has seen no renewal for the lease of that writer. The JVM neither names
    itself nor renews its lock: `acquire` waits, unless the file is older than `LockOptions.expire_ms`.
    """

    def __init__(
        self,
        store: Store,
        wanted: LockOptions | None = None,
        *,
        folder: str = HOODIE_FOLDER,
        now_ms: Callable[[], int] | None = None,
        monotonic_ms: Callable[[], float] | None = None,
        sleep_seconds: Callable[[float], None] = time.sleep,
    ) -> None:
        """Create an unlocked lock. The clocks are arguments for tests; `now_ms` returns epoch milliseconds."""
        self._store = store
        self._path = f"{folder}/lock"
        self._locks = f"{folder}/.locks"
        self._options = wanted or LockOptions()
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        self._monotonic_ms = monotonic_ms or (lambda: time.monotonic() * 1000)
        self._sleep_seconds = sleep_seconds
        self._owner: Owner | None = None
        self._renewal: Renewal | None = None
        self._watch = HolderWatch(self._monotonic_ms)

    def acquire(self) -> None:
        """Take the lock.

        Raises:
            LockTimeoutError: another writer held the lock during all of `wait_ms_max`, or the name of the lock file is
                taken by something that is not a file.
            RuntimeError: this object holds the lock already, or the thread that renews it cannot start.
        """
        if self._owner is not None:
            raise RuntimeError(f"{self._store.uri(self._path)} is held by this object already: release it first")
        owner = Owner.new(lease_ms=self._options.lease_ms)
        stopped = owner.run()
        # A lock object that is deleted without `release` must not be renewed for ever.
        weakref.finalize(self, forget, owner.token)
        try:
            self._wait_for(owner)
            self._clear_after_others(owner)
            self._renewal = Renewal(functools.partial(self._store.refresh, self._path, owner.to_bytes()))
            self._renewal.start(f"lock-{owner.token}", stopped, self._options.lease_ms / _RENEWALS_PER_LEASE / 1000)
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

    @property
    def is_held(self) -> bool:
        """Whether the lock file still names this object. Reads the file."""
        if self._owner is None:
            return False
        try:
            found = Owner.read(self._store, self._path)
        except FileNotFoundError:
            return False
        return found is not None and found.token == self._owner.token

    def ensure_held(self) -> None:
        """Refuse to continue if another writer may hold the lock now. Reads the lock file.

        Raises: CommitConflictError.
        """
        if not self.is_held:
            failed = self._renewal.last_error if self._renewal is not None else None
            cause = "it was stopped for longer than its lease" if failed is None else "its renewals of the lock failed"
            found = "" if failed is None else f". The error of the last renewal: {failed!r}"
            raise CommitConflictError(
                f"{self._store.uri(self._path)} does not name this writer any more: {cause} and another writer took "
                f"the lock over, or the file was deleted. Nothing was committed: run the operation again{found}"
            ) from failed

    def create_last(self, path: str, content: bytes) -> None:
        """Create a file in one atomic step that fails if this writer lost the lock at any time before the step.

        The content is first written to a file that belongs to this holding of the lock; then the lock is checked; then
        the file is moved to `path`. The next holder deletes that file before it does anything else. So either this
        writer finds the lock lost, or the move fails, or the next holder finds the file `path`. No other process may
        use the name `path`.

        Raises:
            CommitConflictError: the lock was lost; the file was not created. Or the storage failed so that nobody knows
                whether the file exists; then the message says that the outcome is not known.
        """
        owner = self._owner
        if owner is None:
            raise RuntimeError(f"{self._store.uri(self._path)} is not held by this object: acquire it first")
        prepared = f"{self._locks}/{_PREPARED_PREFIX}{owner.token}"
        try:
            self._store.replace(prepared, content)
            self.ensure_held()
        except BaseException:
            with suppress(Exception):
                self._store.delete(prepared)
            raise
        try:
            self._store.move(prepared, path)
        except Exception as error:
            if not self._was_created(prepared, path, content, error):
                raise

    def __enter__(self) -> TableLock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.release()
        except Exception:
            # The user must see the first error. A lock that was not deleted counts as that of a dead writer.
            if error is None:
                raise

    def _wait_for(self, owner: Owner) -> None:
        deadline_ms = self._monotonic_ms() + self._options.wait_ms_max
        without_sleep = 0
        while not self._create(self._path, owner):
            holder = Holder.read(self._store, self._path)
            if holder is not None and holder.identity == owner.token:
                return  # an object store's client created the file, lost the answer and tried again
            if holder is not None and self._may_remove(self._path, holder):
                self._remove(self._path, holder)
                is_free = True
            else:
                is_free = holder is None
            if is_free and without_sleep < _TRIES_WITHOUT_SLEEP_MAX:
                without_sleep += 1  # the lock was just released or removed
                continue
            if self._monotonic_ms() >= deadline_ms:
                raise self._timeout(holder)
            self._sleep_seconds(min(self._options.retry_ms, LOOK_EVERY_MS_MAX) / 1000)
            without_sleep = 0

    def _clear_after_others(self, owner: Owner) -> None:
        """Delete what earlier holders prepared to complete, so that they cannot; and takeovers of dead contenders."""
        for info in self._store.list(self._locks):
            is_prepared = info.name.startswith(_PREPARED_PREFIX) and not info.name.endswith(owner.token)
            if is_prepared or (info.name.startswith(_TAKEOVER_PREFIX) and self._is_dead_takeover(info.path)):
                self._store.delete(info.path)

    def _is_dead_takeover(self, path: str) -> bool:
        with suppress(FileNotFoundError):
            owner = Owner.read(self._store, path)
            return owner is not None and owner.is_running() is False
        return False

    def _delete_lock_of(self, owner: Owner) -> None:
        holder = Holder.read(self._store, self._path)
        if holder is not None and holder.identity == owner.token:
            self._store.delete(self._path)

    def _create(self, path: str, owner: Owner) -> bool:
        try:
            self._store.create(path, owner.to_bytes())
        except FileExistsError:
            return False
        return True

    def _was_created(self, prepared: str, path: str, content: bytes, error: Exception) -> bool:
        """Return whether the last step of `create_last` was done although it raised `error`: its answer may be lost.

        Raises: CommitConflictError: another writer took over the lock; or the outcome is not known.
        """
        is_over = False
        with suppress(OSError):
            self._store.delete(prepared)  # a request that is still on its way then finds nothing to move
            is_over = True
        try:
            has = self._store.read(path) == content
        except FileNotFoundError:
            has = False
        except OSError:
            has = is_over = False
        if has and not isinstance(error, UnsyncedError):
            return True
        if has or not is_over:
            raise CommitConflictError(
                f"the storage failed while {self._store.uri(path)} was created ({error}). {OUTCOME_NOT_KNOWN}"
            ) from error
        if isinstance(error, FileNotFoundError):
            raise CommitConflictError(
                f"{self._store.uri(path)} was not created: another writer took over the table's lock meanwhile. "
                "Nothing was committed: run the operation again"
            ) from error
        return False

    def _may_remove(self, path: str, holder: Holder) -> bool:
        """Return whether the writer of a lock or takeover file is dead, or has lost its right to it."""
        owner = holder.owner
        running = None if owner is None else owner.is_running()
        if running is not None:
            return not running
        if owner is not None and owner.ended_at_reboot(holder.modified_ms, owner.lease_ms // 2, self._now_ms()):
            return True
        if owner is not None and owner.lease_ms:
            return self._watch.unchanged_ms(path, holder) >= owner.lease_ms
        return 0 < self._options.expire_ms < self._now_ms() - holder.modified_ms

    def _remove(self, path: str, holder: Holder, depth: int = 0) -> None:
        """Delete the file of a dead holder, but not the file of a contender that took over the lock just before.

        The contender that creates the takeover file named after this holder has the right to delete the holder's file.
        It creates the takeover file first and then checks that the lock file still is that holder's, so the check
        stays true. The takeover file of a contender that ended in this method is removed in the same way.
        """
        takeover_path = f"{self._locks}/{_TAKEOVER_PREFIX}{holder.identity}"
        takeover = Owner.new(lease_ms=self._options.lease_ms)
        takeover.run()
        try:
            if self._create(takeover_path, takeover):
                try:
                    current = Holder.read(self._store, path)
                    if current is not None and current.identity == holder.identity:
                        self._store.delete(path)
                finally:
                    self._store.delete(takeover_path)
            elif depth < _TAKEOVERS_DEEP_MAX:
                other = Holder.read(self._store, takeover_path)
                if other is not None and self._may_remove(takeover_path, other):
                    self._remove(takeover_path, other, depth + 1)
        finally:
            takeover.forget()

    def _timeout(self, holder: Holder | None) -> LockTimeoutError:
        where, waited = self._store.uri(self._path), f"waited {self._options.wait_ms_max} ms"
        if holder is None:
            return LockTimeoutError(
                f"{where}: expected a lock file or nothing, found a folder, a broken link, or a file that other "
                f"writers create and delete all the time; {waited}. If it is not a file, delete it"
            )
        age_seconds = (self._now_ms() - holder.modified_ms) // 1000
        if holder.owner is not None and holder.owner.lease_ms:
            advice = (
                f"If that writer is dead, its lock ends after {holder.owner.lease_ms // 1000} s of waiting: set "
                f"{options.LOCK_WAIT_MS.key} above that"
            )
        else:
            advice = (
                f"Wait longer ({options.LOCK_WAIT_MS.key}); or, if that writer does not run any more, delete the file, "
                f"or set {options.LOCK_EXPIRE_MINUTES.key}"
            )
        return LockTimeoutError(f"{where} is held by {holder}, last written {age_seconds} s ago; {waited}. {advice}")
