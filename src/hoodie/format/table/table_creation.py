"""The properties of new tables: the same keys that a JVM writer of the same table version stores.

On-disk format: docs/format/table.md §1.2 (second table and metadata table).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hoodie.errors import InvalidConfigError
from hoodie.format.table import table_keys as keys
from hoodie.format.table.key_generator import KeyGeneratorType, inferred_key_generator, key_generator_properties
from hoodie.format.table.merge_config import METADATA_PAYLOAD_CLASS, PAYLOAD_STRATEGY_ID, MergeMode, merge_properties
from hoodie.format.table.properties import table_checksum
from hoodie.format.table.table_config import BaseFileFormat, TableConfig, TableType, TimelineZone, typed_items
from hoodie.format.table.versions import TableVersion

_HIVE = "org.apache.hudi.hive."


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable:
    """The choices of the creator of a table; all other properties are derived from them.

    `merge_mode` None means event time ordering if there are ordering fields, commit time ordering otherwise.
    `partition_field_types` is for a CUSTOM key generator: SIMPLE or TIMESTAMP for each partition field.
    `archive_folder` is `history` in tables of the Spark writer, `archived` in tables of Spark SQL.
    `extra` is stored unchanged and replaces all other properties with the same key.
    """

    name: str
    database: str | None = None
    table_type: TableType = TableType.COPY_ON_WRITE
    version: TableVersion = TableVersion.NINE
    record_key_fields: tuple[str, ...] = ()
    partition_fields: tuple[str, ...] = ()
    partition_field_types: tuple[str, ...] = ()
    ordering_fields: tuple[str, ...] = ()
    key_generator: KeyGeneratorType | None = None
    key_generator_class: str | None = None
    timestamp_options: Mapping[str, str] = field(default_factory=dict, hash=False)
    is_hive_style: bool = False
    is_url_encoded: bool = False
    has_slash_separated_dates: bool = False
    drops_partition_columns: bool = False
    populates_meta_fields: bool = True
    base_file_format: BaseFileFormat = BaseFileFormat.PARQUET
    merge_mode: MergeMode | None = None
    merge_strategy_id: str | None = None
    payload_class: str | None = None
    is_cdc_enabled: bool = False
    cdc_logging_mode: str | None = None
    create_schema: str | None = None
    timezone: TimelineZone = TimelineZone.LOCAL
    archive_folder: str = "history"
    extra: Mapping[str, str] = field(default_factory=dict, hash=False)


def new_table_config(table: NewTable) -> TableConfig:
    """Build the hoodie.properties of a new table, with the keys in alphabetical order.

    The result lists no metadata partitions: the build of the metadata table adds them when they are complete.

    Raises: InvalidConfigError if the name is empty, or the number of types differs from the number of partition fields.
    """
    if not table.name:
        raise InvalidConfigError("a table requires a name, found an empty one; set `name`")
    if table.partition_field_types and len(table.partition_field_types) != len(table.partition_fields):
        raise InvalidConfigError(
            f"{table.name}: one type for each of the {len(table.partition_fields)} partition fields expected, "
            f"found {len(table.partition_field_types)}"
        )
    raw = _identity(table.name, table.database, table.version)
    raw |= _layout_of_files(table) | _field_lists(table) | _merging(table)
    raw |= {keys.TIMEBASED_PREFIX + option: value for option, value in table.timestamp_options.items()}
    raw |= table.extra
    return TableConfig.from_properties(dict(sorted(raw.items())), path=f"new table {table.name}")


def new_metadata_table_config(data_table: TableConfig) -> TableConfig:
    """Build the hoodie.properties of a data table's metadata table (a merge-on-read table of HFiles)."""
    version = data_table.version
    raw = _identity(f"{data_table.name}_metadata", data_table.database, version) | {
        keys.TYPE: TableType.MERGE_ON_READ.value,
        keys.BASE_FILE_FORMAT: BaseFileFormat.HFILE.value,
        keys.RECORD_KEY_FIELDS: "key",
        keys.KEY_GENERATOR_TYPE: KeyGeneratorType.TABLE_METADATA.value,
        keys.POPULATE_META_FIELDS: "false",
        keys.DROP_PARTITION_COLUMNS: "false",
        keys.PAYLOAD_CLASS: METADATA_PAYLOAD_CLASS,
        keys.MERGE_STRATEGY_ID: PAYLOAD_STRATEGY_ID,
        keys.ARCHIVE_FOLDER: version.archive_folder,
    }
    if version.stores_merge_mode:
        raw[keys.MERGE_MODE] = MergeMode.CUSTOM.value
    return TableConfig.from_properties(dict(sorted(raw.items())), path=f"new metadata table of {data_table.name}")


def _identity(name: str, database: str | None, version: TableVersion) -> dict[str, str]:
    raw = {
        keys.NAME: name,
        keys.VERSION: str(version.value),
        keys.LAYOUT_VERSION: str(version.layout_version),
        keys.CHECKSUM: str(table_checksum(database, name)),
        keys.TIMELINE_PATH: "timeline",
        keys.HISTORY_PATH: "history",
    }
    if database:
        raw[keys.DATABASE] = database
    if version.stores_merge_mode:
        raw[keys.INITIAL_VERSION] = str(version.value)
    return raw


def _layout_of_files(table: NewTable) -> dict[str, str]:
    raw = {
        keys.TYPE: table.table_type.value,
        keys.TABLE_FORMAT: "native",
        keys.BASE_FILE_FORMAT: table.base_file_format.value,
        keys.ARCHIVE_FOLDER: table.archive_folder,
        keys.TIMEZONE: table.timezone.value,
        keys.POPULATE_META_FIELDS: _flag(table.populates_meta_fields),
        keys.CDC_ENABLED: _flag(table.is_cdc_enabled),
        keys.HIVE_STYLE: _flag(table.is_hive_style),
        keys.URL_ENCODE: _flag(table.is_url_encoded),
        keys.DROP_PARTITION_COLUMNS: _flag(table.drops_partition_columns),
        keys.PARTITION_METAFILE_IN_BASE_FORMAT: "false",
    }
    if table.version.stores_merge_mode:
        raw[keys.MULTIPLE_BASE_FILE_FORMATS] = "false"
    if table.has_slash_separated_dates:
        raw[keys.SLASH_SEPARATED_DATES] = "true"
    if table.cdc_logging_mode is not None:
        raw[keys.CDC_LOGGING_MODE] = table.cdc_logging_mode
    if table.create_schema is not None:
        raw[keys.CREATE_SCHEMA] = table.create_schema
    return raw


def _field_lists(table: NewTable) -> dict[str, str]:
    kind = table.key_generator or inferred_key_generator(table.record_key_fields, table.partition_fields)
    raw = key_generator_properties(kind, with_class=table.version.stores_key_generator_class) | {
        # Unlike the other field lists, stored even if empty: that is how the JVM marks a table without partitions.
        keys.PARTITION_FIELDS: ",".join(
            _typed_partition_fields(table) if table.version.stores_partition_field_types else table.partition_fields
        ),
        keys.PARTITION_EXTRACTOR_CLASS: _extractor_class(table),
    }
    if table.key_generator_class is not None:
        raw[keys.KEY_GENERATOR_CLASS] = table.key_generator_class
    if table.partition_field_types and not table.version.stores_partition_field_types:
        raw[keys.TYPED_PARTITION_FIELDS] = ",".join(_typed_partition_fields(table))
    if table.record_key_fields:
        raw[keys.RECORD_KEY_FIELDS] = ",".join(table.record_key_fields)
    if table.ordering_fields:
        raw[table.version.ordering_key] = ",".join(table.ordering_fields)
    return raw


def _typed_partition_fields(table: NewTable) -> tuple[str, ...]:
    if not table.partition_field_types:
        return table.partition_fields
    return typed_items(table.partition_fields, table.partition_field_types)


def _extractor_class(table: NewTable) -> str:
    """Return the class with which the JVM's catalog sync reads partition values from paths; only the sync uses it."""
    if not table.partition_fields:
        return f"{_HIVE}NonPartitionedExtractor"
    if len(table.partition_fields) > 1:
        return f"{_HIVE}MultiPartKeysValueExtractor"
    if table.is_hive_style:
        return f"{_HIVE}HiveStylePartitionValueExtractor"
    return f"{_HIVE}SinglePartPartitionValueExtractor"


def _merging(table: NewTable) -> dict[str, str]:
    by_time = MergeMode.EVENT_TIME_ORDERING if table.ordering_fields else MergeMode.COMMIT_TIME_ORDERING
    return merge_properties(
        table.version,
        mode=table.merge_mode or by_time,
        payload_class=table.payload_class,
        strategy_id=table.merge_strategy_id,
    )


def _flag(value: bool) -> str:
    return "true" if value else "false"
