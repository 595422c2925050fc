"""Savepoints as the JVM plans and deletes them."""

from __future__ import annotations

from hoodie.format.instants.service_metadata import SavepointMetadata, SavepointPartitionMetadata
from hoodie.table import Table
from hoodie.view.slices import list_slices
from hoodie.view.table_view import TableView


def saved_by_request(view: TableView, commit: str, **_: object) -> SavepointMetadata:
    """Name the files that the JVM names."""
    names: dict[str, list[str]] = {}
    for found in list_slices(view, as_of=commit):
        names.setdefault(found.partition_path, []).extend(path.rpartition("/")[2] for path in found.paths)
    return SavepointMetadata(
        savepointed_by="",
        savepointed_at=1,
        comments="",
        partition_metadata={
            path: SavepointPartitionMetadata(partition_path=path, savepoint_data_file=tuple(files))
            for path, files in names.items()
        },
    )


def drop_savepoint(table: Table, instant: str) -> Table:
    """Delete the files of a savepoint only, as the JVM does; `Table.delete_savepoint` archives its commit too."""
    store = table.view().store
    for name in store.names(".hoodie/timeline"):
        if name.startswith(instant) and "savepoint" in name:
            store.delete(f".hoodie/timeline/{name}")
    return Table(store)
