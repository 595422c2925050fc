"""Check that the folder of the timeline exists: a table whose folder is missing is damaged, and is not empty.

docs/format/table.md §2.1. `create` makes the folder and its history folder, and so does the JVM. Both stay as long as
the table exists, also in object stores, where a file or a marker object stands for an empty folder.
"""

from __future__ import annotations

from hoodie.errors import CorruptFileError
from hoodie.format.filenames import name_of
from hoodie.format.table import table_keys as keys
from hoodie.format.table.table_config import TableConfig
from hoodie.storage import Store
from hoodie.timeline import HOODIE_FOLDER, Layout

_MARKER_SUFFIXES = ("_$folder$", "")
"""Some object stores of the JVM mark an empty folder by an object beside it: EMRFS with this suffix, WASB without."""


def check_timeline_folder(store: Store, config: TableConfig, layout: Layout) -> None:
    """Refuse a table whose timeline has no instant if the folders that every new table has are missing.

    It takes one listing, and two more if the table is damaged. Version 6 stores the instants next to
    `hoodie.properties`, so that their folder always exists.

    Raises: CorruptFileError; the message names the folder, the property, and the folders that exist.
    """
    folder = layout.instant_folder()
    if folder == HOODIE_FOLDER or f"{folder}/{config.history_path}" in store.folders(folder):
        return
    if {f"{config.history_path}{suffix}" for suffix in _MARKER_SUFFIXES} & set(store.names(folder)):
        return
    names = ", ".join(name_of(path) for path in store.folders(HOODIE_FOLDER))
    told = f"{keys.TIMELINE_PATH}={config.timeline_path} and {keys.HISTORY_PATH}={config.history_path}"
    raise CorruptFileError(
        f"expected the folder of the timeline with instants, or with the folder {config.history_path} of a new table; "
        f"found neither. hoodie.properties has {told}, and {HOODIE_FOLDER} has these folders: {names or 'none'}. "
        f"Restore the folder from a complete copy of the table, or correct the property; nothing was read or changed. "
        f"{_mend_empty_table(store, f'{folder}/{config.history_path}')}",
        path=store.uri(folder),
    )


def _mend_empty_table(store: Store, history: str) -> str:
    """Return what to do about an empty table in an object store: copies of objects often lack the folder markers."""
    return (
        "If the table never had a commit, and a copy of its objects lost the markers of empty folders, create the "
        f"empty object {store.uri(f'{history}/.keep')}"
    )
