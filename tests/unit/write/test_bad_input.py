"""Bad rows and bad arguments: each has its own error, says what to do, and leaves no trace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.table import Table
from tests.unit.write.tables import SCHEMA, files_below, new_table, trips

Call = Callable[[Table], object]


def with_column(name: str, values: pa.Array) -> pa.Table:
    """One good row, but for one column."""
    row = trips(("a", 2, 3.0, "sf"))
    place = row.schema.get_field_index(name)
    return row.append_column(name, values) if place < 0 else row.set_column(place, name, values)


def endless() -> list[object]:
    """A list that contains itself, beside itself in a dict."""
    found: list[object] = []
    found += [found, {"again": found}]
    return found


REFUSED: dict[str, tuple[type[hoodie.HoodieError], str, Call]] = {
    "wrong type": (
        hoodie.SchemaMismatchError,
        "ts",
        lambda table: table.upsert(with_column("ts", pa.array(["noon"]))),
    ),
    "wrong type of a new row": (
        hoodie.SchemaMismatchError,
        "fare",
        lambda table: table.insert(with_column("fare", pa.array([[1.0]]))),
    ),
    "missing key column": (
        hoodie.HoodieError,
        "id",
        lambda table: table.upsert(trips(("a", 2, 3.0, "sf")).drop_columns(["id"])),
    ),
    "null keys": (
        hoodie.RecordKeyError,
        r"4 of 5 rows",
        lambda table: table.upsert(trips(*[(None, 1, 1.0, "sf")] * 4, ("x", 1, 1.0, "sf"))),
    ),
    "empty keys": (
        hoodie.RecordKeyError,
        r"1 of 2 rows",
        lambda table: table.bulk_insert(trips(("", 1, 1.0, "sf"), ("x", 1, 1.0, "sf"))),
    ),
    "null keys among keys to delete": (
        hoodie.RecordKeyError,
        r"1 of 1 rows",
        lambda table: table.delete(trips((None, 1, 1.0, "sf")).select(["id", "city"])),
    ),
    "two levels up": (
        hoodie.PartitionPathError,
        "city=../../etc",
        lambda table: table.upsert(trips(("x", 1, 1.0, "../../etc"))),
    ),
    "unknown option": (
        hoodie.InvalidConfigError,
        "did you mean 'hoodie.parquet.max.file.size'",
        lambda table: table.upsert(trips(("x", 1, 1.0, "sf")), properties={"hoodie.parquet.max.file.sice": "1"}),
    ),
    "option that is no number": (
        hoodie.InvalidConfigError,
        "hoodie.parquet.max.file.size='big'",
        lambda table: table.upsert(trips(("x", 1, 1.0, "sf")), properties={"hoodie.parquet.max.file.size": "big"}),
    ),
    "contradictory sizes": (
        hoodie.InvalidConfigError,
        "hoodie.parquet.small.file.limit=9 is above",
        lambda table: table.upsert(
            trips(("x", 1, 1.0, "sf")),
            properties={"hoodie.parquet.max.file.size": "8", "hoodie.parquet.small.file.limit": "9"},
        ),
    ),
    "table property of another value": (
        hoodie.InvalidConfigError,
        "hoodie.table.recordkey.fields is fixed",
        lambda table: table.upsert(trips(("x", 1, 1.0, "sf")), properties={"hoodie.table.recordkey.fields": "ts"}),
    ),
    "whether rows move between partitions": (
        hoodie.InvalidConfigError,
        "reads by partition depend on it",
        lambda table: table.upsert(
            trips(("x", 1, 1.0, "sf")), properties={"hoodie.record.index.update.partition.path": "false"}
        ),
    ),
    "a value that contains itself": (
        hoodie.SchemaMismatchError,
        "column 'tip'.*a value that contains itself",
        lambda table: table.upsert([{"id": "x", "ts": 1, "fare": 1.0, "city": "sf", "tip": endless()}]),
    ),
    "a value that contains itself, of a known column": (
        hoodie.SchemaMismatchError,
        "column 'fare', row 0",
        lambda table: table.upsert([{"id": "x", "ts": 1, "fare": [endless()], "city": "sf"}]),
    ),
    "no data": (hoodie.UnsupportedError, "data of type builtins.int", lambda table: table.upsert(7)),
    "sort by an unknown column": (
        hoodie.HoodieError,
        "nocolumn",
        lambda table: table.bulk_insert(trips(("x", 1, 1.0, "sf")), sort="nocolumn"),
    ),
    "unknown partition": (
        hoodie.InvalidConfigError,
        "city=oslo",
        lambda table: table.delete_partitions(["city=oslo"]),
    ),
    "a partition path as a text": (
        hoodie.InvalidConfigError,
        "list of partition paths",
        lambda table: table.delete_partitions("city=sf"),
    ),
    "update of the key": (hoodie.InvalidConfigError, "id", lambda table: table.update({"id": "'x'"})),
    "update of an unknown column": (hoodie.SchemaMismatchError, "tip", lambda table: table.update({"tip": "1"})),
    "condition that does not parse": (hoodie.InvalidConfigError, "fare <", lambda table: table.delete_where("fare <")),
    "condition on an unknown column": (hoodie.HoodieError, "tip", lambda table: table.delete_where("tip > 1")),
}


@pytest.mark.parametrize(("kind", "text", "call"), REFUSED.values(), ids=REFUSED.keys())
def test_a_bad_write_leaves_no_trace(tmp_path: Path, kind: type[Exception], text: str, call: Call) -> None:
    table = new_table(tmp_path)
    before = files_below(tmp_path)
    with pytest.raises(kind, match=text):
        call(table)
    assert files_below(tmp_path) == before


def test_keys_to_delete_need_their_partition_where_keys_are_unique_in_it(tmp_path: Path) -> None:
    table = hoodie.create(tmp_path, SCHEMA, record_key="id", partition_by="city", index="simple", spark=False)
    table.upsert(trips(("a", 1, 1.0, "sf")))
    before = files_below(tmp_path)
    with pytest.raises(hoodie.SchemaMismatchError, match="city"):
        table.delete(pa.table({"id": ["a"]}))
    assert files_below(tmp_path) == before


def test_null_keys_are_counted_and_three_are_shown(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    with pytest.raises(hoodie.RecordKeyError) as caught:
        table.upsert(trips(("x", 1, 1.0, "sf"), *[(None, 1, 1.0, "sf")] * 5))
    for expected in ("'id'", "5 of 6 rows", "row 1", "row 2", "row 3"):
        assert expected in str(caught.value)
    assert "row 4" not in str(caught.value)


def test_a_narrower_type_is_widened_to_the_table_s(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.upsert(with_column("ts", pa.array([5], pa.int32())))
    assert table.schema.field("ts").type == pa.int64()
    assert table.to_arrow(["ts"], where="id = 'a'")["ts"].to_pylist() == [5]


def test_a_missing_non_nullable_column_is_refused(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.string(), False), pa.field("n", pa.int64(), False)])
    table = hoodie.create(tmp_path, schema, record_key="id")
    before = files_below(tmp_path)
    with pytest.raises(hoodie.SchemaMismatchError, match="'n'"):
        table.upsert(pa.table({"id": ["a"]}))
    assert files_below(tmp_path) == before


@pytest.mark.parametrize(
    "value", ["..", "../x", "/etc", ".hoodie", ".hoodie/metadata", "a/../../b", "x//y", "s3:x", "a\0b"]
)
@pytest.mark.parametrize("hive_style", ["true", "false"])
def test_a_partition_value_that_leaves_the_folder(tmp_path: Path, value: str, hive_style: str) -> None:
    root = tmp_path / "inside"
    properties = {"hoodie.datasource.write.hive_style_partitioning": hive_style}
    table = hoodie.create(root, SCHEMA, record_key="id", partition_by="city", properties=properties)
    table.upsert(trips(("x", 1, 1.0, "sf")))
    before = files_below(tmp_path)
    harmless = hive_style == "true" and value in ("..", "../x", ".hoodie", ".hoodie/metadata", "s3:x", "/etc")
    for write in (table.upsert, table.insert, table.bulk_insert, table.insert_overwrite):
        if harmless:
            continue  # the folder is `city=..`
        with pytest.raises(hoodie.PartitionPathError, match="cannot be folders of a table"):
            write(trips(("x", 1, 1.0, "sf"), ("y", 1, 1.0, value)))
    assert files_below(tmp_path) == before


@pytest.mark.parametrize("hive_style", ["true", "false"])
@pytest.mark.parametrize("value", ["x" * 300, "é" * 128, "a/" + "b" * 256, "/".join(["y" * 200] * 20)])
def test_a_partition_value_that_the_storage_cannot_name(tmp_path: Path, value: str, hive_style: str) -> None:
    """A folder's name has 255 bytes on a local disk, and a path 4095."""
    properties = {"hoodie.datasource.write.hive_style_partitioning": hive_style}
    table = hoodie.create(tmp_path, SCHEMA, record_key="id", partition_by="city", properties=properties)
    table.upsert(trips(("x", 1, 1.0, "sf")))
    before = files_below(tmp_path)
    for write in (table.upsert, table.insert, table.bulk_insert, table.insert_overwrite, table.delete):
        with pytest.raises(hoodie.PartitionPathError, match=r"at most .* bytes"):
            write(trips(("x", 1, 1.0, "sf"), ("y", 1, 1.0, value)))
    with pytest.raises(hoodie.InvalidConfigError, match="no partitions"):
        table.delete_partitions([value])
    assert files_below(tmp_path) == before
    assert list(table.timeline.pending()) == []
    assert table.count(where=f"city = '{value}'") == 0


def test_the_longest_partition_value_is_written(tmp_path: Path) -> None:
    table = hoodie.create(tmp_path, SCHEMA, record_key="id", partition_by="city")
    table.upsert(trips(("x", 1, 1.0, "c" * (255 - len("city=")))))
    table.bulk_insert(trips(("y", 1, 1.0, "d" * (255 - len("city=")))))
    assert table.count() == 2


def test_object_stores_limit_whole_paths() -> None:
    table = hoodie.create("memory://long-partition-values", SCHEMA, record_key="id", partition_by="city")
    table.upsert(trips(("x", 1, 1.0, "c" * 300)))
    assert table.count(where="city = '" + "c" * 300 + "'") == 1
    with pytest.raises(hoodie.PartitionPathError, match=r"at most .* bytes"):
        table.upsert(trips(("y", 1, 1.0, "d" * 1000)))


CREATIONS: dict[str, tuple[type[hoodie.HoodieError], str, dict[str, object]]] = {
    "ordering without key": (
        hoodie.InvalidConfigError,
        "ordering='ts' requires record_key",
        {"record_key": None, "ordering": "ts"},
    ),
    "duplicates without key": (
        hoodie.InvalidConfigError,
        "contradicts automatic record keys",
        {"record_key": None, "properties": {"hoodie.datasource.insert.dup.policy": "fail"}},
    ),
    "key column missing": (hoodie.SchemaMismatchError, "record_key='uuid'", {"record_key": "uuid"}),
    "partition column missing": (hoodie.SchemaMismatchError, "partition_by='day'", {"partition_by": "day"}),
    "ordering column missing": (hoodie.SchemaMismatchError, "ordering='seq'", {"ordering": "seq"}),
    "column twice": (hoodie.InvalidConfigError, "names a column twice", {"record_key": ["id", "id"]}),
    "event time without ordering": (hoodie.InvalidConfigError, "requires ordering", {"merge_mode": "event_time"}),
    "unknown merge mode": (hoodie.InvalidConfigError, "merge_mode='newest'", {"merge_mode": "newest"}),
    "unknown type": (hoodie.InvalidConfigError, "type='row'", {"type": "row"}),
    "old version": (hoodie.UnsupportedError, "table_version=7: expected one of 6, 8, 9", {"table_version": 7}),
    "unknown key generator": (hoodie.InvalidConfigError, "key_generator='md5'", {"key_generator": "md5"}),
    "non-partitioned with partitions": (
        hoodie.InvalidConfigError,
        "partition",
        {"key_generator": "non_partition", "partition_by": "city"},
    ),
    "unknown index": (hoodie.InvalidConfigError, "index='btree' is no index", {"index": "btree"}),
    "unknown option": (
        hoodie.InvalidConfigError,
        "unknown option 'hoodie.parkett'",
        {"properties": {"hoodie.parkett": "1"}},
    ),
    "option that is no text": (
        hoodie.InvalidConfigError,
        "properties: expected a dict of texts",
        {"properties": {"hoodie.parquet.max.file.size": [1024]}},
    ),
    "index as an option": (
        hoodie.InvalidConfigError,
        "use the arguments",
        {"properties": {"hoodie.index.type": "SIMPLE"}},
    ),
    "a filter larger than the format allows": (
        hoodie.InvalidConfigError,
        "bits; expected at most",
        {"index": "bloom", "properties": {"hoodie.index.bloom.num_entries": "100000000"}},
    ),
    "contradictory sizes": (
        hoodie.InvalidConfigError,
        "both full and small",
        {"properties": {"hoodie.parquet.max.file.size": "1", "hoodie.parquet.small.file.limit": "2"}},
    ),
}


@pytest.mark.parametrize(("kind", "text", "arguments"), CREATIONS.values(), ids=CREATIONS.keys())
def test_a_bad_creation_leaves_no_trace(
    tmp_path: Path, kind: type[Exception], text: str, arguments: dict[str, object]
) -> None:
    root = tmp_path / "new"
    with pytest.raises(kind, match=text):
        hoodie.create(root, SCHEMA, **{"record_key": "id", **arguments})  # type: ignore[arg-type]
    assert files_below(tmp_path) == {}
    assert not hoodie.exists(root)


def test_a_table_is_not_created_twice(tmp_path: Path) -> None:
    new_table(tmp_path)
    before = files_below(tmp_path)
    with pytest.raises(hoodie.TableExistsError, match="exist_ok"):
        hoodie.create(tmp_path, SCHEMA, record_key="id")
    assert hoodie.create(tmp_path, SCHEMA, record_key="id", exist_ok=True).to_arrow().num_rows == 2
    assert files_below(tmp_path) == before
