"""Delete a table with all its files, in an order that never shows a part of its rows as the whole table.

Data files go first, `hoodie.properties` last: a reader between them fails because a file is missing, and a repeated
call goes on.
"""

from __future__ import annotations

from collections.abc import Mapping

from hoodie.errors import CommitConflictError
from hoodie.files.markers import TEMP_FOLDER
from hoodie.files.table_properties import BACKUP, PROPERTIES
from hoodie.timeline import HOODIE_FOLDER, is_live
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

_LOCKS = f"{HOODIE_FOLDER}/.locks"


def drop_table(state: TableState, *, kept: str | None = None, properties: Mapping[str, str] | None = None) -> None:
    """Delete all files of the folder of a table; `kept` is a folder of staged rows that stays.

    Files that do not belong to the table are deleted too, as JVM Hudi does. A damaged table is deleted too.

    Raises: CommitConflictError if another write runs; LockTimeoutError; StorageError, after which the call can be
    repeated.
    """
    store = state.store
    with state.table_lock(properties) as lock:
        beats = store.names(f"{HOODIE_FOLDER}/.heartbeat")
        if running := [name for name in beats if is_live(store, name)]:
            raise CommitConflictError(
                f"{store.uri('')} is not deleted: the writer of {running[0]} runs; try again when it has ended"
            )
        _delete(state, "", {HOODIE_FOLDER})
        _delete(state, HOODIE_FOLDER, {TEMP_FOLDER, _LOCKS, PROPERTIES, BACKUP, f"{HOODIE_FOLDER}/lock"})
        _delete(state, TEMP_FOLDER, set() if kept is None else {kept})
        lock.ensure_held()
        store.delete(BACKUP)
        store.delete(PROPERTIES)


def remove_unused_table(state: TableState) -> bool:
    """Delete a table that the caller has just created, unless a write has begun; return whether it was deleted.

    The folder keeps files that do not belong to the table.

    Raises: LockTimeoutError; StorageError, after which the call can be repeated.
    """
    store = state.store
    with TableView.locked(state) as view:
        is_used = view.timeline.instants or view.has_archived_instants() or store.folders(TEMP_FOLDER)
        if is_used or any(is_live(store, name) for name in store.names(f"{HOODIE_FOLDER}/.heartbeat")):
            return False
        _delete(state, HOODIE_FOLDER, {_LOCKS, PROPERTIES, BACKUP, f"{HOODIE_FOLDER}/lock"})
        view.held_lock.ensure_held()
        store.delete(BACKUP)
        store.delete(PROPERTIES)
    return True


def _delete(state: TableState, folder: str, kept: set[str]) -> None:
    """Delete what is directly in a folder, with all that is below it, but for the paths in `kept`."""
    store = state.store
    for path in store.folders(folder):
        if path not in kept:
            store.delete_folder(path)
    store.delete_all([info.path for info in store.list(folder) if info.path not in kept])
