"""Create a table: check its properties against each other and the schema, and store them in one atomic step."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from hoodie import config as options
from hoodie.commit.writable import check_features
from hoodie.config import Option, indexes, writes
from hoodie.config.option import checked_text
from hoodie.errors import InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.files.table_properties import create_table_config
from hoodie.format.filenames import name_of
from hoodie.format.log.cdc_block import CdcMode
from hoodie.format.schema.arrow_types import type_at
from hoodie.format.schema.table_schema import new_table_avro, normalise, without_columns, without_meta_fields
from hoodie.format.table import table_keys as keys
from hoodie.format.table.call_options import MERGE_RULE, check_texts, is_merge_rule, partition_types, time_options
from hoodie.format.table.key_generator import KeyGeneratorType
from hoodie.format.table.merge_config import MergeMode, MergeRule, rule_of_payload
from hoodie.format.table.table_config import TableConfig, TableType, TimelineZone
from hoodie.format.table.table_creation import NewTable, new_table_config
from hoodie.format.table.versions import VERSIONS, TableVersion
from hoodie.index import INDEXES, RECORD, SIMPLE, IndexKind, index_kind, table_index
from hoodie.metadata.kinds.bloom_filters import filter_options
from hoodie.metadata.kinds.registry import KINDS
from hoodie.records.keys.key_generator import table_key_generator
from hoodie.records.merging.merge import table_merger
from hoodie.records.merging.mergers import MergeFunction, check_merger, register_merger
from hoodie.storage import Store
from hoodie.write.options import check_moves_merge, check_no_duplicates, check_storable

_MERGE_MODES = {"event_time": MergeMode.EVENT_TIME_ORDERING, "commit_time": MergeMode.COMMIT_TIME_ORDERING}
_TYPES = {
    "copy_on_write": TableType.COPY_ON_WRITE,
    "cow": TableType.COPY_ON_WRITE,
    "merge_on_read": TableType.MERGE_ON_READ,
    "mor": TableType.MERGE_ON_READ,
}
_MERGER_NAMESPACE = uuid.UUID("6e0c7a3e-4a5f-5f0b-9d0a-6f1c2f9b7d10")
"""Namespace of the merge strategy ids of Python mergers. On disk: do not change."""
_DELETE_KEYS = frozenset({keys.DELETE_FIELD, keys.DELETE_MARKER})
_HIVE_STYLE = Option(keys.HIVE_STYLE, True, "0.4", "Partition folders are named column=value.")
_URL_ENCODE = Option(keys.URL_ENCODE, False, "0.4", "Partition values are encoded as in a URL.")
_SLASHES = Option(keys.SLASH_SEPARATED_DATES, False, "1.1", "Dates are folders yyyy/MM/dd.")
_META_FIELDS = Option(keys.POPULATE_META_FIELDS, True, "0.9", "Rows have values of the meta columns.")
_DROPS = Option(keys.DROP_PARTITION_COLUMNS, False, "0.10", "Data files lack the partition columns.")
_TIMEZONE = Option(keys.TIMEZONE, "utc", "0.9", "Zone of instant times.", parse=options.one_of("utc", "local"))
_CDC = Option(keys.CDC_ENABLED, False, "0.13", "Writes log change data.")
_CDC_MODE = Option(
    keys.CDC_LOGGING_MODE,
    "data_before_after",
    "0.13",
    "What is logged of each change.",
    parse=options.one_of(*(mode.lower() for mode in CdcMode)),
)
_SET_BY_ARGUMENTS = {
    indexes.INDEX_TYPE_KEY,
    writes.PYTHON_MERGER_KEY,
    *(switch.key for kind in INDEXES for switch in kind.switches),
}
_CREATION_KEYS = frozenset(
    {_HIVE_STYLE.key, _URL_ENCODE.key, _SLASHES.key, _TIMEZONE.key, _CDC.key, _CDC_MODE.key, keys.DATABASE}
    | {_META_FIELDS.key, _DROPS.key, *MERGE_RULE}
    | _DELETE_KEYS
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateOptions:
    """The keyword arguments of `hoodie.create`."""

    record_key: str | Sequence[str] | None = None
    partition_by: str | Sequence[str] | None = ()
    ordering: str | Sequence[str] | None = None
    type: str = "copy_on_write"
    index: str | None = None
    name: str | None = None
    table_version: int | None = None
    merge_mode: str | MergeFunction | None = None
    key_generator: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def merge_function(self) -> MergeFunction | None:
        """The Python merger, if the merge mode is one."""
        return self.merge_mode if callable(self.merge_mode) else None


def create_table(store: Store, schema: pa.Schema, wanted: CreateOptions) -> TableConfig:
    """Create the table's properties in the store; nothing else is written before the first commit.

    Raises: TableExistsError; InvalidConfigError for contradictory or unknown options; SchemaMismatchError for columns
    that the schema lacks; UnsupportedError for features that this release does not support.
    """
    config = table_config(schema, wanted, default_name=default_name(store))
    create_table_config(store, config)
    register_merging(wanted)
    return config


def register_merging(wanted: CreateOptions) -> None:
    """Register the merge function of a table that was created or compared; a call that failed registers nothing."""
    if wanted.merge_function is not None:
        register_merger(getattr(wanted.merge_function, "__name__", ""), wanted.merge_function)


def table_config(schema: pa.Schema, wanted: CreateOptions, *, default_name: str) -> TableConfig:
    """Return the checked properties of a new table. Raises: as `create_table`."""
    _check_supported(wanted)
    _check_properties(wanted.properties)
    columns = normalise(without_meta_fields(schema))
    record_key, ordering = _names(wanted.record_key), _names(wanted.ordering)
    partition_by, partition_types = _split_types(_names(wanted.partition_by))
    _check_columns(columns, "record_key", record_key)
    _check_columns(columns, "partition_by", partition_by)
    _check_columns(columns, "ordering", ordering)
    if any("." in name for name in ordering):
        raise UnsupportedError(
            f"ordering={list(ordering)}: expected top-level columns; copy the nested field to a top-level column"
        )
    if partition_by and (wanted.key_generator or "").upper() == KeyGeneratorType.NON_PARTITION.value:
        raise InvalidConfigError(
            f"key_generator='non_partition' contradicts partition_by={list(partition_by)}: omit one of the two"
        )
    mode, merging = _merging(wanted, ordering)
    properties = dict(wanted.properties)
    kind = _index(wanted, has_record_key=bool(record_key))
    payload = properties.get(keys.PAYLOAD_CLASS)
    moves = mode is not MergeMode.CUSTOM and (payload is None or _rule_of(payload).partial_update_mode is None)
    index = kind.stored_properties(properties, moves_by_default=moves, record_key=record_key)
    _check_index_options(kind, properties)
    if not record_key:
        check_no_duplicates(properties)
    filter_options(properties)
    name = checked_text("name", wanted.name or default_name)
    _check_columns(columns, keys.DELETE_FIELD, _names(properties.get(keys.DELETE_FIELD)))
    extra = {key: value for key, value in properties.items() if key not in _CREATION_KEYS}
    extra |= {keys.MERGE_PROPERTY_PREFIX + key: properties[key] for key in sorted(_DELETE_KEYS & properties.keys())}
    logs_changes = _CDC.get(properties) or _CDC_MODE.key in properties
    version, drops = _version(wanted), _DROPS.get(properties)
    config = new_table_config(
        NewTable(
            name=name,
            database=properties.get(keys.DATABASE),
            table_type=_type(wanted),
            version=version,
            archive_folder=version.archive_folder,
            record_key_fields=record_key,
            partition_fields=partition_by,
            partition_field_types=partition_types,
            ordering_fields=ordering,
            key_generator=None if wanted.key_generator is None else _key_generator(wanted.key_generator),
            is_hive_style=_HIVE_STYLE.get(properties),
            is_url_encoded=_URL_ENCODE.get(properties),
            has_slash_separated_dates=_SLASHES.get(properties),
            populates_meta_fields=_META_FIELDS.get(properties),
            drops_partition_columns=drops,
            merge_mode=mode,
            payload_class=payload,
            is_cdc_enabled=_CDC.get(properties),
            cdc_logging_mode=_CDC_MODE.get(properties).upper() if logs_changes else None,
            timezone=TimelineZone(_TIMEZONE.get(properties).upper()),
            create_schema=without_columns(new_table_avro(columns, table_name=name), partition_by if drops else ()),
            extra={**extra, **index, **merging},
        )
    )
    check_moves_merge(kind, {**properties, **index}, table_merger(config, wanted.merge_function))
    check_features(config, name, "write")
    _check_key_generator(config, wanted)
    return config


def _check_key_generator(config: TableConfig, wanted: CreateOptions) -> None:
    """Refuse types and time formats of partition columns that the key generator does not use, and unknown ones."""
    is_custom, given = config.key_generator is KeyGeneratorType.CUSTOM, time_options(wanted.properties)
    if config.partition_field_types and not is_custom:
        raise InvalidConfigError(
            f"partition_by={list(_names(wanted.partition_by))}: types of partition columns require "
            f"key_generator='custom', found {config.key_generator.lower()!r}; pass it, or omit the types"
        )
    types = partition_types(config, wanted.properties) if is_custom else ()
    has_times = config.key_generator is KeyGeneratorType.TIMESTAMP or "TIMESTAMP" in types
    # Calls take time formats without a time: scripts and sessions set the options of all their tables.
    if given and not has_times and (types or not is_custom):
        raise InvalidConfigError(
            f"{given[0]} has no effect: no partition field of table {config.name!r} is a time, which requires "
            "key_generator='timestamp', or 'custom' with partition_by='column:timestamp'; omit the option"
        )
    generator = table_key_generator(config)
    generator.expect_known_encoding()
    generator.expect_known_paths()


def check_same_table(config: TableConfig, wanted: CreateOptions) -> None:
    """Refuse options that differ from those of an existing table, and register the merge function.

    Omitted options are not compared, except `type` and `index`, whose defaults are compared too.

    Raises: InvalidConfigError, naming the option.
    """
    partition_by, types = _split_types(_names(wanted.partition_by))
    asked: dict[str, tuple[object, object]] = {"type": (_type(wanted), config.table_type)}
    index = _index(wanted, has_record_key=bool(config.record_key_fields))
    asked["index"] = (index.name, table_index(config).name)
    if wanted.name is not None:
        asked["name"] = (wanted.name, config.name)
    if wanted.record_key is not None:
        asked["record_key"] = (_names(wanted.record_key), config.record_key_fields)
    if partition_by:
        asked["partition_by"] = (partition_by, config.partition_fields)
    if types:
        asked["partition_by"] = ((partition_by, types), (config.partition_fields, config.partition_field_types))
    if wanted.ordering is not None:
        asked["ordering"] = (_names(wanted.ordering), config.ordering_fields)
    if wanted.table_version is not None:
        asked["table_version"] = (wanted.table_version, config.version.value)
    if wanted.key_generator is not None:
        asked["key_generator"] = (_key_generator(wanted.key_generator), config.key_generator)
    if wanted.merge_mode is not None and not config.names_no_payload:
        mode, merging = _merging(wanted, config.ordering_fields)
        stored_name = config.raw.get(writes.PYTHON_MERGER_KEY)
        asked["merge_mode"] = ((mode, merging.get(writes.PYTHON_MERGER_KEY)), (config.merge_rule.mode, stored_name))
    _check_properties(dict(wanted.properties))
    for key, value in wanted.properties.items():
        if key in MERGE_RULE and is_merge_rule(config, key, value):
            continue
        stored = config.raw.get(key, config.raw.get(keys.MERGE_PROPERTY_PREFIX + key))
        asked[key] = (value.strip().lower(), None if stored is None else stored.strip().lower())
    for option, (given, found) in asked.items():
        if given != found:
            raise InvalidConfigError(
                f"the table exists with {option}={found}, but the call has {given}; use the value of the table"
            )
    register_merging(wanted)


def _version(wanted: CreateOptions) -> TableVersion:
    if wanted.table_version is None:
        return TableVersion.NINE
    found = next((version for version in VERSIONS if version.value == wanted.table_version), None)
    if found is None:
        numbers = ", ".join(str(version.value) for version in VERSIONS)
        raise UnsupportedError(f"table_version={wanted.table_version}: expected one of {numbers}")
    return found


def _type(wanted: CreateOptions) -> TableType:
    found = _TYPES.get(wanted.type.lower())
    if found is None:
        raise InvalidConfigError(f"type={wanted.type!r}: expected 'copy_on_write' or 'merge_on_read'")
    return found


def _check_supported(wanted: CreateOptions) -> None:
    is_merged_late = _type(wanted) is TableType.MERGE_ON_READ and callable(wanted.merge_mode)
    index = _index(wanted, has_record_key=bool(wanted.record_key))
    if is_merged_late and (index.metadata_partition is not None or index.update is not None):
        raise UnsupportedError(
            f"index={index.name!r} with a Python merger on a merge-on-read table: the merger deletes records only "
            "when logs are merged, after the write updated the index; use index='simple' or 'global_simple'"
        )
    version = _version(wanted)
    if len(_names(wanted.ordering)) > 1 and not version.has_several_ordering_fields:
        raise UnsupportedError(
            f"ordering={list(_names(wanted.ordering))}: expected one column in a table of version {version.value}, as "
            "older Hudi releases know no more; name one column, or create version 9"
        )
    for kind in KINDS.named:
        switch = kind.switch
        if switch is None or switch.key not in wanted.properties or kind.is_written_in(version):
            continue
        if switch.get(wanted.properties):
            raise UnsupportedError(
                f"{switch.key}=true: tables of version {version.value} have no {kind.subject or kind.name}; omit "
                "the option, or create version 9"
            )
    if not wanted.record_key and wanted.ordering:
        raise InvalidConfigError(
            f"ordering={wanted.ordering!r} requires record_key: it selects the newest version of a record, and without "
            "a record key each row gets a new automatic key; omit it, or name the key columns"
        )


def _index(wanted: CreateOptions, *, has_record_key: bool) -> IndexKind:
    """Return the index. Without a record key the default costs appends nothing (docs/automatic-keys.md).

    So does the default of a version whose writers drop an index that their own options do not enable.
    """
    version, has_meta_fields = _version(wanted), _META_FIELDS.get(wanted.properties)
    if wanted.index is None:
        return RECORD if has_record_key and has_meta_fields and version.keeps_record_index else SIMPLE
    kind = index_kind(wanted.index)
    if kind.metadata_partition is not None and not kind.metadata_partition.is_written_in(version):
        if not has_meta_fields:
            return kind  # refused with the other features of such tables
        raise UnsupportedError(
            f"index={kind.name!r}: tables of version {version.value} do not have it; choose 'record', 'simple', "
            "'bloom', or 'bucket', or create version 9"
        )
    return kind


def _names(value: str | Sequence[str] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    return tuple(checked_text("column name", name) for name in ((value,) if isinstance(value, str) else value))


def _split_types(fields: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split `field:TYPE` of custom key generators into names and types; plain fields have no types."""
    pairs = [field.partition(":") for field in fields]
    types = tuple(kind.upper() for _, _, kind in pairs)
    return tuple(name for name, _, _ in pairs), types if any(types) else ()


def _check_columns(schema: pa.Schema, option: str, names: tuple[str, ...]) -> None:
    """Check that every named column exists, once; a dot separates a struct column from its field."""
    for name in names:
        if type_at(schema, name) is None:
            raise SchemaMismatchError(f"{option}={name!r}: expected a column of the schema, {schema.names}")
    if len(set(names)) != len(names):
        raise InvalidConfigError(f"{option}={list(names)} names a column twice")


def _merging(wanted: CreateOptions, ordering: tuple[str, ...]) -> tuple[MergeMode, dict[str, str]]:
    """Return the merge mode, and the properties that identify a Python merger."""
    mode = _asked_mode(wanted)
    if mode is None:
        return _MERGE_MODES["event_time" if ordering else "commit_time"], {}
    if callable(mode):
        name = getattr(mode, "__name__", "")
        check_merger(name, mode)
        strategy = str(uuid.uuid5(_MERGER_NAMESPACE, name))
        return MergeMode.CUSTOM, {writes.PYTHON_MERGER_KEY: name, keys.MERGE_STRATEGY_ID: strategy}
    if mode not in _MERGE_MODES:
        raise InvalidConfigError(f"merge_mode={mode!r}: expected 'event_time', 'commit_time' or a function")
    if mode == "event_time" and not ordering:
        raise InvalidConfigError("merge_mode='event_time' requires ordering=<column>; add it, or use 'commit_time'")
    return _MERGE_MODES[mode], {}


def _asked_mode(wanted: CreateOptions) -> str | MergeFunction | None:
    """Return the merge mode of the arguments, else of the properties. Raises: InvalidConfigError if they contradict."""
    names = {key: wanted.properties[key] for key in MERGE_RULE if key in wanted.properties}
    modes = [text if key == keys.MERGE_MODE else _rule_of(text).mode.value for key, text in names.items()]
    asked = [*(() if wanted.merge_mode is None else (wanted.merge_mode,)), *(mode.strip().lower() for mode in modes)]
    found = [mode.removesuffix("_ordering") if isinstance(mode, str) else mode for mode in asked]
    if any(mode != found[0] for mode in found):
        given = {} if wanted.merge_mode is None else {"merge_mode": wanted.merge_mode}
        raise InvalidConfigError(f"{given | names} are different merge rules: omit all but one")
    return found[0] if found else None


def _rule_of(payload_class: str) -> MergeRule:
    rule = rule_of_payload(payload_class)
    if rule is None:
        raise UnsupportedError(
            f"{keys.PAYLOAD_CLASS}={payload_class!r} exists only in JVM Hudi; pass a Python function as merge_mode, or "
            "create the table with JVM Hudi"
        )
    return rule


def _key_generator(name: str) -> KeyGeneratorType:
    try:
        return KeyGeneratorType(name.upper())
    except ValueError as error:
        known = ("simple", "complex", "non_partition", "timestamp", "custom")
        raise InvalidConfigError(f"key_generator={name!r}: expected one of {', '.join(known)}") from error


def _check_index_options(kind: IndexKind, properties: Mapping[str, str]) -> None:
    """Refuse options of another index."""
    for other in INDEXES:
        given = [option.key for option in other.own_options if option.key in properties]
        if given and other is not kind and other.own_options != kind.own_options:
            raise InvalidConfigError(f"{given[0]} is an option of index={other.name!r}; this table has {kind.name!r}")


def _check_properties(properties: Mapping[str, str]) -> None:
    check_texts("properties", properties)
    if fixed := properties.keys() & _SET_BY_ARGUMENTS:
        raise InvalidConfigError(f"{sorted(fixed)}: use the arguments index= and merge_mode= instead")
    options.check_options(properties, also_known=(*_CREATION_KEYS, *time_options(properties)))
    options.check_sizes(properties)
    check_storable(properties)


def default_name(store: Store) -> str:
    """Return the last folder of the path as a valid Avro name."""
    last = name_of(store.uri("").rstrip("/"))
    return re.sub(r"[^A-Za-z0-9_]", "_", last) or "table"
