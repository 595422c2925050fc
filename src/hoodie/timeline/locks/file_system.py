"""The JVM's `FileSystemBasedLockProvider`: the writer that creates the file `.hoodie/lock` holds the lock.

On-disk format: docs/format/table.md §10.1. hoodie stores the writer in the file and renews the file while it holds the
lock, so that other writers can take over the lock of a dead writer: docs/decisions/0014-fencing.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from hoodie.config import concurrency
from hoodie.errors import UnsupportedError
from hoodie.storage import FileInfo, ask, forget_answers
from hoodie.timeline.layout import HOODIE_FOLDER
from hoodie.timeline.locks.holder import Holder, HolderWatch
from hoodie.timeline.locks.provider import LockProvider, LockSite, Refusal
from hoodie.timeline.owner import OWNER_BYTES_MAX, Owner

NAME = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
PATH = f"{HOODIE_FOLDER}/lock"

_RENEWALS_PER_LEASE = 6
_TAKEOVER_PREFIX = "takeover-"
_TAKEOVERS_DEEP_MAX = 8


class FileSystemLock(LockProvider):
    """One writer's access to `.hoodie/lock` (see `LockProvider`).

    `take` removes the lock of a writer that is certainly dead at once: its process on this machine ended, this machine
    was restarted since, or the writer ended in this process without releasing the lock. It removes the lock of any
    other writer of this library after it has seen no renewal for the lease of that writer. The JVM neither names itself
    nor renews its lock: the lock ends only if the file is older than `LockOptions.expire_ms`.
    """

    def __init__(self, site: LockSite) -> None:
        folder = concurrency.LOCK_FILE_SYSTEM_PATH.get(site.options.settings)
        if folder and _plain(folder) != _plain(site.store.uri(HOODIE_FOLDER)):
            raise UnsupportedError(
                f"{concurrency.LOCK_FILE_SYSTEM_PATH.key}={folder}: expected {site.store.uri(HOODIE_FOLDER)}, which is "
                "the default of the JVM; remove the option for all writers, or use another lock provider"
            )
        self._site = site
        self._store = site.store
        self.place = self._store.uri(PATH)
        self._watch = HolderWatch(site.monotonic_ms)
        self.renew_seconds = site.options.lease_ms / _RENEWALS_PER_LEASE / 1000

    def take(self, owner: Owner) -> Refusal | None:
        """Make one attempt to create the file."""
        if self._create(PATH, owner):
            return None
        holder = Holder.read(self._store, PATH)
        if holder is None:
            return Refusal(
                ": expected a lock file or nothing, found a folder, a broken link, or a file that other writers create "
                "and delete all the time",
                "If it is not a file, delete it",
                is_free=True,
            )
        if holder.identity == owner.token:
            return None  # an object store's client created the file, lost the answer and tried again
        if not self.may_remove(PATH, holder):
            return self._refusal(holder)
        return None if self._take_over(owner, holder) else self._refusal(holder, is_free=True)

    def clear(self, infos: Sequence[FileInfo]) -> None:
        """Delete takeovers of contenders that are dead."""
        for info in infos:
            if info.name.startswith(_TAKEOVER_PREFIX) and self._is_dead_takeover(info.path):
                self._store.delete(info.path)

    def is_held(self, owner: Owner) -> bool:
        """Return whether the file names `owner`."""
        try:
            found = Owner.read(self._store, PATH)
        except FileNotFoundError:
            return False
        return found is not None and found.token == owner.token

    def ask(self) -> None:
        ask(self._store, (f"range 0 {OWNER_BYTES_MAX + 1}", PATH))

    def forget(self) -> None:
        forget_answers(PATH)

    def renew(self, owner: Owner) -> bool:
        """Renew the change time of the file if it names `owner`."""
        return self._store.refresh(PATH, owner.to_bytes())

    def give_back(self, owner: Owner) -> bool:
        """Delete the file if it names `owner`; return whether it did."""
        is_held = self.is_held(owner)
        if is_held:
            with suppress(Exception):
                self._store.delete(PATH)
        return is_held

    def may_remove(self, path: str, holder: Holder) -> bool:
        """Return whether the writer of a lock or takeover file is dead, or has lost its right to it."""
        owner, now_ms = holder.owner, self._site.now_ms()
        running = None if owner is None else owner.is_running()
        if running is not None:
            return not running
        if owner is not None and owner.ended_at_reboot(holder.modified_ms, owner.lease_ms // 2, now_ms):
            return True
        if owner is not None and owner.lease_ms:
            return self._watch.unchanged_ms(path, holder) >= owner.lease_ms
        return 0 < self._site.options.expire_ms < now_ms - holder.modified_ms

    def _is_dead_takeover(self, path: str) -> bool:
        with suppress(FileNotFoundError):
            owner = Owner.read(self._store, path)
            return owner is not None and owner.is_running() is False
        return False

    def _create(self, path: str, owner: Owner) -> bool:
        try:
            self._store.create(path, owner.to_bytes())
        except FileExistsError:
            return False
        return True

    def _take_over(self, owner: Owner, holder: Holder) -> bool:
        """Replace the file of a dead holder by the file of `owner`; return whether `owner` holds the lock now.

        The replacement is conditional, so the file of a writer that took the lock meanwhile stays. (An exception are
        two lock files of a JVM in S3: both are empty, and have the same ETag.) A local disk cannot do that: there the
        file of the dead holder is deleted, and the next attempt creates the file.
        """
        try:
            _, version = self._store.read_version(PATH)
        except UnsupportedError:
            self._remove(PATH, holder)
            return False
        except FileNotFoundError:
            return False
        # After the version was read: a token that left the file never returns.
        current = Holder.read(self._store, PATH)
        if current is None or current.identity != holder.identity:
            return False
        return self._store.replace_version(PATH, owner.to_bytes(), version) is not None

    def _remove(self, path: str, holder: Holder, depth: int = 0) -> None:
        """Delete the file of a dead holder, but not the file of a contender that took over the lock just before.

        The contender that creates the takeover file named after this holder has the right to delete the holder's file.
        It creates the takeover file first and then checks that the lock file still is that holder's, so no contender
        makes the check untrue. The holder can: if it only was stopped for longer than its lease, it may wake up between
        the check and the deletion and release the lock, and the deletion then hits the file of the next writer. That
        writer finds the lock lost before its last step, and commits nothing (docs/decisions/0014-fencing.md).

        The takeover file of a contender that ended in this method is removed in the same way.
        """
        takeover_path = f"{self._site.locks}/{_TAKEOVER_PREFIX}{holder.identity}"
        takeover = Owner.new(lease_ms=self._site.options.lease_ms)
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
                if other is not None and self.may_remove(takeover_path, other):
                    self._remove(takeover_path, other, depth + 1)
        finally:
            takeover.forget()

    def _refusal(self, holder: Holder, *, is_free: bool = False) -> Refusal:
        age_seconds = (self._site.now_ms() - holder.modified_ms) // 1000
        if holder.owner is not None and holder.owner.lease_ms:
            advice = (
                f"If that writer is dead, its lock ends after {holder.owner.lease_ms // 1000} s of waiting: set "
                f"{concurrency.LOCK_WAIT_MS.key} above that"
            )
        else:
            advice = (
                f"Wait longer ({concurrency.LOCK_WAIT_MS.key}); or, if that writer does not run any more, delete the "
                f"file, or set {concurrency.LOCK_EXPIRE_MINUTES.key}"
            )
        return Refusal(f" is held by {holder}, last written {age_seconds} s ago", advice, is_free)


def _plain(folder: str) -> str:
    """Return a folder without the parts of a URI that do not matter."""
    return "/" + folder.removeprefix("file:").strip("/")
