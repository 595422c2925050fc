"""Read log blocks as versions for `records.merging.fold`: rows and deletes, with the table's types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import UnsupportedError
from hoodie.files.logs.log_scan import FoundBlock
from hoodie.files.slice_read import SliceRead
from hoodie.format.avro.schema import META_FIELDS, OPERATION_FIELD, avro_to_arrow
from hoodie.format.log.data_block import read_data_block
from hoodie.format.log.delete_block import DeleteRecords
from hoodie.format.log.log_block import BlockType, HeaderKey, LogBlock
from hoodie.format.schema.arrow_types import blanks
from hoodie.format.schema.conform import conform
from hoodie.records.change import IS_DELETED, KIND, RECORD_KEY
from hoodie.records.merging.fold import VersionKind
from hoodie.records.merging.merge import HAS, Mask, delete_ordering
from hoodie.storage import Store

_DELETING_OPERATIONS = ("D", "-U")


class VersionReader:
    """Reads log blocks of one table as versions, with only the columns that the read needs."""

    def __init__(self, store: Store, read: SliceRead, *, is_partial: bool) -> None:
        """`is_partial`: some blocks have only some of the columns; the versions get HAS columns that mark these."""
        self._store = store
        self._read = read
        self._ordering = read.merger.logged_ordering
        self._row_schema = pa.schema([read.schema.field(name).with_nullable(True) for name in read.merged_columns])
        self._delete_ordering = delete_ordering(read.merger, self._row_schema)
        self._optional = [name for name in self._row_schema.names if name not in META_FIELDS] if is_partial else []
        has = [pa.field(HAS + name, pa.bool_()) for name in self._optional]
        self.schema = pa.schema([pa.field(KIND, pa.int8()), *self._row_schema, *has])

    def entries(self, block: FoundBlock) -> pa.Table:
        """Return the versions in one block, in the block's order. Memory: the block, and its needed columns.

        Raises:
            CorruptFileError: the content of the block does not match its headers.
            UnsupportedError: the rows have no record keys (tables without meta fields).
        """
        found = block.read(self._store)
        path = self._store.uri(block.path)
        return self._deletes(found, path) if found.block_type is BlockType.DELETE else self._rows(found, path)

    def _rows(self, block: LogBlock, path: str) -> pa.Table:
        columns, instant_time = self._read.stored, block.headers.get(HeaderKey.INSTANT_TIME, "")
        needed = {*self._row_schema.names, *self._read.delete_columns}
        stored = read_data_block(block, path=path, columns=columns.logged_columns(needed, instant_time))
        rows = columns.log_rows(stored, self._row_schema, instant_time)
        if rows[RECORD_KEY].null_count:
            raise UnsupportedError(
                f"{path}: found logged rows without record keys, but this release merges by key; use JVM Hudi"
            )
        is_delete = self._is_delete(stored)
        kinds = np.full(rows.num_rows, VersionKind.ROW, np.int8)
        if is_delete is not None:
            kinds[is_delete] = VersionKind.DELETE_IN_ORDER
            kinds[is_delete & self._lacks_ordering(rows)] = VersionKind.DELETE
        names = columns.names_at(instant_time)
        found = set(stored.column_names)
        brings = [np.full(rows.num_rows, names.get(name, name) in found) for name in self._optional]
        arrays = [
            pa.chunked_array([pa.array(kinds)]),
            *rows.columns,
            *(pa.chunked_array([pa.array(b)]) for b in brings),
        ]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def _is_delete(self, rows: pa.Table) -> Mask | None:
        """Mark the logged rows that are deletes; return None if the rows have no column that marks deletes."""
        found: list[pa.ChunkedArray] = []
        names = rows.column_names
        if IS_DELETED in names and pa.types.is_boolean(rows[IS_DELETED].type):
            found.append(rows[IS_DELETED])
        if OPERATION_FIELD in names:
            found += [pc.equal(rows[OPERATION_FIELD], text) for text in _DELETING_OPERATIONS]
        field, marker = self._read.delete_field, self._read.delete_marker
        if field is not None and marker is not None and field in names:
            found.append(pc.equal(rows[field].cast(pa.string()), marker))
        masks = [np.asarray(pc.fill_null(mask, False)) for mask in found]
        return np.logical_or.reduce(masks) if masks else None

    def _lacks_ordering(self, rows: pa.Table) -> Mask:
        """Mark rows without an ordering value: no ordering field, null, or the Java Integer 0, which means no value."""
        if len(self._ordering) != 1:
            return np.full(rows.num_rows, not self._ordering)
        values = rows[self._ordering[0]]
        if pa.types.is_int32(values.type):
            return np.asarray(pc.fill_null(pc.equal(values, 0), True))
        return np.asarray(values.is_null())

    def _deletes(self, block: LogBlock, path: str) -> pa.Table:
        deletes = DeleteRecords.parse(block.content, path=path, offset=block.content_offset)
        count = len(deletes)
        ordering = self._ordering_of(deletes, block.headers.get(HeaderKey.SCHEMA))
        kinds = np.full(count, VersionKind.DELETE, np.int8)
        if ordering is not None:
            kinds[np.asarray(deletes.ordering.is_valid())] = VersionKind.DELETE_RECORD
        given = {KIND: pa.array(kinds), RECORD_KEY: deletes.record_keys, **(ordering or {})}
        # A delete has nulls in the other columns, and false in HAS columns.
        columns = [
            given[field.name]
            if field.name in given
            else blanks(field.type, count, is_null=not field.name.startswith(HAS))
            for field in self.schema
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _ordering_of(self, deletes: DeleteRecords, block_schema: str | None) -> dict[str, pa.Array] | None:
        """Return ordering values by field; None if the deletes have no ordering values of the fields' types.

        Deletes without ordering values always win. `block_schema` contains the types that the fields had when the block
        was written: values of these types are widened, like the rows of data blocks.
        """
        ordering = deletes.ordering
        if not self._delete_ordering or ordering.null_count == len(ordering):
            return None
        parts: Sequence[pa.Array] = ordering.flatten() if pa.types.is_struct(ordering.type) else [ordering]
        if len(parts) != len(self._delete_ordering):
            return None
        values: dict[str, pa.Array] = {}
        for name, part in zip(self._delete_ordering, parts, strict=True):
            wanted = self._row_schema.field(name).type
            if not _is_comparable(part, wanted) and not _was_widened(part, wanted, name, block_schema):
                return None
            is_null = part.null_count == len(part)
            values[name] = pa.nulls(len(part), wanted) if is_null else _widened(part, wanted, name)
        return values


def _is_comparable(found: pa.Array, wanted: pa.DataType) -> bool:
    """Return whether the JVM can compare values of the two types: they have the same Java class."""
    if found.type.equals(wanted) or found.null_count == len(found):
        return True
    if pa.types.is_timestamp(wanted) and pa.types.is_int64(found.type):
        return True
    if pa.types.is_date32(wanted) and pa.types.is_int32(found.type):
        return True
    kinds = (pa.types.is_timestamp, pa.types.is_decimal, pa.types.is_time, pa.types.is_binary, pa.types.is_string)
    return any(is_kind(found.type) and is_kind(wanted) for is_kind in kinds)


def _was_widened(found: pa.Array, wanted: pa.DataType, name: str, block_schema: str | None) -> bool:
    """Return whether numbers have the type that the field had when they were logged, and the type was widened since."""
    is_number = (pa.types.is_integer, pa.types.is_floating)
    if block_schema is None or not all(any(is_kind(kind) for is_kind in is_number) for kind in (found.type, wanted)):
        return False
    logged = avro_to_arrow(block_schema)
    return name in logged.names and bool(logged.field(name).type.equals(found.type))


def _widened(part: pa.Array, wanted: pa.DataType, name: str) -> pa.Array:
    """Convert ordering values to the type of the field, numbers as in rows of the table."""
    if not pa.types.is_floating(part.type):
        return pc.cast(part, wanted, safe=False)
    rows = pa.record_batch([part], [name])
    return conform(rows, pa.schema([pa.field(name, wanted)]), stored=True).column(0)


def delete_keys(store: Store, blocks: Sequence[FoundBlock], *, in_order: bool) -> Iterator[pa.StringArray]:
    """Yield the keys of delete blocks, block by block; without `in_order` only of deletes without an ordering value."""
    for block in blocks:
        if block.block_type is BlockType.DELETE:
            found = block.read(store)
            path = store.uri(block.path)
            deletes = DeleteRecords.parse(found.content, path=path, offset=found.content_offset)
            yield deletes.record_keys if in_order else deletes.record_keys.filter(deletes.ordering.is_null())


def row_keys(store: Store, blocks: Sequence[FoundBlock]) -> Iterator[pa.ChunkedArray]:
    """Yield the keys of data blocks, block by block."""
    for block in blocks:
        if block.block_type.holds_data:
            found = block.read(store)
            yield read_data_block(found, path=store.uri(block.path), columns=[RECORD_KEY])[RECORD_KEY]
