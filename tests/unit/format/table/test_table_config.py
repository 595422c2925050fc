"""hoodie.properties as a typed record."""

from __future__ import annotations

import pickle
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

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
    assert config.name == "v9_cow"
    assert config.database is None
    assert config.table_type is TableType.COPY_ON_WRITE
    assert config.version is config.initial_version is TableVersion.NINE
    assert config.layout_version == 2
    assert config.record_key_fields == ("uuid",)
    assert config.partition_fields == ("city",)
    assert config.partition_field_types == ()
    assert config.ordering_fields == ("ts",)
    assert config.key_generator is KeyGeneratorType.SIMPLE
    assert config.is_hive_style
    assert not config.is_url_encoded
    assert not config.drops_partition_columns
    assert config.populates_meta_fields
    assert config.base_file_format is BaseFileFormat.PARQUET
    assert config.merge_mode is config.merge_rule.mode is MergeMode.EVENT_TIME_ORDERING
    assert config.merge_strategy_id is None
    assert config.payload_class is None
    assert config.timezone is TimelineZone.LOCAL
    assert (config.timeline_path, config.history_path, config.archive_folder) == ("timeline", "history", "history")
    assert config.metadata_partitions == ("bloom_filters", "column_stats", "files", "partition_stats", "record_index")
    assert config.metadata_partitions_inflight == ()
    assert config.has_metadata_table
    assert config.index_definitions_path == ".hoodie/.index_defs/index.json"
    assert not config.is_cdc_enabled


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


def test_defaults_of_a_minimal_table() -> None:
    config = _parse()
    assert config.record_key_fields == config.partition_fields == config.ordering_fields == ()
    assert config.key_generator is KeyGeneratorType.NON_PARTITION
    assert config.populates_meta_fields
    assert not config.is_hive_style
    assert not config.has_metadata_table
    assert config.merge_mode is MergeMode.COMMIT_TIME_ORDERING
    assert config.archive_folder == "archived"
    assert config.cdc_logging_mode == "DATA_BEFORE_AFTER"


@pytest.mark.parametrize("missing", [keys.NAME, keys.TYPE, keys.VERSION, keys.LAYOUT_VERSION])
def test_a_needed_property_is_missing(missing: str) -> None:
    with pytest.raises(CorruptFileError, match=f"{missing}.*backup"):
        _parse(**{missing: None})


@pytest.mark.parametrize("number", ["9" * 5000, str(10**20), "-1", "9.0", "\u0669", "1e999"])
@pytest.mark.parametrize("key", [keys.VERSION, keys.LAYOUT_VERSION, keys.INITIAL_VERSION])
def test_numbers_beyond_all_versions_are_refused(key: str, number: str) -> None:
    with pytest.raises(HoodieError, match="found") as raised:
        _parse(**{key: number})
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("path", ["/etc", "..", "../../x", "a/../../b", "a//b", "s3://b/x", "./x"])
@pytest.mark.parametrize("key", [keys.TIMELINE_PATH, keys.HISTORY_PATH, keys.ARCHIVE_FOLDER])
def test_folders_outside_the_table_are_refused(key: str, path: str) -> None:
    with pytest.raises(InvalidConfigError, match=f"{key}.*a folder of the table"):
        _parse(**{key: path})


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


def test_a_wrong_checksum_is_corrupt() -> None:
    with pytest.raises(CorruptFileError, match=r"checksum \d+ of database '' and table 't' expected, found '1'"):
        _parse(**{keys.CHECKSUM: "1"})
    assert _parse(**{keys.CHECKSUM: str(table_checksum("d", "t")), keys.DATABASE: "d"}).database == "d"


@pytest.mark.parametrize(("number", "advice"), [("5", "0.14"), ("7", "during an upgrade"), ("10", "newer Hudi")])
def test_another_table_version_is_unsupported(number: str, advice: str) -> None:
    with pytest.raises(UnsupportedError, match=f"6, 8 or 9 expected, found {number}.*{advice}"):
        _parse(**{keys.VERSION: number})


def test_tables_of_another_format_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match=r"hoodie\.table\.format=native expected, found 'iceberg'.*JVM Hudi"):
        _parse(**{keys.TABLE_FORMAT: "iceberg"})
    assert _parse(**{keys.TABLE_FORMAT: "NATIVE"}).name == _parse(**{keys.TABLE_FORMAT: ""}).name == "t"


def test_a_version_that_is_no_number_is_corrupt() -> None:
    with pytest.raises(CorruptFileError, match="a number expected, found 'nine'"):
        _parse(**{keys.VERSION: "nine"})


def test_a_half_upgraded_table_is_refused() -> None:
    with pytest.raises(
        InvalidConfigError, match=r"layout\.version=1 for table version 6 expected, found 2.*interrupted"
    ):
        _parse(**{keys.VERSION: "6"})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (keys.TYPE, "COPY_ON_READ"),
        (keys.HIVE_STYLE, "yes"),
        (keys.POPULATE_META_FIELDS, "1"),
        (keys.BASE_FILE_FORMAT, "CSV"),
        (keys.TIMEZONE, "CET"),
        (keys.MERGE_MODE, "NEWEST"),
        (keys.PARTIAL_UPDATE_MODE, "ALL"),
    ],
)
def test_a_senseless_value_names_file_key_and_value(key: str, value: str) -> None:
    with pytest.raises(InvalidConfigError) as raised:
        _parse(**{key: value})
    message = str(raised.value)
    assert "t/.hoodie/hoodie.properties" in message
    assert key in message
    assert repr(value) in message


def test_an_unknown_key_generator_type_is_unsupported() -> None:
    with pytest.raises(UnsupportedError, match=r"keygenerator\.type"):
        _parse(**{keys.KEY_GENERATOR_TYPE: "MAGIC"})


def test_both_names_of_the_ordering_fields_are_read() -> None:
    assert _parse(**{keys.PRECOMBINE_FIELD: "ts"}).ordering_fields == ("ts",)
    assert _parse(**{keys.PRECOMBINE_FIELD: "old", keys.ORDERING_FIELDS: "a, b"}).ordering_fields == ("a", "b")


def test_partition_field_types_are_split_off() -> None:
    config = _parse(**{keys.PARTITION_FIELDS: "p:SIMPLE,ts:timestamp", keys.KEY_GENERATOR_TYPE: "CUSTOM_AVRO"})
    assert config.partition_fields == ("p", "ts")
    assert config.partition_field_types == ("SIMPLE", "TIMESTAMP")
    assert config.key_generator is KeyGeneratorType.CUSTOM
    assert _parse(**{keys.PARTITION_FIELDS: "p,ts"}).partition_field_types == ()


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


@pytest.mark.parametrize(
    ("record_keys", "partitions", "expected"),
    [
        ("a", "p", KeyGeneratorType.SIMPLE),
        ("a,b", "p", KeyGeneratorType.COMPLEX),
        ("a", "p,q", KeyGeneratorType.COMPLEX),
        ("a", "", KeyGeneratorType.NON_PARTITION),
        ("", "p", KeyGeneratorType.SIMPLE),
    ],
)
def test_the_key_generator_follows_from_the_fields(
    record_keys: str, partitions: str, expected: KeyGeneratorType
) -> None:
    config = _parse(**{keys.RECORD_KEY_FIELDS: record_keys, keys.PARTITION_FIELDS: partitions})
    assert config.key_generator is expected


def test_timestamp_options_are_read_under_both_prefixes() -> None:
    config = _parse(
        **{
            "hoodie.deltastreamer.keygen.timebased.timestamp.type": "OLD",
            "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
            "hoodie.deltastreamer.keygen.timebased.output.dateformat": "yyyy",
        }
    )
    assert config.timestamp_options == {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy"}


def test_the_old_name_of_the_base_file_format_is_read() -> None:
    assert _parse(**{keys.OLD_BASE_FILE_FORMAT: "orc"}).base_file_format is BaseFileFormat.ORC


def test_old_spellings_of_the_cdc_mode_are_read() -> None:
    assert _parse(**{keys.CDC_LOGGING_MODE: "data_before"}).cdc_logging_mode == "DATA_BEFORE"


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
