"""Whether the HBase index has every key of the table: a write would double keys that the index lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hoodie.config import indexes
from hoodie.errors import CommitConflictError, IndexIncompleteError, IndexUnavailableError, InvalidConfigError
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.index.hbase.client import HBaseClient, HBaseSettings
from hoodie.index.hbase.versions import IDENTITY, IDENTITY_ROW, OWNER, committed_instants
from hoodie.timeline import ms_of_instant_time
from hoodie.view.table_view import TableView

RECORDED_KEY: Final = "hoodie.python.index.hbase.id"
"""Key in a commit's metadata: the identity of the HBase index in which the commit recorded its keys."""
_COMPACTIONS = frozenset({WriteOperation.COMPACT, WriteOperation.LOG_COMPACT})
_BUILDING = "building "
_REMEDY = 'build it again with t.index.build("hbase")'


def check_ready(view: TableView, settings: HBaseSettings, *, creates: bool = True) -> None:
    """Check that the HBase index is this table's and complete. The first write of a table creates the HBase table.

    `creates`: whether it may be created here; without it, a table that no write has touched is complete.

    Raises: IndexIncompleteError; InvalidConfigError for an HBase table of another table, or with other settings;
        IndexUnavailableError.
    """
    with HBaseClient(settings) as client:
        stored = read_identity(client) if client.has_table() else {}
        if not stored and not view.timeline.writes().completed().instants and not view.has_archived_instants():
            if creates:
                prepare_table(client)
                write_identity(client, view, settings.identity)
            return
        if stored.get(IDENTITY, b"").decode() != settings.identity:
            raise IndexIncompleteError(
                f"the HBase table {settings.table!r} does not have the index of {view.store.uri('')}: it was dropped "
                f"or emptied, or a build is running or did not end; {_REMEDY}"
            )
        client.check_table()
    check_recorded(view, settings)


def check_recorded(view: TableView, settings: HBaseSettings) -> None:
    """Check that all writes since the index was built recorded their keys in it. Usually reads one commit.

    Each write of this library checks it again under the table's lock before it records its own keys as complete. So
    the writes before the newest one with this record need no check.

    Raises: IndexIncompleteError.
    """
    where = f"the HBase index {settings.table!r} of {view.store.uri('')}"
    if settings.built and settings.built not in committed_instants(view, {settings.built}, settings.identity):
        raise IndexIncompleteError(
            f"{where} was built at {settings.built}, and a rollback or restore took that commit back; {_REMEDY}"
        )
    for instant in reversed(view.completed_writes()):
        if instant.requested_time == settings.built:
            return
        metadata = view.commit_metadata(instant)
        if metadata.operation_type in _COMPACTIONS:
            continue
        if (metadata.extra_metadata or {}).get(RECORDED_KEY) != settings.identity:
            raise IndexIncompleteError(f"{where} lacks the keys of {instant}, which another engine wrote; {_REMEDY}")
        return


def newest_write(view: TableView) -> str:
    """Return the instant of the write that completed last; empty if there is none.

    A rollback or a restore that takes back any write takes back this one too. A compaction is none: it changes no keys,
    and it stays if it was planned before the writes that are taken back.
    """
    for instant in reversed(view.completed_writes()):
        if view.commit_metadata(instant).operation_type not in _COMPACTIONS:
            return instant.requested_time
    return ""


def prepare_table(client: HBaseClient) -> None:
    """Create the HBase table if it does not exist; enable a table that a build disabled before it died.

    Raises: as `HBaseClient.create_table` and `check_table`.
    """
    if not client.has_table():
        try:
            client.create_table()
        except IndexUnavailableError:
            if not client.has_table():  # else another writer created it
                raise
    elif client.is_disabled():
        client.enable_table()
    client.check_table()


def read_identity(client: HBaseClient) -> Mapping[bytes, bytes]:
    """Return the newest cells of the identity's row; empty if there is none. Raises: IndexUnavailableError."""
    (row,) = client.get([IDENTITY_ROW])
    found: dict[bytes, bytes] = {}
    for cell in sorted(row.columnValues or (), key=lambda cell: cell.timestamp):
        found[cell.qualifier] = cell.value
    return found


def write_identity(client: HBaseClient, view: TableView, identity: str) -> None:
    """Store the identity of the index, and the table to which it belongs. Raises: IndexUnavailableError."""
    cells = ((IDENTITY, identity.encode()), (OWNER, view.store.uri("").encode()))
    now = view.clock.next_time(view.timeline)
    client.put([(IDENTITY_ROW, cells)], ms_of_instant_time(now, view.layout.zone))


def mark_unfinished(client: HBaseClient, view: TableView, identity: str) -> None:
    """Store that a build with this identity fills the HBase table. Raises: IndexUnavailableError."""
    write_identity(client, view, f"{_BUILDING}{identity}")


def finish_build(client: HBaseClient, view: TableView, identity: str) -> None:
    """Store the identity of an index that a build has filled.

    Raises: CommitConflictError if another build emptied the HBase table meanwhile; IndexUnavailableError.
    """
    if read_identity(client).get(IDENTITY, b"").decode() != f"{_BUILDING}{identity}":
        raise CommitConflictError(
            f"another build of the HBase index of {view.store.uri('')} began meanwhile; wait for it, or build again"
        )
    write_identity(client, view, identity)


def check_owner(client: HBaseClient, view: TableView, settings: HBaseSettings) -> None:
    """Refuse to empty an HBase table that has the index of another table, or rows of unknown origin.

    Raises: InvalidConfigError; IndexUnavailableError.
    """
    stored = read_identity(client)
    owner = stored.get(OWNER, b"").decode()
    if owner:
        if owner != view.store.uri("") and stored.get(IDENTITY) != indexes.HBASE_IDENTITY.get(view.config.raw).encode():
            raise InvalidConfigError(
                f"the HBase table {settings.table!r} has the index of {owner}: each table needs its own; set "
                f"{indexes.HBASE_TABLE.key} to another name and build the index (t.index.build), or drop that HBase "
                "table if the other table is gone"
            )
    elif next(client.scan(), None) is not None:
        raise InvalidConfigError(
            f"the HBase table {settings.table!r} has rows, and is not the index of {view.store.uri('')}: set "
            f"{indexes.HBASE_TABLE.key} to the name of a new HBase table, or empty it in the HBase shell: "
            f"truncate '{settings.table}'"
        )
