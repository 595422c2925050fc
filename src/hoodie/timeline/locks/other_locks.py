"""Locks that other providers left or hold in a table: writers with different providers do not exclude each other."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from hoodie import config as options
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.storage import FileInfo, Store
from hoodie.timeline.locks import file_system, storage_based
from hoodie.timeline.locks.holder import Holder
from hoodie.timeline.locks.provider import LockSite

_SILENT_LEASES = 10
"""A file-system lock that was not renewed for so many leases was left by a writer that ended."""


def is_storage_based(store: Store, infos: Sequence[FileInfo]) -> bool:
    """Return whether writers use the storage-based provider, from the files of the folder `.locks`.

    The file stays when a table is copied to a local disk, where nobody can use that provider.
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
            f"with different lock providers do not exclude each other: set {options.LOCK_PROVIDER.key} to the same "
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
    path = f"{site.folder}/{file_system.FILE_NAME}"
    holder = Holder.read(site.store, path)
    if holder is None or file_system.FileSystemLock(site).may_remove(path, holder):
        return ""
    owner, age_ms = holder.owner, site.now_ms() - holder.modified_ms
    if owner is not None and owner.is_running() is None and 0 < owner.lease_ms * _SILENT_LEASES < age_ms:
        return ""
    return f"{site.store.uri(path)}, held by {holder}"
