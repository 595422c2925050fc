"""Bad rows and bad arguments: each has its own error, says what to do, and leaves no trace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import (
    HoodieError,
    InvalidConfigError,
    PartitionPathError,
    RecordKeyError,
    SchemaMismatchError,
    UnsupportedError,
)
from hoodie.format.table import table_keys as keys
from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.support import tables
from tests.unit.write.tables import FIRST, NAMED, SCHEMA, new_table, trips, untouched

ONE = trips(("x", 1, 1.0, "sf"))
SIZE, SMALL = "hoodie.parquet.max.file.size", "hoodie.parquet.small.file.limit"
HIVE = "hoodie.datasource.write.hive_style_partitioning"


def with_column(name: str, values: pa.Array) -> pa.Table:
    """One good row, but for one column."""
    place = ONE.schema.get_field_index(name)
    return ONE.set_column(place, name, values)


def endless() -> list[object]:
    """A list that contains itself, beside itself in a dict."""
    found: list[object] = []
    found += [found, {"again": found}]
    return found


def dicts(**changed: object) -> list[dict[str, object]]:
    return [{"id": "x", "ts": 1, "fare": 1.0, "city": "sf", **changed}]


def configured(**properties: str) -> Callable[[Table], object]:
    """An upsert with options, whose names have `_` for each dot."""
    return lambda t: t.upsert(ONE, properties={name.replace("_", "."): value for name, value in properties.items()})


NO_KEYS = trips(*[(None, 1, 1.0, "sf")] * 4, ("x", 1, 1.0, "sf"))
EMPTY_KEY = trips(("", 1, 1.0, "sf"), ("x", 1, 1.0, "sf"))
Call = Callable[[Table], object]
REFUSED: dict[type[HoodieError], dict[str, tuple[str, Call]]] = {
    SchemaMismatchError: {
        "wrong type": ("ts", lambda t: t.upsert(with_column("ts", pa.array(["noon"])))),
        "wrong type of a new row": ("fare", lambda t: t.insert(with_column("fare", pa.array([[1.0]])))),
        "missing key column": ("id", lambda t: t.upsert(ONE.drop_columns(["id"]))),
        "a value that contains itself": ("column 'tip'.*contains itself", lambda t: t.upsert(dicts(tip=endless()))),
        "such a value of a known column": ("column 'fare', row 0", lambda t: t.upsert(dicts(fare=[endless()]))),
        "update of an unknown column": ("tip.*expected columns", lambda t: t.update({"tip": "1"})),
        "unknown column": (r"columns \['M'\] are not", lambda t: t.to_arrow(columns=["TS", "M"])),
        "condition on an unknown column": ("tip", lambda t: t.delete_where("tip > 1")),
    },
    RecordKeyError: {
        "null keys": (r"4 of 5 rows", lambda t: t.upsert(NO_KEYS)),
        "empty keys": (r"1 of 2 rows", lambda t: t.bulk_insert(EMPTY_KEY)),
        "null keys to delete": (r"1 of 1 rows", lambda t: t.delete(NO_KEYS[:1].select(["id", "city"]))),
    },
    PartitionPathError: {"two levels up": ("city=../../etc", lambda t: t.upsert(dicts(city="../../etc")))},
    UnsupportedError: {"no data": ("data of type builtins.int", lambda t: t.upsert(7))},
    InvalidConfigError: {
        "contradictory sizes": (f"{SMALL}=9 is above", configured(**{SIZE: "8", SMALL: "9"})),
        "whether rows move between partitions": (
            "reads by partition depend on it",
            configured(hoodie_record_index_update_partition_path="false"),
        ),
        "metadata that is no text": ("expected a dict of texts", lambda t: t.upsert(ONE, extra_metadata={"n": [1]})),
        "sort by an unknown column": ("nocolumn", lambda t: t.bulk_insert(ONE, sort="nocolumn")),
        "unknown partition": ("city=oslo", lambda t: t.delete_partitions(["city=oslo"])),
        "a partition path as a text": ("list of partition", lambda t: t.delete_partitions("city=sf")),
        "update of the key": ("id.*cannot be updated", lambda t: t.update({"ID": "'x'"})),
        "update of a column twice": ("set twice", lambda t: t.update({"ts": "1", "TS": "2"})),
        "condition that does not parse": ("fare <", lambda t: t.delete_where("fare <")),
    },
}
CASES = {name: (error, *case) for error, cases in REFUSED.items() for name, case in cases.items()}


@pytest.mark.parametrize("case", CASES)
def test_a_bad_write_leaves_no_trace(case: str) -> None:
    error, text, call = CASES[case]
    with untouched(table := new_table(FIRST), text, error):
        call(table)


def test_keys_to_delete_need_their_partition_where_keys_are_unique_in_it() -> None:
    table = new_table(FIRST, index="simple")
    with untouched(table, "city", SchemaMismatchError):
        table.delete({"id": ["a"]})


def test_a_missing_non_nullable_column_is_refused() -> None:
    table = tables.new_table(pa.schema([pa.field("id", pa.string(), False), pa.field("n", pa.int64(), False)]))
    with untouched(table, "'n'", SchemaMismatchError):
        table.upsert(pa.table({"id": ["a"]}))


OUTSIDE = ["a/../../b", "x//y", "a\0b"]


@pytest.mark.parametrize(
    ("hive_style", "values"),
    [("true", OUTSIDE), ("false", [*OUTSIDE, "..", "../x", "/etc", ".hoodie", ".hoodie/metadata", "s3:x"])],
    ids=["city=..", ".."],
)
def test_a_partition_value_that_leaves_the_folder(tmp_path: Path, hive_style: str, values: list[str]) -> None:
    table = new_table(ONE, path=tmp_path / "inside", properties={HIVE: hive_style})
    for value in values:
        for write in (table.upsert, table.insert, table.bulk_insert, table.insert_overwrite):
            with untouched(tmp_path, "cannot be folders of a table", PartitionPathError):
                write(trips(("x", 1, 1.0, "sf"), ("y", 1, 1.0, value)))


@pytest.mark.parametrize("hive_style", ["true", "false"])
def test_a_partition_value_that_the_storage_cannot_name(tmp_path: Path, hive_style: str) -> None:
    """A folder's name has 255 bytes on a local disk, and a path 4095."""
    table = new_table(ONE, path=tmp_path, properties={HIVE: hive_style})
    for value in ("x" * 300, "é" * 128, "a/" + "b" * 256, "/".join(["y" * 200] * 20)):
        for write in (table.upsert, table.insert, table.bulk_insert, table.insert_overwrite, table.delete):
            with untouched(tmp_path, r"at most .* bytes", PartitionPathError):
                write(trips(("x", 1, 1.0, "sf"), ("y", 1, 1.0, value)))
        with untouched(tmp_path, "no partitions", InvalidConfigError):
            table.delete_partitions([value])
        assert table.count(where=f"city = '{value}'") == 0
    assert list(table.timeline.pending()) == []


def test_the_longest_partition_value_is_written(tmp_path: Path) -> None:
    table = new_table(path=tmp_path)
    table.upsert(trips(("x", 1, 1.0, "c" * (255 - len("city=")))))
    table.bulk_insert(trips(("y", 1, 1.0, "d" * (255 - len("city=")))))
    assert table.count() == 2


def test_object_stores_limit_whole_paths() -> None:
    table = new_table(trips(("x", 1, 1.0, "c" * 300)))
    assert table.count(where="city = '" + "c" * 300 + "'") == 1
    with pytest.raises(PartitionPathError, match=r"at most .* bytes"):
        table.upsert(trips(("y", 1, 1.0, "d" * 1000)))


BARE = "hoodie.populate.meta.fields"
DROPS = "hoodie.datasource.write.drop.partition.columns"
ENCODING = "hoodie.write.complex.keygen.new.encoding"
PAYLOAD = "hoodie.datasource.write.payload.class"
CDC = "hoodie.table.cdc.enabled"
MODEL = "org.apache.hudi.common.model."
MIXES, LATEST = f"{MODEL}PartialUpdateAvroPayload", f"{MODEL}OverwriteWithLatestAvroPayload"
TWO = ["city", "fare"]


def asked(name: str, value: Any, **arguments: Any) -> dict[str, Any]:
    """Arguments with one property, or with several that have the same value."""
    return {"properties": dict.fromkeys(name.split(), value), **arguments}


CREATIONS: dict[str, tuple[type[HoodieError], list[tuple[dict[str, Any], str]]]] = {
    "contradictions": (
        InvalidConfigError,
        [
            ({"record_key": None, "ordering": "ts"}, "ordering='ts' requires record_key"),
            ({"record_key": ["id", "id"]}, "names a column twice"),
            ({"ordering": None, "merge_mode": "event_time"}, "requires ordering"),
            ({"key_generator": "non_partition"}, "partition"),
            ({"properties": {SIZE: "1", SMALL: "2"}}, "both full and small"),
            (asked(PAYLOAD, LATEST, merge_mode="event_time"), "are different merge rules: omit all but one"),
            (
                asked("hoodie.datasource.insert.dup.policy", "fail", record_key=None, ordering=None),
                "contradicts automatic record keys",
            ),
        ],
    ),
    "columns that are not there": (
        SchemaMismatchError,
        [({name: "none"}, f"{name}='none'") for name in ("record_key", "partition_by", "ordering")],
    ),
    "names": (
        InvalidConfigError,
        [
            ({"merge_mode": "newest"}, "merge_mode='newest'"),
            ({"type": "row"}, "type='row'"),
            ({"key_generator": "md5"}, "key_generator='md5'"),
            ({"index": "btree"}, "index='btree' is no index"),
        ],
    ),
    "values of properties": (
        InvalidConfigError,
        [
            (asked("hoodie.index.type", "SIMPLE"), "use the arguments"),
            (asked("hoodie.index.bloom.num_entries", "100000000", index="bloom"), "bits; expected at most"),
            (asked(keys.TIMEZONE, "foo"), keys.TIMEZONE),
            (asked(keys.HIVE_STYLE, "yes"), keys.HIVE_STYLE),
            (asked(keys.URL_ENCODE, "1"), keys.URL_ENCODE),
            (asked(keys.SLASH_SEPARATED_DATES, ""), keys.SLASH_SEPARATED_DATES),
            (asked("hoodie.combine.before.upsert", "false"), "hoodie.combine.before.upsert"),
        ],
    ),
    "merge rules": (
        UnsupportedError,
        [
            (asked(keys.PAYLOAD_CLASS, "a.b.Own"), r"'a\.b\.Own' exists only in JVM Hudi"),
            (
                {"properties": {PAYLOAD: MIXES, "hoodie.record.index.update.partition.path": "true"}},
                "moves records between partitions",
            ),
        ],
    ),
    "types of partition columns, and forms of keys": (
        InvalidConfigError,
        [
            ({"partition_by": ["city:SIMPLE"]}, "require key_generator='custom', found 'simple'"),
            ({"key_generator": "custom"}, "new tables in partition_by="),
            ({"partition_by": TWO, "table_version": 8}, ENCODING),
            (asked(ENCODING, "true", partition_by=TWO), "have the form `id:v`"),
        ],
    ),
    "older versions": (
        UnsupportedError,
        [
            ({"table_version": 7}, "table_version=7: expected one of 6, 8, 9"),
            ({"index": "partitioned_record", "table_version": 6}, "tables of version 6 do not have it"),
            # Hudi 1.0 does not know it, and would look keys up in the wrong file groups.
            ({"index": "partitioned_record", "table_version": 8}, "tables of version 8 do not have it"),
            ({"ordering": ["ts", "fare"], "table_version": 6}, "one column"),
            ({"ordering": ["ts", "fare"], "table_version": 8}, "one column in a table of version 8"),
            (
                asked("hoodie.metadata.index.partition.stats.enable", "true", table_version=6),
                "have no partition_stats",
            ),
        ],
    ),
    "without meta fields": (
        UnsupportedError,
        [
            (asked(BARE, "false", type="mor"), "merge-on-read tables without meta fields"),
            *((asked(BARE, "false", index=index), f"index '{index}'") for index in ("record", "bloom", "bucket")),
            (asked(BARE, "false", record_key=None, ordering=None), "without a record key"),
            (asked(BARE, "false", key_generator="custom", partition_by="city:SIMPLE"), "key generator CUSTOM"),
            ({"properties": {BARE: "false", CDC: "true"}}, "change data"),
        ],
    ),
    "without partition columns": (
        UnsupportedError,
        [
            (asked(DROPS, "true", type="mor"), "merge-on-read tables whose data files lack"),
            (asked(DROPS, "true", key_generator="custom", partition_by="city:SIMPLE"), "key generator CUSTOM"),
            (asked(DROPS, "true", partition_by=[]), "key generator NON_PARTITION"),
            (asked(f"{DROPS} {CDC}", "true"), "change data"),
        ],
    ),
}


@pytest.mark.parametrize("case", CREATIONS)
def test_a_bad_creation_leaves_no_trace(case: str) -> None:
    error, rows = CREATIONS[case]
    for arguments, text in rows:
        store = MemoryStore()
        with pytest.raises(error, match=text):
            hoodie.create(store.uri(""), SCHEMA, **{**NAMED, **arguments})
        assert not store._content.files, arguments
