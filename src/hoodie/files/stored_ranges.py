"""The ranges of the columns of a stored file: read from a base file's footer, or from a log file's rows.

Writers note the ranges of the files that they write (`column_ranges`). This module serves files of other writers, and
files that were written before the table had column statistics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.errors import CorruptFileError
from hoodie.files.base_file import open_base_file
from hoodie.files.column_ranges import (
    column_of,
    empty_ranges,
    footer_ranges,
    joined_ranges,
    path_of_structs,
    range_of,
    table_ranges,
    typed_columns,
)
from hoodie.files.logs.log_scan import stored_blocks
from hoodie.files.slice_read import SliceRead
from hoodie.files.slices import BaseFile, LogFile
from hoodie.format.log.data_block import read_data_block
from hoodie.format.metadata_table.column_stats import ColumnRange
from hoodie.format.metadata_table.value_types import ValueType
from hoodie.format.schema.conform import conform
from hoodie.storage import Store


def base_file_ranges(store: Store, file: BaseFile, columns: Sequence[str]) -> tuple[ColumnRange, ...]:
    """Return the ranges of a base file, with the types that its columns have in the file.

    Float columns are read, because footers ignore NaN; other columns where a footer has no bounds.
    Memory: one row group of these columns.

    Raises: MissingFileError, CorruptFileError.
    """
    with open_base_file(store, file) as (parquet, _):
        types = typed_columns(columns, parquet.schema_arrow)
        noted = [_unknown_ranges(parquet, number, types, store.uri(file.path)) for number in _groups(parquet)]
        return footer_ranges(parquet.metadata, types, noted)


def log_file_ranges(store: Store, file: LogFile, columns: Sequence[str], read: SliceRead) -> tuple[ColumnRange, ...]:
    """Return the ranges of the rows of a log file, without sizes; a file without rows has ranges without values.

    The rows are those of the file's own blocks, whatever blocks other files of its slice replace. `read.schema` has the
    types of the columns. A column that one of the blocks lacks is left out. Memory: one block.

    Raises: CorruptFileError.
    """
    types = typed_columns(columns, read.schema)
    total: dict[str, ColumnRange] | None = None
    for block in stored_blocks(store, (file,), read.scan_rule):
        if not block.block_type.holds_data:
            continue
        rows = read_data_block(block.read(store), path=store.uri(block.path))
        stored = set(rows.column_names)
        fields = [field for field in read.schema if field.name in stored]
        found = table_ranges(conform(rows, pa.schema(fields), stored=True), types)
        total = found if total is None else joined_ranges(total, found)
    return empty_ranges(types) if total is None else tuple(total.values())


def _groups(parquet: pq.ParquetFile) -> range:
    return range(parquet.metadata.num_row_groups)


def _unknown_ranges(
    parquet: pq.ParquetFile, number: int, types: Mapping[str, ValueType], where: str
) -> dict[str, ColumnRange]:
    """Return the ranges of the columns whose bounds the footer does not have, by reading them."""
    group = parquet.metadata.row_group(number)
    chunks = {group.column(place).path_in_schema: group.column(place) for place in range(group.num_columns)}
    schema = parquet.schema_arrow
    found: dict[str, ColumnRange] = {}
    for name, value_type in types.items():
        chunk = chunks.get(name)
        if chunk is None or path_of_structs(name, schema) is None:
            continue
        told = chunk.statistics
        is_counted = told is not None and told.has_null_count
        is_known = is_counted and (told.has_min_max or told.null_count == chunk.num_values)
        if is_known and not value_type.is_floating:
            continue
        try:
            rows = parquet.read_row_group(number, columns=[name], use_threads=False)
        except (pa.ArrowInvalid, OSError) as error:
            raise CorruptFileError(f"the Parquet data cannot be read ({error})", path=where) from error
        found[name] = range_of(name, value_type, column_of(rows, name))
    return found
