"""The JVM's `StorageBasedLockProvider`: a small file of an object store that is replaced by conditional puts.

On-disk format: docs/format/table.md §10.2. The lock ends by the clocks of its writers: each must be right to within
half a second, as for the JVM. What a wrong clock can do is in docs/decisions/0014-fencing.md.
"""

from __future__ import annotations

import json
import threading
import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from hoodie.config import concurrency
from hoodie.errors import InvalidConfigError
from hoodie.storage import FileVersion
from hoodie.timeline.locks.provider import LockProvider, LockSite, Refusal
from hoodie.timeline.owner import Owner, fields_of

NAME = "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"
FILE_NAME = "table_lock.json"

_DRIFT_MS = 500
"""A lock of another writer counts as ended this long after `validUntil`, because clocks differ."""
_RENEWALS_PER_VALIDITY_MIN = 10
_VALIDITY_SECONDS_MIN = 10
_TIME_MS_MAX = 253_402_300_799_000
_RELEASE_TRIES = 3


@dataclass(frozen=True, slots=True)
class LockFile:
    """Content of `table_lock.json`: the lock of `owner` until `valid_until_ms` (epoch), unless it was released."""

    is_released: bool
    valid_until_ms: int
    owner: str

    @classmethod
    def parse(cls, data: bytes) -> LockFile | None:
        """Parse the file; None if it is not a lock file. Unknown fields are ignored."""
        fields = fields_of(data)
        expired, valid_until, owner = (fields.get(name) for name in ("expired", "validUntil", "owner"))
        if type(expired) is not bool or type(valid_until) is not int or not isinstance(owner, str):
            return None
        if not (-_TIME_MS_MAX <= valid_until <= _TIME_MS_MAX and owner.isprintable()):
            return None
        return cls(expired, valid_until, owner)

    def to_bytes(self) -> bytes:
        """Return the JSON that the JVM writes."""
        fields = {"expired": self.is_released, "validUntil": self.valid_until_ms, "owner": self.owner}
        return json.dumps(fields, separators=(",", ":")).encode()

    def is_valid(self, now_ms: int) -> bool:
        """Return whether the lock is held, by the clock of another writer."""
        return not self.is_released and now_ms <= self.valid_until_ms + _DRIFT_MS

    def __str__(self) -> str:
        until = datetime.fromtimestamp(self.valid_until_ms / 1000, UTC).isoformat(sep=" ", timespec="seconds")
        return f"the writer {self.owner} until {until}"


class StorageBasedLock(LockProvider):
    """One writer's access to `.hoodie/.locks/table_lock.json` (see `LockProvider`). The file stays for ever.

    Raises: InvalidConfigError if the options contradict each other, as for the JVM.
    """

    def __init__(self, site: LockSite) -> None:
        self._site = site
        self._store = site.store
        self._path = f"{site.locks}/{FILE_NAME}"
        self.place = self._store.uri(self._path)
        settings = site.options.settings
        self._validity_ms = concurrency.LOCK_STORAGE_VALIDITY_SECONDS.get(settings) * 1000
        self.renew_seconds = float(concurrency.LOCK_STORAGE_RENEW_SECONDS.get(settings))
        seconds_min = max(_VALIDITY_SECONDS_MIN, self.renew_seconds * _RENEWALS_PER_VALIDITY_MIN)
        if self._validity_ms < seconds_min * 1000:
            raise InvalidConfigError(
                f"{concurrency.LOCK_STORAGE_VALIDITY_SECONDS.key}={self._validity_ms // 1000}: expected at least "
                f"{_VALIDITY_SECONDS_MIN}, and {_RENEWALS_PER_VALIDITY_MIN} times "
                f"{concurrency.LOCK_STORAGE_RENEW_SECONDS.key} ({self.renew_seconds:.0f})"
            )
        self._mutex = threading.Lock()
        self._held: tuple[LockFile, FileVersion] | None = None

    def take(self, owner: Owner) -> Refusal | None:
        """Make one attempt to take the lock: a read, and a put that fails if the file changed meanwhile."""
        seen = self._read()
        if seen is not None:
            data, version = seen
            found = LockFile.parse(data)
            if found is None:
                what = f": expected JSON with expired, validUntil and owner, found {len(data)} other bytes"
                return Refusal(what, "If no writer runs, delete the file")
            if found.owner == _name(owner) and not found.is_released:
                self._held = (found, version)  # the answer to the put was lost, and the client tried again
                return None
            if found.is_valid(self._site.now_ms()):
                return self._refusal(found)
        wanted = LockFile(False, self._site.now_ms() + self._validity_ms, _name(owner))
        written = self._store.replace_version(self._path, wanted.to_bytes(), None if seen is None else seen[1])
        if written is None:
            return Refusal(": another writer took or released the lock at the same moment", is_free=True)
        self._held = (wanted, written)
        return None

    def is_held(self, owner: Owner) -> bool:
        """Return whether the file names `owner`. An expired lock is renewed first, unless another writer took it."""
        with self._mutex:
            found = self._adopt(owner)
            if found is None:
                return False
            return found.is_valid(self._site.now_ms() + _DRIFT_MS) or self._prolong(owner)

    def renew(self, owner: Owner) -> bool:
        """Prolong the validity; False if another writer took the lock."""
        with self._mutex:
            return self._held is not None and self._prolong(owner)

    def give_back(self, owner: Owner) -> bool:
        """Mark the lock as released. The validity stays in the file, as the JVM leaves it."""
        is_held = False
        with suppress(Exception):
            is_held = self.is_held(owner)
        with self._mutex, suppress(Exception):
            for _ in range(_RELEASE_TRIES):
                if self._held is None and self._adopt(owner) is None:
                    break
                assert self._held is not None
                (found, version), self._held = self._held, None
                if self._store.replace_version(self._path, replace(found, is_released=True).to_bytes(), version):
                    break
        return is_held

    def _prolong(self, owner: Owner) -> bool:
        for _ in range(2):  # the second time after an answer that was lost
            assert self._held is not None
            found = replace(self._held[0], valid_until_ms=self._site.now_ms() + self._validity_ms)
            written = self._store.replace_version(self._path, found.to_bytes(), self._held[1])
            if written is not None:
                self._held = (found, written)
                return True
            if self._adopt(owner) is None:
                return False
        return False

    def _adopt(self, owner: Owner) -> LockFile | None:
        """Read the file and note its version if it names `owner`; None if it does not."""
        seen = self._read()
        found = None if seen is None else LockFile.parse(seen[0])
        if seen is None or found is None or found.owner != _name(owner) or found.is_released:
            self._held = None
            return None
        self._held = (found, seen[1])
        return found

    def _read(self) -> tuple[bytes, FileVersion] | None:
        try:
            return self._store.read_version(self._path)
        except FileNotFoundError:
            return None

    def _refusal(self, found: LockFile) -> Refusal:
        seconds = max(0, (found.valid_until_ms + _DRIFT_MS - self._site.now_ms()) // 1000)
        return Refusal(
            f" is held by {found}",
            f"If that writer is dead, its lock ends in {seconds} s: set {concurrency.LOCK_WAIT_MS.key} above that; or, "
            "if you are certain that it does not run any more, delete the file",
        )


def _name(owner: Owner) -> str:
    return str(uuid.UUID(owner.token))
