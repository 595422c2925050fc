"""A rewrite of Parquet files that dies at any storage call: no row is visible, or all are; the same call ends it."""

from __future__ import annotations

import pyarrow as pa

from hoodie.files.table_properties import table_exists
from hoodie.storage import MemoryStore, Store
from hoodie.write.adopting.adoption import Adoption, AdoptOptions, adopt
from hoodie.write.adopting.source_files import find_in_folder
from hoodie.write.create import CreateOptions
from tests.crash.tables import Rows, check_tidy, deaths, rows_of, trips

ROWS: Rows = {"a": (1, "sf"), "b": (2, "sf"), "c": (3, "nyc")}


def source() -> MemoryStore:
    """Two Parquet files."""
    import pyarrow.parquet as pq

    store = MemoryStore()
    for name, part in (("1", {"a": ROWS["a"]}), ("2", {"b": ROWS["b"], "c": ROWS["c"]})):
        sink = pa.BufferOutputStream()
        pq.write_table(trips(part).drop_columns("_hoodie_is_deleted"), sink)
        store.create(f"{name}.parquet", sink.getvalue().to_pybytes())
    return store


def run(files: MemoryStore, target: Store) -> Adoption:
    wanted = CreateOptions(record_key="id", partition_by="city", ordering="ts")
    return adopt(find_in_folder(files), target, AdoptOptions(wanted=wanted, dry_run=False))


def test_a_rewrite_that_dies_begins_again_and_loses_nothing() -> None:
    files = source()
    outcomes = []
    for death in deaths(MemoryStore(), lambda table: run(files, table._context.state.store)):
        found = rows_of(death.store) if table_exists(death.store) else {}
        assert found in ({}, ROWS), f"{death}: neither no rows nor all: {found}"
        again = run(files, death.store)
        assert (again.write is None) == bool(found), str(death)
        assert rows_of(death.store) == ROWS
        if again.write is not None:
            check_tidy(death.store)
        outcomes.append(len(found))
    assert (outcomes[0], outcomes[-1]) == (0, 3)
