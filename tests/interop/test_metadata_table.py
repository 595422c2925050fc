"""The metadata table in the hands of the judges: ours continued by the JVM, the JVM's by us, in turns."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie.files.table_properties import update_table_config
from hoodie.format.table import table_keys as keys
from hoodie.metadata.folder import MetadataFolder
from hoodie.timeline import Action
from tests.interop.judges import HIVE, Jvm, read_with_hudi_rs
from tests.support.fake_commits import FakeTable
from tests.support.rows import assert_same_rows

COMMITS_TO_COMPACT = 11
WITH_METADATA = {"hoodie.metadata.enable": "true"}
WITHOUT_METADATA = {"hoodie.metadata.enable": "false"}

CopyOf = Callable[[str], Path]


@pytest.fixture
def copy_of(golden_tables: Path, tmp_path: Path) -> CopyOf:
    def copy(name: str) -> Path:
        return Path(shutil.copytree(golden_tables / name, tmp_path / name))

    return copy


def _jvm_listing(jvm: Jvm, path: Path) -> dict[str, dict[str, int]]:
    """The list of files as the JVM's metadata table reader gives it; it never falls back to listing folders."""
    hudi = jvm.spark._jvm.org.apache.hudi  # type: ignore[union-attr]
    config = hudi.common.config.HoodieMetadataConfig.newBuilder().enable(True).build()
    client = jvm.meta_client(path)
    engine = hudi.common.engine.HoodieLocalEngineContext(client.getStorageConf())
    reader: Any = hudi.metadata.HoodieBackedTableMetadata(engine, client.getStorage(), config, str(path))
    listing: dict[str, dict[str, int]] = {}
    for partition in reader.getAllPartitionPaths():
        folder = hudi.storage.StoragePath(str(path), partition) if partition else hudi.storage.StoragePath(str(path))
        infos = reader.getAllFilesInPartition(folder)
        listing[partition] = {info.getPath().getName(): info.getLength() for info in infos}
    reader.close()
    return listing


def _agree(jvm: Jvm, table: FakeTable, path: Path) -> pa.Table:
    """Check that everybody sees the files that are there, and the same rows; gives the rows."""
    assert table.metadata_table().listing(table.timeline) == table.storage_listing()
    assert _jvm_listing(jvm, path) == table.storage_listing()
    rows = jvm.read(path, options=WITH_METADATA)
    assert_same_rows(rows, jvm.read(path, options=WITHOUT_METADATA), meta=True)
    assert_same_rows(read_with_hudi_rs(path), rows, meta=True)
    return rows


def _jvm_commit(jvm: Jvm, table: FakeTable, path: Path, key: str, *, indexed: bool = False) -> None:
    """The JVM inserts one row, continuing our metadata table; if `indexed`, with partitions that we do not maintain."""
    rows = jvm.read(path)
    template = rows.drop_columns([name for name in rows.column_names if name.startswith("_hoodie")])
    row = template.slice(0, 1)
    place = row.schema.get_field_index("uuid")
    row = row.set_column(place, row.schema.field(place), pa.array([key], row.schema.field(place).type))
    config = table.config
    jvm.write(
        row,
        path,
        table_name=config.name,
        key="uuid",
        partition="city",
        ordering="ts",
        table_type=config.table_type.value,
        table_version=config.version.value,
        options={
            **WITH_METADATA,
            **HIVE,
            "hoodie.metadata.index.bloom.filter.enable": "false",
            "hoodie.metadata.record.index.enable": str(indexed).lower(),
            "hoodie.metadata.index.column.stats.enable": str(indexed).lower(),
        },
    )


def _compactions(table: FakeTable) -> int:
    timeline = MetadataFolder(table.store, table.config).timeline()
    return sum(instant.is_completed and instant.action is Action.COMMIT for instant in timeline)


@pytest.mark.parametrize("name", ["v8_cow", "v9_cow", "v9_mor"])
def test_the_jvm_continues_a_metadata_table_that_we_built(jvm: Jvm, copy_of: CopyOf, name: str) -> None:
    path = copy_of(name)
    before = jvm.read(path, options=WITHOUT_METADATA)
    table = FakeTable.open(path)
    table.rebuild_metadata_table()
    assert_same_rows(_agree(jvm, table, path), before, meta=True)

    _jvm_commit(jvm, table, path, "by-jvm")
    assert _agree(jvm, table, path).num_rows == before.num_rows + 1

    ours = table.metadata_table()
    for _ in range(COMMITS_TO_COMPACT):
        table.commit(ours, rows=1)
    assert _compactions(table) == 1
    assert _agree(jvm, table, path).num_rows == before.num_rows + 1 + COMMITS_TO_COMPACT

    _jvm_commit(jvm, table, path, "by-jvm-again")
    assert _agree(jvm, table, path).num_rows == before.num_rows + 2 + COMMITS_TO_COMPACT
    assert tuple(table.config.metadata_partitions) == ("files",)


def test_the_jvm_compacts_what_we_wrote(jvm: Jvm, copy_of: CopyOf) -> None:
    path = copy_of("v9_cow")
    table = FakeTable.open(path)
    ours = table.rebuild_metadata_table()
    # The tenth delta commit is the bootstrap, so that the JVM finds ten when its commit begins.
    for _ in range(9):
        table.commit(ours, rows=1)
    assert _compactions(table) == 0
    _jvm_commit(jvm, table, path, "by-jvm")
    _jvm_commit(jvm, table, path, "by-jvm-2")
    assert _compactions(table) == 1
    _agree(jvm, table, path)
    table.commit(ours, rows=1)
    assert ours.listing(table.timeline) == table.storage_listing()
    _agree(jvm, table, path)


def test_the_jvm_goes_on_after_our_rollback(jvm: Jvm, copy_of: CopyOf) -> None:
    path = copy_of("v9_mor")
    table = FakeTable.open(path)
    ours = table.rebuild_metadata_table()
    rows = _agree(jvm, table, path).num_rows
    target = table.begin()
    table.tell_metadata_table(ours, target, table.add_file(target, "city=sf"))
    assert ours.listing(table.timeline) == table.storage_listing()
    ours.rollback(target, rollback_instant=table.clock.next_time(table.timeline), table=table.locked)
    table.roll_back_data(target)
    assert _agree(jvm, table, path).num_rows == rows
    _jvm_commit(jvm, table, path, "by-jvm")
    assert _agree(jvm, table, path).num_rows == rows + 1


def test_the_jvm_rolls_back_a_writer_that_died_after_the_metadata_table(jvm: Jvm, copy_of: CopyOf) -> None:
    path = copy_of("v9_cow")
    table = FakeTable.open(path)
    ours = table.rebuild_metadata_table()
    rows = _agree(jvm, table, path).num_rows
    target = table.begin()
    table.tell_metadata_table(ours, target, table.add_file(target, "city=sf"))
    _jvm_commit(jvm, table, path, "by-jvm")
    assert table.timeline.get(target) is None
    assert MetadataFolder(table.store, table.config).timeline().get(target) is None
    assert jvm.read(path, options=WITH_METADATA).num_rows == rows + 1
    assert set(_jvm_listing(jvm, path)["city=sf"]) == set(ours.listing(table.timeline)["city=sf"])
    assert not any(target in name for name in ours.listing(table.timeline)["city=sf"])


def test_we_continue_a_metadata_table_of_the_jvm(jvm: Jvm, copy_of: CopyOf) -> None:
    path = copy_of("v9_cow")
    table = FakeTable.open(path)
    table.drop_metadata_table()
    _jvm_commit(jvm, table, path, "by-jvm")
    ours = table.metadata_table()
    assert ours.listing(table.timeline) == table.storage_listing()
    for _ in range(COMMITS_TO_COMPACT):
        table.commit(ours, rows=1)
    assert _compactions(table) == 1
    _agree(jvm, table, path)


def test_index_partitions_of_the_jvm_come_and_go(jvm: Jvm, copy_of: CopyOf) -> None:
    path = copy_of("v9_mor")
    table = FakeTable.open(path)
    table.rebuild_metadata_table()
    _jvm_commit(jvm, table, path, "by-jvm", indexed=True)
    foreign = set(table.config.metadata_partitions) - {"files"}
    assert {"record_index", "column_stats"} <= foreign
    _agree(jvm, table, path)

    update_table_config(table.store, {keys.METADATA_PARTITIONS: "files"})
    table.metadata_table().drop_partitions(foreign)
    ours = table.metadata_table()
    for _ in range(COMMITS_TO_COMPACT):
        table.commit(ours, rows=1)
    assert _compactions(table) == 1
    rows = _agree(jvm, table, path).num_rows

    _jvm_commit(jvm, table, path, "by-jvm-again", indexed=True)
    assert set(table.config.metadata_partitions) == foreign | {"files"}
    assert _agree(jvm, table, path).num_rows == rows + 1
