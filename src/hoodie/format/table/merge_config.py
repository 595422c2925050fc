"""The merge rule of a table (which of two records with the same key is kept), and how each table version stores it.

On-disk format: docs/format/table.md §6.1 (ids), §6.2 (deciding the mode), §6.3 (payload classes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from hoodie.errors import InvalidConfigError
from hoodie.format.table import table_keys as keys
from hoodie.format.table.versions import TableVersion

EVENT_TIME_STRATEGY_ID: Final = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
COMMIT_TIME_STRATEGY_ID: Final = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
CUSTOM_MERGER_STRATEGY_ID: Final = "1897ef5f-18bc-4557-939c-9d6a8afd1519"
PAYLOAD_STRATEGY_ID: Final = "00000000-0000-0000-0000-000000000000"
METADATA_PAYLOAD_CLASS: Final = "org.apache.hudi.metadata.HoodieMetadataPayload"

_MODEL = "org.apache.hudi.common.model."
DEFAULT_PAYLOAD_CLASS: Final = f"{_MODEL}DefaultHoodieRecordPayload"
EVENT_TIME_PAYLOAD_CLASS: Final = f"{_MODEL}EventTimeAvroPayload"
LATEST_PAYLOAD_CLASS: Final = f"{_MODEL}OverwriteWithLatestAvroPayload"


class MergeMode(StrEnum):
    """Rule for which of two records with the same key is kept. On disk: do not change."""

    COMMIT_TIME_ORDERING = "COMMIT_TIME_ORDERING"
    EVENT_TIME_ORDERING = "EVENT_TIME_ORDERING"
    CUSTOM = "CUSTOM"


class PartialUpdateMode(StrEnum):
    """Rule by which the kept record takes single fields from the other record. On disk: do not change."""

    IGNORE_DEFAULTS = "IGNORE_DEFAULTS"
    FILL_UNAVAILABLE = "FILL_UNAVAILABLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRule:
    """How two records with the same key are merged, independent of the table version.

    A record is a delete if the text of `delete_field` equals `delete_marker`; both are set or neither is.
    `merger` is the payload class or strategy id of a CUSTOM mode for which there is no built-in rule.
    `newest_meta_fields`: a merged row has the meta fields of the later version, whichever version wins (§6.5).
    """

    mode: MergeMode
    partial_update_mode: PartialUpdateMode | None = None
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    merger: str | None = None
    newest_meta_fields: bool = False

    @property
    def delete_field(self) -> str | None:
        """Column that marks deletes."""
        return self.properties.get(keys.DELETE_FIELD)

    @property
    def delete_marker(self) -> str | None:
        """Text in `delete_field` that means delete."""
        return self.properties.get(keys.DELETE_MARKER)

    @property
    def unavailable_value(self) -> str | None:
        """Text that means "not sent, keep the stored value" under FILL_UNAVAILABLE."""
        return self.properties.get(keys.UNAVAILABLE_VALUE)


_DEBEZIUM = {keys.DELETE_FIELD: "_change_operation_type", keys.DELETE_MARKER: "d"}
_EVENT = MergeMode.EVENT_TIME_ORDERING
_COMMIT = MergeMode.COMMIT_TIME_ORDERING

# The merge rule that is equal to each well-known payload class (§6.3).
_RULE_OF_PAYLOAD: Final[Mapping[str, MergeRule]] = {
    DEFAULT_PAYLOAD_CLASS: MergeRule(mode=_EVENT),
    EVENT_TIME_PAYLOAD_CLASS: MergeRule(mode=_EVENT),
    LATEST_PAYLOAD_CLASS: MergeRule(mode=_COMMIT),
    f"{_MODEL}PartialUpdateAvroPayload": MergeRule(
        mode=_EVENT, partial_update_mode=PartialUpdateMode.IGNORE_DEFAULTS, newest_meta_fields=True
    ),
    f"{_MODEL}OverwriteNonDefaultsWithLatestAvroPayload": MergeRule(
        mode=_COMMIT, partial_update_mode=PartialUpdateMode.IGNORE_DEFAULTS
    ),
    f"{_MODEL}AWSDmsAvroPayload": MergeRule(
        mode=_COMMIT, properties={keys.DELETE_FIELD: "Op", keys.DELETE_MARKER: "D"}
    ),
    f"{_MODEL}debezium.PostgresDebeziumAvroPayload": MergeRule(
        mode=_EVENT,
        partial_update_mode=PartialUpdateMode.FILL_UNAVAILABLE,
        properties={**_DEBEZIUM, keys.UNAVAILABLE_VALUE: "__debezium_unavailable_value"},
    ),
    f"{_MODEL}debezium.MySqlDebeziumAvroPayload": MergeRule(mode=_EVENT, properties=_DEBEZIUM),
}
# The ordering columns of a class that compares columns of its own: version 9 stores them (§8).
_ORDERING_OF_PAYLOAD: Final[Mapping[str, tuple[str, ...]]] = {
    f"{_MODEL}debezium.PostgresDebeziumAvroPayload": ("_event_lsn",),
    f"{_MODEL}debezium.MySqlDebeziumAvroPayload": ("_event_bin_file", "_event_pos"),
}
# Before version 9 only these classes decide the stored mode; every other class counts as CUSTOM (§6.2).
_BUILT_IN_PAYLOADS = frozenset({DEFAULT_PAYLOAD_CLASS, EVENT_TIME_PAYLOAD_CLASS, LATEST_PAYLOAD_CLASS})
_MODE_OF_STRATEGY: Final[Mapping[str, MergeMode]] = {
    EVENT_TIME_STRATEGY_ID: _EVENT,
    COMMIT_TIME_STRATEGY_ID: _COMMIT,
}
_STRATEGY_OF_MODE: Final[Mapping[MergeMode, str]] = {mode: strategy for strategy, mode in _MODE_OF_STRATEGY.items()}


def rule_of_payload(payload_class: str) -> MergeRule | None:
    """Return the merge rule of a well-known payload class; None for any other class."""
    return _RULE_OF_PAYLOAD.get(current_class_name(payload_class))


def ordering_of_payload(payload_class: str | None) -> tuple[str, ...]:
    """Return the ordering columns that a payload class implies; none for a class that uses those of the table."""
    return _ORDERING_OF_PAYLOAD.get(current_class_name(payload_class or ""), ())


def current_class_name(class_name: str) -> str:
    """Return the present name of a class; releases before the move to Apache used other names."""
    old = "com.uber.hoodie."
    return f"org.apache.hudi.{class_name[len(old) :]}" if class_name.startswith(old) else class_name


def stored_merge_mode(version: TableVersion, raw: Mapping[str, str], *, has_ordering: bool, path: str) -> MergeMode:
    """Decide the merge mode of a table from its properties (§6.2).

    Raises: InvalidConfigError if the stored mode is not one of the three modes.
    """
    if version.stores_merge_mode:
        text = raw.get(keys.MERGE_MODE)
        if text is not None:
            try:
                return MergeMode(text.strip().upper())
            except ValueError:
                expected = f"one of {', '.join(MergeMode)} expected"
                raise InvalidConfigError(f"{path}: {keys.MERGE_MODE}: {expected}, found {text!r}") from None
        order = (_mode_of_strategy(raw), _mode_of_payload(raw))
    else:
        order = (_mode_of_payload(raw), _mode_of_strategy(raw))
    fallback = MergeMode.EVENT_TIME_ORDERING if has_ordering else MergeMode.COMMIT_TIME_ORDERING
    return next((mode for mode in order if mode is not None), fallback)


def effective_merge_rule(mode: MergeMode, raw: Mapping[str, str], *, path: str) -> MergeRule:
    """Return the merge rule of a table; payload classes are replaced by built-in rules with the same effect.

    Raises:
        InvalidConfigError: the partial update mode is unknown, or only one of delete field and delete marker is set.
    """
    prefix = keys.MERGE_PROPERTY_PREFIX
    stored = {key.removeprefix(prefix): value for key, value in raw.items() if key.startswith(prefix)}
    payload = raw.get(keys.PAYLOAD_CLASS)
    known = rule_of_payload(payload) if payload is not None else None
    if known is not None and (mode is MergeMode.CUSTOM or known.mode is mode):
        rule = MergeRule(
            mode=known.mode,
            partial_update_mode=_parse_partial_mode(raw, path) or known.partial_update_mode,
            properties={**known.properties, **stored},
            newest_meta_fields=known.newest_meta_fields,
        )
    else:
        merger = (payload or merge_strategy_id(raw) or "unknown") if mode is MergeMode.CUSTOM else None
        partial_mode = _parse_partial_mode(raw, path)
        rule = MergeRule(mode=mode, partial_update_mode=partial_mode, properties=stored, merger=merger)
    if (rule.delete_field is None) != (rule.delete_marker is None):
        raise InvalidConfigError(f"{path}: {keys.DELETE_FIELD} and {keys.DELETE_MARKER} must both be set, or neither")
    return rule


def merge_strategy_id(raw: Mapping[str, str]) -> str | None:
    """Return the stored merge strategy id, from its present or its old key; None if there is none."""
    return raw.get(keys.MERGE_STRATEGY_ID) or raw.get(keys.OLD_MERGE_STRATEGY_ID) or None


def merge_properties(
    version: TableVersion, *, mode: MergeMode, payload_class: str | None, strategy_id: str | None
) -> dict[str, str]:
    """Return the properties that store a merge rule in a new table of this version (§1.2, §6.3).

    If a payload class determines the mode, that mode is stored; otherwise `mode` is stored.
    """
    known = rule_of_payload(payload_class) if payload_class is not None else None
    if version.stores_payload_class:
        mode = _mode_of_payload_class(payload_class) if payload_class is not None else mode
        stored = {
            keys.PAYLOAD_CLASS: payload_class or payload_of_mode(mode),
            keys.MERGE_STRATEGY_ID: strategy_id or _STRATEGY_OF_MODE.get(mode, PAYLOAD_STRATEGY_ID),
        }
        return stored | ({keys.MERGE_MODE: mode.value} if version.stores_merge_mode else {})
    if known is not None and payload_class is not None:
        stored = {keys.MERGE_MODE: known.mode.value, keys.LEGACY_PAYLOAD_CLASS: payload_class}
        if known.partial_update_mode is not None:
            stored[keys.PARTIAL_UPDATE_MODE] = known.partial_update_mode.value
        return stored | {keys.MERGE_PROPERTY_PREFIX + key: value for key, value in known.properties.items()}
    stored = {keys.MERGE_MODE: mode.value}
    if payload_class is not None:
        stored |= {keys.PAYLOAD_CLASS: payload_class, keys.MERGE_STRATEGY_ID: strategy_id or PAYLOAD_STRATEGY_ID}
    elif mode is MergeMode.CUSTOM:
        stored[keys.MERGE_STRATEGY_ID] = strategy_id or CUSTOM_MERGER_STRATEGY_ID
    return stored


def payload_of_mode(mode: MergeMode) -> str:
    """Return the payload class that stands for a merge mode."""
    return LATEST_PAYLOAD_CLASS if mode is MergeMode.COMMIT_TIME_ORDERING else DEFAULT_PAYLOAD_CLASS


def _mode_of_strategy(raw: Mapping[str, str]) -> MergeMode | None:
    strategy_id = merge_strategy_id(raw)
    return None if strategy_id is None else _MODE_OF_STRATEGY.get(strategy_id, MergeMode.CUSTOM)


def _mode_of_payload(raw: Mapping[str, str]) -> MergeMode | None:
    payload = raw.get(keys.PAYLOAD_CLASS)
    return _mode_of_payload_class(payload) if payload else None


def _mode_of_payload_class(payload_class: str) -> MergeMode:
    payload = current_class_name(payload_class)
    return _RULE_OF_PAYLOAD[payload].mode if payload in _BUILT_IN_PAYLOADS else MergeMode.CUSTOM


def _parse_partial_mode(raw: Mapping[str, str], path: str) -> PartialUpdateMode | None:
    text = raw.get(keys.PARTIAL_UPDATE_MODE, "").strip().upper()
    if text in ("", "NONE"):
        return None
    try:
        return PartialUpdateMode(text)
    except ValueError:
        expected = ", ".join(PartialUpdateMode)
        message = f"{path}: {keys.PARTIAL_UPDATE_MODE}: one of {expected} expected, found {text!r}"
        raise InvalidConfigError(message) from None
