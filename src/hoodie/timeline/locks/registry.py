"""The lock providers by the class names that `hoodie.write.lock.provider` has for both implementations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hoodie.errors import UnsupportedError
from hoodie.timeline.locks import file_system, in_process, storage_based, zookeeper
from hoodie.timeline.locks.provider import LockProvider, LockSite

PROVIDERS: Final[dict[str, Callable[[LockSite], LockProvider]]] = {
    file_system.NAME: file_system.FileSystemLock,
    storage_based.NAME: storage_based.StorageBasedLock,
    zookeeper.NAME: zookeeper.ZooKeeperLock,
    zookeeper.IMPLICIT_NAME: zookeeper.ZooKeeperLock,
    in_process.NAME: in_process.InProcessLock,
}
DEFAULT: Final = file_system.NAME


def provider_of(site: LockSite, name: str = "") -> LockProvider:
    """Return the access of a new writer to the lock of the provider `name`, or of the provider in the options.

    Raises: UnsupportedError for providers that are not in this list, rather than write without exclusion.
    """
    name = name or site.options.provider or DEFAULT
    if name not in PROVIDERS:
        raise UnsupportedError(
            f"hoodie.write.lock.provider={name!r}: expected one of {', '.join(PROVIDERS)}. All writers of a table must "
            "use the same provider, so this library does not write with another one"
        )
    return PROVIDERS[name](site)
