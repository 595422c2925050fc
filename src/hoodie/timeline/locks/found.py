"""The locks of a table as they are now, of every provider that can be seen from here; for inspection."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hoodie.storage import Store
from hoodie.timeline.layout import HOODIE_FOLDER
from hoodie.timeline.locks import file_system, storage_based, zookeeper
from hoodie.timeline.locks.holder import Holder
from hoodie.timeline.locks.other_locks import is_storage_based
from hoodie.timeline.locks.provider import LockOptions, LockSite
from hoodie.timeline.locks.registry import DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLock:
    """One lock. `holder` is None if the lock is free; `until_ms` is when it ends without a renewal, if that is known.

    `is_ours`: writers of this library use this provider, by the options that were given and stored.
    """

    provider: str
    place: str
    is_ours: bool
    holder: str | None = None
    written_ms: int | None = None
    until_ms: int | None = None


def found_locks(store: Store, options: LockOptions) -> list[FoundLock]:
    """Return the lock that writers of this library use, and all others that the table has.

    Raises: StorageError, LockTimeoutError if ZooKeeper is used and cannot be reached; InvalidConfigError.
    """
    site = LockSite(store=store, options=options)
    files = [_file_system(site), _storage_based(site)]
    ours = options.provider
    if not ours:
        ours = storage_based.NAME if is_storage_based(store, store.list(site.locks)) else DEFAULT
    found = [replace(lock, is_ours=lock.provider == ours) for lock in files if lock is not None]
    if ours in (zookeeper.NAME, zookeeper.IMPLICIT_NAME):
        lock = zookeeper.ZooKeeperLock(site)
        found.append(FoundLock(provider=ours, place=lock.place, is_ours=True, holder=lock.holder()))
    elif not any(lock.is_ours for lock in found):
        found.append(FoundLock(provider=ours, place=site.store.uri(HOODIE_FOLDER), is_ours=True))
    return found


def _file_system(site: LockSite) -> FoundLock | None:
    path = f"{site.folder}/{file_system.FILE_NAME}"
    holder = Holder.read(site.store, path)
    if holder is None:
        return None
    owner = holder.owner
    state = " (ended without releasing the lock)" if owner is not None and owner.is_running() is False else ""
    lease_ms = owner.lease_ms if owner is not None else 0
    return FoundLock(
        provider=file_system.NAME,
        place=site.store.uri(path),
        is_ours=False,
        holder=f"{holder}{state}",
        written_ms=holder.modified_ms,
        until_ms=holder.modified_ms + lease_ms if lease_ms else None,
    )


def _storage_based(site: LockSite) -> FoundLock | None:
    path = f"{site.locks}/{storage_based.FILE_NAME}"
    info = site.store.head(path)
    if info is None:
        return None
    found = storage_based.LockFile.parse(site.store.read(path))
    is_valid = found is None or found.is_valid(site.now_ms())
    return FoundLock(
        provider=storage_based.NAME,
        place=site.store.uri(path),
        is_ours=False,
        holder=(str(found) if found else "an unknown writer (the file is no lock file)") if is_valid else None,
        written_ms=info.modified_ms,
        until_ms=found.valid_until_ms if found is not None and is_valid else None,
    )
