"""The table's lock: only one writer at a time plans or completes an instant.

`TableLock` waits, renews, and does the last step of an instant, the same for every lock provider. A writer whose lock
was taken over cannot complete an instant: docs/decisions/0014-fencing.md.
"""

from __future__ import annotations

import functools
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress

from hoodie.errors import CommitConflictError, LockTimeoutError
from hoodie.storage import FileInfo, Store, ask, forget_answers, later, settle
from hoodie.timeline.locks import storage_based
from hoodie.timeline.locks.holder import LOOK_EVERY_MS_MAX
from hoodie.timeline.locks.inspection import check_other_locks, is_storage_based
from hoodie.timeline.locks.last_step import LastStep
from hoodie.timeline.locks.provider import LockOptions, LockProvider, LockSite, Refusal
from hoodie.timeline.locks.registry import DEFAULT, provider_of
from hoodie.timeline.owner import Owner, Renewal, forget

_TRIES_WITHOUT_SLEEP_MAX = 3


class TableLock:
    """A context manager that holds the table's lock. Not re-entrant; one object serves one thread at a time.

    The options name the provider. If they name none, it is the file-system lock, or the storage-based lock in a table
    in which a writer used that before.
    """

    def __init__(
        self,
        store: Store,
        wanted: LockOptions | None = None,
        *,
        ahead: Sequence[tuple[str, str]] = (),
        now_ms: Callable[[], int] | None = None,
        monotonic_ms: Callable[[], float] | None = None,
        sleep_seconds: Callable[[float], object] = time.sleep,
    ) -> None:
        """Create an unlocked lock. The clocks are arguments for tests; `now_ms` returns epoch milliseconds.

        `ahead`: requests that are sent once the lock is held (see `storage.ask`).

        Raises: UnsupportedError, InvalidConfigError if the options name a provider that cannot be used.
        """
        self._site = LockSite(
            store=store,
            options=wanted or LockOptions(),
            now_ms=now_ms or (lambda: time.time_ns() // 1_000_000),
            monotonic_ms=monotonic_ms or (lambda: time.monotonic() * 1000),
        )
        self._name = self._site.options.provider or DEFAULT
        self._provider = provider_of(self._site)
        self._sleep_seconds = sleep_seconds
        self._ahead = ahead
        self._owner: Owner | None = None
        self._last: LastStep | None = None
        self._renewal: Renewal | None = None
        self._next: Callable[[], None] | None = None
        self._seen_at = 0.0
        """When a look at the lock found it held; seconds of `time.monotonic`."""

    def acquire(self) -> None:
        """Take the lock.

        Raises:
            LockTimeoutError: another writer held the lock for as long as the options say, or the name of the lock file
                is taken by something that is not a file.
            InvalidConfigError: another writer holds the lock of another provider.
            RuntimeError: this object holds the lock already, or the thread that renews it cannot start.
        """
        if self._owner is not None:
            raise RuntimeError(f"{self._provider.place} is held by this object already: release it first")
        settle()
        forget_answers()  # answers from before the lock must not be used under it
        owner = Owner.new(lease_ms=self._site.options.lease_ms)
        stopped = owner.run()
        # A lock object that is deleted without `release` must not be renewed for ever.
        finalizer = weakref.finalize(self, _abandon, owner.token, self._provider)
        try:
            infos = self._take(owner)
            if not self._site.options.provider and self._name == DEFAULT and is_storage_based(self._site.store, infos):
                self._provider.give_back(owner)
                self._name, self._provider = storage_based.NAME, provider_of(self._site, storage_based.NAME)
                finalizer.detach()
                weakref.finalize(self, _abandon, owner.token, self._provider)
                forget_answers()
                infos = self._take(owner)
            check_other_locks(self._site, self._name, infos)
            self._last = LastStep(self._site.store, self._site.locks, owner.token)
            self._last.forbid_others(infos)
            self._provider.clear(infos)
            self._renewal = Renewal(functools.partial(self._provider.renew, owner))
            if self._provider.renew_seconds:
                self._renewal.start(f"lock-{owner.token}", stopped, self._provider.renew_seconds)
        except BaseException:
            # The lock may be ours even after an error, if the answer of the storage was lost.
            with suppress(Exception):
                self._provider.give_back(owner)
            owner.forget()
            raise
        self._owner = owner

    def release(self) -> bool:
        """Release the lock; return whether it was held until now. If that fails, the lock ends as of a dead writer."""
        forget_answers()  # an older look at the lock must not decide whether it is deleted
        owner, self._owner = self._owner, None
        return owner is not None and self._release(owner)

    def _release(self, owner: Owner) -> bool:
        try:
            if self._last is not None:
                self._last.clear()
            return self._provider.give_back(owner)
        finally:
            # Not earlier: else another thread could take over the lock, and this writer would release that one's.
            owner.forget()

    @property
    def is_held(self) -> bool:
        """Whether this object still holds the lock. Reads the lock."""
        is_held = self._owner is not None and self._provider.is_held(self._owner)
        if is_held:
            self._seen_at = time.monotonic()
        return is_held

    def was_held_at(self, moment: float) -> bool:
        """Return whether a later look at the lock found it held; `moment` is of `time.monotonic`. Reads nothing."""
        return self._seen_at > moment

    def ensure_held(self) -> None:
        """Refuse to continue if another writer may hold the lock now. Reads the lock.

        Raises: CommitConflictError.
        """
        if not self.is_held:
            failed = self._renewal.last_error if self._renewal is not None else None
            cause = "it was stopped for longer than its lease" if failed is None else "its renewals of the lock failed"
            found = "" if failed is None else f". The error of the last renewal: {failed!r}"
            raise CommitConflictError(
                f"{self._provider.place} does not name this writer any more: {cause} and another writer took "
                f"the lock over, or the lock was deleted. Nothing was committed: run the operation again{found}"
            ) from failed

    def ensure_held_now(self) -> None:
        """Refuse as `ensure_held`, by a request that is sent now. Raises: CommitConflictError."""
        self.forget_looks()
        self.ensure_held()

    def create_last(self, path: str, content: bytes) -> None:
        """Create a file in one atomic step that fails if this writer lost the lock at any time before the step.

        The content is first written to a file that belongs to this holding of the lock; then the lock is checked; then
        the file is moved to `path`. The next holder deletes that file before it does anything else. So either this
        writer finds the lock lost, or the move fails, or the next holder finds the file `path`. No other process may
        use the name `path`.

        Raises:
            CommitConflictError: the lock was lost; the file was not created. Or the storage failed, and the file may
                exist; then the message calls the outcome unknown.
        """
        if self._owner is None or self._last is None:
            raise RuntimeError(f"{self._provider.place} is not held by this object: acquire it first")
        # An answer that was requested before the content was prepared proves nothing.
        is_prepared = self._last.is_prepared(content)
        self._last.create(path, content, self.ensure_held if is_prepared else self.ensure_held_now)

    def prepare(self, content: bytes) -> None:
        """Write the content of a later `create_last` now, in an object store beside other work; elsewhere do nothing.

        What is not used is deleted when the lock is released. Earlier answers to `ask` are not used any more.
        """
        if self._owner is not None and self._last is not None:
            self.forget_looks()
            self._last.prepare(content)

    def ask(self) -> None:
        """Send the request of the next `is_held` or `ensure_held` ahead (`storage.ask`)."""
        if self._owner is not None:
            self._provider.ask()

    def forget_looks(self) -> None:
        """Forget the answers to `ask` that were not taken."""
        self._provider.forget()

    def ask_if_held(self, content: bytes) -> None:
        """Send the request of the look at the lock that `create_last` needs, if this content of it is prepared."""
        if self._last is not None and self._last.is_prepared(content):
            self._provider.ask()

    def plan_next(self, ask: Callable[[], None]) -> None:
        """Note what `ask_next` does: it sends the requests of the next `create_last` but one."""
        self._next = ask

    def ask_next(self) -> None:
        """Send these requests now, once; call it when those of the next `create_last` are sent."""
        ask, self._next = self._next, None
        if ask is not None:
            ask()

    def __enter__(self) -> TableLock:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        # The work under the lock is done, or its error is the one to see. A lock that was not released ends as the lock
        # of a dead writer. After an error here, no caller would own what was begun under the lock.
        owner, self._owner = self._owner, None
        if owner is not None:
            later(self._site.store, functools.partial(self._release, owner))

    def _take(self, owner: Owner) -> Sequence[FileInfo]:
        """Wait for the lock; return the files of the folder `.locks` as they are once it is held."""
        wanted, began_ms = self._site.options, self._site.monotonic_ms()
        for number in range(wanted.rounds):
            if number:
                self._sleep_seconds(wanted.pause_ms / 1000)
            refusal = self._round(owner)
            if refusal is None:
                ask(self._site.store, ("list", self._site.locks), *self._ahead)
                return self._site.store.list(self._site.locks)
        waited_ms = round(self._site.monotonic_ms() - began_ms) if wanted.rounds > 1 else wanted.wait_ms_max
        assert refusal is not None
        raise LockTimeoutError(f"{self._provider.place}{refusal.found}; waited {waited_ms} ms. {refusal.advice}")

    def _round(self, owner: Owner) -> Refusal | None:
        """Try to take the lock until the waiting time is over; return the last refusal, or None."""
        wanted = self._site.options
        deadline_ms = self._site.monotonic_ms() + wanted.wait_ms_max
        sleep_ms, attempts, without_sleep = wanted.retry_ms, 0, 0
        while True:
            refusal = self._provider.take(owner)
            attempts += 1
            if refusal is None:
                return None
            if refusal.is_free and without_sleep < _TRIES_WITHOUT_SLEEP_MAX:
                without_sleep += 1  # the lock was just released or removed
                continue
            left_ms = deadline_ms - self._site.monotonic_ms()
            if left_ms <= 0 or attempts > wanted.attempts_max > 0:
                return refusal
            self._sleep_seconds(min(sleep_ms, LOOK_EVERY_MS_MAX, left_ms) / 1000)
            sleep_ms = max(wanted.retry_ms, min(2 * sleep_ms, wanted.retry_ms_max))
            without_sleep = 0


def _abandon(token: str, provider: LockProvider) -> None:
    forget(token)
    provider.abandon()
