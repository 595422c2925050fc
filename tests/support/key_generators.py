"""Key generators of tables that have no files: their properties are the arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from hoodie.config.writes import NEW_KEY_ENCODING
from hoodie.format.table.key_generator import KeyGeneratorType
from hoodie.format.table.table_config import TableConfig
from hoodie.format.table.versions import TableVersion
from hoodie.records.keys.key_generator import KeyGenerator, table_key_generator

_TABLE: Final = TableConfig.from_properties(
    {
        "hoodie.table.name": "t",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": "9",
        "hoodie.timeline.layout.version": "2",
    },
    path="t",
)


def key_generator_for(
    *,
    kind: KeyGeneratorType | str,
    record_key_fields: Sequence[str],
    partition_fields: Sequence[str] = (),
    partition_field_types: Sequence[str] = (),
    hive_style: bool = False,
    url_encode: bool = False,
    slash_separated_dates: bool = False,
    table_version: TableVersion = TableVersion.NINE,
    timestamp_options: Mapping[str, str] | None = None,
    bare_single_complex_key: bool | None = None,
) -> KeyGenerator:
    config = replace(
        _TABLE,
        key_generator=KeyGeneratorType(kind),
        record_key_fields=tuple(record_key_fields),
        partition_fields=tuple(partition_fields),
        partition_field_types=tuple(partition_field_types),
        is_hive_style=hive_style,
        is_url_encoded=url_encode,
        has_slash_separated_dates=slash_separated_dates,
        version=table_version,
        timestamp_options=timestamp_options or {},
    )
    is_bare = bare_single_complex_key
    return table_key_generator(config, {} if is_bare is None else {NEW_KEY_ENCODING.key: str(is_bare).lower()})
