"""Coordinate compactors on several machines: each pending plan is executed by one of them.

By default the table's lock decides: a plan is claimed under the lock, and the claim is valid as long as its heartbeat
is fresh. An optional coordinator grants claims before the lock is acquired, and detects a dead machine sooner.
ZooKeeper is one: it deletes the node of a claim when the session of its process ends. The client library is required:
`pip install 'hoodie[zookeeper]'`.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from typing import TYPE_CHECKING, Protocol

from hoodie.errors import CommitConflictError, InvalidConfigError, LockTimeoutError
from hoodie.timeline.locks.zookeeper import end_session
from hoodie.timeline.owner import Owner

if TYPE_CHECKING:
    from kazoo.client import KazooClient


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


DEFAULT_PATH = "hoodie"


class ZooKeeperCoordinator:
    """A coordinator with one session of a ZooKeeper ensemble, which starts with the first claim. Thread-safe.

    The node of a claim is `/<path>/<hash of the table's URI>/<instant>`: all compactors of a table must use the same
    URI.
    """

    def __init__(
        self,
        hosts: str,
        path: str = DEFAULT_PATH,
        *,
        session_seconds: float = 10.0,
        connect_seconds_max: float = 15.0,
    ) -> None:
        """Store the settings without connecting; `hosts` is `host:port`, or several of them separated by commas.

        Raises: InvalidConfigError if the client library is missing.
        """
        try:
            import kazoo.client  # noqa: F401
        except ImportError as error:
            raise InvalidConfigError("ZooKeeper requires a client library: pip install 'hoodie[zookeeper]'") from error
        self._hosts = hosts
        self._path = "/" + path.strip("/")
        self._session_seconds = session_seconds
        self._connect_seconds_max = connect_seconds_max
        self._lock = threading.Lock()
        self._client: KazooClient | None = None
        self._held: set[str] = set()

    @property
    def name(self) -> str:
        """Return the URI of the folder of the claims."""
        return f"zookeeper://{self._hosts}{self._path}"

    def claim(self, table_uri: str, instant_time: str) -> ZooKeeperClaim | None:
        """Claim a plan; None if another compactor holds the claim, in another session or in this one.

        Raises: LockTimeoutError if ZooKeeper cannot be reached or does not grant the claim.
        """
        from kazoo.exceptions import KazooException, NodeExistsError

        table = hashlib.sha256(table_uri.rstrip("/").encode()).hexdigest()[:16]
        node = f"{self._path}/{table}/{instant_time}"
        client = self._connected()
        with self._lock:
            if node in self._held:
                return None
            try:
                client.create(node, Owner.new().to_bytes(), ephemeral=True, makepath=True)
            except NodeExistsError:
                # The node is ours if the response to the create was lost and the client tried again.
                if not _is_held(client, node):
                    return None
            except KazooException as error:
                raise LockTimeoutError(f"ZooKeeper at {self._hosts} did not grant a claim: {error!r}") from error
            self._held.add(node)
        return ZooKeeperClaim(self, client, node)

    def close(self) -> None:
        """End the session and all its claims. Never raises an error; the next claim starts a new session."""
        with self._lock:
            client, self._client = self._client, None
            self._held.clear()
        if client is not None:
            end_session(client)

    def give_back(self, client: KazooClient, node: str) -> None:
        """Delete the node of a claim. Never raises an error: ZooKeeper deletes the node at the end of the session."""
        with contextlib.suppress(Exception):
            if _is_held(client, node):
                client.delete(node)
        with self._lock:
            self._held.discard(node)

    def _connected(self) -> KazooClient:
        from kazoo.client import KazooClient
        from kazoo.handlers.threading import KazooTimeoutError

        with self._lock:
            if self._client is None:
                client = KazooClient(self._hosts, timeout=self._session_seconds)
                try:
                    client.start(timeout=self._connect_seconds_max)
                except KazooTimeoutError as error:
                    end_session(client)
                    raise LockTimeoutError(
                        f"ZooKeeper at {self._hosts} could not be reached within {self._connect_seconds_max:.0f} s"
                    ) from error
                self._client = client
            return self._client


class ZooKeeperClaim:
    """A claim that is valid as long as its ZooKeeper session."""

    def __init__(self, coordinator: ZooKeeperCoordinator, client: KazooClient, node: str) -> None:
        self._coordinator = coordinator
        self._client = client
        self._node = node

    def ensure_held(self) -> None:
        """Refuse to continue if the session ended or cannot be checked: another process may hold the claim.

        Raises: CommitConflictError.
        """
        from kazoo.exceptions import KazooException

        cause: Exception | None = None
        try:
            if _is_held(self._client, self._node):
                return
        except KazooException as error:
            cause = error
        raise CommitConflictError(
            f"the claim {self._node} was lost, because its ZooKeeper session ended; another compactor can execute the "
            "plan"
        ) from cause

    def release(self) -> None:
        """Release the claim."""
        self._coordinator.give_back(self._client, self._node)


def _is_held(client: KazooClient, node: str) -> bool:
    """Return whether the node exists and belongs to the client's session."""
    found = client.exists(node)
    session = client.client_id
    return found is not None and session is not None and bool(found.ephemeralOwner == session[0])
