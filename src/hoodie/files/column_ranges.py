"""The range of values of columns: of a base file from its footer, of other rows from Arrow columns.

docs/format/metadata.md §4.4. A Parquet footer has no bounds of values longer than 4096 bytes, and ignores NaN. A writer
that has the rows (`RangeObserver`) adds both, so that ranges are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.files.damage import readable_pages
from hoodie.files.stored_groups import StoredGroups
from hoodie.format.metadata_table.column_stats import ColumnRange
from hoodie.format.metadata_table.value_types import NULL_TYPE, ValueKind, ValueType, raw_values, value_type_of
from hoodie.format.schema.table_schema import META_FIELDS

COMMIT_TIME: Final = "_hoodie_commit_time"
META_COLUMNS: Final = (COMMIT_TIME, "_hoodie_partition_path", "_hoodie_record_key")
"""Meta columns that always have statistics, in the JVM's order."""
_ABOVE_ALL: Final = float("inf")
"""The greatest value where there is NaN, which is above all numbers.

JVM readers cache the rows as a Spark table, and Spark's cached tables lose rows with NaN when they are filtered.
"""
_FILE_NAME: Final = META_FIELDS[4]
_NO_FIELDS: Final = pa.schema([])
_FOOTER_BYTES_MAX: Final = 4096
"""Parquet writers leave out the bounds of a column chunk if one of them is longer."""


def typed_columns(columns: Iterable[str], schema: pa.Schema) -> dict[str, ValueType]:
    """Return the columns that the schema has and whose type has statistics, with the types of their values."""
    found = {name: leaf_type(name, schema) for name in columns}
    types = {name: None if leaf is None else value_type_of(leaf) for name, leaf in found.items()}
    return {name: value_type for name, value_type in types.items() if value_type is not None}


class RangeObserver:
    """Notes what the footer of a base file will not have, while its row groups are written. Memory: two values each."""

    def __init__(self, columns: Sequence[str], schema: pa.Schema) -> None:
        self.types = typed_columns(columns, schema)
        self._stored_types = {name: found for name, found in self.types.items() if name != _FILE_NAME}
        self._groups: list[dict[str, ColumnRange]] = []
        self._watched = [
            (name, found)
            for name, found in self.types.items()
            if (found.is_floating or found.is_text) and path_of_structs(name, schema) is not None
        ]

    def observe(self, rows: pa.Table) -> None:
        """Note the rows of the next row group."""
        self._groups.append(self._noted(rows))

    def _noted(self, rows: pa.Table) -> dict[str, ColumnRange]:
        """Return the ranges of columns of these rows that their footer will not have.

        A column that the rows lack is copied, or added by the writer: its text is shorter than the footer's limit.
        """
        noted: dict[str, ColumnRange] = {}
        for name, found in self._watched:
            if path_of_structs(name, rows.schema) is None:
                continue
            values = column_of(rows, name)
            if found.is_floating:
                # NaN is not in the footer.
                is_needed = pc.any(pc.is_nan(values)).as_py()
            else:
                is_needed = rows.nbytes > _FOOTER_BYTES_MAX and _longest(values) > _FOOTER_BYTES_MAX
            if is_needed:
                noted[name] = range_of(name, found, values)
        return noted

    def observe_copied(self, stored: StoredGroups, group: int, changed: pa.Table | None = None) -> None:
        """Note a row group that is copied, but for the columns `changed`: a column is read if its footer lacks bounds.

        Files of hoodie before 0.4 have NaN outside the bounds of their footers, so that numbers with a fraction are
        always read.
        """
        types, noted = self._stored_types, {}
        if changed is not None:
            types = {name: found for name, found in types.items() if path_of_structs(name, changed.schema) is None}
            noted = self._noted(changed)
        self._groups.append({**unknown_ranges(stored.parquet, group, types, stored.where), **noted})

    def ranges(self, metadata: pq.FileMetaData) -> tuple[ColumnRange, ...]:
        """Return the exact ranges of the file; a column whose bounds are not known is left out."""
        return footer_ranges(metadata, self.types, self._groups)


def footer_ranges(
    metadata: pq.FileMetaData, types: Mapping[str, ValueType], noted: Sequence[Mapping[str, ColumnRange]] = ()
) -> tuple[ColumnRange, ...]:
    """Return the ranges of a file from its footer; `noted` replaces the bounds of row groups.

    A column that a row group lacks, or whose bounds are not known, is left out. NaN is known from `noted` only.
    """
    places = {
        metadata.schema.column(place).path.replace(".array", ".list.element"): place
        for place in range(metadata.num_columns)
    }
    found: list[ColumnRange] = []
    for name, value_type in types.items():
        place = places.get(name)
        if place is None:
            continue
        total: ColumnRange | None = ColumnRange(column=name, type=value_type)
        for number in range(metadata.num_row_groups):
            known = noted[number].get(name) if number < len(noted) else None
            part = _chunk_range(name, value_type, metadata.row_group(number).column(place), known)
            total = None if part is None or total is None else total.joined(part)
        if total is not None:
            found.append(total)
    return tuple(found)


def unknown_ranges(
    parquet: pq.ParquetFile, number: int, types: Mapping[str, ValueType], where: str
) -> dict[str, ColumnRange]:
    """Return the ranges of the columns of a row group whose bounds the footer may lack, by reading them."""
    group = parquet.metadata.row_group(number)
    chunks = {group.column(place).path_in_schema: group.column(place) for place in range(group.num_columns)}
    schema = parquet.schema_arrow
    found: dict[str, ColumnRange] = {}
    for name, value_type in types.items():
        chunk = chunks.get(name)
        if chunk is None or path_of_structs(name, schema) is None:
            continue
        stats = chunk.statistics
        is_counted = stats is not None and stats.has_null_count
        is_known = is_counted and (stats.has_min_max or stats.null_count == chunk.num_values)
        if is_known and not value_type.is_floating:
            continue
        with readable_pages(where):
            rows = parquet.read_row_group(number, columns=[name], use_threads=False)
        found[name] = range_of(name, value_type, column_of(rows, name))
    return found


def table_ranges(rows: pa.Table, types: Mapping[str, ValueType]) -> dict[str, ColumnRange]:
    """Return the ranges of columns of a table, without sizes; columns that it lacks are left out."""
    found, schema = {}, rows.schema
    for name, value_type in types.items():
        if path_of_structs(name, schema) is not None:
            found[name] = range_of(name, value_type, column_of(rows, name))
    return found


def rows_ranges(rows: pa.Table, columns: Iterable[str]) -> tuple[ColumnRange, ...]:
    """Return the ranges of the rows of a log file; without rows, ranges without values."""
    types = typed_columns(columns, rows.schema)
    return tuple(table_ranges(rows, types).values()) if rows.num_rows else empty_ranges(types)


def joined_ranges(older: Mapping[str, ColumnRange], newer: Mapping[str, ColumnRange]) -> dict[str, ColumnRange]:
    """Return the ranges of two sets of rows; a column that one of them lacks is left out."""
    return {name: found.joined(newer[name]) for name, found in older.items() if name in newer}


def empty_ranges(columns: Iterable[str]) -> tuple[ColumnRange, ...]:
    """Return the ranges of a file without rows, for example a log file that has deletes only."""
    return tuple(ColumnRange(column=name, type=NULL_TYPE) for name in columns)


def range_of(name: str, value_type: ValueType, values: pa.ChunkedArray) -> ColumnRange:
    """Return the range of a column of rows, without sizes; NaN counts as infinity."""
    low, high = _bounds(value_type, values)
    return ColumnRange(column=name, type=value_type, low=low, high=high, values=len(values), nulls=values.null_count)


def column_of(rows: pa.Table, name: str) -> pa.ChunkedArray:
    """Return a column, or a field of a struct by its dotted name; a field is null where its struct is."""
    path = path_of_structs(name, rows.schema)
    assert path is not None
    values = rows[path[0]]
    return values if len(path) == 1 else pc.struct_field(values, path[1:])


def _bounds(value_type: ValueType, values: pa.ChunkedArray) -> tuple[Any, Any]:
    has_nan = False
    if value_type.is_floating:
        is_nan = pc.is_nan(values)
        has_nan = bool(pc.any(is_nan).as_py())
        if has_nan:
            values = values.filter(pc.invert(pc.fill_null(is_nan, True)))
    if values.null_count == len(values):
        return (_ABOVE_ALL, _ABOVE_ALL) if has_nan else (None, None)
    found = pc.min_max(values)
    low, high = raw_values(pa.array([found["min"], found["max"]], values.type))
    return low, _ABOVE_ALL if has_nan else high


def _chunk_range(
    name: str, value_type: ValueType, chunk: pq.ColumnChunkMetaData, noted: ColumnRange | None
) -> ColumnRange | None:
    """Return the range of a column chunk; None if its bounds are unknown."""
    statistics = chunk.statistics
    if noted is not None:
        low, high, nulls = noted.low, noted.high, noted.nulls
    elif statistics is None or not statistics.has_null_count:
        return None
    else:
        low, high, nulls = None, None, statistics.null_count
        if nulls < chunk.num_values:
            if not statistics.has_min_max:
                return None
            low, high = (_raw(found, value_type) for found in (statistics.min_raw, statistics.max_raw))
    return ColumnRange(
        column=name,
        type=value_type,
        low=low,
        high=high,
        values=chunk.num_values,
        nulls=nulls,
        size_bytes=chunk.total_compressed_size,
        uncompressed_bytes=chunk.total_uncompressed_size,
    )


def _raw(stored: Any, value_type: ValueType) -> Any:
    """Return the raw value of a bound in a footer."""
    if isinstance(stored, bytes):
        if value_type.kind is ValueKind.DECIMAL:
            return int.from_bytes(stored, "big", signed=True)
        return stored.decode("utf-8", "replace") if value_type.kind is ValueKind.STRING else stored
    return stored


def _longest(values: pa.ChunkedArray) -> int:
    return pc.max(pc.binary_length(values)).as_py() or 0


def leaf_type(name: str, schema: pa.Schema) -> pa.DataType | None:
    """Return the type of a column by its dotted name, which may go through lists and maps as in a Parquet schema."""
    top = _child(schema, name)
    if top is not None:
        return top.type
    fields: pa.Schema | pa.StructType = schema
    parts = name.split(".")
    data_type: pa.DataType | None = None
    while parts:
        found = _child(fields, parts[0])
        if found is None:
            return None
        data_type, parts = found.type, parts[1:]
        while parts and data_type is not None and (pa.types.is_list(data_type) or pa.types.is_map(data_type)):
            data_type, parts = _item(data_type, parts)
        if data_type is None:
            return None
        fields = data_type if pa.types.is_struct(data_type) else _NO_FIELDS
    return data_type


def _child(fields: pa.Schema | pa.StructType, name: str) -> pa.Field | None:
    place = fields.get_field_index(name)
    return None if place < 0 else fields.field(place)


def _item(data_type: pa.DataType, parts: list[str]) -> tuple[pa.DataType | None, list[str]]:
    step = ".".join(parts[:2])
    if pa.types.is_map(data_type):
        items = {"key_value.key": data_type.key_type, "key_value.value": data_type.item_type}
        return items.get(step), parts[2:]
    return (data_type.value_type, parts[2:]) if step == "list.element" else (None, parts)


def path_of_structs(name: str, schema: pa.Schema) -> list[str] | None:
    """Return the names from the top of a column that is in no list and no map; None for another column."""
    if _child(schema, name) is not None:
        return [name]
    path = name.split(".")
    fields: pa.Schema | pa.StructType = schema
    for part in path:
        found = _child(fields, part)
        if found is None:
            return None
        fields = found.type if pa.types.is_struct(found.type) else _NO_FIELDS
    return path
