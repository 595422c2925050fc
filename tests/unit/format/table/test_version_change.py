"""Table versions, and the properties of a table of another version; comments say what JVM Hudi 1.2.0 stores instead."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.format.table.key_generator import KeyGeneratorType
from hoodie.format.table.merge_config import MergeMode, PartialUpdateMode
from hoodie.format.table.table_config import TableConfig, TableType
from hoodie.format.table.table_creation import NewTable, new_table_config
from hoodie.format.table.version_change import properties_for
from hoodie.format.table.versions import VERSIONS, TableVersion

_MODEL = "org.apache.hudi.common.model."
_EVENT, _COMMIT = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5", "ce9acb64-bde0-424c-9b91-f6ebba25356d"
_IDS = {
    "hoodie.record.merge.mode": "mode",
    "hoodie.record.merge.strategy.id": "strategy",
    "hoodie.compaction.payload.class": "payload",
    "hoodie.table.legacy.payload.class": "legacy",
    "hoodie.table.partial.update.mode": "partial",
    "hoodie.table.ordering.fields": "ordering",
    "hoodie.table.precombine.field": "precombine",
    "hoodie.table.initial.version": "initial",
}


def table(version: TableVersion, **more: object) -> TableConfig:
    wanted = {"ordering_fields": ("ts",), "record_key_fields": ("id",), "partition_fields": ("city",), **more}
    return new_table_config(NewTable(name="t", version=version, **wanted))  # type: ignore[arg-type]


def moved(config: TableConfig, *versions: TableVersion, **options: str) -> TableConfig:
    for version in versions:
        config = config.with_changes(**properties_for(config, version, options))
    return config


def facts(config: TableConfig) -> dict[str, str]:
    """The properties of merges, by short names and without packages."""
    return {short: config.raw[key].rpartition(".")[2] for key, short in _IDS.items() if key in config.raw}


SIX, EIGHT, NINE = TableVersion.SIX, TableVersion.EIGHT, TableVersion.NINE
MERGES = {
    "default": (
        {},
        {"mode": "EVENT_TIME_ORDERING", "strategy": _EVENT, "payload": "DefaultHoodieRecordPayload"},
        {"mode": "EVENT_TIME_ORDERING", "legacy": "DefaultHoodieRecordPayload"},
    ),
    # JVM Hudi makes it EVENT_TIME_ORDERING in merge-on-read tables: their rows would be others.
    "latest": (
        {"payload_class": f"{_MODEL}OverwriteWithLatestAvroPayload"},
        {"mode": "COMMIT_TIME_ORDERING", "strategy": _COMMIT, "payload": "OverwriteWithLatestAvroPayload"},
        {"mode": "COMMIT_TIME_ORDERING", "legacy": "OverwriteWithLatestAvroPayload"},
    ),
    # JVM Hudi also stores a strategy id in version 9, which no reader needs.
    "partial": (
        {"payload_class": f"{_MODEL}PartialUpdateAvroPayload"},
        {"mode": "CUSTOM", "strategy": "00000000-0000-0000-0000-000000000000", "payload": "PartialUpdateAvroPayload"},
        {"mode": "EVENT_TIME_ORDERING", "legacy": "PartialUpdateAvroPayload", "partial": "IGNORE_DEFAULTS"},
    ),
    "own class": (
        {"payload_class": "com.example.Own"},
        {"mode": "CUSTOM", "strategy": "00000000-0000-0000-0000-000000000000", "payload": "Own"},
        {"mode": "CUSTOM", "strategy": "00000000-0000-0000-0000-000000000000", "payload": "Own"},
    ),
}


@pytest.mark.parametrize("name", MERGES)
def test_the_merge_rule_up_and_back(name: str) -> None:
    given, of_eight, of_nine = MERGES[name]
    six = table(SIX, table_type=TableType.MERGE_ON_READ, **given)
    eight, nine = moved(six, EIGHT), moved(six, EIGHT, NINE)
    assert facts(eight) == {**of_eight, "precombine": "ts", "initial": "6"}
    assert facts(nine) == {**of_nine, "ordering": "ts", "initial": "6"}
    assert moved(six, NINE).raw == nine.raw
    # A merged row of version 9 has the meta fields of the version that wins; all log files are compacted before.
    rules = [replace(config.merge_rule, newest_meta_fields=False) for config in (six, eight, nine)]
    assert rules[0] == rules[1] == rules[2]
    assert facts(moved(nine, EIGHT)) == facts(eight)
    back = moved(nine, SIX)
    assert back.raw == moved(nine, EIGHT, SIX).raw
    # As the JVM does: the strategy id goes, and the first version stays.
    assert facts(back) == {key: text for key, text in facts(six).items() if key != "strategy"} | {"initial": "6"}
    assert back.merge_rule == six.merge_rule


def test_a_merger_without_a_payload_class() -> None:
    nine = table(NINE, merge_mode=MergeMode.CUSTOM, merge_strategy_id="1897ef5f-18bc-4557-939c-9d6a8afd1519")
    eight = moved(nine, EIGHT)
    assert (eight.merge_mode, eight.payload_class) == (MergeMode.CUSTOM, None)
    assert (eight.merge_rule, moved(eight, NINE).raw) == (nine.merge_rule, nine.raw)


def test_the_layout_of_the_timeline() -> None:
    nine = moved(table(SIX), NINE)
    assert (nine.version, nine.version.layout_version, nine.timeline_path, nine.history_path) == (
        NINE,
        2,
        "timeline",
        "history",
    )
    assert nine.initial_version is SIX
    assert moved(table(NINE), SIX).initial_version is NINE


def test_a_table_of_an_old_release_gets_a_type_of_key_generator() -> None:
    raw = {**table(SIX).raw, "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator"}
    del raw["hoodie.table.keygenerator.type"]
    assert moved(TableConfig.from_properties(raw), EIGHT).raw["hoodie.table.keygenerator.type"] == "SIMPLE"


@pytest.mark.parametrize(
    ("payload", "ordering"),
    [("MySqlDebeziumAvroPayload", "_event_bin_file,_event_pos"), ("PostgresDebeziumAvroPayload", "_event_lsn")],
)
def test_a_debezium_class_implies_its_ordering_columns(payload: str, ordering: str) -> None:
    config = table(EIGHT, payload_class=f"{_MODEL}debezium.{payload}", ordering_fields=("_event_lsn",))
    assert moved(config, NINE).raw["hoodie.table.ordering.fields"] == ordering


def test_what_an_older_version_cannot_store() -> None:
    with pytest.raises(UnsupportedError, match="expected one ordering column"):
        properties_for(table(NINE, ordering_fields=("a", "b")), EIGHT)
    mode = {"hoodie.table.partial.update.mode": PartialUpdateMode.IGNORE_DEFAULTS.value}
    with pytest.raises(UnsupportedError, match=r"do not support hoodie\.table\.partial\.update\.mode=IGNORE"):
        properties_for(table(NINE, extra=mode), EIGHT)
    with pytest.raises(UnsupportedError, match="names a merge rule of one's own by its payload class"):
        properties_for(table(NINE, merge_mode=MergeMode.CUSTOM), SIX)
    marker = {
        "hoodie.record.merge.property.hoodie.payload.delete.field": "op",
        "hoodie.record.merge.property.hoodie.payload.delete.marker": "D",
    }
    with pytest.raises(UnsupportedError, match=r"do not support hoodie\.record\.merge\.property.*delete\.field"):
        properties_for(table(NINE, extra=marker), SIX)


def test_types_of_partition_fields() -> None:
    of_nine = table(NINE, key_generator=KeyGeneratorType.CUSTOM, partition_field_types=("SIMPLE",))
    six = moved(of_nine, SIX)
    assert six.raw["hoodie.table.partition.fields"] == "city"
    assert moved(six, EIGHT).raw["hoodie.table.partition.fields"] == "city:SIMPLE"
    six = six.with_changes(**{"hoodie.python.partition.fields": None})
    with pytest.raises(InvalidConfigError, match="for example city:SIMPLE"):
        properties_for(six, EIGHT)
    with pytest.raises(InvalidConfigError, match="found 'town:SIMPLE'"):
        properties_for(six, EIGHT, {"hoodie.table.partition.fields": "town:SIMPLE"})
    assert moved(six, EIGHT, **{"hoodie.table.partition.fields": "city:SIMPLE"}).partition_field_types == ("SIMPLE",)


def test_what_differs() -> None:
    assert [TableVersion.of(number) for number in (6, 8, 9)] == list(VERSIONS)
    assert [version.layout_version for version in VERSIONS] == [1, 2, 2]
    for predicate in (
        "has_completion_time_in_name",
        "commit_metadata_is_avro",
        "stores_merge_mode",
        "stores_partition_field_types",
        "has_index_definitions",
        "has_log_compaction",
    ):
        assert [getattr(version, predicate) for version in VERSIONS] == [False, True, True]
    assert [version.stores_payload_class for version in VERSIONS] == [True, True, False]
    assert [version.names_single_complex_key for version in VERSIONS] == [False, False, True]
    assert [version.log_name_has_base_instant for version in VERSIONS] == [True, False, False]
    assert [version.validates_log_blocks for version in VERSIONS] == [True, False, False]


@pytest.mark.parametrize("number", [-1, 0, 5, 7, 10])
def test_unknown_versions(number: int) -> None:
    with pytest.raises(UnsupportedError, match=f"^p/hoodie.properties: .* found {number}"):
        TableVersion.of(number, path="p/hoodie.properties")
