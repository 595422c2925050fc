"""Which record wins, told by the properties of each table version."""

from __future__ import annotations

import pytest

from hoodie.errors import InvalidConfigError
from hoodie.format.table import table_keys as keys
from hoodie.format.table.merge_config import (
    COMMIT_TIME_STRATEGY_ID,
    CUSTOM_MERGER_STRATEGY_ID,
    EVENT_TIME_STRATEGY_ID,
    PAYLOAD_STRATEGY_ID,
    MergeMode,
    PartialUpdateMode,
    effective_merge_rule,
    merge_properties,
    rule_of_payload,
    stored_merge_mode,
)
from hoodie.format.table.versions import VERSIONS, TableVersion

_MODEL = "org.apache.hudi.common.model."
_DEFAULT = f"{_MODEL}DefaultHoodieRecordPayload"
_LATEST = f"{_MODEL}OverwriteWithLatestAvroPayload"
_EVENT = MergeMode.EVENT_TIME_ORDERING
_COMMIT = MergeMode.COMMIT_TIME_ORDERING
_CUSTOM = MergeMode.CUSTOM
_ALL_VERSIONS = pytest.mark.parametrize("version", VERSIONS)


@pytest.mark.parametrize(
    ("version", "raw", "has_ordering", "expected"),
    [
        (6, {}, True, _EVENT),
        (6, {}, False, _COMMIT),
        (6, {keys.PAYLOAD_CLASS: _DEFAULT}, False, _EVENT),
        (6, {keys.PAYLOAD_CLASS: _LATEST}, True, _COMMIT),
        (6, {keys.PAYLOAD_CLASS: "com.uber.hoodie.common.model.OverwriteWithLatestAvroPayload"}, True, _COMMIT),
        (6, {keys.PAYLOAD_CLASS: f"{_MODEL}PartialUpdateAvroPayload"}, True, _CUSTOM),
        (6, {keys.PAYLOAD_CLASS: _DEFAULT, keys.MERGE_STRATEGY_ID: COMMIT_TIME_STRATEGY_ID}, True, _EVENT),
        (6, {keys.MERGE_STRATEGY_ID: COMMIT_TIME_STRATEGY_ID}, True, _COMMIT),
        (6, {keys.OLD_MERGE_STRATEGY_ID: EVENT_TIME_STRATEGY_ID}, False, _EVENT),
        (6, {keys.MERGE_MODE: "COMMIT_TIME_ORDERING"}, True, _EVENT),
        (8, {keys.MERGE_MODE: "COMMIT_TIME_ORDERING", keys.PAYLOAD_CLASS: _DEFAULT}, True, _COMMIT),
        (8, {keys.MERGE_STRATEGY_ID: PAYLOAD_STRATEGY_ID, keys.PAYLOAD_CLASS: _DEFAULT}, True, _CUSTOM),
        (8, {keys.MERGE_STRATEGY_ID: COMMIT_TIME_STRATEGY_ID, keys.PAYLOAD_CLASS: _DEFAULT}, True, _COMMIT),
        (8, {keys.PAYLOAD_CLASS: _DEFAULT}, False, _EVENT),
        (9, {keys.MERGE_MODE: "EVENT_TIME_ORDERING"}, True, _EVENT),
        (9, {keys.MERGE_MODE: "custom"}, True, _CUSTOM),
        (9, {}, True, _EVENT),
    ],
)
def test_the_stored_mode(version: int, raw: dict[str, str], has_ordering: bool, expected: MergeMode) -> None:
    assert stored_merge_mode(TableVersion.of(version), raw, has_ordering=has_ordering, path="p") is expected


@_ALL_VERSIONS
@pytest.mark.parametrize(
    ("payload", "mode", "partial", "delete"),
    [
        ("DefaultHoodieRecordPayload", _EVENT, None, None),
        ("EventTimeAvroPayload", _EVENT, None, None),
        ("OverwriteWithLatestAvroPayload", _COMMIT, None, None),
        ("PartialUpdateAvroPayload", _EVENT, PartialUpdateMode.IGNORE_DEFAULTS, None),
        ("OverwriteNonDefaultsWithLatestAvroPayload", _COMMIT, PartialUpdateMode.IGNORE_DEFAULTS, None),
        ("AWSDmsAvroPayload", _COMMIT, None, ("Op", "D")),
        (
            "debezium.PostgresDebeziumAvroPayload",
            _EVENT,
            PartialUpdateMode.FILL_UNAVAILABLE,
            ("_change_operation_type", "d"),
        ),
        ("debezium.MySqlDebeziumAvroPayload", _EVENT, None, ("_change_operation_type", "d")),
    ],
)
def test_known_payloads_merge_alike_on_every_version(
    version: TableVersion,
    payload: str,
    mode: MergeMode,
    partial: PartialUpdateMode | None,
    delete: tuple[str, str] | None,
) -> None:
    asked = rule_of_payload(_MODEL + payload)
    assert asked is not None
    raw = merge_properties(version, mode=asked.mode, payload_class=_MODEL + payload, strategy_id=None)
    stored = stored_merge_mode(version, raw, has_ordering=True, path="p")
    rule = effective_merge_rule(stored, raw, path="p")
    assert rule.mode is mode
    assert rule.partial_update_mode is partial
    assert (rule.delete_field, rule.delete_marker) == (delete or (None, None))
    assert rule.merger is None
    expected = "__debezium_unavailable_value" if partial is PartialUpdateMode.FILL_UNAVAILABLE else None
    assert rule.unavailable_value == expected


def test_what_the_reference_stores_for_payloads() -> None:
    # Seen in tables that JVM Hudi 1.2.0 wrote.
    assert merge_properties(
        TableVersion.NINE, mode=_EVENT, payload_class=f"{_MODEL}debezium.PostgresDebeziumAvroPayload", strategy_id=None
    ) == {
        "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
        "hoodie.record.merge.property.hoodie.payload.delete.field": "_change_operation_type",
        "hoodie.record.merge.property.hoodie.payload.delete.marker": "d",
        "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value": "__debezium_unavailable_value",
        "hoodie.table.legacy.payload.class": f"{_MODEL}debezium.PostgresDebeziumAvroPayload",
        "hoodie.table.partial.update.mode": "FILL_UNAVAILABLE",
    }
    payload = f"{_MODEL}PartialUpdateAvroPayload"
    assert merge_properties(TableVersion.EIGHT, mode=_EVENT, payload_class=payload, strategy_id=None) == {
        "hoodie.compaction.payload.class": payload,
        "hoodie.record.merge.mode": "CUSTOM",
        "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
    }
    assert merge_properties(TableVersion.SIX, mode=_COMMIT, payload_class=None, strategy_id=None) == {
        "hoodie.compaction.payload.class": _LATEST,
        "hoodie.record.merge.strategy.id": COMMIT_TIME_STRATEGY_ID,
    }


def test_custom_merging_names_what_we_lack() -> None:
    raw = merge_properties(TableVersion.NINE, mode=_CUSTOM, payload_class="com.example.Mine", strategy_id=None)
    assert raw == {
        keys.MERGE_MODE: "CUSTOM",
        keys.PAYLOAD_CLASS: "com.example.Mine",
        keys.MERGE_STRATEGY_ID: PAYLOAD_STRATEGY_ID,
    }
    assert effective_merge_rule(_CUSTOM, raw, path="p").merger == "com.example.Mine"
    raw = merge_properties(TableVersion.NINE, mode=_CUSTOM, payload_class=None, strategy_id=None)
    assert effective_merge_rule(_CUSTOM, raw, path="p").merger == CUSTOM_MERGER_STRATEGY_ID


def test_stored_merge_properties_win_over_the_payloads_own() -> None:
    raw = {
        keys.PAYLOAD_CLASS: f"{_MODEL}AWSDmsAvroPayload",
        keys.MERGE_PROPERTY_PREFIX + keys.DELETE_FIELD: "op",
        keys.MERGE_PROPERTY_PREFIX + "mine": "1",
    }
    rule = effective_merge_rule(_CUSTOM, raw, path="p")
    assert (rule.delete_field, rule.delete_marker, rule.properties["mine"]) == ("op", "D", "1")


def test_a_delete_field_needs_a_delete_marker() -> None:
    raw = {keys.MERGE_PROPERTY_PREFIX + keys.DELETE_FIELD: "op"}
    with pytest.raises(InvalidConfigError, match="both be set"):
        effective_merge_rule(_EVENT, raw, path="p")
