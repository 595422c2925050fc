"""Detect from stored rows how keys and paths are written, where the table's properties do not define it.

On-disk format: docs/format/table.md §3.3 (COMPLEX keys of one field before table version 9), §1.2 (options of paths).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config.writes import NEW_KEY_ENCODING
from hoodie.errors import InvalidConfigError
from hoodie.files.column_ranges import leaf_type
from hoodie.files.merged_slice import read_file_slice
from hoodie.format.table.key_generator import KeyGeneratorType
from hoodie.format.table.table_keys import PARTITION_FIELDS, TIMEBASED_PREFIX
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.records.keys.key_generator import KeyGenerator, table_key_generator
from hoodie.view.columns import whole_read
from hoodie.view.listing import partition_paths
from hoodie.view.slices import list_slices
from hoodie.view.table_view import TableView

_TIMED: Final = frozenset({KeyGeneratorType.TIMESTAMP, KeyGeneratorType.CUSTOM})
_COMPARED_ROWS: Final = 1000
_SQL_TIME: Final = re.compile(r"(^|[/=])\d{4}-\d\d-\d\d[ +]\d\d(:|%3A)\d\d(:|%3A)\d\d(\.\d+)?(/|$)")


def view_key_generator(view: TableView, properties: Mapping[str, str] | None = None) -> KeyGenerator:
    """Return the key generator of a table; `properties` are the options of a write.

    In a table whose version has two encodings of its keys, the keys are written as those of the stored rows. This costs
    one listing of the table and a read of the first rows of a file slice. In a table without rows, the option decides.

    Raises: InvalidConfigError if the option contradicts the stored rows; as `table_key_generator`.
    """
    generator = _with_sql_times(view, table_key_generator(view.config, properties))
    if not generator.has_two_encodings or not view.config.populates_meta_fields:
        return generator
    if (stored := view.fact(_names_stored_keys)) is None:
        return generator
    if generator.with_names not in (None, stored):
        raise InvalidConfigError(
            f"{view.store.uri('')}: {NEW_KEY_ENCODING.key}={str(stored).lower()} contradicts the stored keys, which "
            f"are {'field:value' if stored else 'bare values'}; omit the option"
        )
    return replace(generator, with_names=stored)


def _names_stored_keys(view: TableView) -> bool | None:
    """Return whether the stored keys are `field:value`; None if the table has no row."""
    (field,) = view.config.record_key_fields
    bare = replace(table_key_generator(view.config), with_names=False)
    if (rows := _first_rows(view, (RECORD_KEY, field), 1)) is None:
        return None
    stored, value = rows.column(RECORD_KEY)[0].as_py(), bare.record_keys(rows, stored=True)[0].as_py()
    if stored not in (value, f"{field}:{value}"):
        raise InvalidConfigError(
            f"{view.store.uri('')}: expected the stored key {value!r} or '{field}:{value}', found {stored!r}; rows of "
            "this table have another key column"
        )
    return bool(stored != value)


def check_given_paths(view: TableView, generator: KeyGenerator, properties: Mapping[str, str]) -> None:
    """Refuse types and time formats of a write that make the partition path of no row of a stored file.

    Nothing is read if the table stores them. Else this costs one listing of the table and a read of the first rows of a
    file slice. Raises: InvalidConfigError, with both paths; as `KeyGenerator.partition_paths`.
    """
    config = view.config
    stored = {*config.raw} - (set() if config.partition_field_types else {PARTITION_FIELDS})
    options = [key for key in properties if key.startswith((PARTITION_FIELDS, TIMEBASED_PREFIX)) and key not in stored]
    if config.key_generator not in _TIMED or generator.time_formats is None or not options:
        return
    if (rows := _first_rows(view, (PARTITION_PATH, *config.partition_fields), _COMPARED_ROWS)) is None:
        return
    paths, made = rows.column(PARTITION_PATH).cast(pa.string()), generator.partition_paths(rows)
    if not pc.any(pc.equal(paths, made)).as_py():
        given = ", ".join(f"{key}={properties[key]}" for key in options)
        raise InvalidConfigError(
            f"{view.store.uri('')}: expected options that make the partition paths of stored rows, such as "
            f"{paths[0].as_py()!r}, found {given}, which make {made[0].as_py()!r}; pass the options with which the "
            "table was written"
        )


def _with_sql_times(view: TableView, generator: KeyGenerator) -> KeyGenerator:
    """Return a generator that makes no path if the table is partitioned by timestamps in the form of the JVM's SQL.

    That writer makes texts without fractions of a second, in the time zone of its session. Others, as its data source
    and `hoodie`, make numbers of microseconds, so that a row would be in two partitions. Nothing is read without a
    timestamp among the partition columns.
    """
    config = view.config
    if config.key_generator in _TIMED or not config.partition_fields:
        return generator
    types = (leaf_type(name, view.schema().arrow) for name in config.partition_fields)
    if not any(found is not None and pa.types.is_timestamp(found) for found in types):
        return generator
    if (path := view.fact(_path_with_text_time)) is None:
        return generator
    refusal = (
        f"{view.store.uri('')}: the partition path {path!r} has a time in the form of the SQL writer of JVM Hudi. Rows "
        "of hoodie are in other partitions, which are numbers of microseconds: write with Spark SQL of JVM Hudi, or "
        "copy the rows into a table that is partitioned by a date or text"
    )
    return replace(generator, time_formats=None, refusal=refusal)


def _path_with_text_time(view: TableView) -> str | None:
    return min(filter(_SQL_TIME.search, partition_paths(view)), default=None)


def _first_rows(view: TableView, fields: Sequence[str], count: int) -> pa.RecordBatch | None:
    """Return at most `count` rows of the smallest file slice that has rows, with the columns of these fields."""
    read = replace(whole_read(view), columns=tuple(dict.fromkeys(field.partition(".")[0] for field in fields)))
    for file_slice in sorted(list_slices(view), key=lambda found: found.size_bytes):
        with closing(read_file_slice(view.store, file_slice, read)) as pieces:
            first = next((piece for piece in pieces if piece.num_rows), None)
        if first is not None:
            return first.slice(0, count).combine_chunks().to_batches()[0]
    return None
