"""How compactors on several machines share the pending plans: each plan is carried out by one of them.

By default the table itself decides: a plan is claimed under the table's lock, and the claim lives as long as its
heartbeat. A coordinator in front of that settles it without the lock, and knows sooner when a machine died.
"""

from __future__ import annotations

from typing import Protocol

from hoodie.errors import InvalidConfigError
from hoodie.services.compaction.zookeeper import DEFAULT_PATH, ZooKeeperCoordinator


class Claim(Protocol):
    """The right to carry out one plan, from a coordinator."""

    def ensure_held(self) -> None:
        """Refuse to go on if the coordinator may have given the plan to another.

        Raises: CommitConflictError.
        """
        ...

    def release(self) -> None:
        """Give it back. Never fails: a claim that cannot be given back ends with its session."""
        ...


class Coordinator(Protocol):
    """Gives out claims. Thread-safe."""

    @property
    def name(self) -> str:
        """What tells it from others, stored with a compaction that runs.

        Who holds a claim of the coordinator that an interrupted compaction names knows that its compactor is gone: the
        claim would not be free else. Empty: its claims tell nothing of the kind.
        """
        ...

    def claim(self, table_uri: str, instant_time: str) -> Claim | None:
        """Claim a plan; None if another has it."""
        ...

    def close(self) -> None:
        """End connections, if there are any. Never fails; the next claim begins new ones."""
        ...


class TableCoordinator:
    """Leaves it to the table's lock and to heartbeats: a compactor that died on another machine is missed in 2 min."""

    name = ""

    def claim(self, table_uri: str, instant_time: str) -> Claim | None:
        """Always granted: the lock decides."""
        return _GRANTED

    def close(self) -> None:
        """Nothing to end."""


def coordinator_of(wanted: str | Coordinator | None) -> Coordinator:
    """The coordinator that a caller means: an object, `zookeeper://host:port,…/path`, or None for the table's lock.

    Raises: InvalidConfigError for any other text, and for ZooKeeper without its client library.
    """
    if wanted is None:
        return TableCoordinator()
    if not isinstance(wanted, str):
        return wanted
    scheme, separator, rest = wanted.partition("://")
    if scheme != "zookeeper" or not separator or not rest:
        raise InvalidConfigError(f"coordinator={wanted!r}: zookeeper://host:port/path expected, or nothing")
    hosts, _, path = rest.partition("/")
    return ZooKeeperCoordinator(hosts, path or DEFAULT_PATH)


class _Granted:
    def ensure_held(self) -> None:
        """Nobody takes it away."""

    def release(self) -> None:
        """Nothing to give back."""


_GRANTED = _Granted()
