"""Properties of new tables against those that the reference wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie.errors import InvalidConfigError
from hoodie.format.table import table_keys as keys
from hoodie.format.table.key_generator import KeyGeneratorType
from hoodie.format.table.merge_config import MergeMode
from hoodie.format.table.table_config import TableConfig, TableType
from hoodie.format.table.table_creation import NewTable, new_metadata_table_config, new_table_config
from hoodie.format.table.versions import TableVersion

# Added when the metadata table is built, after the table's creation.
_ADDED_LATER = {keys.METADATA_PARTITIONS, keys.METADATA_PARTITIONS_INFLIGHT, keys.INDEX_DEFINITIONS_PATH}
_NAMES = ["v6_cow", "v6_mor", "v8_cow", "v8_mor", "v9_cow", "v9_mor"]


def _golden(tables: Path, name: str, folder: str = ".hoodie") -> TableConfig:
    return TableConfig.parse((tables / name / folder / "hoodie.properties").read_bytes())


@pytest.mark.parametrize("name", _NAMES)
def test_a_new_table_has_exactly_the_references_properties(golden_tables: Path, name: str) -> None:
    created = new_table_config(
        NewTable(
            name=name,
            table_type=TableType.MERGE_ON_READ if name.endswith("mor") else TableType.COPY_ON_WRITE,
            version=TableVersion.of(int(name[1])),
            record_key_fields=("uuid",),
            partition_fields=("city",),
            ordering_fields=("ts",),
            is_hive_style=True,
        )
    )
    expected = {key: value for key, value in _golden(golden_tables, name).raw.items() if key not in _ADDED_LATER}
    # The golden tables are Hudi 1.2.0's. The releases that write versions 6 and 8 unasked know the older name only.
    expected[created.version.ordering_key] = expected.pop(keys.ORDERING_FIELDS)
    if created.version == TableVersion.SIX:
        # Hudi 0.15 knows a key generator by its class only.
        expected[keys.KEY_GENERATOR_CLASS] = "org.apache.hudi.keygen.SimpleKeyGenerator"
    assert created.raw == expected
    assert list(created.raw) == sorted(created.raw)


@pytest.mark.parametrize("name", _NAMES)
def test_a_new_metadata_table_has_exactly_the_references_properties(golden_tables: Path, name: str) -> None:
    created = new_metadata_table_config(_golden(golden_tables, name))
    assert created.raw == _golden(golden_tables, name, ".hoodie/metadata/.hoodie").raw


def test_custom_partition_fields_keep_their_types_from_version_8_on() -> None:
    # Both forms were seen in tables of JVM Hudi 1.2.0.
    table = NewTable(
        name="t",
        record_key_fields=("id",),
        partition_fields=("p", "ts"),
        partition_field_types=("SIMPLE", "TIMESTAMP"),
        key_generator=KeyGeneratorType.CUSTOM,
        timestamp_options={"timestamp.type": "EPOCHMILLISECONDS"},
    )
    created = new_table_config(table)
    assert created.raw[keys.PARTITION_FIELDS] == "p:SIMPLE,ts:TIMESTAMP"
    assert created.raw[keys.PARTITION_EXTRACTOR_CLASS] == "org.apache.hudi.hive.MultiPartKeysValueExtractor"
    assert created.timestamp_options == table.timestamp_options
    assert created.partition_field_types == table.partition_field_types
    old = new_table_config(
        NewTable(
            name="t",
            version=TableVersion.SIX,
            partition_fields=("p", "ts"),
            partition_field_types=("SIMPLE", "TIMESTAMP"),
        )
    )
    assert old.raw[keys.PARTITION_FIELDS] == "p,ts"


def test_without_partitions_and_ordering() -> None:
    created = new_table_config(NewTable(name="t", record_key_fields=("id",)))
    assert created.key_generator is KeyGeneratorType.NON_PARTITION
    assert created.merge_mode is MergeMode.COMMIT_TIME_ORDERING
    assert created.raw[keys.PARTITION_EXTRACTOR_CLASS] == "org.apache.hudi.hive.NonPartitionedExtractor"
    assert created.raw[keys.PARTITION_FIELDS] == ""
    assert keys.ORDERING_FIELDS not in created.raw
    more = new_table_config(NewTable(name="t", database="d", extra={"hoodie.table.cdc.enabled": "true"}))
    assert (more.database, more.is_cdc_enabled) == ("d", True)


def test_a_table_needs_a_name_and_a_type_for_each_partition_field() -> None:
    with pytest.raises(InvalidConfigError, match="name"):
        new_table_config(NewTable(name=""))
    with pytest.raises(InvalidConfigError, match="2 partition fields expected, found 1"):
        new_table_config(NewTable(name="t", partition_fields=("a", "b"), partition_field_types=("SIMPLE",)))
