"""Footers of Parquet files: row groups that are copied to another file, and bounds of column chunks that have NaN.

pyarrow leaves NaN out of the bounds, so that a reader for which NaN is greater than every number skips row groups with
NaN. Readers of Parquet ignore bounds that are NaN. docs/format/table.md §3.11. On disk: `parquet.thrift` of
Apache Parquet, in Thrift's compact protocol.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.format.thrift import I16, Value, struct_at, struct_fields, struct_to_bytes

_MAGIC = b"PAR1"
_TRAILER_BYTES = 8
_NAN: Final = {4: struct.pack("<f", math.nan), 8: struct.pack("<d", math.nan)}
"""By the number of bytes of a value."""
# Numbers of fields; on disk: do not change.
_SCHEMA: Final = 2
_ROWS: Final = 3
_ROW_GROUPS: Final = 4
_COLUMN_ORDERS: Final = 7
_COLUMNS, _GROUP_BYTES, _GROUP_ROWS, _GROUP_OFFSET, _GROUP_COMPRESSED, _GROUP_ORDINAL = 1, 2, 3, 5, 6, 7
_FILE_OFFSET, _META_DATA = 2, 3
_PAGE_INDEXES: Final = frozenset({4, 5, 6, 7})
_ELSEWHERE: Final = frozenset({1, 8, 9})
"""The name of another file, and what encrypted chunks have."""
_PATH, _UNCOMPRESSED_BYTES, _COMPRESSED_BYTES = 3, 6, 7
_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE = 9, 10, 11
_STATISTICS: Final = 12
_FILTERS: Final = frozenset({14, 15})
_PAGE_BYTES, _PAGE_CHECKSUM = 3, 4
_MAX_DEPRECATED: Final = 1
_MAX_VALUE: Final = 5
_ORDINAL_MAX: Final = 2**15 - 1
NAN_BOUNDS_KEY: Final = "hoodie_python_nan_bounds"
"""Footer key of files in which the bounds of no chunk leave out NaN."""


def has_nan_bounds(metadata: pq.FileMetaData) -> bool:
    """Return whether no bounds of the file leave out NaN, by its footer; other files have floats whose bounds may.

    The JVM writes no bounds for a chunk with NaN. pyarrow leaves NaN out, as hoodie did before 0.4.
    """
    is_marked = NAN_BOUNDS_KEY.encode() in (metadata.metadata or {})
    return is_marked or str(metadata.created_by).startswith("parquet-mr")


def with_nan_bounds(footer: bytes, chunks: Collection[tuple[int, int]]) -> bytes:
    """Return a footer in which the greatest value of each of the chunks is NaN. Its length does not change.

    `footer` is a serialized `FileMetaData`. `chunks` are pairs of the numbers of a row group and a leaf column of type
    float or double. A chunk without bounds stays as it is.

    Raises: ValueError if the footer is not one.
    """
    try:
        found = struct_fields(footer)
        groups = found[_ROW_GROUPS].items
        for number in {number for number, _ in chunks}:
            group = struct_fields(groups[number])
            columns = group[_COLUMNS].items
            for column in {column for group_number, column in chunks if group_number == number}:
                columns[column] = _with_nan(columns[column])
            groups[number] = struct_to_bytes(group | {_COLUMNS: Value.of_structs(columns)})
        return struct_to_bytes(found | {_ROW_GROUPS: Value.of_structs(groups)})
    except (IndexError, KeyError, ValueError) as error:
        raise _no_footer(error) from error


def _no_footer(error: Exception) -> ValueError:
    return ValueError(f"not the footer of a Parquet file ({error})")


def _with_nan(chunk: bytes) -> bytes:
    column = struct_fields(chunk)
    metadata = column[_META_DATA].fields
    if _STATISTICS not in metadata:
        return chunk
    statistics = metadata[_STATISTICS].fields
    for number in (_MAX_DEPRECATED, _MAX_VALUE):
        if number in statistics:
            statistics[number] = Value.of_content(_NAN[len(statistics[number].content)])
    metadata[_STATISTICS] = Value.of_struct(statistics)
    return struct_to_bytes(column | {_META_DATA: Value.of_struct(metadata)})


@dataclass(frozen=True, slots=True)
class Chunk:
    """A column chunk in a file: its pages are `size_bytes` bytes from `start` on. `column` is its `ColumnChunk`."""

    column: Mapping[int, Value]
    metadata: Mapping[int, Value]
    start: int
    size_bytes: int

    @classmethod
    def parse(cls, data: bytes) -> Chunk:
        """Parse a `ColumnChunk`. Raises: ValueError if its pages cannot be copied: they are encrypted, or elsewhere."""
        column = struct_fields(data)
        if _META_DATA not in column or column.keys() & _ELSEWHERE:
            raise ValueError("a column chunk is encrypted or in another file")
        metadata = column[_META_DATA].fields
        offsets = [metadata[number].number for number in (_DICTIONARY_PAGE, _DATA_PAGE) if number in metadata]
        start = min(offset for offset in offsets if offset > 0)
        size_bytes = metadata[_COMPRESSED_BYTES].number
        if size_bytes < 0:
            raise ValueError(f"a column chunk has {size_bytes} bytes")
        return cls(column, metadata, start, size_bytes)

    @property
    def path(self) -> tuple[str, ...]:
        """The names of the column and of the fields in it, down to the leaf."""
        return tuple(part.decode() for part in self.metadata[_PATH].contents)

    @property
    def name(self) -> str:
        """The first part of the column's path."""
        return self.path[0]

    @property
    def plain_bytes(self) -> int:
        """The bytes of the pages before compression."""
        return self.metadata[_UNCOMPRESSED_BYTES].number

    def moved(self, start: int) -> bytes:
        """Return the `ColumnChunk` of a copy whose pages begin at `start`.

        Indexes of pages and bloom filters of Parquet are left out: they are not among the copied bytes.
        """
        shift = start - self.start
        metadata = {number: value for number, value in self.metadata.items() if number not in _FILTERS}
        for number in (_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE):
            if number in metadata and metadata[number].number > 0:
                metadata[number] = Value.of_int(metadata[number].number + shift)
        column = {number: value for number, value in self.column.items() if number not in _PAGE_INDEXES}
        if column.get(_FILE_OFFSET) is not None and column[_FILE_OFFSET].number > 0:
            column[_FILE_OFFSET] = Value.of_int(column[_FILE_OFFSET].number + shift)
        return struct_to_bytes(column | {_META_DATA: Value.of_struct(metadata)})


def damage_of_pages(data: bytes) -> str | None:
    """Return what is wrong with the pages of a column chunk: their sizes, or a checksum; None if all is well.

    Pages without a checksum are believed.
    """
    position = 0
    while position < len(data):
        try:
            header, start = struct_at(data, position)
            size_bytes = header[_PAGE_BYTES].number
        except (KeyError, ValueError) as error:
            return f"no page header at byte {position} of the column chunk ({error})"
        page = data[start : start + size_bytes]
        if size_bytes < 0 or len(page) < size_bytes:
            return f"a page of {size_bytes:,} bytes at byte {position} of the column chunk, which has {len(data):,}"
        if _PAGE_CHECKSUM in header and zlib.crc32(page) != header[_PAGE_CHECKSUM].number & 0xFFFFFFFF:
            return f"the checksum of the page at byte {position} of the column chunk does not match its bytes"
        position = start + size_bytes
    return None


class Footer:
    """The footer of a Parquet file, whose row groups may be copied to another file. `data` is a `FileMetaData`.

    Raises: ValueError if the data is no footer.
    """

    def __init__(self, data: bytes) -> None:
        try:
            self._fields = struct_fields(data)
            self.groups = self._fields[_ROW_GROUPS].items
            """The row groups, as they are encoded."""
            self.form = (self._fields[_SCHEMA].data, self._fields.get(_COLUMN_ORDERS))
            """The columns and the order of their values: row groups can be copied between files of one form."""
        except (KeyError, ValueError) as error:
            raise _no_footer(error) from error

    @classmethod
    def of(cls, metadata: pq.FileMetaData) -> Footer:
        """Return the footer that pyarrow has parsed."""
        return cls(footer_of(metadata))

    def chunks(self, group: int) -> list[Chunk]:
        """Return the column chunks of a row group. Raises: ValueError if one cannot be copied."""
        try:
            return [Chunk.parse(item) for item in struct_fields(self.groups[group])[_COLUMNS].items]
        except (IndexError, KeyError) as error:
            raise _no_footer(error) from error

    def copied(self, group: int, chunks: Sequence[Chunk], starts: Sequence[int]) -> bytes:
        """Return a row group of these chunks, whose pages begin at `starts`, with the number of rows of a group."""
        columns = [chunk.moved(start) for chunk, start in zip(chunks, starts, strict=True)]
        return struct_to_bytes(
            struct_fields(self.groups[group])
            | {
                _COLUMNS: Value.of_structs(columns),
                _GROUP_BYTES: Value.of_int(sum(chunk.plain_bytes for chunk in chunks)),
                _GROUP_OFFSET: Value.of_int(min(starts)),
                _GROUP_COMPRESSED: Value.of_int(sum(chunk.size_bytes for chunk in chunks)),
            }
        )

    def with_groups(self, groups: Sequence[bytes]) -> bytes:
        """Return this footer, as it is encoded, with these row groups instead of its own."""
        numbered, rows = [], 0
        for number, item in enumerate(groups):
            fields = struct_fields(item)
            rows += fields[_GROUP_ROWS].number
            if number <= _ORDINAL_MAX:
                fields[_GROUP_ORDINAL] = Value.of_int(number, I16)
            else:
                fields.pop(_GROUP_ORDINAL, None)
            numbered.append(struct_to_bytes(fields))
        changed = {_ROWS: Value.of_int(rows), _ROW_GROUPS: Value.of_structs(numbered)}
        return struct_to_bytes(self._fields | changed)


def footer_of(metadata: pq.FileMetaData) -> bytes:
    """Return a footer that pyarrow has parsed or written, as it is encoded: a `FileMetaData`."""
    sink = pa.BufferOutputStream()
    metadata.write_metadata_file(sink)
    written: bytes = sink.getvalue().to_pybytes()
    return written[len(_MAGIC) : -_TRAILER_BYTES]


def trailer_of(footer: bytes) -> bytes:
    """Return what follows a footer at the end of a file."""
    return len(footer).to_bytes(4, "little") + _MAGIC


def parsed(footer: bytes) -> pq.FileMetaData:
    """Return a footer, parsed by pyarrow."""
    return pq.read_metadata(pa.BufferReader(_MAGIC + footer + trailer_of(footer)))


def nan_leaves(rows: pa.Table) -> set[int]:
    """Return the numbers of the Parquet leaf columns that have NaN, also in structs, lists and maps."""
    found: set[int] = set()
    first = 0
    for column in rows.columns:
        count = _leaf_count(column.type)
        if _has_floats(column.type):
            for chunk in column.chunks:
                found |= {first + number for number, leaf in enumerate(_leaves(chunk)) if _has_nan(leaf)}
        first += count
    return found


def _has_nan(leaf: pa.Array) -> bool:
    return pa.types.is_floating(leaf.type) and bool(pc.any(pc.is_nan(leaf)).as_py())


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    """Yield the leaves of a column in the order of Parquet. Values below a null are among them."""
    if pa.types.is_struct(array.type):
        for number in range(array.type.num_fields):
            yield from _leaves(array.field(number))
    elif pa.types.is_map(array.type):
        yield from _leaves(array.keys)
        yield from _leaves(array.items)
    elif pa.types.is_nested(array.type):
        yield from _leaves(array.flatten())
    else:
        yield array


def _children(data_type: pa.DataType) -> list[pa.DataType]:
    return [data_type.field(number).type for number in range(data_type.num_fields)]


def _leaf_count(data_type: pa.DataType) -> int:
    return sum(map(_leaf_count, _children(data_type))) if pa.types.is_nested(data_type) else 1


def _has_floats(data_type: pa.DataType) -> bool:
    if pa.types.is_nested(data_type):
        return any(map(_has_floats, _children(data_type)))
    return bool(pa.types.is_floating(data_type))
