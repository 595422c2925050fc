"""The properties of a table of another version: what changes, and what the other version cannot store.

On-disk format: docs/format/table.md §8. The rows that readers see stay the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.format.table import table_keys as keys
from hoodie.format.table.call_options import PARTITION_PATH_FIELD, partition_types
from hoodie.format.table.key_generator import KeyGeneratorType, key_generator_properties
from hoodie.format.table.merge_config import (
    MergeMode,
    merge_properties,
    ordering_of_payload,
    rule_of_payload,
)
from hoodie.format.table.table_config import TableConfig, typed_items
from hoodie.format.table.versions import TableVersion

_OF_MERGES: Final = (
    keys.MERGE_MODE,
    keys.MERGE_STRATEGY_ID,
    keys.OLD_MERGE_STRATEGY_ID,
    keys.PAYLOAD_CLASS,
    keys.LEGACY_PAYLOAD_CLASS,
    keys.PARTIAL_UPDATE_MODE,
)
"""The properties of the merge rule; beside them those with the prefix `MERGE_PROPERTY_PREFIX`."""


def properties_for(
    config: TableConfig, version: TableVersion, options: Mapping[str, str] | None = None
) -> dict[str, str | None]:
    """Return the changes of hoodie.properties that make the table one of `version`; None removes a property.

    The metadata partitions are not among them. `options` are those of the call.

    Raises: UnsupportedError for what the other version cannot store, InvalidConfigError for a missing option.
    """
    changes: dict[str, str | None] = {
        keys.VERSION: str(version.value),
        keys.LAYOUT_VERSION: str(version.layout_version),
        keys.KEY_GENERATOR_TYPE: config.raw.get(keys.KEY_GENERATOR_TYPE) or config.key_generator.value,
    }
    if version.stores_key_generator_class and keys.KEY_GENERATOR_CLASS not in config.raw:
        changes |= key_generator_properties(config.key_generator, with_class=True)
    if version.has_completion_time_in_name:
        changes |= {keys.TIMELINE_PATH: config.timeline_path, keys.HISTORY_PATH: config.history_path}
    if version.stores_merge_mode:
        stored = config.raw.get(keys.INITIAL_VERSION) if config.version.stores_merge_mode else None
        changes[keys.INITIAL_VERSION] = stored or str(config.version.value)
    changes |= _ordering(config, version) | _partition_fields(config, version, options or {})
    changes |= _merging(config, version)
    return {key: value for key, value in changes.items() if config.raw.get(key) != value}


def _ordering(config: TableConfig, version: TableVersion) -> dict[str, str | None]:
    names = config.ordering_fields
    if version.ordering_key == keys.ORDERING_FIELDS:
        names = ordering_of_payload(config.payload_class) or names
    if len(names) > 1 and not version.has_several_ordering_fields:
        raise UnsupportedError(
            f"{config.name}: expected one ordering column, as version {version.value} has no more, found "
            f"{', '.join(names)}; write the rows to a new table"
        )
    stored = dict.fromkeys((keys.ORDERING_FIELDS, keys.PRECOMBINE_FIELD))
    return {**stored, version.ordering_key: ",".join(names) or None}


def _partition_fields(config: TableConfig, version: TableVersion, options: Mapping[str, str]) -> dict[str, str | None]:
    """Return the properties of the partition fields of a custom key generator; older versions have no types in one."""
    if config.key_generator is not KeyGeneratorType.CUSTOM:
        return {}
    fields, types = config.partition_fields, partition_types(config, options)
    typed = ",".join(typed_items(fields, types)) if types else None
    if not version.stores_partition_field_types:
        return {keys.PARTITION_FIELDS: ",".join(fields), keys.TYPED_PARTITION_FIELDS: typed}
    if typed is None:
        raise InvalidConfigError(
            f"{config.name}: version {version.value} stores the types of the partition fields of a custom key "
            f"generator, and the table does not; name them in the option {PARTITION_PATH_FIELD}, for example "
            f"{','.join(f'{name}:SIMPLE' for name in fields)}"
        )
    return {keys.PARTITION_FIELDS: typed, keys.TYPED_PARTITION_FIELDS: None}


def _merging(config: TableConfig, version: TableVersion) -> dict[str, str | None]:
    """Return the properties of the merge rule as the version stores it."""
    payload = config.payload_class or config.legacy_payload_class
    known = rule_of_payload(payload) if payload is not None else None
    rule = config.merge_rule
    prefix = keys.MERGE_PROPERTY_PREFIX
    of_payload = {} if known is None else {prefix + key for key in known.properties}
    left = {key: value for key, value in config.raw.items() if key.startswith(prefix) and key not in of_payload}
    if version.stores_payload_class and (left or (known is None and rule.partial_update_mode is not None)):
        what = ", ".join(sorted(left)) or f"{keys.PARTIAL_UPDATE_MODE}={rule.partial_update_mode}"
        raise UnsupportedError(
            f"{config.name}: writers of version {version.value} do not support {what}: they would merge rows "
            "otherwise; write the rows to a new table"
        )
    if payload is None and config.merge_mode is MergeMode.CUSTOM and not version.stores_merge_mode:
        raise UnsupportedError(
            f"{config.name}: version {version.value} names a merge rule of one's own by its payload class only, and "
            f"the table has {keys.MERGE_STRATEGY_ID}={config.merge_strategy_id}; write the rows to a new table"
        )
    mode = rule.mode if known is not None else config.merge_mode
    strategy = config.merge_strategy_id if mode is MergeMode.CUSTOM else None
    stored = merge_properties(version, mode=mode, payload_class=payload, strategy_id=strategy)
    if not version.stores_merge_mode:
        del stored[keys.MERGE_STRATEGY_ID]
    elif payload is None:
        stored.pop(keys.PAYLOAD_CLASS, None)
        if mode is not MergeMode.CUSTOM and version.stores_payload_class:
            # As the JVM: no class, and the strategy under its old key too.
            stored[keys.OLD_MERGE_STRATEGY_ID] = stored[keys.MERGE_STRATEGY_ID]
    gone = dict.fromkeys((*_OF_MERGES, *of_payload & config.raw.keys()))
    return {**gone, **left, **stored}
