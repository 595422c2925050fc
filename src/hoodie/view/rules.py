"""How a table makes keys, merges records and writes log blocks, by its properties."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from hoodie.config import LOG_BLOCK_FORMAT, PYTHON_MERGER
from hoodie.errors import UnsupportedError
from hoodie.files.merged_slice import SliceRead
from hoodie.format.log.data_block import DataFormat
from hoodie.format.table import table_keys as keys
from hoodie.format.table.merge_config import MergeMode
from hoodie.format.table.table_config import TableConfig, TableType
from hoodie.records.keys.key_generator import KeyGenerator, key_generator_for
from hoodie.records.merging.merge import RecordMerger
from hoodie.records.merging.mergers import registered_merger


def table_key_generator(config: TableConfig, properties: Mapping[str, str] | None = None) -> KeyGenerator:
    """The key generator of a table.

    `properties` of a write supply `hoodie.keygen.timebased.*` if the table stores none: the JVM stores them with the
    timestamp generator, but not with the custom one.

    Raises: UnsupportedError for a key generator that only the JVM has.
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
    """The table's merge rule; a custom rule uses the function that this program registered.

    Raises: UnsupportedError for a JVM merger, and for ordering fields inside structs; InvalidConfigError if the Python
    merger is not registered.
    """
    mode = config.merge_rule.mode
    nested = [name for name in config.ordering_fields if "." in name]
    if nested and mode is not MergeMode.COMMIT_TIME_ORDERING:
        raise UnsupportedError(
            f"table {config.name!r} orders versions of a record by {nested[0]!r}, inside a struct, which this release "
            "does not do; write it with JVM Hudi"
        )
    if mode is not MergeMode.CUSTOM:
        ordering = config.ordering_fields if mode is MergeMode.EVENT_TIME_ORDERING else ()
        return RecordMerger(mode, ordering)
    name = PYTHON_MERGER.get(config.raw)
    if not name:
        raise UnsupportedError(
            f"table {config.name!r} merges with {config.merge_rule.merger or config.payload_class!r}, which "
            "only the JVM has; write it with JVM Hudi, or create a table with a Python merger"
        )
    return RecordMerger(mode, config.ordering_fields, registered_merger(name))


def slice_read(config: TableConfig, schema: pa.Schema, merger: RecordMerger | None = None) -> SliceRead:
    """How file slices of a table are read, all columns of `schema` (meta columns among them).

    `merger`: the table's, if the caller has it. On copy-on-write tables nothing is merged, whatever the rule is.

    Raises: as `table_merger`, on merge-on-read tables.
    """
    if merger is None:
        is_merged = config.table_type is TableType.MERGE_ON_READ
        merger = table_merger(config) if is_merged else RecordMerger(MergeMode.COMMIT_TIME_ORDERING)
    rule = config.merge_rule
    return SliceRead(
        schema=schema,
        columns=tuple(schema.names),
        merger=merger,
        delete_field=rule.delete_field,
        delete_marker=rule.delete_marker,
        partial_update_mode=rule.partial_update_mode,
        unavailable_value=rule.unavailable_value,
    )


def log_block_format(config: TableConfig, schema: pa.Schema, properties: Mapping[str, str]) -> DataFormat:
    """Format of data blocks: as in the properties, by default Parquet.

    The default is Avro if the ordering field is a text: from Parquet blocks JVM Hudi 1.2.0 takes the wrong versions.
    """
    by_text = any(pa.types.is_string(schema.field(name).type) for name in config.ordering_fields)
    if by_text and LOG_BLOCK_FORMAT.key not in properties:
        return DataFormat.AVRO
    return DataFormat(LOG_BLOCK_FORMAT.get(properties))
