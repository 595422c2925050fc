"""Read delete blocks of versions 1 to 3 as Arrow columns, and write version 3 (docs/format/table.md §4.3).

A delete without an ordering value (on disk: the int 0) removes the record of its key, whatever the record's ordering
value. In Arrow, the ordering of such a delete is null.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from functools import lru_cache
from typing import Any

import fastavro
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFileError, SchemaMismatchError, UnsupportedError
from hoodie.format.avro.rows.encode import Pieces, Present, encode_column
from hoodie.format.avro.rows.layout import Layout
from hoodie.format.log.delete_list import (
    ARRAY_TAG,
    AVRO_TYPES,
    DECIMAL,
    INT_TAG,
    ORDERINGS,
    TEXT,
    Columns,
    parse_delete_list,
)
from hoodie.format.log.kryo_deletes import parse_kryo_deletes
from hoodie.format.varint import zigzag_to_bytes

_FRAME = struct.Struct(">ii")  # version, length of the Avro datum
_VERSION = 3
_VERSIONS = (1, 2, _VERSION)
_ABSENT, _PRESENT = 0, 2  # tags of [null, …] unions

_TAGGED = {name: (tag, layout) for tag, (name, layout) in ORDERINGS.items()}
_ARRAY_BRANCH = "ArrayWrapper"
_AS_THEY_ARE: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_boolean, "BooleanWrapper"),
    (pa.types.is_float32, "FloatWrapper"),
    (pa.types.is_float64, "DoubleWrapper"),
)


@dataclass(frozen=True, slots=True)
class DeleteRecords:
    """The deletes of one block; three columns of one length.

    `ordering` is null where a delete has no ordering value. It has the type of the ordering field; with several
    ordering fields it is a struct of `f0`, `f1`, ….
    """

    record_keys: pa.StringArray
    partition_paths: pa.StringArray
    ordering: pa.Array

    def __len__(self) -> int:
        return len(self.record_keys)

    @classmethod
    def without_ordering(cls, record_keys: pa.Array, partition_path: str) -> DeleteRecords:
        """Build deletes of one partition path that remove records whatever their ordering values.

        The metadata table and `delete` operations write such deletes.
        """
        keys = record_keys.cast(pa.string())
        return cls(keys, pa.repeat(pa.scalar(partition_path, pa.string()), len(keys)), pa.nulls(len(keys), pa.int32()))

    def unmixed(self) -> list[DeleteRecords]:
        """Split into deletes without and deletes with an ordering value; hudi-rs cannot read a mix of both.

        An empty part is left out.
        """
        columns = (self.record_keys, self.partition_paths, self.ordering)
        masks = (self.ordering.is_null(), self.ordering.is_valid())
        return [DeleteRecords(*(column.filter(mask) for column in columns)) for mask in masks if pc.any(mask).as_py()]

    @classmethod
    def parse(cls, content: bytes | memoryview, *, path: str, offset: int = 0) -> DeleteRecords:
        """Parse the content of a delete block.

        Raises:
            CorruptFileError: the content is truncated or is not a delete list.
            UnsupportedError: the ordering values have different types, or in version 1 and 2 an unknown class.
        """
        if len(content) < _FRAME.size:
            raise CorruptFileError(
                f"expected a delete block of at least {_FRAME.size} bytes, found {len(content)}",
                path=path,
                offset=offset,
            )
        version, length = _FRAME.unpack_from(content, 0)
        if version not in _VERSIONS or not 0 <= length <= len(content) - _FRAME.size:
            raise CorruptFileError(
                f"expected a delete block of version 1, 2 or 3 with up to {len(content) - _FRAME.size} bytes of data, "
                f"found version {version} and {length} bytes",
                path=path,
                offset=offset,
            )
        datum = bytes(content[_FRAME.size : _FRAME.size + length])
        if version < _VERSION:
            columns = parse_kryo_deletes(datum, version, path=path, offset=offset + _FRAME.size)
        else:
            columns = parse_delete_list(datum, path=path, offset=offset + _FRAME.size) or _with_several(
                datum, path, offset
            )
        if columns[0].null_count:
            raise CorruptFileError("a delete has no record key", path=path, offset=offset)
        return cls(*columns)

    def to_bytes(self) -> bytes:
        """Encode as the content of a delete block of version 3.

        Raises: SchemaMismatchError if the ordering has a type that a delete block cannot hold.
        """
        out = Pieces(len(self))
        out.add_constant(_PRESENT)
        encode_column(TEXT, self.record_keys, None, out)
        _add_tagged(TEXT, _PRESENT, _ABSENT, self.partition_paths, None, out)
        _add_orderings(self.ordering, out)
        datum = out.content()
        if len(self):
            datum = zigzag_to_bytes(len(self)) + datum
        datum += b"\0"
        return _FRAME.pack(_VERSION, len(datum)) + datum


def _add_tagged(
    layout: Layout, tag: int, null_tag: int, values: pa.Array, present: Present, out: Pieces
) -> npt.NDArray[np.bool_]:
    """Add a union of a value and null to each row that is present; return which rows have a value."""
    valid: npt.NDArray[np.bool_] = values.is_valid().to_numpy(zero_copy_only=False)
    tags = np.where(valid, tag, null_tag).astype(np.uint8)
    out.add_cells(tags[:, None], None if present is None else present[:, None])
    encode_column(layout, values, None if valid.all() else valid, out)
    return valid


def _add_orderings(ordering: pa.Array, out: Pieces) -> None:
    """Add the ordering union of every delete; a delete without an ordering value gets the int 0."""
    if ordering.null_count == len(ordering):
        out.add_constant(INT_TAG)
        out.add_constant(0)
    elif pa.types.is_struct(ordering.type):
        _add_structs(ordering, out)
    else:
        values, (tag, layout) = _ordering_of(ordering)
        valid = _add_tagged(layout, tag, INT_TAG, values, None, out)
        out.add_constant(0, ~valid)


def _add_structs(ordering: pa.StructArray, out: Pieces) -> None:
    """Add the values of several ordering fields: for each delete, a list with one union for each field."""
    valid = ordering.is_valid().to_numpy(zero_copy_only=False)
    out.add_cells(np.where(valid, ARRAY_TAG, INT_TAG).astype(np.uint8)[:, None])
    out.add_constant(_PRESENT, valid)
    out.add_varints(np.full(len(ordering), ordering.type.num_fields, np.int64), valid)
    for field in ordering.flatten():
        values, (tag, layout) = _ordering_of(field)
        _add_tagged(layout, tag, _ABSENT, values, valid, out)
    # The end of the list, or the int 0.
    out.add_constant(0)


def _ordering_of(values: pa.Array) -> tuple[pa.Array, tuple[int, Layout]]:
    """Return the values as Avro stores them, and the tag and encoding of their branch."""
    kind = values.type
    if pa.types.is_timestamp(kind) or pa.types.is_int64(kind):
        # Timestamps and dates are written as the JVM writes them: as the numbers that Avro stores for them.
        return values.cast(pa.int64()), _TAGGED["LongWrapper"]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return values, _TAGGED["StringWrapper"]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return values, _TAGGED["BytesWrapper"]
    if pa.types.is_decimal(kind):
        try:
            return values.cast(DECIMAL), _TAGGED["DecimalWrapper"]
        except pa.ArrowInvalid as error:
            raise SchemaMismatchError(
                f"an ordering value does not fit {DECIMAL}, the type that deletes have in a delete block ({error}); "
                "round it, or use another ordering column"
            ) from error
    if pa.types.is_time64(kind):
        return values.cast(pa.time64("us")), _TAGGED["TimeMicrosWrapper"]
    if pa.types.is_date32(kind):
        return values.cast(pa.int32()), _TAGGED["IntWrapper"]
    if pa.types.is_int8(kind) or pa.types.is_int16(kind) or pa.types.is_int32(kind):
        return values, _TAGGED["IntWrapper"]
    for is_kind, name in _AS_THEY_ARE:
        if is_kind(kind):
            return values, _TAGGED[name]
    raise SchemaMismatchError(f"an ordering field of type {kind} cannot be written into a delete block")


def _with_several(datum: bytes, path: str, offset: int) -> Columns:
    """Parse a list of deletes with several ordering fields, one delete at a time: an ordering is a list of unions."""
    try:
        rows = _read_datum(datum)
        keys = pa.array([row["recordKey"] for row in rows], pa.string())
        partitions = pa.array([row["partitionPath"] for row in rows], pa.string())
    except (EOFError, IndexError, KeyError, TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        raise CorruptFileError(f"not a delete list: {error!r}", path=path, offset=offset) from error
    return keys, partitions, _ordering_column([row["orderingVal"] for row in rows], f"{path} at byte {offset}")


def _read_datum(datum: bytes) -> list[dict[str, Any]]:
    stream = io.BytesIO(datum)
    found: Any = fastavro.schemaless_reader(stream, _schema(), None, return_record_name=True)
    if stream.tell() != len(datum):
        raise ValueError(f"{len(datum) - stream.tell()} bytes follow the list")
    rows: list[dict[str, Any]] = found["deleteRecordList"]
    return rows


def _ordering_column(branches: list[Any], where: str) -> pa.Array:
    """Convert values of the ordering union, read with branch names, to a column of one type."""
    kinds = {name for name, value in map(_named, branches) if name and not _is_no_ordering(name, value)}
    if not kinds:
        return pa.nulls(len(branches), pa.int32())
    if len(kinds) > 1:
        found = ", ".join(sorted(kinds))
        raise UnsupportedError(f"{where}: expected ordering values of one type in a delete block, found {found}")
    kind = kinds.pop()
    named = [_named(branch) for branch in branches]
    values = [None if name is None or _is_no_ordering(name, value) else value for name, value in named]
    try:
        if kind != _ARRAY_BRANCH:
            return pa.array(values, _TAGGED[kind][1].arrow)
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


def _named(branch: Any) -> tuple[str | None, Any]:
    """Return the branch name without its namespace, and the wrapped value."""
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
        for name, kind in AVRO_TYPES.items()
    ]
    local_date = {"type": "record", "name": "LocalDateWrapper", "fields": [{"name": "value", "type": "int"}]}
    inner = ["null", *AVRO_TYPES, local_date]
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
