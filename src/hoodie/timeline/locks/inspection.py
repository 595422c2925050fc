"""The locks that a table has now, of every provider that can be seen from here.

Writers with different providers do not exclude each other: a write checks first whether another lock is held.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from hoodie.config import concurrency
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.storage import FileInfo, Store
from hoodie.timeline.layout import HOODIE_FOLDER
from hoodie.timeline.locks import file_system, storage_based, zookeeper
from hoodie.timeline.locks.holder import Holder
from hoodie.timeline.locks.provider import LockOptions, LockSite
from hoodie.timeline.locks.registry import DEFAULT

_SILENT_LEASES = 10
"""A file-system lock that was not renewed for so many leases was left by a writer that ended."""


def is_storage_based(store: Store, infos: Sequence[FileInfo]) -> bool:
    """Return whether writers use the storage-based provider, from the files of the folder `.locks`.

    The file stays when a table is copied to a local disk, where that provider does not work.
    """
    path = next((info.path for info in infos if info.name == storage_based.FILE_NAME), None)
    if path is not None:
        with suppress(UnsupportedError, FileNotFoundError):
            store.read_version(path)
            return True
    return False


def check_other_locks(site: LockSite, name: str, infos: Sequence[FileInfo]) -> None:
    """Refuse to write while another writer holds the table's lock of another provider than `name`.

    `infos`: the files of the folder `.locks`. One request more for each provider that is not the file-system lock.

    Raises: InvalidConfigError, naming the holder.
    """
    found = ""
    if name != storage_based.NAME and is_storage_based(site.store, infos):
        found = _storage_based_holder(site)
    if name != file_system.NAME and not found:
        found = _file_system_holder(site)
    if found:
        raise InvalidConfigError(
            f"{site.store.uri('')}: expected that all writers use the lock provider {name}, found {found}. Writers "
            f"with different lock providers do not exclude each other: set {concurrency.LOCK_PROVIDER.key} to the same "
            "provider for all writers, or store it in the table's properties"
        )


def _storage_based_holder(site: LockSite) -> str:
    path = f"{site.locks}/{storage_based.FILE_NAME}"
    with suppress(FileNotFoundError):
        found = storage_based.LockFile.parse(site.store.read(path))
        if found is not None and found.is_valid(site.now_ms()):
            return f"{site.store.uri(path)}, held by {found}"
    return ""


def _file_system_holder(site: LockSite) -> str:
    path = file_system.PATH
    holder = Holder.read(site.store, path)
    if holder is None or file_system.FileSystemLock(site).may_remove(path, holder):
        return ""
    owner, age_ms = holder.owner, site.now_ms() - holder.modified_ms
    if owner is not None and owner.is_running() is None and 0 < owner.lease_ms * _SILENT_LEASES < age_ms:
        return ""
    return f"{site.store.uri(path)}, held by {holder}"


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
    path = file_system.PATH
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
