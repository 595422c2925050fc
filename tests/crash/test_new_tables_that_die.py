"""A new table whose creation, first write or adoption of Parquet files dies: it is there or not, all rows or none."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.files.table_properties import read_table_config, table_exists
from hoodie.metadata.folder import MetadataFolder
from hoodie.storage import MemoryStore, Store
from hoodie.table import Table
from hoodie.timeline import forget_all
from hoodie.write.adopting.adoption import METADATA_ONLY, REWRITE, AdoptOptions, adopt
from hoodie.write.adopting.result import Adoption
from hoodie.write.adopting.source_files import find_in_folder
from hoodie.write.create import CreateOptions
from tests.support.cloud_store import CloudStore
from tests.support.deaths import check_recovery, check_tidy, deaths, die
from tests.support.recoveries import noted
from tests.support.samples import sample_of
from tests.support.tables import Rows, copy_of, create_with_metadata_table, rows_of, trips, trips_store

STATISTICS = dict.fromkeys(
    (f"hoodie.metadata.index.{name}.enable" for name in ("column.stats", "partition.stats", "bloom.filter")), "true"
)
ROWS: Rows = {"a": (1, "sf"), "b": (2, "sf"), "c": (3, "nyc")}


def test_a_first_write_that_dies() -> None:
    for death in deaths(trips_store(), lambda table: table.upsert(trips(ROWS)), keep=5):
        with noted(death):
            check_recovery(death.store, {}, ROWS)


@pytest.mark.parametrize("options", [{}, STATISTICS], ids=["index", "index and statistics"])
def test_a_first_write_that_dies_in_an_object_store(options: Mapping[str, str]) -> None:
    start = trips_store()

    def write(table: Table) -> object:
        return table.bulk_insert(trips(ROWS), properties=options)

    whole = CloudStore(copy_of(start), seed="first")
    whole.run(write)
    assert rows_of(whole.inner) == ROWS
    assert Table(whole.inner).verify(full=True).ok
    for number in sample_of(range(1, len(whole.calls) + 1), 8, f"first write with {options}"):
        store = copy_of(start)
        CloudStore(store, number, seed=f"first {number}").run(write)
        forget_all()
        with noted(f"death at request {number}"):
            check_recovery(store, {}, ROWS)


def test_partitions_that_die_while_they_are_filled_leave_no_pending_instant() -> None:
    """It would keep all later instants of the metadata table out of the archive."""
    store = MemoryStore()
    create_with_metadata_table(store)
    die(store, lambda table: table.upsert(trips(ROWS), properties=STATISTICS), "00003.deltacommit.inflight")
    metadata = MetadataFolder(store, read_table_config(store))
    assert len(metadata.timeline().pending()) > 1
    Table(store).upsert(trips(ROWS), properties=STATISTICS)
    assert not metadata.timeline().pending().instants
    check_tidy(store)


def run(files: MemoryStore, target: Store, mode: str | Mapping[str, str]) -> Adoption:
    wanted = CreateOptions(record_key="id", partition_by="city", ordering="ts")
    return adopt(find_in_folder(files), target, AdoptOptions(wanted=wanted, mode=mode, dry_run=False))


@pytest.mark.parametrize("mode", [REWRITE, METADATA_ONLY, {"city=nyc": METADATA_ONLY}], ids=["rewrite", "stay", "both"])
def test_an_adoption_that_dies_begins_again_and_loses_nothing(mode: str | Mapping[str, str]) -> None:
    """There is a Parquet file for each city."""
    files, outcomes = MemoryStore(), []
    for city in ("sf", "nyc"):
        sink = pa.BufferOutputStream()
        pq.write_table(trips({key: row for key, row in ROWS.items() if row[1] == city}).select(["id", "ts"]), sink)
        files.create(f"city={city}/1.parquet", sink.getvalue().to_pybytes())
    some = {} if isinstance(mode, str) else {key: row for key, row in ROWS.items() if row[1] == "nyc"}
    for death in deaths(MemoryStore(), lambda table: run(files, table._context.state.store, mode), keep=6):
        with noted(death):
            found = rows_of(death.store) if table_exists(death.store) else {}
            assert found in ({}, some, ROWS), "rows of a part of a commit"
            again = run(files, death.store, mode)
            assert (again.write is None) == (found == ROWS)
            assert rows_of(death.store) == ROWS
            if again.write is not None:
                check_tidy(death.store, has_record_index=mode == REWRITE)
            outcomes.append(len(found))
    assert (outcomes[0], outcomes[-1]) == (0, 3)
    assert set(outcomes) <= {0, len(some), 3}
