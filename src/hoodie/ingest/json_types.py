"""JSON texts as Arrow columns of given types, by pyarrow's parser; the types of JSON texts without a schema.

pyarrow reads numbers, booleans, decimals (exactly), structs and lists. Dates and times are read as text or as a number
and then converted; floats are read as doubles, so that a number beyond a float is found.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from hoodie.errors import InvalidConfigError, SourceError, UnsupportedError
from hoodie.format.schema.arrow_types import LIST_ITEM

SAMPLED_ROWS: Final = 1_000
_EPOCH_UNITS: Final = ("s", "ms", "us", "ns")
_UNKNOWN: Final = ("ignore", "bad")
_WRAP: Final = "v"
"""Each value becomes the only element of the list `v` of an object: pyarrow skips an empty line, crashes at the line
`null`, and would take what follows a value for other members of the object."""
_CHANGED: Final = re.compile(r"Column\((.*?)\) changed from (string|number) to (string|number)")
ZONED_TEXT: Final = r"^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?( ?(Z|[+-]\d\d:?\d\d|[+-]\d\d))$"
LOCAL_TEXT: Final = r"^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?$"
DATE_TEXT: Final = r"^\d{4}-\d\d-\d\d$"
_UTC: Final = pa.timestamp("us", "UTC")


@dataclass(slots=True)
class JsonParser:
    """Parses JSON objects into rows of a schema.

    `schema`: of the rows; its fields become nullable. `unknown`: whether members that the schema lacks are ignored or
    make the row bad. `epoch`: the unit of numbers in columns of timestamps (s, ms, us, ns); None: such numbers are bad.
    Numbers in columns of dates are days since 1970-01-01. Times without a zone are UTC; digits after the microsecond
    are cut, as Spark does.

    Raises: UnsupportedError for a type that pyarrow cannot read from JSON.
    """

    schema: pa.Schema
    unknown: str = "ignore"
    epoch: str | None = None
    _as_numbers: set[str] = field(default_factory=set)
    """Paths of dates and times that the last block had as numbers."""

    def __post_init__(self) -> None:
        """Check the options, and make all fields nullable."""
        if self.unknown not in _UNKNOWN:
            raise InvalidConfigError(f"unknown = {self.unknown!r}: expected one of {', '.join(_UNKNOWN)}")
        if self.epoch is not None and self.epoch not in _EPOCH_UNITS:
            raise InvalidConfigError(f"epoch = {self.epoch!r}: expected one of {', '.join(_EPOCH_UNITS)}")
        self.schema = pa.schema(_with_leaves(pa.struct(list(self.schema)), _checked, "").fields)

    @property
    def is_plain(self) -> bool:
        """Whether no option changes what is read."""
        return self.unknown == "ignore" and self.epoch is None

    def parse(self, values: pa.Array) -> pa.StructArray:
        """Return a row for each binary value; null where the value is null or the JSON text `null`.

        Raises: ValueError if one of them is no JSON object, or does not fit the schema.
        """
        data, target = _lines(values), pa.struct(list(self.schema))
        flipped: set[str] = set()
        while True:
            try:
                rows = self._read(data, len(values), self.schema)
                return rows if rows.type == target else _convert(rows, target, self.epoch, "")
            except pa.ArrowInvalid as error:
                changed = _CHANGED.search(str(error))
                path = changed[1] if changed else ""
                if not changed or path in flipped or not _has_time(self.schema, path):
                    raise self._named(error, values) from error
                flipped.add(path)
                self._as_numbers ^= {path}

    def _read(self, data: pa.Buffer, count: int, schema: pa.Schema, *, is_part: bool = False) -> pa.StructArray:
        """Return the rows with the types that pyarrow reads. `is_part`: the schema has some of the columns only."""
        # The type that pyarrow reads, from which the target type is made.
        read = _with_leaves(pa.struct(list(schema)), self._read_type, f"/{_WRAP}/[]")
        behavior = "error" if self.unknown == "bad" and not is_part else "ignore"
        parsing = pj.ParseOptions(
            explicit_schema=pa.schema([(_WRAP, pa.list_(read))]), unexpected_field_behavior=behavior
        )
        reading = pj.ReadOptions(use_threads=False, block_size=data.size + 1)
        lists = pj.read_json(pa.BufferReader(data), read_options=reading, parse_options=parsing)[_WRAP].combine_chunks()
        found = pc.list_value_length(lists)
        if len(lists) != count or not pc.all(pc.equal(found, 1)).as_py():
            is_empty = pc.any(pc.equal(found, 0)).as_py()
            raise ValueError(f"expected one JSON object, found {'none' if is_empty else 'several'}")
        return lists.flatten()

    def _read_type(self, target: pa.DataType, path: str) -> pa.DataType:
        if _is_time(target):
            return pa.int64() if path in self._as_numbers else pa.string()
        return pa.float64() if pa.types.is_floating(target) else target

    def _named(self, error: Exception, values: pa.Array) -> Exception:
        """Return the error; with one value left and no column in the message, with the column that does not fit."""
        if len(values) > 1 or not str(error).startswith("Failed to convert"):
            return error
        for child in self.schema:
            try:
                self._read(_lines(values), 1, pa.schema([child]), is_part=True)
            except pa.ArrowInvalid as found:
                return ValueError(f"column {child.name}: {found}")
        return error


def infer_schema(values: pa.ChunkedArray) -> pa.Schema:
    """Return a schema for JSON objects, from the first 1,000 binary values; values that do not parse are left out.

    Integers become int64, other numbers double; dates and times stay text; a column without a value becomes text.

    Raises: SourceError if none of the values is a JSON object with a column.
    """
    first = values.slice(0, SAMPLED_ROWS).combine_chunks()
    try:
        schema = _inferred(first)
    except pa.ArrowInvalid:
        schema = pa.schema([])
        for number in range(len(first)):
            # A value that does not agree with those before it adds no columns.
            with contextlib.suppress(pa.ArrowInvalid, pa.ArrowTypeError):
                one = _inferred(first.slice(number, 1))
                schema = pa.unify_schemas([schema, one], promote_options="permissive")
    if not schema.names:
        raise SourceError(
            f"the columns cannot be inferred: none of the first {len(first):,} values is a JSON object with a "
            "member; pass a schema"
        )
    return pa.schema(_with_leaves(pa.struct(list(schema)), _plain, "").fields)


def _inferred(values: pa.Array) -> pa.Schema:
    data = _lines(values)
    reading = pj.ReadOptions(use_threads=False, block_size=data.size + 1)
    found = pj.read_json(pa.BufferReader(data), read_options=reading).schema.field(_WRAP).type.value_type
    return pa.schema(list(found.fields) if pa.types.is_struct(found) else [])


def _lines(values: pa.Array) -> pa.Buffer:
    """Return the values as lines of JSON objects with the member `v`, a list.

    Each line begins with a brace and ends with one, so no value can reach into the next line. Raises: ValueError for
    bytes that are no text.
    """
    texts = values.cast(pa.string())
    if pc.any(pc.match_substring(texts, "\0")).as_py():
        raise ValueError("the value contains a byte 0")
    start, end = pa.scalar(f'{{"{_WRAP}":['), pa.scalar("]}\n")
    lines = pc.binary_join_element_wise(start, texts, end, "", null_handling="replace", null_replacement="null")
    offsets, data = lines.buffers()[1:]
    first, last = memoryview(offsets).cast("i")[lines.offset], memoryview(offsets).cast("i")[lines.offset + len(lines)]
    return data.slice(first, last - first)


def _is_time(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_date(data_type) or pa.types.is_timestamp(data_type))


def _has_time(schema: pa.Schema, path: str) -> bool:
    """Return whether the path of an error message is a date or timestamp of the schema."""
    found: Any = pa.struct(list(schema))
    for name in path.split("/")[3:]:
        if pa.types.is_list(found):
            found = found.value_type
        elif pa.types.is_struct(found) and found.get_field_index(name) >= 0:
            found = found.field(name).type
        else:
            return False
    return _is_time(found)


def _with_leaves(kind: pa.DataType, change: Callable[[pa.DataType, str], pa.DataType], path: str) -> pa.DataType:
    """Return a nullable type whose types without fields and items are changed; paths are as in errors of pyarrow."""
    if pa.types.is_struct(kind) and kind.num_fields:
        return pa.struct([pa.field(f.name, _with_leaves(f.type, change, f"{path}/{f.name}")) for f in kind.fields])
    if pa.types.is_list(kind):
        return pa.list_(pa.field(LIST_ITEM, _with_leaves(kind.value_type, change, f"{path}/[]")))
    return change(kind, path)


def dotted(path: str) -> str:
    """Return a path of pyarrow's errors as people write it.

    >>> dotted("/a/[]/b")
    'a[].b'
    """
    return path.strip("/").replace("/", ".").replace(".[]", "[]")


def _checked(kind: pa.DataType, path: str) -> pa.DataType:
    types = pa.types
    if types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    plain = (types.is_integer, types.is_floating, types.is_boolean, types.is_string, types.is_decimal, types.is_date)
    if not any(fits(kind) for fits in (*plain, types.is_struct)):
        raise UnsupportedError(
            f"column {dotted(path)!r}: JSON values are not read as {kind}; declare it as string or struct, and convert "
            "it in a transform"
        )
    return kind


def _plain(kind: pa.DataType, _path: str) -> pa.DataType:
    """Return an inferred type: dates and times stay text, and a type of no value is text."""
    is_text = pa.types.is_null(kind) or pa.types.is_temporal(kind) or pa.types.is_struct(kind)
    return pa.string() if is_text else kind


def _convert(array: Any, target: pa.DataType, epoch: str | None, path: str) -> pa.Array:
    """Return what pyarrow read as the target type. Raises: ValueError if a value does not fit; names the column."""
    if pa.types.is_struct(target):
        columns = [
            _convert(array.field(number), child.type, epoch, f"{path}.{child.name}" if path else child.name)
            for number, child in enumerate(target.fields)
        ]
        return pa.StructArray.from_arrays(columns, fields=target.fields, mask=pc.is_null(array))
    if pa.types.is_list(target):
        items = _convert(array.values, target.value_type, epoch, f"{path}[]")
        return pa.ListArray.from_arrays(array.offsets, items, type=target, mask=pc.is_null(array))
    if pa.types.is_floating(target):
        return _to_float(array, target, path)
    if not _is_time(target):
        return array
    try:
        return _to_time(array, target, epoch, path)
    except pa.ArrowInvalid as error:
        raise ValueError(f"column {path}: no {target}: {str(error).partition(' as a scalar')[0]}") from error


def _to_float(array: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    floats = array.cast(target)
    if target != pa.float64() and pc.any(pc.and_(pc.is_inf(floats), pc.is_finite(array))).as_py():
        raise ValueError(f"column {path}: the number is too large for a float")
    return floats


def _to_time(array: pa.Array, target: pa.DataType, epoch: str | None, path: str) -> pa.Array:
    if pa.types.is_date(target):
        if pa.types.is_integer(array.type):
            return array.cast(pa.int32()).cast(pa.date32()).cast(target)
        _require(array, DATE_TEXT, f"column {path}: expected a date such as 2026-01-31")
        return array.cast(target)
    if pa.types.is_integer(array.type):
        if pc.all(pc.is_null(array), min_count=0).as_py():
            return pa.nulls(len(array), target)
        if epoch is None:
            raise ValueError(
                f"column {path}: expected a time as text, found a number; set `epoch` to its unit: s, ms, us, ns"
            )
        unit = pa.timestamp(epoch, "UTC")
        # Nanoseconds of an epoch are cut to microseconds, as in text.
        return array.cast(unit).cast(_UTC, safe=epoch != "ns").cast(target)
    _require(array, f"{LOCAL_TEXT}|{ZONED_TEXT}", f"column {path}: expected a time such as 2026-01-31T23:59:59Z")
    text = pc.replace_substring_regex(array, r"^(\d{4}-\d\d-\d\d)$", r"\1T00:00:00")
    text = pc.replace_substring_regex(text, r"(\.\d{6})\d+", r"\1")
    text = pc.replace_substring_regex(text, r"^(.{16}[\d:.]*) ?([Z+-].*)?$", r"\1\2")
    is_zoned = pc.match_substring_regex(text, r"(Z|[+-]\d\d(:?\d\d)?)$")
    text = pc.if_else(is_zoned, text, pc.binary_join_element_wise(text, "Z", ""))
    return text.cast(_UTC).cast(target)


def _require(texts: pa.Array, pattern: str, expected: str) -> None:
    """Raise if a text does not match. Raises: ValueError with what was expected and what was found."""
    fits = pc.fill_null(pc.match_substring_regex(texts, pattern), True)
    if not pc.all(fits, min_count=0).as_py():
        found = texts.filter(pc.invert(fits))[0].as_py()
        raise ValueError(f"{expected}, found {found[:60]!r}")
