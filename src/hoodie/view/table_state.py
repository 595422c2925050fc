"""The state that the views of one table share: its store, its clock, and a cache of parsed files."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hoodie.config.writes import DURABLE
from hoodie.errors import CorruptFileError, HoodieWarning
from hoodie.files.table_properties import PROPERTIES, TablePropertiesReader
from hoodie.format.filenames import name_of
from hoodie.format.schema.column_ids import IdSchema
from hoodie.format.table import table_keys as keys
from hoodie.format.table.table_config import TableConfig
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.table import MetadataTable
from hoodie.storage import Store, ask, asks_ahead, is_asked
from hoodie.timeline import (
    HOODIE_FOLDER,
    ArchivedTimeline,
    ArchiveLogs,
    ArchiveReader,
    InstantClock,
    Layout,
    LockOptions,
    TableLock,
    Timeline,
    TimelineArchive,
    TimelineReader,
    archive_of,
    is_lock_option,
    layout_of,
)
from hoodie.view.commit_cache import CommitCache

_MARKER_SUFFIXES = ("_$folder$", "")
"""Some object stores of the JVM mark an empty folder by an object beside it: EMRFS with this suffix, WASB without."""


@dataclass(frozen=True, slots=True)
class ColumnHistory:
    """The schemas with ids that a table had, in ascending order of versions, and the commits that were known then.

    `text` is the newest file of the history; empty if the columns never had ids.
    """

    text: bytes
    schemas: tuple[IdSchema, ...]
    commits: frozenset[str]


@dataclass(slots=True)
class TableState:
    """The state that the views of one table share in this process. Thread-safe."""

    store: Store
    commits: CommitCache = field(default_factory=CommitCache)
    metadata_table: MetadataTable | None = None
    columns: ColumnHistory | None = None
    clock: InstantClock | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)
    """Held while `metadata_table` or `columns` is used or replaced, and while the clock is made."""
    lock_options: Mapping[str, str] = field(default_factory=dict)
    """Options of the lock that the handle was given; those of a call win over them, and they over the table's."""
    unbuildable: str | None = None
    """Why a write could not build a record index that another writer had dropped: it is tried once by each handle."""
    has_archive: bool = False
    """Whether a view found archived instants: they stay."""
    rollbacks_seen: set[str] = field(default_factory=set)
    """Completed rollbacks after which the log files of the record index were looked through."""
    is_new: bool = False
    """Whether the last timeline had no completed write, and no view found archived instants."""
    expiry: tuple[Hashable, str] | None = None
    """The rule of time to live that this process applied last, and the oldest time of a partition at that time."""
    table_number: int = 0
    """The number of the table that `commits.follow` returned last."""
    archived_times: dict[str, str] = field(default_factory=dict)
    """Completion times of archived instants that were looked up for log files; empty for those not archived."""
    _of_calls: dict[Hashable, TableState] = field(default_factory=dict, init=False, repr=False)
    """The states of calls, by their options of the lock."""
    _archive: ArchivedTimeline | None = field(init=False, default=None)
    _properties: TablePropertiesReader = field(init=False)
    _timeline: TimelineReader | None = field(init=False, default=None)
    _warned: set[str] = field(init=False, default_factory=set)
    is_known_empty: bool = field(init=False, default=False)
    """Whether the last timeline had no instant, and its folder exists."""

    def __post_init__(self) -> None:
        self._properties = TablePropertiesReader(self.store)

    def warn(self, message: str) -> None:
        """Warn that a read goes on, but not as the caller may expect; the same message once for each table handle."""
        if message not in self._warned:
            self._warned.add(message)
            warnings.warn(message, HoodieWarning, stacklevel=2)

    def ask(self) -> None:
        """Ask an object store for the properties and the timeline together, unless that was done (`storage.ask`)."""
        if asks_ahead(self.store) and self._properties.was_read and not is_asked(self.store, "read", PROPERTIES):
            ask(self.store, ("read", PROPERTIES), ("list", layout_of(self.last_config()).instant_folder()))

    def metadata_folder(self, config: TableConfig) -> MetadataFolder:
        """Return the folder of the metadata table, with what the views of the table remember of it."""
        with self.lock:
            if self.metadata_table is None:
                self.metadata_table = MetadataTable(self.store, config)
            return replace(self.metadata_table.folder, config=config)

    def read_config(self) -> TableConfig:
        """Read the properties; bytes that equal the last read are not parsed again.

        A table with `hoodie.python.durable` is written durably from then on.

        Raises: TableNotFoundError, CorruptFileError.
        """
        config = self._properties.read()
        if DURABLE.get(config.raw):
            self.store = self.store.as_durable()
        return config

    def last_config(self) -> TableConfig:
        """Return the properties that were read last; read them if they were never read."""
        return self._properties.last_read()

    def note_config(self, config: TableConfig) -> None:
        """Note the properties that the holder of the table's lock has just stored."""
        self._properties.note(config)

    def note_created(self, config: TableConfig) -> None:
        """Note that this process has just created the table: its first use sends all requests at once."""
        layout = layout_of(config)
        self._properties.note(config)
        self._timeline = TimelineReader(self.store, layout)
        self.is_new = True

    def for_call(self, properties: Mapping[str, str] | None) -> TableState:
        """Return the state for a call with these options: every part of the call takes the lock that they name.

        Without options of the lock that is this state. Else it is a state of its own caches, which later calls with the
        same options use again; parsed commits and the clock are shared.
        """
        given = {key: value for key, value in (properties or {}).items() if is_lock_option(key)}
        if not given:
            return self
        with self.lock:
            known = self._of_calls.get(frozenset(given.items()))
            if known is None:
                # What was read of the table is read again: another version may have its timeline in another folder.
                fresh: dict[str, Any] = dict.fromkeys(("metadata_table", "columns", "expiry", "unbuildable"))
                fresh["has_archive"] = False
                known = replace(self, lock_options={**self.lock_options, **given}, **fresh)
                self._of_calls[frozenset(given.items())] = known
            return known

    def table_lock(
        self, properties: Mapping[str, str] | None = None, *, ahead: Sequence[tuple[str, str]] = ()
    ) -> TableLock:
        """Return the table's lock, not yet acquired, with the options of a call, of the handle and of the table.

        `ahead`: requests that are sent once the lock is held (see `storage.ask`). Raises: as `read_config`;
        InvalidConfigError.
        """
        options = LockOptions.of(properties or {}, self.lock_options, self.last_config().raw)
        return TableLock(self.store, options, ahead=ahead)

    def load_timeline(self, config: TableConfig, layout: Layout) -> Timeline:
        """List the active timeline; files that were parsed before are not parsed again.

        Raises: CorruptFileError if the folder of the timeline is missing.
        """
        reader = self._timeline
        if reader is None or reader.layout != layout:
            if reader is not None:
                self._forget_version()
            reader = self._timeline = TimelineReader(self.store, layout)
            self.is_known_empty = False
        before = reader.last
        timeline = reader.load()
        if timeline is not before:
            number = self.commits.follow(timeline)
            if number != self.table_number:
                self._forget_table()
                self.table_number = number
        self.has_archive = self.has_archive and bool(timeline.instants)  # without instants the table may be a new one
        is_written = any(instant.is_completed and instant.action.writes_data for instant in timeline.instants)
        self.is_new = not is_written and not self.has_archive
        if timeline.instants:
            self.is_known_empty = False
        elif not self.is_known_empty:
            _check_timeline_folder(self.store, config, layout)
            self.is_known_empty = True
        return timeline

    def _forget_version(self) -> None:
        """Forget what was read in the form of another table version: the table was upgraded or downgraded."""
        with self.lock:
            self._archive = self.metadata_table = None
            self.has_archive = False
            self.archived_times.clear()

    def _forget_table(self) -> None:
        """Forget what was read of a table that was dropped: another one was made in its folder."""
        self._forget_version()
        with self.lock:
            self.columns = self.unbuildable = self.expiry = None
            self.rollbacks_seen.clear()

    def archive(self, config: TableConfig, layout: Layout) -> ArchivedTimeline:
        """Return the archived timeline. Nothing is read yet, and files that were read are not read again."""
        with self.lock:
            if self._archive is None:
                archive = stored_archive(self.store, config, layout)
                self._archive = archive if isinstance(archive, ArchiveLogs) else ArchiveReader(archive)
            return self._archive


def stored_archive(store: Store, config: TableConfig, layout: Layout) -> TimelineArchive | ArchiveLogs:
    """Return the archive as files that writers add to; `TableState.archive` is what readers ask."""
    ranges = config.archive_names_are_ranges
    return archive_of(store, layout, name=config.archive_name, names_are_ranges=ranges)


def _check_timeline_folder(store: Store, config: TableConfig, layout: Layout) -> None:
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
    paths = f"{keys.TIMELINE_PATH}={config.timeline_path} and {keys.HISTORY_PATH}={config.history_path}"
    raise CorruptFileError(
        f"expected the folder of the timeline with instants, or with the folder {config.history_path} of a new table; "
        f"found neither. hoodie.properties has {paths}, and {HOODIE_FOLDER} has these folders: {names or 'none'}. "
        "Restore the folder from a complete copy of the table, or correct the property; nothing was read or changed. "
        "If the table never had a commit, and a copy of its objects lost the markers of empty folders, create the "
        f"empty object {store.uri(f'{folder}/{config.history_path}/.keep')}",
        path=store.uri(folder),
    )
