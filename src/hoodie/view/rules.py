"""Derive the key generator, the merge rule and the log block format of a table from its properties."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from hoodie.config import LOG_BLOCK_FORMAT, PYTHON_MERGER
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.files.logs.leftovers import CommitRecords
from hoodie.files.merged_slice import SliceRead
from hoodie.format.log.data_block import DataFormat
from hoodie.format.table import table_keys as keys
from hoodie.format.table.merge_config import MergeMode
from hoodie.format.table.table_config import TableConfig, TableType
from hoodie.records.keys.key_generator import KeyGenerator, key_generator_for
from hoodie.records.merging.merge import RecordMerger
from hoodie.records.merging.mergers import registered_merger
from hoodie.timeline import layout_for


def table_key_generator(config: TableConfig, properties: Mapping[str, str] | None = None) -> KeyGenerator:
    """Return the key generator of a table.

    If the table does not store `hoodie.keygen.timebased.*`, these options are taken from `properties`, the options of a
    write. The JVM stores them for the timestamp key generator, but not for the custom key generator.

    Raises: UnsupportedError for a key generator that exists only in JVM Hudi.
    """
    prefix = keys.TIMEBASED_PREFIX
    given = {key.removeprefix(prefix): text for key, text in (properties or {}).items() if key.startswith(prefix)}
    return key_generator_for(
        kind=config.key_generator,
        record_key_fields=config.record_key_fields,
        partition_fields=config.partition_fields,
        partition_field_types=config.partition_field_types,
        hive_style=config.is_hive_style,
        url_encode=config.is_url_encoded,
        slash_separated_dates=config.has_slash_separated_dates,
        table_version=config.version,
        timestamp_options={**given, **config.timestamp_options},
    )


def table_merger(config: TableConfig) -> RecordMerger:
    """Return the table's merge rule; a custom rule uses the function that this program registered.

    Raises: UnsupportedError for a JVM merger, and for ordering fields inside structs; InvalidConfigError if the Python
    merger is not registered.
    """
    mode = config.merge_rule.mode
    nested = [name for name in config.ordering_fields if "." in name]
    if nested and mode is not MergeMode.COMMIT_TIME_ORDERING:
        raise UnsupportedError(
            f"the ordering field {nested[0]!r} of table {config.name!r} is inside a struct, which this release does "
            "not support; write to the table with JVM Hudi"
        )
    if mode is not MergeMode.CUSTOM:
        ordering = config.ordering_fields if mode is MergeMode.EVENT_TIME_ORDERING else ()
        return RecordMerger(mode, ordering)
    name = PYTHON_MERGER.get(config.raw)
    if not name:
        raise UnsupportedError(
            f"table {config.name!r} merges with {config.merge_rule.merger or config.payload_class!r}, which exists "
            "only in JVM Hudi; write to the table with JVM Hudi, or create a table with a Python merger"
        )
    return RecordMerger(mode, config.ordering_fields, registered_merger(name))


def check_ordering(merger: RecordMerger, schema: pa.Schema, config: TableConfig) -> None:
    """Check that the columns by which a merge orders exist.

    Raises: InvalidConfigError that names the column.
    """
    missing = [name for name in merger.ordering_columns if schema.get_field_index(name) < 0]
    if missing:
        raise InvalidConfigError(
            f"table {config.name!r}: ordering field {missing[0][:100]!r} expected among its columns, found "
            f"{', '.join(schema.names)[:500]}; correct hoodie.table.ordering.fields, or add the column"
        )


def slice_read(config: TableConfig, schema: pa.Schema, merger: RecordMerger | None = None) -> SliceRead:
    """Return the options to read file slices of a table with all columns of `schema`, which includes the meta columns.

    `merger` is the table's merger, if the caller already has it. On copy-on-write tables nothing is merged, whatever
    the merge rule is.

    Raises: as `table_merger`, on merge-on-read tables; as `check_ordering`.
    """
    if merger is None:
        is_merged = config.table_type is TableType.MERGE_ON_READ
        merger = table_merger(config) if is_merged else RecordMerger(MergeMode.COMMIT_TIME_ORDERING)
    check_ordering(merger, schema, config)
    rule = config.merge_rule
    return SliceRead(
        schema=schema,
        columns=tuple(schema.names),
        merger=merger,
        delete_field=rule.delete_field,
        delete_marker=rule.delete_marker,
        partial_update_mode=rule.partial_update_mode,
        unavailable_value=rule.unavailable_value,
        commits=_commit_records(config),
        newest_meta_fields=rule.newest_meta_fields,
    )


def _commit_records(config: TableConfig) -> CommitRecords:
    layout = layout_for(config.version, config.timeline_path, zone=config.timezone)
    return CommitRecords(layout, history_path=config.history_path)


def log_block_format(config: TableConfig, schema: pa.Schema, properties: Mapping[str, str]) -> DataFormat:
    """Return the format of data blocks: the format that the properties set, else Parquet.

    If an ordering field is a string, the default is Avro: when JVM Hudi 1.2.0 merges Parquet blocks with such a field,
    it keeps the wrong versions.
    """
    by_text = any(
        pa.types.is_string(schema.field(name).type)
        for name in config.ordering_fields
        if schema.get_field_index(name) >= 0
    )
    if by_text and LOG_BLOCK_FORMAT.key not in properties:
        return DataFormat.AVRO
    return DataFormat(LOG_BLOCK_FORMAT.get(properties))
