"""Check the options of one call (`properties=` of a write or a table service) before the call changes anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hoodie.config.hudi_options import hudi_options
from hoodie.config.known import OPTIONS, check_options
from hoodie.config.option import checked_text
from hoodie.config.writes import DURABLE_KEY, PYTHON_MERGER_KEY
from hoodie.errors import InvalidConfigError
from hoodie.format.table import table_keys
from hoodie.format.table.key_generator import KeyGeneratorType
from hoodie.format.table.merge_config import MergeMode, current_class_name, payload_of_mode, rule_of_payload
from hoodie.format.table.table_config import TableConfig, split_items, split_types, typed_items

_TABLE_KEYS: Final = frozenset(
    value for name, value in vars(table_keys).items() if name.isupper() and isinstance(value, str)
)
PATH_TYPES: Final = frozenset({"SIMPLE", "TIMESTAMP"})
"""How a partition field of a custom key generator makes its part of the path."""
MERGE_RULE: Final = (table_keys.MERGE_MODE, table_keys.PAYLOAD_CLASS)
"""Table properties by which a call of JVM Hudi names the merge rule."""
_PLAIN_MODES: Final = frozenset({MergeMode.EVENT_TIME_ORDERING, MergeMode.COMMIT_TIME_ORDERING})
PARTITION_PATH_FIELD: Final = "hoodie.datasource.write.partitionpath.field"
"""JVM Hudi's name of the option that is `table_keys.PARTITION_FIELDS` here."""


def is_table_property(name: str) -> bool:
    """Return whether an option is a property of a table, which is fixed when the table is created."""
    return name in _TABLE_KEYS or name.startswith(table_keys.TIMEBASED_PREFIX)


def check_call_options(properties: Mapping[str, str], config: TableConfig | None = None) -> None:
    """Refuse options that are unknown or do not parse, and table properties that differ from `config`.

    Without a `config` all table properties are accepted.

    Raises: InvalidConfigError.
    """
    check_texts("properties", properties)
    if config is not None:
        partition_types(config, properties)
        _check_stored(properties, config, [key for key in properties if key.startswith(table_keys.TIMEBASED_PREFIX)])
    check_options(properties, also_known=(*_TABLE_KEYS, *time_options(properties)))


def time_options(properties: Mapping[str, str]) -> list[str]:
    """Return the options of time formats among properties; misspelt names are not among them."""
    given = [key for key in properties if key.startswith(table_keys.TIMEBASED_PREFIX)]
    return [key for key in given if key in hudi_options()]


def effective_options(config: TableConfig, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the options that a call obeys: the properties that the table stores, overridden by those of the call."""
    return {**config.raw, **properties}


def partition_types(config: TableConfig, properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the types of the partition fields of a custom key generator: the stored ones, else those of a call.

    They are empty if neither has types. Raises: InvalidConfigError if the call names other fields or types.
    """
    stored, text = config.partition_field_types, properties.get(table_keys.PARTITION_FIELDS)
    if text is None or config.key_generator is not KeyGeneratorType.CUSTOM:
        return stored
    if text == config.raw.get(table_keys.PARTITION_FIELDS):
        return stored
    names, types = split_types(split_items(text))
    if names == config.partition_fields and set(types) <= PATH_TYPES and types and types == (stored or types):
        return types
    wanted = stored or ("SIMPLE or TIMESTAMP",) * len(config.partition_fields)
    raise InvalidConfigError(
        f"{config.name}: {PARTITION_PATH_FIELD}: expected "
        f"{','.join(typed_items(config.partition_fields, wanted))}, as the table has these partition fields, "
        f"found {text!r}"
    )


def is_merge_rule(config: TableConfig, key: str, text: str) -> bool:
    """Return whether a merge mode or a payload class of a call equals the stored one, or decides in the call."""
    mode, name = text.strip().upper(), current_class_name(text.strip())
    if key == table_keys.MERGE_MODE:
        return mode == config.merge_mode.value or (config.names_no_payload and mode in _PLAIN_MODES)
    if config.names_no_payload:
        return rule_of_payload(name) is not None
    stored = current_class_name(config.payload_class or config.legacy_payload_class or "")
    return name == stored or (config.version.stores_merge_mode and rule_of_payload(name) == config.merge_rule)


def config_of_call(config: TableConfig, properties: Mapping[str, str]) -> TableConfig:
    """Return the table's properties; if they name no payload class, with the class of a call."""
    mode = properties.get(table_keys.MERGE_MODE, "").strip().upper()
    name = properties.get(table_keys.PAYLOAD_CLASS, "").strip()
    if not name and mode in _PLAIN_MODES:
        name = payload_of_mode(MergeMode(mode))
    if not name or not config.names_no_payload:
        return config
    return config.with_changes(**{table_keys.PAYLOAD_CLASS: name})


def check_texts(name: str, given: Mapping[str, str]) -> None:
    """Refuse keys and values that are not texts that files can hold; `name` is the argument's name.

    Raises: InvalidConfigError.
    """
    wrong = {key: value for key, value in given.items() if not (isinstance(key, str) and isinstance(value, str))}
    if wrong:
        raise InvalidConfigError(
            f"{name}: expected string keys and values, got {wrong}; write for example 'true' and '1024'"
        )
    for key, value in given.items():
        checked_text(f"{name}[{checked_text(name, key)!r}]", value)


def _is_default(key: str, config: TableConfig, properties: Mapping[str, str]) -> bool:
    """Return whether a call sets a property that the table does not store to its default, which changes nothing."""
    if key in config.raw or key in MERGE_RULE:
        return False
    if key in OPTIONS:
        return bool(OPTIONS[key].get(properties) == OPTIONS[key].default)
    known = hudi_options().get(key.lower())
    return known is not None and known.asks_for_nothing(properties[key])


def _check_stored(properties: Mapping[str, str], config: TableConfig, times: list[str]) -> None:
    stored = config.raw
    fixed = [key for key in properties if key in _TABLE_KEYS or key in (PYTHON_MERGER_KEY, DURABLE_KEY)]
    if config.key_generator is KeyGeneratorType.CUSTOM:
        fixed = [key for key in fixed if key != table_keys.PARTITION_FIELDS]
    contradicting = [key for key in fixed if stored.get(key) != properties[key]]
    contradicting = [key for key in contradicting if not _is_default(key, config, properties)]
    contradicting = [
        key for key in contradicting if key not in MERGE_RULE or not is_merge_rule(config, key, properties[key])
    ]
    contradicting += [key for key in times if stored.get(key, properties[key]) != properties[key]]
    if contradicting:
        key = contradicting[0]
        raise InvalidConfigError(
            f"{key} is fixed when the table is created: expected {stored.get(key)!r}, this call sets "
            f"{properties[key]!r}; remove the option from the call"
        )
