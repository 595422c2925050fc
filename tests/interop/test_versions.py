"""Tables of versions 6 and 8: we read what the JVM reads, and write on with all their indexes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from tests.interop.judges import HIVE, Jvm, create_trips, read_with_hudi_rs
from tests.interop.shared_trips import SCHEMA, trips
from tests.support.rows import assert_same_rows


def _write_on(jvm: Jvm, path: Path) -> None:
    """A write of ours keeps the indexes of the table, and the JVM reads and skips by them."""
    table = hoodie.open(path, spark=False)
    before = table.view().config.metadata_partitions
    rows = table.to_arrow().slice(0, 5)
    rows = rows.drop_columns([name for name in rows.schema.names if name.startswith("_hoodie")])
    table.upsert(rows.set_column(rows.schema.get_field_index("fare"), "fare", pa.array([-5.0] * 5)))
    assert table.view().config.metadata_partitions == before
    assert_same_rows(table.to_arrow(), jvm.read(path), meta=True)
    for skips in (True, False):
        assert len(jvm.read_where(path, "fare < -1", skips=skips).rows) == 5
    report = table.verify(full=True)
    assert report.ok, report


@pytest.mark.parametrize("version", [6, 8])
def test_a_fresh_table_of_the_jvm(jvm: Jvm, tmp_path: Path, version: int) -> None:
    """Upserts, a delete, an overwritten partition and a rolled back writer are read as the JVM reads them."""
    path = tmp_path / "trips"

    def write(rows: pa.Table, operation: str) -> None:
        jvm.write_trips(rows, path, operation=operation, table_version=version)

    write(trips(range(10), 1), "upsert")
    write(trips(range(5, 15), 2), "upsert")
    write(trips(range(0, 3), 3), "delete")
    write(trips(range(20, 22), 1).slice(0, 1), "insert_overwrite")
    rows = jvm.read(path)
    table = hoodie.open(path)
    assert table.view().config.version.value == version
    assert_same_rows(table.to_arrow(), rows, meta=True)
    for instant in table.timeline.completed().instants:
        theirs = jvm.read(path, options={"as.of.instant": instant.requested_time})
        assert_same_rows(table.to_arrow(as_of=instant.requested_time), theirs, meta=True)
    table.upsert(trips(range(20, 30), 9))
    write(trips(range(25, 35), 10), "upsert")
    assert_same_rows(hoodie.open(path).to_arrow(), jvm.read(path), meta=True)
    assert jvm.meta_client(path).getTableConfig().getTableVersion().versionCode() == version


@pytest.mark.parametrize("name", ["v6_cow", "v8_cow"])
def test_a_golden_table(jvm: Jvm, golden_tables: Path, tmp_path: Path, name: str) -> None:
    path = Path(shutil.copytree(golden_tables / name, tmp_path / name))
    assert_same_rows(hoodie.open(path).to_arrow(), jvm.read(path), meta=True)
    _write_on(jvm, path)


@pytest.mark.parametrize("name", ["v6_mor", "v8_mor", "v9_mor"])
def test_a_golden_merge_on_read_table(jvm: Jvm, golden_tables: Path, tmp_path: Path, name: str) -> None:
    path = Path(shutil.copytree(golden_tables / name, tmp_path / name))
    table = hoodie.open(path)
    assert_same_rows(table.to_arrow(), jvm.read(path), meta=True)
    assert_same_rows(read_with_hudi_rs(path), table.to_arrow(), meta=True)
    for instant in table.timeline.completed().instants:
        theirs = jvm.read(path, options={"as.of.instant": instant.requested_time})
        assert_same_rows(table.to_arrow(as_of=instant.requested_time), theirs, meta=True)
    _write_on(jvm, path)


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_the_jvm_upgrades_a_table_of_ours(jvm: Jvm, tmp_path: Path, table_type: str) -> None:
    """It does so with its first write, unless told otherwise; then we go on with version 9.

    An upgrade that is the first write of its process fails in JVM Hudi 1.2.0, in tables of its own too
    (`ArrayIndexOutOfBoundsException: Index 7`), so it writes another table first.
    """
    path, other = tmp_path / "trips", tmp_path / "other"
    jvm.write(trips(range(2), 1), other, table_name="other", key="id", partition="city", ordering="ts", table_version=8)
    create_trips(path, SCHEMA, type=table_type, index="simple", table_version=8)
    hoodie.open(path).upsert(trips(range(10), 1))
    hoodie.open(path).upsert(trips(range(5, 15), 2))
    hive = HIVE
    jvm.write_trips(trips(range(3), 3), path, table_type=table_type.upper(), options=hive)
    table = hoodie.open(path)
    config = table.view().config
    assert (config.version.value, config.ordering_fields) == (9, ("ts",))
    assert_same_rows(table.to_arrow(), jvm.read(path), meta=True)
    table.upsert(trips(range(12, 20), 4))
    assert_same_rows(hoodie.open(path).to_arrow(), jvm.read(path), meta=True)
    assert table.verify(full=True).ok
