"""Find what dead writers left that holds no committed rows: markers, stages, heartbeats, locks, temporary files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hoodie.errors import CorruptFileError, TableNotFoundError
from hoodie.files.markers import TEMP_FOLDER
from hoodie.files.staging.staged import is_dead_stage_folder
from hoodie.files.table_properties import BACKUP, PROPERTIES
from hoodie.format.filenames import name_of
from hoodie.format.table.table_config import TableConfig
from hoodie.metadata.places import METADATA_HOODIE_FOLDER
from hoodie.services.check import kinds
from hoodie.services.check.survey import Problem, Survey
from hoodie.storage import Store
from hoodie.timeline import HOODIE_FOLDER, is_live
from hoodie.timeline.locks import storage_based, zookeeper
from hoodie.timeline.locks.inspection import is_storage_based
from hoodie.timeline.locks.provider import LockOptions
from hoodie.timeline.owner import Owner

_LOCKS = f"{HOODIE_FOLDER}/.locks"
_LOCK_FILES = ("prepared-", "takeover-")
_PREPARED_MS_MAX = 10 * 60_000
"""A writer that runs has such a file for moments, whichever lock provider it uses."""
_SILENT_MS = 3_600_000
"""A storage-based lock that ended so long ago and was not released is worth a note."""


def property_problems(store: Store) -> Iterator[Problem]:
    """Check hoodie.properties and its backup, of which one is whole: else the table cannot be opened.

    Raises: TableNotFoundError.
    """
    has_backup = store.head(BACKUP) is not None
    try:
        TableConfig.parse(store.read(PROPERTIES), path=store.uri(PROPERTIES))
    except FileNotFoundError as error:
        if not has_backup:
            raise TableNotFoundError(f"{store.uri('')} has neither {PROPERTIES} nor its backup") from error
        yield Problem(kinds.PROPERTIES_DAMAGED, PROPERTIES, "a file", "none")
    except CorruptFileError as error:
        yield Problem(kinds.PROPERTIES_DAMAGED, PROPERTIES, "whole properties", str(error))
    else:
        if has_backup:
            yield Problem(kinds.PROPERTIES_BACKUP, BACKUP)


def leftover_problems(survey: Survey, *, now_ms: int) -> Iterator[Problem]:
    """Find leftovers; what a running writer may own is not found."""
    store = survey.view.store
    yield from lock_problems(survey)
    pending = {instant.requested_time for instant in survey.timeline.pending()}
    for folder in _folders_of(survey, TEMP_FOLDER):
        name = name_of(folder)
        if name.isdigit():
            if name not in pending and not is_live(store, name):
                yield Problem(kinds.LEFTOVER_MARKERS, folder)
        elif is_dead_stage_folder(store, folder, now_ms=now_ms):
            yield Problem(kinds.LEFTOVER_STAGE, folder)
    for base in (HOODIE_FOLDER, METADATA_HOODIE_FOLDER):
        for info in survey.directly_in(f"{base}/.heartbeat"):
            if info.name not in pending and not is_live(store, info.name, folder=base):
                yield Problem(kinds.LEFTOVER_HEARTBEAT, info.path)
    for info in survey.directly_in(_LOCKS):
        is_old = now_ms - info.modified_ms > _PREPARED_MS_MAX
        if info.name.startswith(_LOCK_FILES) and is_old and _is_of_dead(survey, info.path, info.name, now_ms):
            yield Problem(kinds.LEFTOVER_LOCK, info.path)
    if (lock := survey.files.get(f"{HOODIE_FOLDER}/lock")) is not None and _is_of_dead(survey, lock.path, "", now_ms):
        yield Problem(kinds.LEFTOVER_LOCK, lock.path)
    for info in store.temporary_files():
        yield Problem(kinds.LEFTOVER_TEMPORARY, info.path, found=f"{info.size_bytes} bytes")


def lock_problems(survey: Survey) -> Iterator[Problem]:
    """Find a file of the storage-based lock that is no lock: no writer can take it."""
    found = _storage_based(survey)
    is_used = found is not None and is_storage_based(survey.view.store, tuple(survey.directly_in(_LOCKS)))
    if found is not None and found[1] is None and is_used:
        yield Problem(kinds.LOCK_DAMAGED, found[0], "JSON with expired, validUntil and owner", "other bytes")


def lock_notes(survey: Survey, properties: Mapping[str, str], *, now_ms: int) -> Iterator[str]:
    """Say which locks were not released, and which were not looked at. `properties` are the options of the call."""
    path, lock = _storage_based(survey) or ("", None)
    if lock is not None and not lock.is_released and now_ms - lock.valid_until_ms > _SILENT_MS:
        yield (
            f"{path} was not released by {lock}: that writer ended without doing so; its lock has ended, and the next "
            "writer takes it"
        )
    provider = LockOptions.of(properties, survey.view.config.raw).provider
    if provider in (zookeeper.NAME, zookeeper.IMPLICIT_NAME):
        where = survey.view.store.uri("")
        yield f"the lock in ZooKeeper was not looked at: `hoodie inspect {where} locks` shows who holds it"


def _storage_based(survey: Survey) -> tuple[str, storage_based.LockFile | None] | None:
    """Return the path and the content of the storage-based lock's file, None if it is no lock; None without a file."""
    path = f"{_LOCKS}/{storage_based.FILE_NAME}"
    if path not in survey.files:
        return None
    try:
        return path, storage_based.LockFile.parse(survey.view.store.read(path))
    except FileNotFoundError:
        return None


def _folders_of(survey: Survey, folder: str) -> list[str]:
    """Return the folders in a folder: those with files, and empty ones of a local disk."""
    prefix = f"{folder}/"
    with_files = {prefix + info.path[len(prefix) :].partition("/")[0] for info in survey.below(folder)}
    return sorted(with_files | set(survey.view.store.folders(folder)))


def _is_of_dead(survey: Survey, path: str, name: str, now_ms: int) -> bool:
    """Return whether the writer of a lock file is known to be dead; a prepared file belongs to the holder of the lock.

    The next holder of the lock deletes prepared files before it does anything else, so one without a lock is left over.
    """
    store = survey.view.store
    if name.startswith("prepared-"):
        found = _storage_based(survey)
        is_held = found is not None and (found[1] is None or found[1].is_valid(now_ms))
        return not is_held and store.head(f"{HOODIE_FOLDER}/lock") is None
    try:
        owner = Owner.read(store, path)
    except FileNotFoundError:
        return False
    return owner is not None and owner.is_running() is False
