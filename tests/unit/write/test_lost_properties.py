"""A lost hoodie.properties is rebuilt from what the files of the table tell."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.errors import InvalidConfigError, TableExistsError, TableNotFoundError, UnsupportedError
from hoodie.files.table_properties import update_table_config
from hoodie.format.table import table_keys as keys
from hoodie.format.table.properties import parse_properties
from hoodie.storage import MemoryStore
from tests.support.tables import new_table
from tests.unit.write.tables import memory_of

PROPERTIES = ".hoodie/hoodie.properties"
ROWS = pa.table(
    {"id": ["a", "b", "c"], "city": ["sf", "nyc", "sf"], "day": ["1", "2", "1"], "ts": [3, 2, 1], "x": [1, 2, 3]}
)
NO_GUESS: Mapping[str, Any] = {"ordering": []}
BUCKETS = {"properties": {"hoodie.bucket.index.num.buckets": "4"}}
STATISTICS = {"properties": {"hoodie.metadata.index.column.stats.enable": "true"}}
BARE_PATHS = {"properties": {keys.HIVE_STYLE: "false"}}
ENCODING = {"properties": {"hoodie.write.complex.keygen.new.encoding": "true"}}
TABLES: dict[str, tuple[dict[str, Any], Mapping[str, Any]]] = {
    "record index, partitions and ordering": ({"partition_by": "city", "ordering": "ts"}, {"ordering": "ts"}),
    "merge-on-read, two partition columns": (
        {"partition_by": ["city", "day"], "type": "mor", "index": "simple"},
        NO_GUESS,
    ),
    "two key columns": ({"record_key": ["id", "city"], "index": "simple"}, {"ordering": ()}),
    "no column names in paths": ({"partition_by": "city", **BARE_PATHS}, NO_GUESS),
    "automatic keys": ({"record_key": None, "partition_by": "city"}, {}),
    "partitioned record index": ({"partition_by": "city", "index": "partitioned_record"}, NO_GUESS),
    "buckets": ({"index": "bucket", **BUCKETS}, {**NO_GUESS, **BUCKETS}),
    "column statistics": (STATISTICS, NO_GUESS),
    "version 6": (
        {"partition_by": "city", "ordering": "ts", "index": "simple", "table_version": 6},
        {"ordering": "ts"},
    ),
    "version 6, merge-on-read, buckets": (
        {"record_key": ["id", "city"], "partition_by": "city", "type": "mor", "index": "bucket", "table_version": 6}
        | BUCKETS,
        {**NO_GUESS, **BUCKETS},
    ),
    "version 8, complex keys": (
        {"partition_by": ["city", "day"], "ordering": "ts", "table_version": 8, **ENCODING},
        {"ordering": "ts"},
    ),
}


def made(**options: Any) -> hoodie.Table:
    if options.get("record_key", "id"):
        return new_table(ROWS.schema, ROWS, ROWS.slice(0, 1), **options)
    table = new_table(ROWS.schema, **options)
    table.insert(ROWS)
    return table


def lose(table: hoodie.Table) -> dict[str, str]:
    """Delete the properties; return what they were."""
    store = table.view().store
    before = parse_properties(store.read(PROPERTIES))
    store.delete(PROPERTIES)
    return before


@pytest.mark.parametrize("name", TABLES)
def test_the_file_is_as_it_was(name: str) -> None:
    options, given = TABLES[name]
    table = made(**options)
    rows = table.to_arrow()
    before = lose(table)
    told = hoodie.rebuild_properties(table.path, **given)
    assert (told.dry_run, told.missing) == (True, ())
    assert not hoodie.exists(table.path)
    with pytest.raises(TableNotFoundError, match=f"lost .*`hoodie repair {table.path}`"):
        hoodie.open(table.path, spark=False)
    assert str(told).splitlines()[0] == f"rebuild properties: would write {len(told.properties)} properties"
    done = hoodie.rebuild_properties(table.path, dry_run=False, **given)
    assert done.properties == told.properties
    after = parse_properties(table.view().store.read(PROPERTIES))
    assert {key: value for key, value in after.items() if before.get(key) != value} == {}
    assert before.keys() - after.keys() == set()
    again = hoodie.open(table.path, spark=False)
    report = again.verify(full=True)
    assert (report.problems, report.warnings) == ({}, {}), str(report)
    assert again.to_arrow().equals(rows)
    again.insert(ROWS.set_column(0, "id", pa.array(["x", "y", "z"])))
    assert again.count() == 6
    assert again.verify(full=True).ok


def test_what_is_missing_and_what_is_a_guess_is_said() -> None:
    table = made(index="simple")
    lose(table)
    told = hoodie.rebuild_properties(table.path)
    assert [text.partition(",")[0] for text in told.missing] == ["the ordering columns"]
    assert any("guess: the index is simple" in note for note in told.notes)
    assert any(note.startswith("record key id: the stored keys of 3 rows") for note in told.notes)
    assert (told.counts, told.properties) == ({}, {})
    with pytest.raises(InvalidConfigError, match="nothing was written; must be given: the ordering columns"):
        hoodie.rebuild_properties(table.path, dry_run=False)


def test_columns_with_equal_values_must_be_told_apart() -> None:
    rows = ROWS.append_column("copy", ROWS["id"])
    table = new_table(rows.schema, rows)
    lose(table)
    assert "record key columns" in hoodie.rebuild_properties(table.path, **NO_GUESS).missing[0]
    hoodie.rebuild_properties(table.path, record_key="id", dry_run=False, **NO_GUESS)
    assert hoodie.open(table.path, spark=False).verify(full=True).ok


WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"record_key": "x"}, r"record_key=\['x'\]: expected the stored _hoodie_record_key 'b', found '2'"),
    ({"partition_by": "day"}, r"partition_by=\['day'\]: expected the stored _hoodie_partition_path"),
    ({"partition_by": []}, r"partition_by=\[\]: expected the stored _hoodie_partition_path"),
    ({"ordering": "other"}, "expected a column of the schema"),
)


def test_what_is_given_must_fit_the_stored_rows() -> None:
    table = made(partition_by="city")
    lose(table)
    for wrong, message in WRONG:
        with pytest.raises(hoodie.HoodieError, match=message):
            hoodie.rebuild_properties(table.path, dry_run=False, **{**NO_GUESS, **wrong})
        assert not hoodie.exists(table.path)


def test_tables_that_did_not_lose_it_are_refused() -> None:
    table = made()
    with pytest.raises(TableExistsError, match=r"t\.repair\(\) mends"):
        hoodie.rebuild_properties(table.path, dry_run=False)
    with pytest.raises(TableNotFoundError, match="is not a Hudi table"):
        hoodie.rebuild_properties(MemoryStore().uri(""))


def test_times_of_copied_files_are_a_guess_of_the_time_zone() -> None:
    table = new_table(ROWS.schema, ROWS, ordering="ts")
    store = memory_of(table)
    lose(table)
    assert not any(keys.TIMEZONE in note for note in hoodie.rebuild_properties(table.path, ordering="ts").notes)
    later, files = int(time.time() + 3 * 3600) * 1000, store._content.files
    files.update({path: (data, later) for path, (data, _) in files.items() if "timeline/" in path})
    told = hoodie.rebuild_properties(table.path, ordering="ts")
    assert told.properties[keys.TIMEZONE] == "LOCAL"
    assert any(note.startswith(f"guess: {keys.TIMEZONE}=LOCAL: the files are +3.0 h") for note in told.notes)
    assert any(note.startswith(f"guess: {keys.MERGE_MODE}=EVENT_TIME_ORDERING") for note in told.notes)
    given = hoodie.rebuild_properties(table.path, ordering="ts", properties={keys.TIMEZONE: "UTC"})
    assert given.properties[keys.TIMEZONE] == "UTC"
    assert not any(keys.TIMEZONE in note for note in given.notes)


def test_the_metadata_table_of_version_6_need_not_be_there() -> None:
    table = made(ordering="ts", index="simple", table_version=6)
    store = table.view().store
    for _ in range(6):
        table.upsert(ROWS)
    limits = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "1"}
    table.clean(properties=limits)
    update_table_config(store, {keys.METADATA_PARTITIONS: None})
    store.delete_folder(".hoodie/metadata")
    assert table.archive(properties=limits).counts["commits"]
    lose(table)
    for name in store.names(".hoodie/archived"):
        store.create(f".hoodie/history/{name}", store.read(f".hoodie/archived/{name}"))
    store.delete_folder(".hoodie/archived")
    told = hoodie.rebuild_properties(table.path, dry_run=False, ordering="ts")
    assert any(note.startswith(f"guess: {keys.PAYLOAD_CLASS}=") for note in told.notes)
    again = hoodie.open(table.path, spark=False)
    assert (again.count(), again.view().config.version.value) == (3, 6)
    assert [*again.view().archived_writes()]
    again.upsert(ROWS)
    assert again.verify(full=True).ok


@pytest.mark.parametrize("name", ["v6_cow", "v6_mor"])
def test_a_table_of_version_6_of_the_jvm(golden_tables: Path, tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    shutil.copytree(golden_tables / name, root)
    before = hoodie.open(root, spark=False)
    rows, raw, ordering = before.to_arrow(), before.view().config.raw, list(before.view().config.ordering_fields)
    (root / PROPERTIES).unlink()
    with pytest.raises(TableNotFoundError, match=r"lost .*`hoodie repair"):
        hoodie.open(root, spark=False)
    hoodie.rebuild_properties(str(root), dry_run=False, ordering=ordering)
    again = hoodie.open(root, spark=False)
    assert again.to_arrow().equals(rows)
    assert again.index.verify("record").ok
    after = again.view().config.raw
    assert again.view().config.ordering_fields == tuple(ordering)
    same = ("metadata.partitions", "recordkey.fields", "partition.fields", "version", "type")
    assert [after[f"hoodie.table.{key}"] for key in same] == [raw[f"hoodie.table.{key}"] for key in same]


def test_files_without_meta_fields_are_refused() -> None:
    table = made(index="simple")
    store = table.view().store
    lose(table)
    for path in (info.path for info in store.list("", recursive=True) if info.path.endswith(".parquet")):
        rows = pq.read_table(pa.BufferReader(store.read(path)))
        sink = pa.BufferOutputStream()
        pq.write_table(rows.select(ROWS.column_names), sink)
        store.replace(path, sink.getvalue().to_pybytes())
    with pytest.raises(UnsupportedError, match="a table without meta fields"):
        hoodie.rebuild_properties(table.path, record_key="id", dry_run=False, **NO_GUESS)
    assert not hoodie.exists(table.path)
