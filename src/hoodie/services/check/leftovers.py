"""Find what dead writers left that holds no committed rows: markers, stages, heartbeats, locks, temporary files."""

from __future__ import annotations

from collections.abc import Iterator

from hoodie.errors import CorruptFileError, TableNotFoundError
from hoodie.files.markers import TEMP_FOLDER
from hoodie.files.staging.staged import is_dead_stage_folder
from hoodie.files.table_properties import BACKUP, PROPERTIES
from hoodie.format.table.table_config import TableConfig
from hoodie.metadata.places import METADATA_HOODIE_FOLDER
from hoodie.services.check import kinds
from hoodie.services.check.survey import Problem, Survey
from hoodie.storage import Store
from hoodie.timeline import HOODIE_FOLDER, is_live
from hoodie.timeline.owner import Owner

_LOCKS = f"{HOODIE_FOLDER}/.locks"
_LOCK_FILES = ("prepared-", "takeover-")
_PREPARED_MS_MAX = 10 * 60_000
"""A writer that runs has such a file for moments. The other lock providers have no lock file of this name."""


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
    pending = {instant.requested_time for instant in survey.timeline.pending()}
    for folder in _folders_of(survey, TEMP_FOLDER):
        name = folder.rpartition("/")[2]
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
        if info.name.startswith(_LOCK_FILES) and is_old and _is_of_dead(store, info.path, info.name):
            yield Problem(kinds.LEFTOVER_LOCK, info.path)
    if (lock := survey.files.get(f"{HOODIE_FOLDER}/lock")) is not None and _is_of_dead(store, lock.path, ""):
        yield Problem(kinds.LEFTOVER_LOCK, lock.path)
    for info in store.temporary_files():
        yield Problem(kinds.LEFTOVER_TEMPORARY, info.path, found=f"{info.size_bytes} bytes")


def _folders_of(survey: Survey, folder: str) -> list[str]:
    """Return the folders in a folder: those with files, and empty ones of a local disk."""
    prefix = f"{folder}/"
    with_files = {prefix + info.path[len(prefix) :].partition("/")[0] for info in survey.below(folder)}
    return sorted(with_files | set(survey.view.store.folders(folder)))


def _is_of_dead(store: Store, path: str, name: str) -> bool:
    """Return whether the writer of a lock file is known to be dead; a prepared file belongs to the holder of the lock.

    The next holder of the lock deletes prepared files before it does anything else, so one without a lock is left over.
    """
    if name.startswith("prepared-"):
        return store.head(f"{HOODIE_FOLDER}/lock") is None
    try:
        owner = Owner.read(store, path)
    except FileNotFoundError:
        return False
    return owner is not None and owner.is_running() is False
