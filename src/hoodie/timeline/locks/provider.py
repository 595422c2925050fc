"""What a lock provider is: the mechanism by which writers of one table exclude each other."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from hoodie import config as options
from hoodie.config import concurrency
from hoodie.errors import InvalidConfigError
from hoodie.storage import FileInfo, Store
from hoodie.timeline.layout import HOODIE_FOLDER
from hoodie.timeline.owner import Owner

_PREFIX = "hoodie.write.lock."
LEASE_MS = 30_000
"""Time without a renewal after which other writers may take over the lock of a writer that they cannot see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockOptions:
    """How to wait for the lock, and when the lock of another writer ends.

    One attempt follows another after `retry_ms`, then twice as long, up to `retry_ms_max`; until `wait_ms_max` has
    passed or `attempts_max` were made (0: no limit). That is a round; `rounds` follow each other with pauses of
    `pause_ms`. `expire_ms`: age of the lock file of a JVM at which the lock ends (0: never), because a JVM does not
    renew its lock. `lease_ms`: what this writer promises when it holds the file-system lock; it renews the lock six
    times as often. `provider`: the class name of the provider, empty if neither the call nor the table names one.
    `settings`: the options of the providers.
    """

    wait_ms_max: int = 60_000
    retry_ms: int = 100
    retry_ms_max: int = 1_000
    attempts_max: int = 0
    rounds: int = 1
    pause_ms: int = 5_000
    expire_ms: int = 0
    lease_ms: int = LEASE_MS
    provider: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, *properties: Mapping[str, str]) -> LockOptions:
        """Return the options `hoodie.write.lock.*`, from the first mapping that contains each of them."""
        settings: dict[str, str] = {}
        for found in reversed(properties):
            settings.update(found)
        return cls(
            wait_ms_max=concurrency.LOCK_WAIT_MS.get(settings),
            retry_ms=concurrency.LOCK_RETRY_MS.get(settings),
            retry_ms_max=concurrency.LOCK_RETRY_MS_MAX.get(settings),
            attempts_max=concurrency.LOCK_ATTEMPTS.get(settings),
            rounds=1 + concurrency.LOCK_CLIENT_RETRIES.get(settings),
            pause_ms=concurrency.LOCK_CLIENT_RETRY_MS.get(settings),
            expire_ms=concurrency.LOCK_EXPIRE_MINUTES.get(settings) * 60_000,
            provider=concurrency.LOCK_PROVIDER.get(settings),
            settings=settings,
        )


def is_lock_option(key: str) -> bool:
    """Return whether an option concerns the lock."""
    return key.startswith(_PREFIX) or key == concurrency.LOCK_TABLE_PATH.key


def check_lock_options(given: Mapping[str, str]) -> None:
    """Refuse options that are unknown, do not parse, or do not concern the lock. Raises: InvalidConfigError."""
    options.check_options(given)
    others = [key for key in given if not is_lock_option(key)]
    if others:
        raise InvalidConfigError(f"expected options of the lock ({_PREFIX}…), found {', '.join(sorted(others))}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LockSite:
    """Where a lock is, and the clocks of its writer. `now_ms` returns epoch milliseconds."""

    store: Store
    options: LockOptions = field(default_factory=LockOptions)
    now_ms: Callable[[], int] = field(default=lambda: time.time_ns() // 1_000_000)
    monotonic_ms: Callable[[], float] = field(default=lambda: time.monotonic() * 1000)

    @property
    def locks(self) -> str:
        """The folder of the files of locks."""
        return f"{HOODIE_FOLDER}/.locks"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an attempt to take the lock failed.

    `found` continues a sentence that begins with the place of the lock; `advice` is a remedy for the user. `is_free`:
    the lock was just released or removed, so the next attempt should follow at once.
    """

    found: str
    advice: str = ""
    is_free: bool = False


class LockProvider:
    """One writer's access to a lock. An `Owner` is one holding; its token is never used again. Thread-safe.

    The methods without content here are for some locks only.
    """

    place: str
    """Where the lock is, for messages."""
    renew_seconds: float = 0.0
    """Seconds between two calls of `renew`; 0 if the lock needs none."""

    def take(self, owner: Owner) -> Refusal | None:
        """Make one attempt to take the lock without waiting; None if `owner` holds it now."""
        raise NotImplementedError

    def is_held(self, owner: Owner) -> bool:
        """Return whether `owner` holds the lock, from the newest state of the lock. Raises: StorageError."""
        raise NotImplementedError

    def give_back(self, owner: Owner) -> bool:
        """Release the lock, or leave the queue for it; does nothing to the lock of another.

        It returns whether `owner` held the lock until now, from the newest state of the lock. A lock that cannot be
        released ends as a dead writer's lock. Raises: StorageError if the state cannot be read.
        """
        raise NotImplementedError

    def renew(self, owner: Owner) -> bool:
        """Prolong the holding, if the lock needs it; False if it was lost. A thread calls it."""
        return self.is_held(owner)

    def clear(self, infos: Sequence[FileInfo]) -> None:
        """Delete what earlier holders left among these files of the folder `.locks`. Called by the holder."""

    def ask(self) -> None:
        """Send the request of the next `is_held` ahead, if it is one of the table's store (`storage.ask`)."""

    def forget(self) -> None:
        """Forget the answers to `ask` that were not taken: the next `is_held` reads the lock."""

    def abandon(self) -> None:
        """End what this process keeps for the lock, without a call of the storage: its holder was deleted.

        A lock for which this does nothing ends as a dead writer's lock.
        """
