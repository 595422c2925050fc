"""What HBase has for a table, and small tables with an HBase index."""

from __future__ import annotations

from collections.abc import Mapping

from hoodie.index.hbase.client import HBaseClient
from hoodie.index.hbase.settings import HBaseSettings
from hoodie.index.hbase.versions import IDENTITY_ROW, Version, versions_of
from hoodie.storage import MemoryStore, Store
from hoodie.table import Table
from tests.crash.tables import new_table

KINDS = ("copy_on_write", "merge_on_read")
QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


def table_of(options: Mapping[str, str], table_type: str = "copy_on_write", **more: str) -> Table:
    """A new table in memory."""
    store = MemoryStore()
    new_table(store, table_type=table_type, index="hbase", properties={**QUIET, **options, **more})
    return Table(store)


def again(table: Table) -> Table:
    """Another handle of the same table, as in another process."""
    return Table(table.view().store)


def settings_of(store: Store) -> HBaseSettings:
    return HBaseSettings.of(Table(store).view().config.raw, {})


def hbase_versions(table: Table) -> dict[str, list[Version]]:
    """All versions of all keys that HBase has, the newest first."""
    with HBaseClient(settings_of(table.view().store)) as client:
        return {row.row.decode(): versions_of(row) for row in client.scan() if row.row != IDENTITY_ROW}


def all_cells(table: Table) -> list[tuple[bytes, bytes, bytes, int]]:
    """Every cell that HBase has, to show that nothing changed in it."""
    with HBaseClient(settings_of(table.view().store)) as client:
        return [
            (row.row, cell.qualifier, cell.value, cell.timestamp) for row in client.scan() for cell in row.columnValues
        ]
