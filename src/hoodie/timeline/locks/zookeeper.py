"""The JVM's ZooKeeper providers: the lock of Curator's `InterProcessMutex`, docs/format/table.md §10.5.

Each contender creates an ephemeral sequential node below `<base path>/<lock key>`; the lowest number holds the lock.
ZooKeeper deletes the node when the session of its writer ends, so a dead writer's lock ends with its session timeout.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast

from hoodie.config import concurrency
from hoodie.errors import InvalidConfigError, LockTimeoutError, StorageError
from hoodie.format.hashes.xxhash import hash_id
from hoodie.timeline.locks.provider import LockProvider, LockSite, Refusal
from hoodie.timeline.owner import Owner

if TYPE_CHECKING:
    from kazoo.client import KazooClient

_PACKAGE = "org.apache.hudi.client.transaction.lock"
NAME = f"{_PACKAGE}.ZookeeperBasedLockProvider"
IMPLICIT_NAME = f"{_PACKAGE}.ZookeeperBasedImplicitBasePathLockProvider"

_T = TypeVar("_T")
_PORT = "2181"
_PREFIX = "_c_"
_MARK = "-lock-"
_DATA_BYTES_SHOWN_MAX = 200


@dataclass(frozen=True, slots=True)
class LockNode:
    """The servers and the node of a table's lock. `hosts` is `host:port`, or several of them with commas."""

    hosts: str
    path: str

    @classmethod
    def of(cls, site: LockSite) -> LockNode:
        """Return the node that the options name. Raises: InvalidConfigError if an option is missing."""
        settings = site.options.settings
        hosts = concurrency.LOCK_ZOOKEEPER_URL.get(settings)
        if not hosts:
            raise InvalidConfigError(f"the lock in ZooKeeper needs {concurrency.LOCK_ZOOKEEPER_URL.key}=host:port")
        _check_port(hosts, concurrency.LOCK_ZOOKEEPER_PORT.get(settings))
        if site.options.provider == IMPLICIT_NAME:
            table_path = concurrency.LOCK_TABLE_PATH.get(settings) or site.store.spec.uri.rstrip("/")
            return cls(hosts, implicit_path(table_path))
        folder = concurrency.LOCK_ZOOKEEPER_PATH.get(settings)
        key = concurrency.LOCK_ZOOKEEPER_KEY.get(settings) or settings.get("hoodie.table.name", "")
        if not folder or not key:
            raise InvalidConfigError(
                f"the lock in ZooKeeper needs {concurrency.LOCK_ZOOKEEPER_PATH.key} and "
                f"{concurrency.LOCK_ZOOKEEPER_KEY.key}, the same for all writers of the table; or the "
                f"provider {IMPLICIT_NAME}"
            )
        return cls(hosts, "/" + "/".join(part for part in f"{folder}/{key}".split("/") if part))


def _check_port(hosts: str, port: int) -> None:
    """Check a port that is given beside the servers: a JVM connects to the ports of the servers only.

    Raises: InvalidConfigError if it is another one.
    """
    servers = hosts.partition("/")[0].split(",")
    found = {server.rpartition(":")[2] if ":" in server else _PORT for server in servers}
    if port and found != {str(port)}:
        raise InvalidConfigError(
            f"{concurrency.LOCK_ZOOKEEPER_PORT.key}={port}, but {concurrency.LOCK_ZOOKEEPER_URL.key}={hosts!r}: "
            f"expected the ports of the servers, {_PORT} without one. JVM Hudi reads them from the url only, so that "
            "its lock would be elsewhere: write the port behind each host"
        )


class ZooKeeperLock(LockProvider):
    """One writer's place in the queue of a lock node, with a session of its own (see `LockProvider`).

    ZooKeeper deletes the nodes of dead writers, and the client keeps its session alive by itself.

    Raises: InvalidConfigError if an option or the client library is missing.
    """

    def __init__(self, site: LockSite) -> None:
        try:
            import kazoo.client  # noqa: F401
        except ImportError as error:
            raise InvalidConfigError("ZooKeeper requires a client library: pip install 'hoodie[zookeeper]'") from error
        self._node = LockNode.of(site)
        self.place = f"zookeeper://{self._node.hosts}{self._node.path}"
        self._session_seconds = concurrency.LOCK_ZOOKEEPER_SESSION_MS.get(site.options.settings) / 1000
        self._connect_seconds_max = concurrency.LOCK_ZOOKEEPER_CONNECT_MS.get(site.options.settings) / 1000
        self._client: KazooClient | None = None
        self._mine = ""

    def take(self, owner: Owner) -> Refusal | None:
        """Join the queue at the first call, and look who is first in it."""
        with self._translated():
            client = self._connected()
            nodes = self._retried(client, self._join, client, owner)
            if nodes and nodes[0] == self._mine:
                return None
            return self._refusal(client, nodes)

    def is_held(self, owner: Owner) -> bool:
        """Return whether the node of this writer still exists, by the newest state of the leader."""
        from kazoo.exceptions import ConnectionClosedError, NoNodeError

        client = self._client
        if client is None or not self._mine:
            return False
        # A client that is closed has no session any more.
        with self._translated(), contextlib.suppress(NoNodeError, ConnectionClosedError):
            # Without it a server that lost the others would show a node whose session has ended.
            self._retried(client, client.sync, self._node.path)
            found = self._retried(client, client.exists, f"{self._node.path}/{self._mine}")
            session = client.client_id
            return found is not None and session is not None and bool(found.ephemeralOwner == session[0])
        return False

    def give_back(self, owner: Owner) -> bool:
        """Delete the node and end the session, with which the node ends in any case."""
        is_held = False
        with contextlib.suppress(Exception):
            is_held = self.is_held(owner)
        client, mine = self._client, self._mine
        self._client, self._mine = None, ""
        if client is None:
            return False
        with contextlib.suppress(Exception):
            if mine:
                client.delete(f"{self._node.path}/{mine}")
        end_session(client)
        return is_held

    def abandon(self) -> None:
        """End the session."""
        client, self._client = self._client, None
        if client is not None:
            end_session(client)

    def holder(self) -> str | None:
        """Return the text that names the holder, None if the lock is free. For inspection: joins no queue."""
        with self._translated():
            client = self._connected()
            try:
                nodes = self._queue(client)
                return _named(client, self._node.path, nodes[0]) if nodes else None
            finally:
                self.abandon()

    def _connected(self) -> KazooClient:
        from kazoo.client import KazooClient

        if self._client is None:
            retry = {"max_tries": -1, "max_delay": 1.0}
            client = KazooClient(self._node.hosts, timeout=self._session_seconds, connection_retry=retry)
            try:
                client.start(timeout=self._connect_seconds_max)
                client.ensure_path(self._node.path)
            except BaseException:
                end_session(client)
                raise
            self._client = client
        return self._client

    def _queue(self, client: KazooClient) -> list[str]:
        """Return the contenders, the holder first."""
        return in_order(client.get_children(self._node.path))

    def _join(self, client: KazooClient, owner: Owner) -> list[str]:
        """Create a node, unless one names this holding: the answer to an earlier request was lost. Return the queue."""
        name = f"{_PREFIX}{uuid.UUID(owner.token)}{_MARK}"
        nodes = self._queue(client)
        mine = next((node for node in nodes if node.startswith(name)), "")
        if not mine:
            data = f"application_id=hoodie {owner}".encode()
            made = client.create(f"{self._node.path}/{name}", data, ephemeral=True, sequence=True)
            mine, nodes = str(made).rpartition("/")[2], self._queue(client)
        self._mine = mine
        return nodes

    def _retried(self, client: KazooClient, call: Callable[..., _T], *arguments: object) -> _T:
        """Repeat a request while the client restores its connection, after SIGSTOP for example."""
        from kazoo.retry import KazooRetry

        retry = KazooRetry(
            max_tries=-1, max_delay=1.0, deadline=self._connect_seconds_max, sleep_func=client.handler.sleep_func
        )
        return cast(_T, retry(call, *arguments))

    def _refusal(self, client: KazooClient, nodes: Sequence[str]) -> Refusal:
        first = nodes[0] if nodes else ""
        return Refusal(
            f" is held by {_named(client, self._node.path, first)}",
            f"If that writer is dead, its lock ends with its ZooKeeper session: wait longer "
            f"({concurrency.LOCK_WAIT_MS.key}); or, if you are certain that it does not run, delete the node {first}",
        )

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """Raise errors of this package instead of those of the client library."""
        from kazoo.exceptions import KazooException
        from kazoo.handlers.threading import KazooTimeoutError

        try:
            yield
        except KazooTimeoutError as error:
            raise LockTimeoutError(
                f"ZooKeeper at {self._node.hosts} could not be reached within {self._connect_seconds_max:.0f} s"
            ) from error
        except KazooException as error:
            raise StorageError(f"{self.place}: ZooKeeper failed: {error!r}") from error


def implicit_path(table_path: str) -> str:
    """Return the lock node that the implicit provider derives from the table's path, in which s3a counts as s3."""
    if table_path.lower().startswith("s3a:"):
        table_path = "s3:" + table_path[4:]
    return f"/tmp/{hash_id(table_path):016X}/lock_key"


def in_order(nodes: Sequence[str]) -> list[str]:
    """Sort contenders as Curator does: by the text after the last `lock-`; a name without it is compared as a whole."""
    return sorted(nodes, key=lambda name: name.rpartition("lock-")[2])


def _named(client: KazooClient, path: str, node: str) -> str:
    """Return what the holder wrote into its node: the JVM writes the id of its Spark application."""
    from kazoo.exceptions import NoNodeError

    try:
        data, _ = client.get(f"{path}/{node}")
    except NoNodeError:
        return "a writer that has just ended"
    text = bytes(data or b"")[:_DATA_BYTES_SHOWN_MAX].decode(errors="replace")
    return f"the writer with {text if text.isprintable() and text else 'an empty node'} (node {node})"


def end_session(client: KazooClient) -> None:
    """End a session. Never raises an error."""
    with contextlib.suppress(Exception):
        client.stop()
    with contextlib.suppress(Exception):
        client.close()
