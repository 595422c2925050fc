"""Coordinate compactors on several machines: each pending plan is executed by one of them.

By default the table's lock decides: a plan is claimed under the lock, and the claim is valid as long as its heartbeat
is fresh. An optional coordinator grants claims before the lock is acquired, and detects a dead machine sooner.
"""

from __future__ import annotations

from typing import Protocol

from hoodie.errors import InvalidConfigError
from hoodie.services.planned.zookeeper import DEFAULT_PATH, ZooKeeperCoordinator


class Claim(Protocol):
    """The right to execute one plan, granted by a coordinator."""

    def ensure_held(self) -> None:
        """Refuse to continue if the coordinator may have granted the plan to another process.

        Raises: CommitConflictError.
        """
        ...

    def release(self) -> None:
        """Release the claim. Never raises an error: a claim that cannot be released ends with its session."""
        ...


class Coordinator(Protocol):
    """An object that grants claims. Thread-safe."""

    @property
    def name(self) -> str:
        """Return the name that identifies this coordinator; it is stored in the inflight file of a running compaction.

        If this coordinator grants a claim of a plan whose inflight file contains this name, the process that executed
        the plan before is dead: otherwise the claim would not be free. An empty name: a granted claim does not prove
        that.
        """
        ...

    def claim(self, table_uri: str, instant_time: str) -> Claim | None:
        """Claim a plan; None if another process holds the claim."""
        ...

    def close(self) -> None:
        """Close connections, if there are any. Never raises an error; the next claim opens new connections."""
        ...


class TableCoordinator:
    """The default coordinator: the table's lock and heartbeats decide.

    A dead compactor on another machine is detected after 2 minutes.
    """

    name = ""

    def claim(self, table_uri: str, instant_time: str) -> Claim | None:
        """Grant the claim always: the table's lock decides."""
        return _GRANTED

    def close(self) -> None:
        """Do nothing: there is no connection."""


def coordinator_of(wanted: str | Coordinator | None) -> Coordinator:
    """Return the coordinator for `wanted`: an object, `zookeeper://host:port,…/path`, or None for the table's lock.

    Raises: InvalidConfigError for any other text, and for ZooKeeper without its client library.
    """
    if wanted is None:
        return TableCoordinator()
    if not isinstance(wanted, str) and callable(getattr(type(wanted), "claim", None)):
        return wanted
    if not isinstance(wanted, str):
        raise InvalidConfigError(
            f"coordinator: expected zookeeper://host:port/path, an object with name, claim and close, or None, found "
            f"{type(wanted).__name__}"
        )
    scheme, separator, rest = wanted.partition("://")
    if scheme != "zookeeper" or not separator or not rest:
        raise InvalidConfigError(f"coordinator={wanted!r}: expected zookeeper://host:port/path, or None")
    hosts, _, path = rest.partition("/")
    return ZooKeeperCoordinator(hosts, path or DEFAULT_PATH)


class _Granted:
    def ensure_held(self) -> None:
        """Do nothing: this claim is never lost."""

    def release(self) -> None:
        """Do nothing: there is nothing to release."""


_GRANTED = _Granted()
