"""Content of delete blocks as Arrow columns; version 3 is written too (docs/format/table.md §4.3).

A delete without an ordering value (on disk: the int 0) removes the key whatever the ordering value of its record; in
Arrow its ordering is null.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from functools import lru_cache
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFileError, SchemaMismatchError, UnsupportedError
from hoodie.format.avro.columns import content_of, join_columns, long_column, long_to_bytes, string_column
from hoodie.format.log.delete_list import Columns, parse_delete_list
from hoodie.format.log.kryo_deletes import parse_kryo_deletes

_FRAME = struct.Struct(">ii")  # version, length of the Avro datum
_VERSION = 3
_VERSIONS = (1, 2, _VERSION)
_NO_ORDERING = b"\x04\x00"  # branch 2 (IntWrapper), value 0
_DECIMAL = pa.decimal128(30, 15)

# Branch name -> union index, Avro type and Arrow type of the value. On disk: do not change.
_BRANCHES: Mapping[str, tuple[int, Any, pa.DataType]] = {
    "BooleanWrapper": (1, "boolean", pa.bool_()),
    "IntWrapper": (2, "int", pa.int32()),
    "LongWrapper": (3, "long", pa.int64()),
    "FloatWrapper": (4, "float", pa.float32()),
    "DoubleWrapper": (5, "double", pa.float64()),
    "BytesWrapper": (6, "bytes", pa.binary()),
    "StringWrapper": (7, "string", pa.string()),
    "DateWrapper": (8, "int", pa.date32()),
    "DecimalWrapper": (
        9,
        {"type": "bytes", "logicalType": "decimal", "precision": _DECIMAL.precision, "scale": _DECIMAL.scale},
        _DECIMAL,
    ),
    "TimeMicrosWrapper": (10, {"type": "long", "logicalType": "time-micros"}, pa.time64("us")),
    "TimestampMicrosWrapper": (11, {"type": "long", "logicalType": "timestamp-micros"}, pa.timestamp("us", tz="UTC")),
}

_ARRAY_BRANCH = "ArrayWrapper"


@dataclass(frozen=True, slots=True)
class DeleteRecords:
    """The deletes of one block; three columns of one length.

    `ordering` is null where a delete has no ordering value. Its type is that of the ordering field; with several
    ordering fields it is a struct of `f0`, `f1`, ….
    """

    record_keys: pa.StringArray
    partition_paths: pa.StringArray
    ordering: pa.Array

    def __len__(self) -> int:
        return len(self.record_keys)

    @classmethod
    def without_ordering(cls, record_keys: pa.Array, partition_path: str) -> DeleteRecords:
        """Deletes of one partition that win over every record (metadata table, `delete` operations)."""
        keys = record_keys.cast(pa.string())
        return cls(keys, pa.repeat(pa.scalar(partition_path, pa.string()), len(keys)), pa.nulls(len(keys), pa.int32()))

    def unmixed(self) -> list[DeleteRecords]:
        """Those without an ordering value and those with one, as far as there are any; hudi-rs reads no mix of both."""
        columns = (self.record_keys, self.partition_paths, self.ordering)
        masks = (self.ordering.is_null(), self.ordering.is_valid())
        return [DeleteRecords(*(column.filter(mask) for column in columns)) for mask in masks if pc.any(mask).as_py()]

    @classmethod
    def parse(cls, content: bytes | memoryview, *, path: str, offset: int = 0) -> DeleteRecords:
        """Parse the content of a delete block.

        Raises:
            CorruptFileError: the content is cut off or no delete list.
            UnsupportedError: ordering values of different types, or in version 1 and 2 of a class not known here.
        """
        if len(content) < _FRAME.size:
            raise CorruptFileError("no room for a delete block", path=path, offset=offset)
        version, length = _FRAME.unpack_from(content, 0)
        if version not in _VERSIONS or not 0 <= length <= len(content) - _FRAME.size:
            raise CorruptFileError(
                f"delete block of version {version} and {length} bytes is none", path=path, offset=offset
            )
        datum = bytes(content[_FRAME.size : _FRAME.size + length])
        if version < _VERSION:
            columns = parse_kryo_deletes(datum, version, path=path, offset=offset + _FRAME.size)
        else:
            columns = parse_delete_list(datum, path=path, offset=offset + _FRAME.size) or _with_several(
                datum, path, offset
            )
        if columns[0].null_count:
            raise CorruptFileError("a delete names no record key", path=path, offset=offset)
        return cls(*columns)

    def to_bytes(self) -> bytes:
        """Encode as the content of a delete block of version 3.

        Raises:
            SchemaMismatchError: the ordering has a type that a delete block cannot hold.
        """
        items = join_columns(
            b"\x02",
            string_column(self.record_keys),
            _nullable(self.partition_paths, string_column),
            _ordering_to_bytes(self.ordering),
        )
        datum = content_of(items)
        if len(self):
            datum = long_to_bytes(len(self)) + datum
        datum += b"\0"
        return _FRAME.pack(_VERSION, len(datum)) + datum


def _nullable(values: pa.Array, encode: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Encode a `[null, …]` union: one byte says which branch follows."""
    if not values.null_count:
        return join_columns(b"\x02", encode(values))
    encoded = join_columns(b"\x02", encode(pc.fill_null(values, "")))
    return pc.if_else(values.is_valid(), encoded, pa.scalar(b"\0", pa.large_binary()))


def _ordering_to_bytes(ordering: pa.Array) -> pa.Array:
    """Encode the ordering union of every delete."""
    if ordering.null_count == len(ordering):
        return pa.repeat(pa.scalar(_NO_ORDERING, pa.large_binary()), len(ordering))
    encoded = _array_wrappers(ordering) if pa.types.is_struct(ordering.type) else _wrapper(ordering)
    return pc.if_else(ordering.is_valid(), encoded, pa.scalar(_NO_ORDERING, pa.large_binary()))


def _array_wrappers(ordering: pa.StructArray) -> pa.Array:
    """Several ordering fields: branch 12, a list with one wrapper for each field (a null field: branch 0)."""
    null = pa.scalar(b"\0", pa.large_binary())
    parts: list[pa.Array | bytes] = [b"\x18\x02" + long_to_bytes(ordering.type.num_fields)]
    for field in ordering.flatten():
        parts.append(null_filled := pc.if_else(field.is_valid(), _wrapper(field), null))
        assert not null_filled.null_count
    return join_columns(*parts, b"\0")


def _wrapper(values: pa.Array) -> pa.Array:
    """Encode one union branch with its value; what stands at nulls is without meaning."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        # As the JVM, which takes these for the numbers that they are in Avro, and compares with nothing else.
        values, index = values.cast(pa.int64()), 3
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return join_columns(b"\x0e", string_column(pc.fill_null(values, "")))
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return join_columns(b"\x0c", string_column(pc.fill_null(values, b"")))
    elif pa.types.is_decimal(kind):
        return join_columns(b"\x12", string_column(_unscaled(values)))
    elif pa.types.is_boolean(kind):
        return join_columns(b"\x02", _fixed_width(pc.fill_null(values, False).cast(pa.uint8()), np.uint8))
    elif pa.types.is_float32(kind):
        return join_columns(b"\x08", _fixed_width(pc.fill_null(values, 0.0), np.float32))
    elif pa.types.is_float64(kind):
        return join_columns(b"\x0a", _fixed_width(pc.fill_null(values, 0.0), np.float64))
    elif pa.types.is_date32(kind):
        values, index = values.cast(pa.int32()), 2
    elif pa.types.is_time64(kind):
        values, index = values.cast(pa.time64("us")).cast(pa.int64()), 10
    elif pa.types.is_int64(kind):
        index = 3
    elif pa.types.is_int8(kind) or pa.types.is_int16(kind) or pa.types.is_int32(kind):
        index = 2
    else:
        raise SchemaMismatchError(f"an ordering field of type {kind} cannot be written into a delete block")
    numbers = pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return join_columns(long_to_bytes(index), long_column(numbers))


def _fixed_width(values: pa.Array, kind: type[np.generic]) -> pa.Array:
    data = np.ascontiguousarray(values.to_numpy(zero_copy_only=False)).astype(kind)
    offsets = np.arange(len(data) + 1, dtype=np.int64) * data.itemsize
    little_endian = data.astype(data.dtype.newbyteorder("<"))
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(data), [None, pa.py_buffer(offsets), pa.py_buffer(little_endian)]
    )


def _unscaled(values: pa.Array) -> pa.Array:
    """Big-endian unscaled values at scale 15, 16 bytes each (Avro takes any sign-extended length)."""
    scaled = pc.fill_null(values.cast(_DECIMAL), Decimal(0))
    data = np.frombuffer(scaled.buffers()[1], dtype=np.uint8).reshape(-1, 16)
    reversed_bytes = np.ascontiguousarray(data[scaled.offset : scaled.offset + len(scaled), ::-1])
    offsets = np.arange(len(scaled) + 1, dtype=np.int64) * 16
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(scaled), [None, pa.py_buffer(offsets), pa.py_buffer(reversed_bytes)]
    )


def _with_several(datum: bytes, path: str, offset: int) -> Columns:
    """Parse a list of deletes with several ordering fields, one by one: their type is a list of unions."""
    try:
        rows = _read_datum(datum)
        keys = pa.array([row["recordKey"] for row in rows], pa.string())
        partitions = pa.array([row["partitionPath"] for row in rows], pa.string())
    except (EOFError, IndexError, KeyError, TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        raise CorruptFileError(f"no delete list: {error!r}", path=path, offset=offset) from error
    return keys, partitions, _ordering_column([row["orderingVal"] for row in rows], f"{path} at byte {offset}")


def _read_datum(datum: bytes) -> list[dict[str, Any]]:
    stream = io.BytesIO(datum)
    found: Any = fastavro.schemaless_reader(stream, _schema(), None, return_record_name=True)
    if stream.tell() != len(datum):
        raise ValueError(f"{len(datum) - stream.tell()} bytes are left over")
    rows: list[dict[str, Any]] = found["deleteRecordList"]
    return rows


def _ordering_column(branches: list[Any], where: str) -> pa.Array:
    """Values of the ordering union, read with branch names, as a column of one type."""
    kinds = {name for name, value in map(_named, branches) if name and not _is_no_ordering(name, value)}
    if not kinds:
        return pa.nulls(len(branches), pa.int32())
    if len(kinds) > 1:
        raise UnsupportedError(f"{where}: deletes with ordering values of different types ({', '.join(sorted(kinds))})")
    kind = kinds.pop()
    named = [_named(branch) for branch in branches]
    values = [None if name is None or _is_no_ordering(name, value) else value for name, value in named]
    try:
        if kind != _ARRAY_BRANCH:
            return _typed(kind, values)
        width = max(len(value) for value in values if value is not None)
        columns = [
            _ordering_column([None if value is None else value[index] for value in values], where)
            for index in range(width)
        ]
        valid = np.array([value is None for value in values])
        names = [f"f{index}" for index in range(width)]
        return pa.StructArray.from_arrays(columns, names, mask=pa.array(valid))
    except (IndexError, ValueError, OverflowError, TypeError, pa.ArrowException) as error:
        raise CorruptFileError(f"impossible ordering value: {error}", path=where) from error


def _typed(kind: str, values: list[Any]) -> pa.Array:
    arrow = _BRANCHES[kind][2]
    return pa.array(values, arrow)


def _named(branch: Any) -> tuple[str | None, Any]:
    """Branch name without its namespace, and the wrapped value."""
    if branch is None:
        return None, None
    name, record = branch
    short = name.rpartition(".")[2]
    return short, record["wrappedValues"] if short == _ARRAY_BRANCH else record["value"]


def _is_no_ordering(name: str, value: date | datetime | time | Decimal | int | str | bytes | None) -> bool:
    return value is None or (name == "IntWrapper" and value == 0)


@lru_cache(maxsize=1)
def _schema() -> Any:
    wrappers: list[Any] = [
        {"type": "record", "name": name, "fields": [{"name": "value", "type": kind}]}
        for name, (_, kind, _) in _BRANCHES.items()
    ]
    local_date = {"type": "record", "name": "LocalDateWrapper", "fields": [{"name": "value", "type": "int"}]}
    inner = ["null", *_BRANCHES, local_date]
    array = {
        "type": "record",
        "name": _ARRAY_BRANCH,
        "fields": [{"name": "wrappedValues", "type": ["null", {"type": "array", "items": inner}]}],
    }
    record = {
        "type": "record",
        "name": "HoodieDeleteRecord",
        "fields": [
            {"name": "recordKey", "type": ["null", "string"]},
            {"name": "partitionPath", "type": ["null", "string"]},
            {"name": "orderingVal", "type": ["null", *wrappers, array]},
        ],
    }
    return fastavro.parse_schema(
        {
            "type": "record",
            "name": "HoodieDeleteRecordList",
            "fields": [{"name": "deleteRecordList", "type": {"type": "array", "items": record}}],
        }
    )
