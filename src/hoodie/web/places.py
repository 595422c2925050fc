"""The tables below the places that a user named: found by listing folders, opened once, and kept.

A request names a table by its id, which is looked up here: no text of a request becomes a path.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import hoodie
from hoodie.config.secrets import masked
from hoodie.errors import HoodieError, TableNotFoundError
from hoodie.storage import Store, open_store
from hoodie.storage.links import folders_inside
from hoodie.storage.paths import one_spelling

_DEPTH_MAX: Final = 5
"""Levels of folders below a place in which tables are looked for."""
_FOLDERS_MAX: Final = 2_000
"""Folders of one place that are listed; each takes a request in an object store."""
_TABLES_MAX: Final = 1_000
_NOTES_MAX: Final = 20
_LISTERS: Final = 16
_HANDLES_MAX: Final = 32
"""Tables that stay open. Each holds its timeline and the commits that reports used."""


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A table: the store of a place, and the folder in it."""

    store: Store
    folder: str

    def to_dict(self) -> dict[str, str]:
        path = shown_path(self.store.uri(self.folder))
        return {"path": path, "name": path.rstrip("/").rpartition("/")[2]}


@dataclass(frozen=True, slots=True)
class Search:
    """The tables of a search by id, and notes on what was left out."""

    tables: Mapping[str, FoundTable] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def shown_path(uri: str) -> str:
    """Return a path or URI for people: a path, if it is on a local disk. A URI has no passwords: stores refuse them."""
    return uri.removeprefix("file://")


class Tables:
    """Finds the tables below places, and keeps the handles that were used last. Thread-safe."""

    def __init__(self, places: Sequence[str], storage_options: Mapping[str, str]) -> None:
        """Open the folders of the places; no object store is read. The options are for the places in object stores.

        Raises: InvalidConfigError if there is no store for a place, or an option is unknown; TableNotFoundError if a
            local folder cannot be listed.
        """
        self._options = dict(storage_options)
        self._stores = [open_store(place, self._options_of(place)) for place in places]
        for store in self._stores:
            try:
                _ = store.spec.is_remote or folders_inside(store, "")
            except OSError as error:
                raise TableNotFoundError(f"expected a table, or a folder with tables below: {error}") from error
        self._last: Search | None = None
        self._handles: OrderedDict[str, hoodie.Table] = OrderedDict()
        self._opening: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    @property
    def places(self) -> list[str]:
        """The places, for people."""
        return [shown_path(store.uri("")) for store in self._stores]

    def search(self) -> Search:
        """Look for the tables of all places again.

        A folder with a folder `.hoodie` is a table. At most 5 levels, 2,000 folders of a place and 1,000 tables; a
        search that is cut has a note.
        """
        tables: dict[str, FoundTable] = {}
        notes: list[str] = []
        for store in self._stores:
            found, more = _search(store)
            notes += more
            for folder in found:
                tables.setdefault(id_of(store.uri(folder)), FoundTable(store, folder))
        if len(tables) > _TABLES_MAX:
            notes.append(f"{len(tables):,} tables were found, the first {_TABLES_MAX:,} are shown: name their folders")
            tables = dict([*tables.items()][:_TABLES_MAX])
        if len(notes) > _NOTES_MAX:
            notes = [*notes[:_NOTES_MAX], f"{len(notes) - _NOTES_MAX:,} more notes"]
        found_now = Search(tables, tuple(map(masked, notes)))
        with self._lock:
            self._last = found_now
            for gone in self._handles.keys() - tables.keys():
                del self._handles[gone]
        return found_now

    def find(self, table_id: str) -> FoundTable:
        """Return a table of the last search; search if there was none. Raises: TableNotFoundError."""
        search = self._last or self.search()
        found = search.tables.get(table_id)
        if found is None:
            raise TableNotFoundError(
                f"no table below {', '.join(self.places)} has this id: load the list of tables again"
            )
        return found

    def open(self, table_id: str) -> hoodie.Table:
        """Return the handle of a table; it is opened when it is first used.

        Raises: as `find` and `hoodie.open`; PartitionPathError if a symbolic link to another place replaced the folder.
        """
        found = self.find(table_id)
        with self._lock:
            opening = self._opening.setdefault(table_id, threading.Lock())
        with opening:
            with self._lock:
                handle = self._handles.get(table_id)
                if handle is not None:
                    self._handles.move_to_end(table_id)
                    return handle
            found.store.check_links([found.folder] if found.folder else [])
            uri = found.store.uri(found.folder)
            handle = hoodie.open(uri, storage_options=self._options_of(uri), spark=False)
            with self._lock:
                self._handles[table_id] = handle
                while len(self._handles) > _HANDLES_MAX:
                    self._handles.popitem(last=False)
            return handle

    def _options_of(self, place: str) -> dict[str, str]:
        """Return the storage options for a place: local folders and folders in memory have none."""
        is_local = "://" not in place or place.startswith(("file:", "memory://"))
        return {} if is_local else self._options


def places_of(tables: Tables, *, shows_data: bool, is_export: bool = False) -> dict[str, Any]:
    """Return what the page of all tables shows: the tables that a new search finds."""
    found = tables.search()
    return {
        "version": hoodie.__version__,
        "places": tables.places,
        "data": shows_data,
        "export": is_export,
        "tables": [{"id": table_id, **table.to_dict()} for table_id, table in found.tables.items()],
        "notes": [*found.notes],
    }


def id_of(uri: str) -> str:
    """Return a short text that stands for a table in addresses: 12 hexadecimal digits, the same for all spellings."""
    return hashlib.sha256(one_spelling(uri).encode(errors="surrogateescape")).hexdigest()[:12]


def _search(store: Store) -> tuple[list[str], list[str]]:
    """Return the folders of a place that hold tables, sorted, and notes on what was not looked into."""
    found: list[str] = []
    notes: list[str] = []
    level, listed, place = [""], 0, shown_path(store.uri(""))
    with ThreadPoolExecutor(_LISTERS, thread_name_prefix="hoodie-places") as pool:
        for _ in range(_DEPTH_MAX + 1):
            cut = level[_FOLDERS_MAX - listed :]
            if cut:
                ended = f"{place}: the search ended after {_FOLDERS_MAX:,} folders, before {cut[0]}"
                notes.append(f"{ended}: name the folders of its tables")
                level = level[: _FOLDERS_MAX - listed]
            listed += len(level)
            folders_of = [*pool.map(lambda folder: _below(store, folder, notes), level)]
            names_of = [{path.rpartition("/")[2]: path for path in folders} for folders in folders_of]
            found += [folder for folder, names in zip(level, names_of, strict=True) if ".hoodie" in names]
            others = [names for names in names_of if ".hoodie" not in names]
            level = [path for names in others for name, path in names.items() if not name.startswith((".", "_"))]
            if not level or cut:
                return sorted(found), notes
    unseen = f"{place}: folders more than {_DEPTH_MAX} levels below were not looked into, such as {level[0]}"
    return sorted(found), [*notes, f"{unseen}: name them, if they hold tables"]


def _below(store: Store, folder: str, notes: list[str]) -> list[str]:
    """Return the folders in a folder; what cannot be listed becomes a note."""
    try:
        folders, refused = folders_inside(store, folder)
    except (HoodieError, OSError) as error:
        notes.append(f"{shown_path(store.uri(folder))} cannot be listed: {error}")
        return []
    notes += refused
    return folders
