"""What HBase has for a table, and small tables with an HBase index."""

from __future__ import annotations

from collections.abc import Mapping

from hoodie.index.hbase.client import HBaseClient, HBaseSettings
from hoodie.index.hbase.versions import IDENTITY_ROW, Version, versions_of
from hoodie.storage import MemoryStore, Store
from hoodie.table import Table
from tests.support.tables import Rows, create_in, rows_of, trips

KINDS = ("copy_on_write", "merge_on_read")
START: Rows = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "la")}
QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


def table_of(options: Mapping[str, str], table_type: str = "copy_on_write", **more: str) -> Table:
    """A new table in memory."""
    store = MemoryStore()
    create_in(store, table_type=table_type, index="hbase", properties={**QUIET, **options, **more})
    return Table(store)


def started(options: dict[str, str], table_type: str, **more: str) -> Table:
    """A table with the rows of `START`."""
    table = table_of(options, table_type, **more)
    table.upsert(trips(START))
    return table


def check(table: Table, rows: Rows) -> None:
    """The rows are these, the index agrees with the data, and a further write of all keys inserts none."""
    store = table.view().store
    assert rows_of(store) == rows
    report = table.index.verify()
    assert report.ok, str(report)
    assert report.checked["keys"] == len(rows)
    newer = {key: (ts + 100, city) for key, (ts, city) in rows.items()}
    done = again(table).upsert(trips(newer))
    assert (done.inserted, done.updated) == (0, len(rows))
    assert rows_of(store) == newer


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
