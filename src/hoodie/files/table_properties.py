"""Read and update `.hoodie/hoodie.properties`, safely with concurrent readers (docs/format/table.md §1.3)."""

from __future__ import annotations

import contextlib
import time
from datetime import UTC, datetime

from hoodie.config.writes import DURABLE
from hoodie.display import command_text
from hoodie.errors import CorruptFileError, TableExistsError, TableNotFoundError
from hoodie.format.table.table_config import TableConfig
from hoodie.format.table.versions import TableVersion
from hoodie.storage import Store
from hoodie.timeline import layout_for

PROPERTIES = ".hoodie/hoodie.properties"
BACKUP = PROPERTIES + ".backup"
KEEP_FOLDER = ".keep"
"""Name of the empty file by which an empty folder is created."""
_ATTEMPTS = 5
_WAIT_SECONDS = 0.2


def table_exists(store: Store) -> bool:
    """Return whether the folder contains a Hudi table."""
    return store.head(PROPERTIES) is not None or store.head(BACKUP) is not None


def create_table_config(store: Store, config: TableConfig) -> None:
    """Store the properties of a new table. The timeline's folders are created first: JVM writers fail without them.

    Raises: TableExistsError if the folder already contains a table; StorageError, UnsupportedError if it cannot be
    written safely, before anything is created.
    """
    store = store.as_durable() if DURABLE.get(config.raw) else store
    if not table_exists(store):
        store.check_writable()
        # A file creates the folders, also on stores without folders; no reader parses its name as an instant.
        folder = f"{config.timeline_path}/" if config.version.has_completion_time_in_name else ""
        store.replace(f".hoodie/{folder}{config.archive_name}/{KEEP_FOLDER}", b"")
    try:
        store.create(PROPERTIES, config.to_bytes(datetime.now(UTC)))
    except FileExistsError as error:
        raise TableExistsError(
            f"{store.uri('')} already contains a Hudi table; open it, or pass exist_ok=True"
        ) from error


class TablePropertiesReader:
    """Reads the properties of one table any number of times; equal bytes are parsed once. Thread-safe."""

    def __init__(self, store: Store) -> None:
        """Reads nothing until the first `read`."""
        self._store = store
        self._last: tuple[bytes | None, TableConfig] | None = None
        """The bytes of the last read, None if they are not known, and what they say."""

    def read(self) -> TableConfig:
        """Read the current properties, usually with one read. While a JVM writer replaces them, read its backup.

        Raises: TableNotFoundError if neither file exists; CorruptFileError if neither file is whole.
        """
        store = self._store
        for attempt in range(_ATTEMPTS):
            for path in (PROPERTIES, BACKUP):
                with contextlib.suppress(FileNotFoundError):
                    data = store.read(path)
                    try:
                        return self._parsed(data, path)
                    except CorruptFileError:
                        if path == BACKUP or store.head(BACKUP) is None:
                            raise
            if not store.folders(".hoodie"):
                break
            if attempt < _ATTEMPTS - 1:
                time.sleep(_WAIT_SECONDS)
        if version_of_timeline(store) is not None:
            command = command_text("hoodie repair TABLE", store.uri(""))
            raise TableNotFoundError(
                f"{store.uri('')} lost {PROPERTIES}; restore it from a copy, or see what can be rebuilt: `{command}` "
                "(hoodie.rebuild_properties)"
            )
        raise TableNotFoundError(
            f"{store.uri('')} is not a Hudi table: expected {PROPERTIES} in it, found no file; create a table with "
            "hoodie.create(...)"
        )

    @property
    def was_read(self) -> bool:
        """Whether there was a `read`."""
        return self._last is not None

    def last_read(self) -> TableConfig:
        """Return the properties of the last `read`; read them if there was no `read` yet. Raises: as `read`."""
        last = self._last
        return self.read() if last is None else last[1]

    def note(self, config: TableConfig) -> None:
        """Note the properties that the holder of the table's lock has just stored: they count as read."""
        self._last = (None, config)

    def _parsed(self, data: bytes, path: str) -> TableConfig:
        last = self._last
        if last is not None and last[0] == data:
            return last[1]
        config = TableConfig.parse(data, path=self._store.uri(path))
        self._last = (data, config)
        return config


def read_table_config(store: Store) -> TableConfig:
    """Read a table's properties once. Raises: as `TablePropertiesReader.read`."""
    return TablePropertiesReader(store).read()


def version_of_timeline(store: Store) -> TableVersion | None:
    """Return the table version by the folder that has the instants: 9 (or 8), or 6. None if there are no instants.

    After an upgrade or downgrade both folders may have them: the folder with the newest instant counts.
    """
    newest = {version: _newest_instant(store, version) for version in (TableVersion.NINE, TableVersion.SIX)}
    version = max(newest, key=newest.__getitem__)  # of equals the first
    return version if newest[version] else None


def _newest_instant(store: Store, version: TableVersion) -> str:
    """Return the greatest requested time in the timeline of a version; empty without an instant."""
    layout = layout_for(version)
    found = (layout.parse_name(name) for name in store.names(layout.instant_folder()))
    return max((instant.requested_time for instant in found if instant is not None), default="")


def update_table_config(
    store: Store, changes: dict[str, str | None], current: TableConfig | None = None
) -> TableConfig:
    """Change properties (None removes one) and return the new ones. Call it under the table's lock.

    On a disk the backup file exists until the new file is whole, so that readers find a valid file at all times, also
    after a crash at any step. An object is replaced in one step. `current` are the properties, if the caller has read
    them under this lock, and has completed an instant since.
    """
    current = current or read_table_config(store)
    changed = current.with_changes(**changes)
    if dict(changed.raw) == dict(current.raw):
        return current
    now = datetime.now(UTC)
    if not store.spec.is_remote:
        store.replace(BACKUP, current.to_bytes(now))
    store.replace(PROPERTIES, changed.to_bytes(now))
    if not store.spec.is_remote:
        store.delete(BACKUP)
    return changed


def finish_update(store: Store) -> None:
    """Finish a change of the properties whose writer stopped before its end. Call it under the table's lock.

    The backup is deleted, after the properties are restored from it if they are not whole. Otherwise the backup would
    stay, and readers would use its outdated properties if the properties file is damaged later.

    Raises: CorruptFileError if neither file is whole.
    """
    if store.head(BACKUP) is None:
        return
    try:
        TableConfig.parse(store.read(PROPERTIES), path=store.uri(PROPERTIES))
    except (FileNotFoundError, CorruptFileError):
        backup = store.read(BACKUP)
        TableConfig.parse(backup, path=store.uri(BACKUP))
        store.replace(PROPERTIES, backup)
    store.delete(BACKUP)
