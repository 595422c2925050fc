"""Key generators against what the JVM reference wrote, case by case."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import HoodieError, InvalidConfigError, PartitionPathError, RecordKeyError, UnsupportedError
from hoodie.format.table.key_generator import KeyGeneratorType
from hoodie.format.table.table_config import TableConfig
from hoodie.format.table.table_creation import NewTable, new_table_config
from hoodie.format.table.versions import TableVersion
from hoodie.records.keys.key_generator import KeyGenerator, table_key_generator
from tests.support.key_generators import key_generator_for
from tests.unit.records.keys.golden_cases import cases, generator, rows, values

# The JVM's row writer (bulk_insert) writes other keys than its upsert; we write those of upsert. Its columns of type
# timestamp become local text cut to milliseconds, of type binary the address of a Java object.
ROW_WRITER_DIFFERS = {
    "complex_all_types_bulk_insert",
    "simple_at_bulk_insert",
    "type_at_encoded_bulk_insert",
    "slash_dates_hive_bulk_insert",
    "consistent_timestamp_key",
}
# Java before 19 writes these with more digits than needed; the reference ran on 17.
LONGER_ON_OLD_JAVA = {"1.1754944E-38": "1.17549435E-38", "1.1E10": "1.10000005E10", "1.0E23": "9.999999999999999E22",
                      "2.0E23": "1.9999999999999998E23", "8.41E21": "8.409999999999999E21"}  # fmt: skip
# The JVM takes these and makes something that cannot be meant, or writes outside of the table's folder.
ONLY_WE_REFUSE = {
    "list_key": RecordKeyError,
    "null_text_nested_parent_bulk_insert": RecordKeyError,  # its upsert refuses it too
    "empty_nested_parent_bulk_insert": RecordKeyError,
    "null_int_nested_parent_bulk_insert": RecordKeyError,
    "missing_partition": PartitionPathError,
    "ts_column_at_unix_upsert": PartitionPathError,
    "ts_column_day_millis_upsert": PartitionPathError,
    "ts_column_day_millis_bulk_insert": PartitionPathError,
}
# Refused by the row writer only.
ONLY_THE_ROW_WRITER_REFUSES = {
    "type_at_bulk_insert",
    "slash_dates_bulk_insert",
    "slash_dates_date_bulk_insert",
    "ts_column_decimal_bulk_insert",
}
WRITTEN_OUTSIDE = ("up_raw", "dotdot", "dot_", "abs_raw", "trail_raw", "double_raw", "hidden_", "hidden2_raw", "in_raw")

ALL = [
    pytest.param(case, id=case["name"])
    for part in ("key_cases", "partition_cases", "timestamp_cases")
    for case in cases(part).values()
]


def is_bad_folder(name: str) -> bool:
    return name.startswith("bad_") and name.removeprefix("bad_").startswith(WRITTEN_OUTSIDE)


def on_new_java(text: str) -> str:
    for new, old in LONGER_ON_OLD_JAVA.items():
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("case", ALL)
def test_keys_and_paths_are_those_of_the_jvm(case: dict[str, Any]) -> None:
    name = case["name"]
    if is_bad_folder(name) or name in ONLY_WE_REFUSE:
        with pytest.raises(ONLY_WE_REFUSE.get(name, PartitionPathError)):
            written(case)
    elif name in ROW_WRITER_DIFFERS or name in ONLY_THE_ROW_WRITER_REFUSES:
        assert [row[0] for row in written(case)] == rows(case).column("pos").to_pylist()
    elif "error" in case:
        with pytest.raises(HoodieError):
            written(case)
    else:
        assert written(case) == [[row[0], on_new_java(row[1]), row[2]] for row in case["result"]]


def test_no_exception_is_left_over() -> None:
    names = {case.values[0]["name"] for case in ALL}  # type: ignore[index]
    assert names >= ROW_WRITER_DIFFERS | set(ONLY_WE_REFUSE) | ONLY_THE_ROW_WRITER_REFUSES


def written(case: dict[str, Any]) -> list[list[Any]]:
    """Return position, key and path of each row of a case, made by us."""
    keys, batch = generator(case), rows(case)
    columns = (batch.column("pos"), keys.record_keys(batch, stored=True), keys.partition_paths(batch))
    return [list(row) for row in zip(*(column.to_pylist() for column in columns), strict=True)]


@pytest.mark.parametrize(
    "name", ["strings_plain_encoded_upsert", "strings_hive_encoded_upsert", "strings_hive_raw_upsert"]
)
def test_paths_tell_their_values(name: str) -> None:
    case = cases("partition_cases")[name]
    texts = dict(zip(values().column("pos").to_pylist(), values().column("s").to_pylist(), strict=True))
    for position, _, path, _ in case["result"]:
        assert generator(case).partition_values(path) == {"s": texts[position]}


def simple(**options: Any) -> KeyGenerator:
    given: dict[str, Any] = {"kind": "SIMPLE", "record_key_fields": ["k"], "partition_fields": ["p"]}
    return key_generator_for(**({"table_version": TableVersion.NINE} | given | options))


FORMATTED = simple(
    kind="CUSTOM",
    partition_fields=["p", "t"],
    partition_field_types=["simple", "timestamp"],
    timestamp_options={"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy-MM-dd"},
)


@pytest.mark.parametrize(
    ("keys", "path", "expected"),
    [
        (simple(), "a/b", {"p": "a/b"}),
        (simple(), "__HIVE_DEFAULT_PARTITION__", {"p": None}),
        (simple(hive_style=True), "p=a/b=c", {"p": "a/b=c"}),
        (simple(hive_style=True), "p=__HIVE_DEFAULT_PARTITION__", {"p": None}),
        (simple(hive_style=True), "q=a", None),
        (simple(url_encode=True), "a%2Fb%25", {"p": "a/b%"}),
        (simple(url_encode=False), "a%2Fb", {"p": "a%2Fb"}),
        (simple(slash_separated_dates=True), "2026/07/01", {"p": "2026-07-01"}),
        (simple(kind="COMPLEX", partition_fields=["p", "q"]), "a/b", {"p": "a", "q": "b"}),
        (simple(kind="COMPLEX", partition_fields=["p", "q"]), "a/b/c", None),
        (simple(kind="COMPLEX", partition_fields=["p", "q"], hive_style=True), "p=a/b/q=c", {"p": "a/b", "q": "c"}),
        (simple(kind="COMPLEX", partition_fields=["a.b"], hive_style=True), "a.b=1", {"a.b": "1"}),
        (simple(kind="NON_PARTITION", partition_fields=[]), "", {}),
        (simple(kind="NON_PARTITION", partition_fields=[]), "x", None),
        (simple(kind="COMPLEX", partition_fields=["p", "q"], hive_style=True), "p=x/q=y/q=z", None),
        (simple(kind="COMPLEX", partition_fields=["p", "q"], hive_style=True), "p=x/p=y/q=z", {"p": "x/p=y", "q": "z"}),
        # A folder that is no text, and a formatted time.
        (simple(url_encode=True), "%FF", None),
        (FORMATTED, "a/2026-07-01", {"p": "a"}),
    ],
)
def test_partition_values(keys: KeyGenerator, path: str, expected: dict[str, str | None] | None) -> None:
    assert keys.partition_values(path) == expected


@pytest.mark.parametrize("hive_style", [False, True])
def test_slashes_that_make_the_folder_of_a_date_are_refused(hive_style: bool) -> None:
    keys = simple(slash_separated_dates=True, hive_style=hive_style)
    dates = pa.RecordBatch.from_pydict({"k": [1, 2], "p": ["2026-07-01", None]})
    assert keys.partition_paths(dates).to_pylist()[0].endswith("2026/07/01")
    slashes = pa.RecordBatch.from_pydict({"k": [1, 2], "p": ["2026-07-01", "2026/07/02"]})
    with pytest.raises(PartitionPathError, match=r"'p': .* found 1 texts with slashes, e.g. '.*2026/07/02'"):
        keys.partition_paths(slashes)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "2026/07/01"),
        ({"kind": "COMPLEX", "partition_fields": ["p", "city"]}, "2026-07-01/san-francisco"),
        (
            {
                "kind": "TIMESTAMP",
                "timestamp_options": {
                    "timestamp.type": "DATE_STRING",
                    "input.dateformat": "yyyy-MM-dd",
                    "output.dateformat": "yyyy-MM",
                },
            },
            "2026-07",
        ),
    ],
)
def test_dates_are_separated_where_jvm_hudi_1_2_0_separates_them(options: dict[str, Any], expected: str) -> None:
    """It separates the dates of a single field that is no time."""
    batch = pa.RecordBatch.from_pydict({"k": [1], "p": ["2026-07-01"], "city": ["san-francisco"]})
    assert simple(slash_separated_dates=True, **options).partition_paths(batch).to_pylist() == [expected]


def test_keys_name_how_many_and_three_rows() -> None:
    batch = pa.RecordBatch.from_pydict({"k": ["a", None, "", None, "b", None]})
    keys = key_generator_for(table_version=TableVersion.NINE, kind="NON_PARTITION", record_key_fields=["k"])
    with pytest.raises(RecordKeyError, match=r"'k'.*4 of 6 rows \(row 1 None; row 2 ''; row 3 None\)"):
        keys.record_keys(batch)
    with pytest.raises(RecordKeyError, match="'k' is not in the data, which has x"):
        keys.record_keys(pa.RecordBatch.from_pydict({"x": [1]}))


@pytest.mark.parametrize(
    "column", [pa.array(["x", None, "x", "y"]).dictionary_encode(), pa.array(["x", None, "x", "y"], pa.large_string())]
)
def test_columns_of_other_arrow_kinds(column: pa.Array) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2, 3, 4]), column], ["k", "p"])
    paths = simple().partition_paths(batch)
    assert paths.type == pa.string()
    assert paths.to_pylist() == ["x", "__HIVE_DEFAULT_PARTITION__", "x", "y"]
    assert simple().partition_paths(batch.slice(1, 2)).to_pylist() == ["__HIVE_DEFAULT_PARTITION__", "x"]
    keys = key_generator_for(table_version=TableVersion.NINE, kind="COMPLEX", record_key_fields=["p"]).record_keys(
        batch.slice(2)
    )
    assert keys.to_pylist() == ["p:x", "p:y"]


def test_empty_batches() -> None:
    batch = pa.RecordBatch.from_pydict({"k": pa.array([], pa.int64()), "p": pa.array([], pa.float64())})
    assert simple().record_keys(batch).to_pylist() == []
    assert simple().partition_paths(batch).to_pylist() == []
    assert simple(kind="COMPLEX", partition_fields=["p", "k"]).partition_paths(batch).to_pylist() == []


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.struct([("x", pa.int32())]), pa.time64("us"), pa.null()])
def test_types_without_text_are_refused_by_name(kind: pa.DataType) -> None:
    batch = pa.RecordBatch.from_arrays([pa.nulls(1, kind)], ["p"])
    with pytest.raises(PartitionPathError, match="'p'"):
        simple().partition_paths(batch)
    with pytest.raises(RecordKeyError, match="'p'"):
        key_generator_for(table_version=TableVersion.NINE, kind="COMPLEX", record_key_fields=["p"]).record_keys(batch)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"record_key_fields": ["a", "b"]}, "one record key field"),
        ({"partition_fields": []}, "one partition field"),
        ({"partition_fields": ["a", "b"]}, "one partition field"),
        ({"kind": "COMPLEX", "record_key_fields": ["a", "a"]}, "each field once"),
        ({"kind": "COMPLEX", "partition_fields": [""]}, "no empty name"),
        ({"kind": "CUSTOM", "partition_field_types": ["DAY"]}, "SIMPLE or TIMESTAMP"),
        ({"kind": "TIMESTAMP"}, "timestamp.type"),
        ({"kind": "COMPLEX", "bare_single_complex_key": True}, "new.encoding"),
    ],
)
def test_contradictions_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidConfigError, match=message):
        simple(**options)


def test_old_complex_keys_of_one_field_come_both_ways() -> None:
    batch = pa.RecordBatch.from_pydict({"k": ["a"], "p": ["x"]})
    bare = simple(kind="COMPLEX", table_version=TableVersion.SIX, bare_single_complex_key=True)
    named = simple(kind="COMPLEX", table_version=TableVersion.EIGHT, bare_single_complex_key=False)
    assert bare.record_keys(batch).to_pylist() == ["a"]
    assert named.record_keys(batch).to_pylist() == ["k:a"]
    unknown = simple(kind="COMPLEX", table_version=TableVersion.EIGHT)
    assert unknown.partition_paths(batch).to_pylist() == ["x"]
    with pytest.raises(InvalidConfigError, match=r"new\.encoding"):
        unknown.record_keys(batch)


def test_kinds_of_other_code_are_refused_and_wrappers_unwrapped() -> None:
    with pytest.raises(UnsupportedError, match="user-defined JVM class"):
        simple(kind="USER_PROVIDED")
    generated = simple(kind="AUTO_RECORD", record_key_fields=[])
    batch = pa.RecordBatch.from_pydict({"p": ["x"]})
    assert generated.partition_paths(batch).to_pylist() == ["x"]
    with pytest.raises(UnsupportedError, match="generates its record keys"):
        generated.record_keys(batch)
    assert simple(kind="SPARK_SQL").with_names is False


def test_key_generators_travel_and_compare() -> None:
    case = cases("timestamp_cases")["ts_text_upsert"]
    assert pickle.loads(pickle.dumps(generator(case))) == generator(case)
    assert hash(generator(case)) == hash(generator(case))
    assert json.dumps(case)


@pytest.mark.parametrize(
    ("text", "url_encode", "remedy"),
    [
        ("a//b", False, "partitionpath.urlencode=true"),
        ("s3:x", False, "partitionpath.urlencode=true"),
        ("..", False, "hive_style_partitioning=true"),
        ("..", True, "hive_style_partitioning=true"),
        (".hoodie", True, "hive_style_partitioning=true"),
    ],
)
def test_the_remedy_of_a_refused_path_helps(text: str, url_encode: bool, remedy: str) -> None:
    batch = pa.record_batch({"id": ["k"], "p": [text]})
    with pytest.raises(PartitionPathError, match=f"create the table with hoodie.datasource.write.{remedy}"):
        simple(url_encode=url_encode).partition_paths(batch)
    helped = simple(hive_style=True) if remedy.startswith("hive") else simple(url_encode=True)
    assert len(helped.partition_paths(batch)) == 1


# Tables that do not store all that a key generator needs

_TIME = "hoodie.keygen.timebased."
_DAYS = {_TIME + "timestamp.type": "EPOCHMILLISECONDS", _TIME + "output.dateformat": "yyyy/MM/dd"}
_ROWS = pa.RecordBatch.from_pydict({"id": ["a"], "city": ["sf"], "at": [86_400_000]})


def _config(**stored: str) -> TableConfig:
    """A table as the JVM makes it: with a custom key generator it stores no time format."""
    table = NewTable(
        name="t",
        record_key_fields=("id",),
        partition_fields=("city", "at"),
        partition_field_types=("SIMPLE", "TIMESTAMP"),
        key_generator=KeyGeneratorType.CUSTOM,
        extra={_TIME + name.replace("_", "."): value for name, value in stored.items()},
    )
    return new_table_config(table)


def test_a_write_supplies_the_time_format_that_the_table_lacks() -> None:
    assert table_key_generator(_config(), _DAYS).partition_paths(_ROWS).to_pylist() == ["sf/1970/01/02"]
    with pytest.raises(InvalidConfigError, match=r"properties= of the write"):
        table_key_generator(_config())


def test_what_the_table_stores_wins() -> None:
    config = _config(timestamp_type="EPOCHMILLISECONDS", output_dateformat="yyyy")
    assert table_key_generator(config, _DAYS).partition_paths(_ROWS).to_pylist() == ["sf/1970"]
