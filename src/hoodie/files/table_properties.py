"""Read and update `.hoodie/hoodie.properties`, whoever else is reading (docs/format/table.md §1.3)."""

from __future__ import annotations

import contextlib
import time
from datetime import UTC, datetime

from hoodie.errors import CorruptFileError, TableExistsError, TableNotFoundError
from hoodie.format.table.table_config import TableConfig
from hoodie.storage import Store

PROPERTIES = ".hoodie/hoodie.properties"
BACKUP = PROPERTIES + ".backup"
KEEP_FOLDER = ".keep"
"""Name of the empty file that stands for a folder."""
_ATTEMPTS = 5
_WAIT_SECONDS = 0.2


def table_exists(store: Store) -> bool:
    """Whether the folder holds a Hudi table."""
    return store.head(PROPERTIES) is not None or store.head(BACKUP) is not None


def create_table_config(store: Store, config: TableConfig) -> None:
    """Store the properties of a new table. The timeline's folders come first: JVM writers fail where they are missing.

    Raises: TableExistsError if the folder holds a table already.
    """
    if not table_exists(store):
        # A file makes the folders, also on stores that have none; no reader takes such a name for an instant.
        store.replace(f".hoodie/{config.timeline_path}/{config.history_path}/{KEEP_FOLDER}", b"")
    try:
        store.create(PROPERTIES, config.to_bytes(datetime.now(UTC)))
    except FileExistsError as error:
        raise TableExistsError(f"{store.uri('')} holds a Hudi table already; open it, or pass exist_ok=True") from error


class TablePropertiesReader:
    """Reads the properties of one table any number of times; equal bytes are not parsed again. Threads can share it."""

    def __init__(self, store: Store) -> None:
        """Nothing is read yet."""
        self._store = store
        self._last: tuple[bytes, TableConfig] | None = None

    def read(self) -> TableConfig:
        """The properties as they are now, usually with one read. While a JVM writer replaces them, its backup counts.

        Raises: TableNotFoundError if there are none; CorruptFileError if neither file is whole.
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
        raise TableNotFoundError(
            f"{store.uri('')} is no Hudi table: expected {PROPERTIES} in it, found none; create one with "
            "hoodie.create(...)"
        )

    def last_read(self) -> TableConfig:
        """The properties as `read` returned them last; they are read if they never were.

        Raises: as `read`.
        """
        last = self._last
        return self.read() if last is None else last[1]

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


def update_table_config(store: Store, changes: dict[str, str | None]) -> TableConfig:
    """Change properties (None removes one) and return the new ones. Call it under the table's lock.

    The backup lies there until the new file is whole, so that a reader finds a valid file at every moment, and after a
    crash at any step.
    """
    current = read_table_config(store)
    changed = current.with_changes(**changes)
    if dict(changed.raw) == dict(current.raw):
        return current
    now = datetime.now(UTC)
    store.replace(BACKUP, current.to_bytes(now))
    store.replace(PROPERTIES, changed.to_bytes(now))
    store.delete(BACKUP)
    return changed


def finish_update(store: Store) -> None:
    """Take up what a writer left that died while it changed the properties. Call it under the table's lock.

    Without its end the backup would lie there for good, and be believed, old as it is, once the other file is damaged.

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
