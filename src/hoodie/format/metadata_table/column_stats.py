"""Rows of the metadata partitions `column_stats` (type 3) and `partition_stats` (type 6): the range of one column.

docs/format/metadata.md §4.2, §4.4, §4.5. Only index version V2 is written, the version of tables of version 9.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from hoodie.errors import CorruptFileError
from hoodie.format.metadata_table.metadata_record import (
    NON_PARTITIONED_KEY,
    RecordType,
    decode_record,
    hashed_file_name,
    hashed_name,
    metadata_schema,
    string_to_bytes,
)
from hoodie.format.metadata_table.value_types import NULL_TYPE, ValueKind, ValueType
from hoodie.format.varint import zigzag_to_bytes

_NULL: Final = b"\0"
_PRESENT: Final = b"\x02"
_META_FIELDS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRange:
    """The range of one column in one file or partition.

    `low` and `high` are raw values (`value_types`), inclusive; both None if there is no value, or if they are unknown.
    `values` counts nulls too. A value can be NaN only if `high` is infinity or NaN, but for the JVM's rows of base
    files. Sizes are bytes of a base file, 0 for a log file.
    `type` is None in rows of index version V1, which have no type.
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
        """Return the range of the values of both; the type of `other` counts, which is the newer one."""
        lows = [found.low for found in (self, other) if found.low is not None]
        highs = [found.high for found in (self, other) if found.high is not None]
        return ColumnRange(
            column=other.column,
            type=self.type if other.type == NULL_TYPE else other.type,
            low=min(lows, key=order_of, default=None),
            high=max(highs, key=order_of, default=None),
            values=self.values + other.values,
            nulls=self.nulls + other.nulls,
            size_bytes=self.size_bytes + other.size_bytes,
            uncompressed_bytes=self.uncompressed_bytes + other.uncompressed_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsRow:
    """A row of `column_stats` (`name` is a file name) or `partition_stats` (`name` is a partition path).

    `is_tight`: the row replaces older rows of its key; otherwise their ranges are joined.
    """

    name: str
    range: ColumnRange
    is_deleted: bool = False
    is_tight: bool = False

    def to_bytes(self, record_type: RecordType, *, file_name: str | None = None) -> bytes:
        """Encode with the schema `metadata_schema()`; `file_name` is the base file that a compaction writes."""
        found = self.range
        assert found.type is not None
        meta = _NULL if file_name is None else _PRESENT + string_to_bytes(file_name)
        counts = (found.values, found.nulls, found.size_bytes, found.uncompressed_bytes)
        details = found.type.details
        return b"".join(
            (
                _NULL * (_META_FIELDS - 1),
                meta,
                string_to_bytes(""),
                zigzag_to_bytes(record_type),
                # No list of files, no bloom filter; then the column statistics.
                _NULL * 2 + _PRESENT,
                _PRESENT + string_to_bytes(self.name),
                _PRESENT + string_to_bytes(found.column),
                _wrapped(found.low, found.type),
                _wrapped(found.high, found.type),
                *(_PRESENT + zigzag_to_bytes(count) for count in counts),
                bytes((self.is_deleted, self.is_tight)),
                _PRESENT + zigzag_to_bytes(found.type.kind),
                _NULL if details is None else _PRESENT + string_to_bytes(details),
                # No record index entry and no secondary index entry.
                _NULL * 2,
            )
        )

    @classmethod
    def parse(cls, value: bytes, *, schema_json: str, path: str) -> StatsRow:
        """Decode a value with the schema that its file contains.

        Raises: CorruptFileError if the value is not a row of column statistics.
        """
        if schema_json == metadata_schema():
            return _parse_known(value, path)
        record = decode_record(value, schema_json=schema_json, path=path).get("ColumnStatsMetadata")
        try:
            assert record is not None
            told = record.get("valueType")
            kind = None if told is None else ValueType(ValueKind(told["typeOrdinal"]), told["additionalInfo"])
            counts = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
            values, nulls, size_bytes, uncompressed_bytes = (int(record[name] or 0) for name in counts)
            found = ColumnRange(
                column=record["columnName"],
                type=kind,
                low=_raw(record["minValue"], kind),
                high=_raw(record["maxValue"], kind),
                values=values,
                nulls=nulls,
                size_bytes=size_bytes,
                uncompressed_bytes=uncompressed_bytes,
            )
            tight = bool(record.get("isTightBound"))
            return cls(name=record["fileName"], range=found, is_deleted=bool(record["isDeleted"]), is_tight=tight)
        except (AssertionError, KeyError, ValueError, TypeError) as error:
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


def _double(raw: Any) -> bytes:
    return struct.pack("<d", raw)


def _float(raw: Any) -> bytes:
    return struct.pack("<f", raw)


def _bytes(raw: bytes) -> bytes:
    return zigzag_to_bytes(len(raw)) + raw


def _unscaled(raw: int) -> bytes:
    # The fewest bytes in two's complement, as Java's BigInteger.
    length = (raw if raw >= 0 else ~raw).bit_length() // 8 + 1
    return _bytes(raw.to_bytes(length, "big", signed=True))


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

    def bound(self) -> Any:
        """Return the raw bytes, number or text of a wrapper; decimals stay bytes."""
        branch = self.number()
        if branch == 0:
            return None
        if branch in _FIXED_WIDTH:
            form = _FIXED_WIDTH[branch]
            return form.unpack(self.taken(form.size))[0]
        if branch in (2, 3, 8, 10, 11, 12):
            return self.number()
        if branch in (6, 7, 9):
            return self.text() if branch == 7 else self.data()
        raise ValueError(f"expected a wrapped value, found branch {branch}")

    def end(self) -> None:
        if self._place != len(self._data):
            raise ValueError(f"expected {self._place} bytes, found {len(self._data)}")


_FIXED_WIDTH: Final = {1: struct.Struct("?"), 4: struct.Struct("<f"), 5: struct.Struct("<d")}


_ROWS_KEPT = 20_000
"""About 20 MB. Queries of one process ask for the same rows again and again."""


def _parse_known(value: bytes, path: str) -> StatsRow:
    try:
        return _row_of(value)
    except (IndexError, ValueError, struct.error) as error:
        raise CorruptFileError(f"a metadata record contains no column statistics: {error!r}", path=path) from error


@lru_cache(maxsize=_ROWS_KEPT)
def _row_of(value: bytes) -> StatsRow:
    """Raises: IndexError, ValueError, struct.error."""
    fields = _Fields(value)
    for _ in range(_META_FIELDS):
        if fields.is_present():
            fields.data()
    # The key and the type of the record; no list of files, no bloom filter, but statistics.
    fields.data()
    fields.number()
    if [fields.is_present() for _ in range(3)] != [False, False, True]:
        raise ValueError("expected column statistics")
    name, column = (fields.text() if fields.is_present() else "" for _ in range(2))
    low, high = fields.bound(), fields.bound()
    counts = [fields.count() for _ in range(4)]
    is_deleted, is_tight = fields.flag(), fields.flag()
    kind = None
    if fields.is_present():
        kind = ValueType(ValueKind(fields.number()), fields.text() if fields.is_present() else None)
    if [fields.is_present() for _ in range(2)] != [False, False]:
        raise ValueError("expected column statistics only")
    fields.end()
    if kind is not None and kind.kind is ValueKind.DECIMAL:
        low, high = (None if raw is None else int.from_bytes(raw, "big", signed=True) for raw in (low, high))
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
    return StatsRow(name=name, range=found, is_deleted=is_deleted, is_tight=is_tight)


_Encode = Callable[[Any], bytes]
# The wrapper's branch in the union, and how its value is encoded. On disk: do not change.
_BOOLEAN: Final[tuple[int, _Encode]] = (1, lambda raw: bytes((raw,)))
_INT: Final[tuple[int, _Encode]] = (2, zigzag_to_bytes)
_LONG: Final[tuple[int, _Encode]] = (3, zigzag_to_bytes)
_WRAPPERS: Final[Mapping[ValueKind, tuple[int, _Encode]]] = {
    ValueKind.BOOLEAN: _BOOLEAN,
    ValueKind.INT: _INT,
    ValueKind.FLOAT: (4, _float),
    ValueKind.DOUBLE: (5, _double),
    ValueKind.STRING: (7, string_to_bytes),
    ValueKind.UUID: (7, string_to_bytes),
    ValueKind.BYTES: (6, _bytes),
    ValueKind.FIXED: (6, _bytes),
    ValueKind.DECIMAL: (6, _unscaled),
    ValueKind.DATE: _INT,
    ValueKind.TIME_MILLIS: _INT,
}


def _wrapped(raw: Any, value_type: ValueType) -> bytes:
    if raw is None:
        return _NULL
    branch, encode = _WRAPPERS.get(value_type.kind, _LONG)
    return zigzag_to_bytes(branch) + encode(raw)


def _raw(wrapper: Mapping[str, Any] | None, value_type: ValueType | None) -> Any:
    if wrapper is None:
        return None
    value = wrapper["value"]
    if value_type is not None and value_type.kind is ValueKind.DECIMAL:
        return int.from_bytes(value, "big", signed=True)
    return float(value) if isinstance(value, Decimal) else value


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
