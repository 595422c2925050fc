"""Operations, indexes, keys, statements and change data in tables of version 6, in turns with JVM Hudi 0.15.0."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.format.filenames import bucket_of_file_id
from hoodie.timeline import Action
from hoodie.view.slices import list_slices
from tests.interop import test_change_data as change_data
from tests.interop.judges import HIVE, Jvm, create_trips
from tests.interop.key_cases import CASES, KEYGEN, META, TEXTS, TIME, check_our_table, check_their_table, rows_of
from tests.interop.older.life import TABLE_TYPES, Life
from tests.interop.older.trips import trips
from tests.support.rows import assert_same_rows

RELEASES = ("0.15.0",)
TYPED = ("place:SIMPLE", "at:TIMESTAMP")
TYPES = {"hoodie.datasource.write.partitionpath.field": ",".join(TYPED)}
DAYS = {
    TIME + "timestamp.type": "DATE_STRING",
    TIME + "input.dateformat": "yyyy-MM-dd",
    TIME + "output.dateformat": "yyyy/MM/dd",
}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}
INDEXES = {
    "bloom": {"hoodie.index.type": "BLOOM", "hoodie.index.bloom.num_entries": "20"},
    "global_bloom": {"hoodie.index.type": "GLOBAL_BLOOM", "hoodie.index.bloom.num_entries": "20"},
    "bucket": BUCKETS,
}


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("table_type", TABLE_TYPES)
def test_statements_of_the_release_and_replacing_writes(older: Jvm, tmp_path: Path, table_type: str) -> None:
    """MERGE INTO, UPDATE, DELETE and INSERT OVERWRITE of the JVM on our table; both replace and delete partitions."""
    life = Life(older, tmp_path / "trips", table_type)
    life.create()
    life.upsert(range(10), is_ours=True)
    name = f"statements_{table_type.lower()}"
    older.spark.sql(f"CREATE TABLE {name} USING hudi LOCATION '{life.path}'")
    older.spark.sql(f"UPDATE {name} SET ts = 5 WHERE id IN ('k01', 'k02')")
    life.rows |= {"k01": 5, "k02": 5}
    life.check()
    older.spark.sql(f"DELETE FROM {name} WHERE id = 'k03'")
    del life.rows["k03"]
    older.frame(trips(range(8, 12), 6)).createOrReplaceTempView("changes")
    older.spark.sql(
        f"MERGE INTO {name} t USING changes s ON t.id = s.id AND t.city = s.city WHEN MATCHED AND s.id != 'k08' THEN "
        "UPDATE SET * WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
    )
    del life.rows["k08"]
    life.rows |= {"k09": 6, "k10": 6, "k11": 6}
    life.check()
    life.ts = 6
    life.upsert(range(0, 12, 3), is_ours=True)
    life.table.insert_overwrite(trips(range(20, 24, 2), 8))
    life.rows = {key: ts for key, ts in life.rows.items() if int(key[1:]) % 2} | {"k20": 8, "k22": 8}
    life.check()
    older.write_trips(trips(range(31, 35, 2), 9), life.path, table_type=table_type, operation="insert_overwrite")
    life.rows = {"k20": 8, "k22": 8, "k31": 9, "k33": 9}
    life.check()
    older.spark.sql(f"ALTER TABLE {name} DROP PARTITION (city = 'nyc')")
    life.rows = {"k20": 8, "k22": 8}
    life.check()
    life.upsert(range(25), is_ours=False)
    life.table.delete_partitions(["sf"])
    life.rows = {key: ts for key, ts in life.rows.items() if int(key[1:]) % 2}
    life.check()
    life.upsert(range(5), is_ours=False)
    life.upsert(range(4, 8), is_ours=True)
    life.check()
    replaced = [found for found in life.timeline.completed() if found.action is Action.REPLACE_COMMIT]
    assert len(replaced) == 4


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("table_type", TABLE_TYPES)
@pytest.mark.parametrize("index", INDEXES)
def test_indexes_in_turns(older: Jvm, tmp_path: Path, index: str, table_type: str) -> None:
    life = Life(older, tmp_path / "trips", table_type, INDEXES[index], index)
    life.create()
    for number, is_ours in enumerate((True, False, True, False)):
        life.upsert(range(6 * number, 6 * number + 10), is_ours=is_ours)
        life.delete(range(6 * number + 1, 6 * number + 3), is_ours=not is_ours)
        life.check()
    if table_type == "MERGE_ON_READ":
        life.compact(is_ours=True)
        life.upsert(range(4), is_ours=False)
        life.compact(is_ours=False)
    life.upsert(range(3, 30), is_ours=True)
    life.check()
    if index == "bucket":
        slices = list_slices(life.table.view())
        found = [(each.partition_path, bucket_of_file_id(each.file_id)) for each in slices]
        assert len(set(found)) == len(found) <= 6


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("name", [name for name in CASES if name not in ("simple, hive", "custom")])
@pytest.mark.parametrize("is_ours", [True, False], ids=["our table", "its table"])
def test_key_generators(older: Jvm, tmp_path: Path, name: str, is_ours: bool) -> None:
    (check_our_table if is_ours else check_their_table)(older, tmp_path / "keys", CASES[name])


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("table_type", TABLE_TYPES)
@pytest.mark.parametrize("is_ours", [True, False], ids=["our table", "its table"])
def test_custom_keys_in_turns(older: Jvm, tmp_path: Path, table_type: str, is_ours: bool) -> None:
    """Upserts and deletes of both find each other's partitions; services and the upgrade keep the rows.

    The times are texts: Hudi 0.15 does not read its own copy-on-write tables whose times are numbers.
    """
    path, first, mine = tmp_path / "keys", _days(1), {**TYPES, **DAYS}
    if is_ours:
        table, mine = _our_custom_table(path, first.schema, table_type), {}
        table.upsert(first)
    else:
        _theirs(older, path, first, table_type)
        table = hoodie.open(path)
        with pytest.raises(hoodie.InvalidConfigError, match="writes take them in the option"):
            table.upsert(first)
    second, third = _days(2), _days(3)
    _theirs(older, path, second.slice(0, 6), table_type)
    assert table.upsert(second, properties=mine).updated == second.num_rows
    _theirs(older, path, second.slice(0, 3), table_type, operation="delete")
    assert table.delete(second.slice(3, 2).select(["key", "place", "at"]), properties=mine).deleted == 2
    if table_type == "MERGE_ON_READ":
        assert table.schedule_compaction("unbounded")
        assert table.compact().instant
    assert table.upsert(second.slice(5, 1), properties=mine).updated == 1
    assert table.cluster("number").instant
    _check_custom(older, path, second.slice(5))
    _theirs(older, path, third.slice(7), table_type)
    expected = pa.concat_tables([second.slice(5, 2), third.slice(7)])
    _check_custom(older, path, expected)
    table.upgrade(to=8, dry_run=False, properties={} if is_ours else TYPES)
    table = hoodie.open(path)
    assert table.view().config.raw["hoodie.table.partition.fields"] == ",".join(TYPED)
    assert table.upsert(expected, properties={} if is_ours else DAYS).updated == expected.num_rows


def _our_custom_table(path: Path, schema: pa.Schema, table_type: str) -> hoodie.Table:
    return hoodie.create(
        path, schema, record_key="key", partition_by=list(TYPED), key_generator="custom", table_version=6,
        type=table_type.lower(), ordering="version", properties=DAYS,
    )  # fmt: skip


def _days(version: int) -> pa.Table:
    rows = rows_of(list(TEXTS), version)
    return rows.append_column("at", rows["day"].cast(pa.string()))


def _theirs(jvm: Jvm, path: Path, rows: pa.Table, table_type: str, operation: str = "upsert") -> None:
    options = {"hoodie.datasource.write.keygenerator.class": KEYGEN + "CustomKeyGenerator", **DAYS}
    options["hoodie.datasource.write.hive_style_partitioning"] = "true"
    jvm.write(
        rows, path, table_name="keys", key="key", partition=TYPED, ordering="version", table_type=table_type,
        operation=operation, options=options,
    )  # fmt: skip


def _check_custom(jvm: Jvm, path: Path, expected: pa.Table) -> None:
    """Both read the rows, and a condition on each partition column finds those that a scan finds."""
    table = hoodie.open(path)
    assert_same_rows(table.to_arrow(columns=expected.column_names), expected, key="number")
    stored = [*META, *(name for name in expected.column_names if name not in ("place", "at"))]
    assert_same_rows(jvm.read(path, stored), table.to_arrow(columns=stored), key="number", meta=True)
    for row in expected.to_pylist():
        assert table.count(f"at = '{row['at']}'") == 1
    assert table.count("place = 'null'") == expected["place"].to_pylist().count("null") == 1
    assert table.count("place IS NULL") == expected["place"].null_count == 1
    assert not table.verify(full=True).problems


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("table_type", TABLE_TYPES)
@pytest.mark.parametrize("mode", ["OP_KEY_ONLY", "DATA_BEFORE_AFTER"])
def test_change_data_in_turns(older: Jvm, tmp_path: Path, table_type: str, mode: str) -> None:
    path = tmp_path / "trips"
    cdc = {"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": mode.lower()}
    table = create_trips(
        path, change_data.SCHEMA, type=table_type.lower(), index="simple", table_version=6, properties=cdc, spark=False
    )

    def theirs(*rows: tuple[str, int, float | None, str], operation: str = "upsert") -> None:
        older.write_trips(
            change_data.trips(*rows), path, table_type=table_type, operation=operation,
            options={**HIVE, **cdc, "hoodie.compact.inline": "false"},
        )  # fmt: skip

    table.upsert(change_data.trips(("a", 1, 1.0, "sf"), ("b", 1, 2.0, "sf"), ("c", 1, None, "sf"), ("d", 1, 4.0, "la")))
    theirs(("a", 2, 1.5, "sf"), ("e", 2, 5.0, "sf"), ("d", 2, 9.0, "la"))
    table.upsert(change_data.trips(("b", 3, None, "sf"), ("f", 3, 6.0, "nyc")))
    table.delete(change_data.trips(("c", 4, None, "sf")).select(["id", "city"]))
    theirs(("e", 5, 0.0, "sf"), operation="delete")
    table.upsert(change_data.trips(("a", 6, None, "sf")))
    theirs(("f", 7, 7.0, "nyc"))
    done = [found.requested_time for found in table.timeline.completed().instants]
    assert change_data.our_changes(path, None) == change_data.jvm_changes(older, path, "000")
    assert change_data.our_changes(path, done[2]) == change_data.jvm_changes(older, path, done[2])
    assert not table.verify(full=True).problems
