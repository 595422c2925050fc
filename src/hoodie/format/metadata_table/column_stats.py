"""Rows of the metadata partitions `column_stats` (type 3) and `partition_stats` (type 6): the range of one column.

docs/format/metadata.md §4.2, §4.4, §4.5. Rows of index version V2, of tables of version 9, have the type of
their values. Rows of V1, of older tables, have other wrappers and no type.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from hoodie.errors import CorruptFileError
from hoodie.format.metadata_table.metadata_record import (
    META_FIELDS,
    NON_PARTITIONED_KEY,
    NULL,
    PRESENT,
    RecordType,
    hashed_file_name,
    hashed_name,
    row_head,
    string_to_bytes,
    zero_bytes_to_add,
)
from hoodie.format.metadata_table.value_types import NULL_TYPE, UNTYPED_DECIMAL, ValueKind, ValueType
from hoodie.format.metadata_table.wrapped_values import Wrapped, unwrapped, wrapped
from hoodie.format.varint import zigzag_to_bytes

STATS_FIELD: Final = "ColumnStatsMetadata"
"""The field of a metadata record with the content of a row. On disk: do not change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRange:
    """The range of one column in one file or partition.

    `low` and `high` are raw values (`value_types`), inclusive; both None if there is no value, or if they are unknown.
    `values` counts nulls too. A value can be NaN only if `high` is infinity or NaN, but for the JVM's rows of base
    files. Sizes are bytes of a base file, 0 for a log file.
    `type` is None in rows of index version V1 without bounds; their other rows have the type of their wrapper, which is
    a long for timestamps.
    """

    column: str
    type: ValueType | None
    low: Any = None
    high: Any = None
    values: int = 0
    nulls: int = 0
    size_bytes: int = 0
    uncompressed_bytes: int = 0

    def joined(self, other: ColumnRange) -> ColumnRange:
        """Return the range of the values of both; the type of `other` counts, which is the newer one.

        Bounds of two types that have no common order, such as numbers and texts, make a range that is not known.
        """
        lows = [found.low for found in (self, other) if found.low is not None]
        highs = [found.high for found in (self, other) if found.high is not None]
        try:
            low, high = min(lows, key=order_of, default=None), max(highs, key=order_of, default=None)
        except TypeError:
            low = high = None
        return ColumnRange(
            column=other.column,
            type=self.type if other.type in (None, NULL_TYPE) else other.type,
            low=low,
            high=high,
            values=self.values + other.values,
            nulls=self.nulls + other.nulls,
            size_bytes=self.size_bytes + other.size_bytes,
            uncompressed_bytes=self.uncompressed_bytes + other.uncompressed_bytes,
        )


def with_decimals(found: ColumnRange) -> ColumnRange:
    """Return the range of a decimal column: compactions of Hudi 0.15 and 1.0 store its bounds without type as bytes."""
    if found.type is None or found.type.kind is not ValueKind.BYTES or found.low is None or found.high is None:
        return found
    low, high = (int.from_bytes(raw, "big", signed=True) for raw in (found.low, found.high))
    return replace(found, type=UNTYPED_DECIMAL, low=low, high=high)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsRow:
    """A row of `column_stats` (`name` is a file name) or `partition_stats` (`name` is a partition path).

    `is_tight`: the row replaces older rows of its key; otherwise their ranges are joined. `is_typed`: a row that was
    read has the form of index version V2.
    """

    name: str
    range: ColumnRange
    is_deleted: bool = False
    is_tight: bool = False
    is_typed: bool = True

    def to_bytes(self, record_type: RecordType, *, typed: bool = True) -> bytes:
        """Encode with the schema `metadata_schema()`; `typed`: in the form of index version V2, otherwise V1."""
        found = self.range
        counts = (found.values, found.nulls, found.size_bytes, found.uncompressed_bytes)
        low, high = wrapped(found.low, found.high, found.type, typed=typed)
        return b"".join(
            (
                row_head(record_type),
                # No list of files, no bloom filter; then the column statistics.
                NULL * 2 + PRESENT,
                PRESENT + string_to_bytes(self.name),
                PRESENT + string_to_bytes(found.column),
                low,
                high,
                *(PRESENT + zigzag_to_bytes(count) for count in counts),
                bytes((self.is_deleted, self.is_tight)),
                _type_to_bytes(found.type) if typed else NULL,
                # No record index entry and no secondary index entry.
                NULL * 2,
            )
        )

    @classmethod
    def parse(cls, value: bytes, *, schema_json: str, path: str) -> StatsRow:
        """Decode a value with the schema that its file contains.

        Raises: CorruptFileError if the value is not a row of column statistics.
        """
        value += bytes(zero_bytes_to_add(schema_json, STATS_FIELD, path=path))
        try:
            return _row_of(value)
        except (IndexError, ValueError, struct.error) as error:
            raise CorruptFileError(f"a metadata record contains no column statistics: {error!r}", path=path) from error

    def after(self, older: StatsRow) -> StatsRow:
        """Return the row that results of this row and an older row of its key."""
        if self.is_deleted or older.is_deleted or self.is_tight:
            return self
        return replace(self, range=older.range.joined(self.range))


def order_of(raw: Any) -> Any:
    """Return the sort key of raw values of one type: NaN above all numbers, text by its UTF-8 bytes, as in Spark."""
    if isinstance(raw, float):
        return (raw != raw, raw)
    return raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else raw


class _Fields:
    """The fields, in order, of a value written with `metadata_schema()`; a general decoder takes twice as long."""

    __slots__ = ("_data", "_place")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self._data[self._place]
            self._place += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7

    def taken(self, count: int) -> bytes:
        found = self._data[self._place : self._place + count]
        if count < 0 or len(found) != count:
            raise ValueError(f"expected {count} bytes, found {len(found)}")
        self._place += count
        return found

    def data(self) -> bytes:
        return self.taken(self.number())

    def text(self) -> str:
        return self.data().decode()

    def is_present(self) -> bool:
        byte = self._data[self._place]
        if byte in (0, 2):  # the usual form, of one byte
            self._place += 1
            return byte == 2
        branch = self.number()
        if branch not in (0, 1):
            raise ValueError(f"expected a branch of a nullable field, found {branch}")
        return branch == 1

    def flag(self) -> bool:
        return self.taken(1) != b"\0"

    def count(self) -> int:
        return self.number() if self.is_present() else 0

    def bound(self) -> Wrapped:
        """Return the branch of a wrapper, and its number, text or bytes; decimals stay bytes."""
        branch = self.number()
        if branch == 0:
            return Wrapped(0, None)
        if branch in _FIXED_WIDTH:
            form = _FIXED_WIDTH[branch]
            return Wrapped(branch, form.unpack(self.taken(form.size))[0])
        if branch in (2, 3, 8, 10, 11, 12):
            return Wrapped(branch, self.number())
        if branch in (6, 7, 9):
            return Wrapped(branch, self.text() if branch == 7 else self.data())
        raise ValueError(f"expected a wrapped value, found branch {branch}")

    def end(self) -> None:
        if self._place != len(self._data):
            raise ValueError(f"expected {self._place} bytes, found {len(self._data)}")


_FIXED_WIDTH: Final = {1: struct.Struct("?"), 4: struct.Struct("<f"), 5: struct.Struct("<d")}


_ROWS_KEPT = 20_000
"""About 20 MB. Queries of one process read the same rows again and again."""


@lru_cache(maxsize=_ROWS_KEPT)
def _row_of(value: bytes) -> StatsRow:
    """Raises: IndexError, ValueError, struct.error."""
    fields = _Fields(value)
    for _ in range(META_FIELDS):
        if fields.is_present():
            fields.data()
    # The key and the type of the record; no list of files, no bloom filter, but statistics.
    fields.data()
    fields.number()
    if [fields.is_present() for _ in range(3)] != [False, False, True]:
        raise ValueError("expected column statistics")
    name, column = (fields.text() if fields.is_present() else "" for _ in range(2))
    wrappers = fields.bound(), fields.bound()
    counts = [fields.count() for _ in range(4)]
    is_deleted, is_tight = fields.flag(), fields.flag()
    kind = None
    if fields.is_present():
        kind = ValueType(ValueKind(fields.number()), fields.text() if fields.is_present() else None)
    if [fields.is_present() for _ in range(2)] != [False, False]:
        raise ValueError("expected column statistics only")
    fields.end()
    is_typed = kind is not None
    low, high, kind = unwrapped(*wrappers, kind)
    found = ColumnRange(
        column=column,
        type=kind,
        low=low,
        high=high,
        values=counts[0],
        nulls=counts[1],
        size_bytes=counts[2],
        uncompressed_bytes=counts[3],
    )
    return StatsRow(name=name, range=found, is_deleted=is_deleted, is_tight=is_tight, is_typed=is_typed)


def _type_to_bytes(value_type: ValueType | None) -> bytes:
    assert value_type is not None
    details = value_type.details
    encoded = NULL if details is None else PRESENT + string_to_bytes(details)
    return PRESENT + zigzag_to_bytes(value_type.kind) + encoded


def column_prefix(column: str) -> str:
    """Return what the keys of all rows of a column begin with: 12 characters; a nested column has its dotted name.

    >>> column_prefix("fare")
    'k6A0EIIbKbU='
    """
    return hashed_name(column)


def partition_stats_key(column: str, partition_path: str) -> str:
    """Return the key of a column of a partition: 24 characters; keys of its files in `column_stats` begin with it.

    >>> partition_stats_key("fare", "city=nyc")
    'k6A0EIIbKbU=+ciZGpRvCv8='
    """
    return column_prefix(column) + hashed_name(partition_path or NON_PARTITIONED_KEY)


def column_stats_key(column: str, partition_path: str, file_name: str) -> str:
    """Return the key of a column of a file: 48 characters."""
    return partition_stats_key(column, partition_path) + hashed_file_name(file_name)
