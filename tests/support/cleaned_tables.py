"""Small tables with many versions, and what a clean must leave of them."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from hoodie.metadata.table import MetadataTable
from hoodie.storage import Store
from hoodie.table import Table
from hoodie.view.listing import list_from_storage
from tests.support.tables import trips, trips_store

NO_CLEAN = {"hoodie.clean.automatic": "false"}


def table_of_versions(
    versions: int, *, table_type: str = "copy_on_write", properties: Mapping[str, str] | None = None
) -> Table:
    """A table in memory whose records `a` (sf) and `b` (nyc) were written `versions` times; nothing is cleaned."""
    made = map(version_of, range(versions))
    return Table(trips_store(*made, table_type=table_type, properties={**NO_CLEAN, **(properties or {})}))


def version_of(version: int, keys: str = "ab") -> pa.Table:
    """The rows of one version."""
    return trips({key: (version, "sf" if key == "a" else "nyc") for key in keys})


def data_files(store: Store) -> dict[str, list[str]]:
    """The names of the data files in storage, by partition path."""
    found: dict[str, list[str]] = {}
    for info in store.list("", recursive=True):
        folder, _, name = info.path.rpartition("/")
        if not folder.startswith(".hoodie") and not name.startswith(".hoodie"):
            found.setdefault(folder, []).append(name)
    return found


def check_listing(table: Table) -> None:
    """The metadata table lists exactly the files of storage."""
    view = table.view()
    listed = MetadataTable(view.store, view.config).listing(view.timeline)
    assert listed == list_from_storage(view.store, view.config, view.timeline, view.archive())
