"""hoodie.properties as a typed record."""

from __future__ import annotations

import pickle
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hoodie.errors import CorruptFileError, HoodieError, InvalidConfigError, UnsupportedError
from hoodie.format.table import table_keys as keys
from hoodie.format.table.key_generator import KeyGeneratorType
from hoodie.format.table.merge_config import MergeMode
from hoodie.format.table.properties import parse_properties, properties_to_bytes, table_checksum
from hoodie.format.table.table_config import BaseFileFormat, TableConfig, TableType, TimelineZone
from hoodie.format.table.versions import TableVersion

_NOW = datetime(2026, 11, 21, 12, 36, 20, 595118, tzinfo=UTC)
_MINIMAL = {keys.NAME: "t", keys.TYPE: "COPY_ON_WRITE", keys.VERSION: "9", keys.LAYOUT_VERSION: "2"}


def _parse(**changes: str | None) -> TableConfig:
    raw = {key: value for key, value in {**_MINIMAL, **changes}.items() if value is not None}
    return TableConfig.parse(properties_to_bytes(raw), path="t/.hoodie/hoodie.properties")


def test_a_v9_table_of_the_reference(golden_tables: Path) -> None:
    path = golden_tables / "v9_cow" / ".hoodie" / "hoodie.properties"
    config = TableConfig.parse(path.read_bytes(), path=str(path))
    expected = {
        "name": "v9_cow",
        "database": None,
        "table_type": TableType.COPY_ON_WRITE,
        "version": TableVersion.NINE,
        "initial_version": TableVersion.NINE,
        "record_key_fields": ("uuid",),
        "partition_fields": ("city",),
        "partition_field_types": (),
        "ordering_fields": ("ts",),
        "key_generator": KeyGeneratorType.SIMPLE,
        "is_hive_style": True,
        "is_url_encoded": False,
        "drops_partition_columns": False,
        "populates_meta_fields": True,
        "base_file_format": BaseFileFormat.PARQUET,
        "merge_mode": MergeMode.EVENT_TIME_ORDERING,
        "merge_strategy_id": None,
        "payload_class": None,
        "timezone": TimelineZone.LOCAL,
        "timeline_path": "timeline",
        "history_path": "history",
        "archive_folder": "history",
        "metadata_partitions": ("bloom_filters", "column_stats", "files", "partition_stats", "record_index"),
        "metadata_partitions_inflight": (),
        "has_metadata_table": True,
        "index_definitions_path": ".hoodie/.index_defs/index.json",
        "is_cdc_enabled": False,
    }
    assert {name: getattr(config, name) for name in expected} == expected
    assert config.merge_rule.mode is MergeMode.EVENT_TIME_ORDERING


@pytest.mark.parametrize("name", ["v6_cow", "v6_mor", "v8_cow", "v8_mor", "v9_cow", "v9_mor"])
def test_every_table_of_the_reference_parses_and_survives_a_rewrite(golden_tables: Path, name: str) -> None:
    for folder in (".hoodie", ".hoodie/metadata/.hoodie"):
        data = (golden_tables / name / folder / "hoodie.properties").read_bytes()
        config = TableConfig.parse(data)
        assert config.version.value == int(name[1])
        assert config.to_bytes(_NOW).splitlines()[2:] == data.splitlines()[2:]
        assert TableConfig.parse(config.to_bytes(_NOW)) == config
        if "metadata" in folder:
            assert config.key_generator is KeyGeneratorType.TABLE_METADATA
            assert config.merge_mode is MergeMode.CUSTOM
            assert config.base_file_format is BaseFileFormat.HFILE
            assert not config.populates_meta_fields
        else:
            assert config.merge_mode is MergeMode.EVENT_TIME_ORDERING
            assert config.table_type is (TableType.MERGE_ON_READ if name.endswith("mor") else TableType.COPY_ON_WRITE)


def test_the_first_comment_says_whether_the_checksum_was_there() -> None:
    without = _parse()
    assert without.to_bytes(_NOW).startswith(
        b"#Properties saved on 2026-11-21T12:36:20.595118Z\n#Sat Nov 21 12:36:20 UTC 2026\nhoodie.table.name=t\n"
    )
    written = TableConfig.parse(without.to_bytes(_NOW))
    assert written.raw[keys.CHECKSUM] == str(table_checksum(None, "t"))
    assert written.to_bytes(_NOW).startswith(b"#Updated at 2026-11-21T12:36:20.595118Z\n")


_BOTH_PREFIXES = {
    "hoodie.deltastreamer.keygen.timebased.timestamp.type": "OLD",
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.deltastreamer.keygen.timebased.output.dateformat": "yyyy",
}
_TYPED = {keys.PARTITION_FIELDS: "p:SIMPLE,ts:timestamp", keys.KEY_GENERATOR_TYPE: "CUSTOM_AVRO"}
_READ: list[tuple[dict[str, str], str, object]] = [
    ({}, "record_key_fields", ()),
    ({}, "partition_fields", ()),
    ({}, "ordering_fields", ()),
    ({}, "key_generator", KeyGeneratorType.NON_PARTITION),
    ({}, "populates_meta_fields", True),
    ({}, "is_hive_style", False),
    ({}, "has_metadata_table", False),
    ({}, "merge_mode", MergeMode.COMMIT_TIME_ORDERING),
    ({}, "archive_folder", "archived"),
    ({}, "cdc_logging_mode", "DATA_BEFORE_AFTER"),
    ({keys.CHECKSUM: str(table_checksum("d", "t")), keys.DATABASE: "d"}, "database", "d"),
    ({keys.TABLE_FORMAT: "NATIVE"}, "name", "t"),
    ({keys.TABLE_FORMAT: ""}, "name", "t"),
    ({keys.PRECOMBINE_FIELD: "ts"}, "ordering_fields", ("ts",)),
    ({keys.PRECOMBINE_FIELD: "old", keys.ORDERING_FIELDS: "a, b"}, "ordering_fields", ("a", "b")),
    (_TYPED, "partition_fields", ("p", "ts")),
    (_TYPED, "partition_field_types", ("SIMPLE", "TIMESTAMP")),
    (_TYPED, "key_generator", KeyGeneratorType.CUSTOM),
    ({keys.PARTITION_FIELDS: "p,ts"}, "partition_field_types", ()),
    (_BOTH_PREFIXES, "timestamp_options", {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy"}),
    ({keys.OLD_BASE_FILE_FORMAT: "orc"}, "base_file_format", BaseFileFormat.ORC),
    ({keys.CDC_LOGGING_MODE: "data_before"}, "cdc_logging_mode", "DATA_BEFORE"),
    ({keys.RECORD_KEY_FIELDS: "a", keys.PARTITION_FIELDS: "p"}, "key_generator", KeyGeneratorType.SIMPLE),
    ({keys.RECORD_KEY_FIELDS: "a,b", keys.PARTITION_FIELDS: "p"}, "key_generator", KeyGeneratorType.COMPLEX),
    ({keys.RECORD_KEY_FIELDS: "a", keys.PARTITION_FIELDS: "p,q"}, "key_generator", KeyGeneratorType.COMPLEX),
    ({keys.RECORD_KEY_FIELDS: "a", keys.PARTITION_FIELDS: ""}, "key_generator", KeyGeneratorType.NON_PARTITION),
    ({keys.RECORD_KEY_FIELDS: "", keys.PARTITION_FIELDS: "p"}, "key_generator", KeyGeneratorType.SIMPLE),
]
"""Properties besides the least ones, an attribute, and its value."""


@pytest.mark.parametrize(("given", "attribute", "expected"), _READ)
def test_properties_are_read(given: dict[str, str], attribute: str, expected: object) -> None:
    assert getattr(_parse(**given), attribute) == expected


_REFUSED: list[tuple[type[HoodieError], dict[str, Any], str]] = [
    *(
        (CorruptFileError, {missing: None}, f"{missing}.*backup")
        for missing in (keys.NAME, keys.TYPE, keys.VERSION, keys.LAYOUT_VERSION)
    ),
    *(
        (HoodieError, {key: number}, "found")
        for key in (keys.VERSION, keys.LAYOUT_VERSION, keys.INITIAL_VERSION)
        for number in ("9" * 5000, str(10**20), "-1", "9.0", "\u0669", "1e999")
    ),
    *(
        (InvalidConfigError, {key: path}, f"{key}.*a folder of the table")
        for key in (keys.TIMELINE_PATH, keys.HISTORY_PATH, keys.ARCHIVE_FOLDER)
        for path in ("/etc", "..", "../../x", "a/../../b", "a//b", "s3://b/x", "./x")
    ),
    *(
        (InvalidConfigError, {key: value}, f"{key}.*{value!r}")
        for key, value in (
            (keys.TYPE, "COPY_ON_READ"),
            (keys.HIVE_STYLE, "yes"),
            (keys.POPULATE_META_FIELDS, "1"),
            (keys.BASE_FILE_FORMAT, "CSV"),
            (keys.TIMEZONE, "CET"),
            (keys.MERGE_MODE, "NEWEST"),
            (keys.PARTIAL_UPDATE_MODE, "ALL"),
        )
    ),
    (CorruptFileError, {keys.CHECKSUM: "1"}, r"checksum \d+ of database '' and table 't' expected, found '1'"),
    (CorruptFileError, {keys.VERSION: "nine"}, "a number expected, found 'nine'"),
    (UnsupportedError, {keys.VERSION: "5"}, "6, 8 or 9 expected, found 5.*0.14"),
    (UnsupportedError, {keys.VERSION: "7"}, "6, 8 or 9 expected, found 7.*during an upgrade"),
    (UnsupportedError, {keys.VERSION: "10"}, "6, 8 or 9 expected, found 10.*newer Hudi"),
    (
        UnsupportedError,
        {keys.TABLE_FORMAT: "iceberg"},
        r"hoodie\.table\.format=native expected, found 'iceberg'.*JVM Hudi",
    ),
    # A half upgraded table.
    (InvalidConfigError, {keys.VERSION: "6"}, r"layout\.version=1 for table version 6 expected, found 2.*interrupted"),
    (UnsupportedError, {keys.KEY_GENERATOR_TYPE: "MAGIC"}, r"keygenerator\.type"),
]


@pytest.mark.parametrize(
    ("error", "given", "message"), _REFUSED, ids=[f"{error.__name__} {[*given]}" for error, given, _ in _REFUSED]
)
def test_what_makes_no_sense_is_refused(error: type[HoodieError], given: dict[str, str | None], message: str) -> None:
    with pytest.raises(error, match=message) as raised:
        _parse(**given)
    assert "t/.hoodie/hoodie.properties" in str(raised.value)
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("data", [b"", b"PAR1\x00\x01", b"#only a comment"])
def test_garbage_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        TableConfig.parse(data, path="t/.hoodie/hoodie.properties")


def test_every_truncation_is_corrupt_or_still_a_table(golden_tables: Path) -> None:
    data = (golden_tables / "v9_cow" / ".hoodie" / "hoodie.properties").read_bytes()
    refused = 0
    for end in range(len(data)):
        try:
            TableConfig.parse(data[:end])
        except (CorruptFileError, InvalidConfigError, UnsupportedError):
            refused += 1
    assert refused > len(data) // 2


@pytest.mark.parametrize(
    ("class_name", "expected"),
    [
        ("org.apache.hudi.keygen.SimpleKeyGenerator", KeyGeneratorType.SIMPLE),
        ("org.apache.hudi.keygen.ComplexAvroKeyGenerator", KeyGeneratorType.COMPLEX),
        ("org.apache.hudi.keygen.TimestampBasedKeyGenerator", KeyGeneratorType.TIMESTAMP),
        ("org.apache.hudi.keygen.GlobalAvroDeleteKeyGenerator", KeyGeneratorType.GLOBAL_DELETE),
        ("org.apache.spark.sql.hudi.command.UuidKeyGenerator", KeyGeneratorType.SPARK_SQL_UUID),
        ("com.example.SimpleKeyGenerator", KeyGeneratorType.USER_PROVIDED),
    ],
)
def test_the_key_generator_follows_from_its_class(class_name: str, expected: KeyGeneratorType) -> None:
    assert _parse(**{keys.KEY_GENERATOR_CLASS: class_name}).key_generator is expected
    with_type = {keys.KEY_GENERATOR_CLASS: class_name, keys.KEY_GENERATOR_TYPE: "USER_PROVIDED"}
    assert _parse(**with_type).key_generator is expected


def test_changes_keep_unknown_keys_and_the_original() -> None:
    config = _parse(**{"hoodie.of.the.future": "1"})
    changed = config.with_changes(**{keys.METADATA_PARTITIONS: "files,record_index", keys.LAYOUT_VERSION: "2"})
    assert changed.has_metadata_table
    assert changed.raw["hoodie.of.the.future"] == "1"
    assert config.metadata_partitions == ()
    assert TableConfig.parse(changed.to_bytes(_NOW)).raw["hoodie.of.the.future"] == "1"
    assert changed.with_changes(**{keys.METADATA_PARTITIONS: None}).raw == config.raw


def test_changes_cannot_take_needed_properties_away_or_make_no_sense() -> None:
    with pytest.raises(InvalidConfigError, match=r"requires hoodie\.table\.name"):
        _parse().with_changes(**{keys.NAME: None})
    with pytest.raises(InvalidConfigError, match="true or false"):
        _parse().with_changes(**{keys.CDC_ENABLED: "maybe"})


def test_a_config_travels_to_workers_and_can_be_a_key() -> None:
    config = _parse(**{keys.TIMEZONE: "UTC"})
    assert pickle.loads(pickle.dumps(config)) == config
    assert hash(config) == hash(_parse(**{keys.TIMEZONE: "UTC"}))
    assert {field.name for field in fields(config)} >= {"raw", "name", "version"}


def test_raw_is_what_the_file_says() -> None:
    text = properties_to_bytes({**_MINIMAL, keys.CREATE_SCHEMA: '{"type":"record"}'})
    config = TableConfig.parse(text)
    assert config.raw == parse_properties(text)
    assert config.create_schema == '{"type":"record"}'
