"""JSON texts as Arrow columns of given types, by pyarrow's parser; the types of JSON texts without a schema.

pyarrow reads numbers, booleans, decimals (exactly), structs and lists. Dates and times are read as text or as a number
and then converted; floats are read as doubles, so that a number beyond a float is found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from hoodie.errors import InvalidConfigError, SourceError, UnsupportedError
from hoodie.format.schema.arrow_types import LIST_ITEM

EPOCH_UNITS: Final[Mapping[str, str]] = {"s": "s", "ms": "ms", "us": "us", "ns": "ns"}
UNKNOWN: Final = ("ignore", "bad")
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
        if self.unknown not in UNKNOWN:
            raise InvalidConfigError(f"unknown = {self.unknown!r}: expected one of {', '.join(UNKNOWN)}")
        if self.epoch is not None and self.epoch not in EPOCH_UNITS:
            raise InvalidConfigError(f"epoch = {self.epoch!r}: expected one of {', '.join(EPOCH_UNITS)}")
        self.schema = pa.schema([pa.field(child.name, _nullable(child.type, child.name)) for child in self.schema])

    @property
    def is_plain(self) -> bool:
        """Whether no option changes what is read."""
        return self.unknown == "ignore" and self.epoch is None

    def parse(self, values: pa.Array) -> pa.StructArray:
        """Return a row for each binary value; null where the value is null or the JSON text `null`.

        Raises: ValueError if one of them is no JSON object, or does not fit the schema.
        """
        data = _lines(values)
        flipped: set[str] = set()
        while True:
            try:
                return self._converted(self._read(data, len(values), self.schema))
            except pa.ArrowInvalid as error:
                changed = _CHANGED.search(str(error))
                path = changed[1] if changed else ""
                if not changed or path in flipped or not _has_time(self.schema, path):
                    raise self._named(error, values) from error
                flipped.add(path)
                self._as_numbers ^= {path}

    def _read(self, data: pa.Buffer, count: int, schema: pa.Schema, *, is_part: bool = False) -> pa.StructArray:
        """Return the rows with the types that pyarrow reads. `is_part`: the schema has some of the columns only."""
        read = pa.struct([pa.field(f.name, self._read_type(f.type, f"/{_WRAP}/[]/{f.name}")) for f in schema])
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
        """Return the type that pyarrow reads, from which the target type is made."""
        if _is_time(target):
            return pa.int64() if path in self._as_numbers else pa.string()
        if pa.types.is_floating(target):
            return pa.float64()
        if pa.types.is_list(target):
            return pa.list_(pa.field(target.value_field.name, self._read_type(target.value_type, f"{path}/[]")))
        if pa.types.is_struct(target):
            return pa.struct([pa.field(f.name, self._read_type(f.type, f"{path}/{f.name}")) for f in target.fields])
        return target

    def _converted(self, rows: pa.StructArray) -> pa.StructArray:
        target = pa.struct(list(self.schema))
        return rows if rows.type == target else _convert(rows, target, self.epoch, "")

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


@dataclass(frozen=True, slots=True)
class TypesOfJson:
    """Infers a schema from JSON objects."""

    def of(self, values: pa.Array) -> pa.Schema:
        """Return the schema of a few binary values. Raises: SourceError if there is no column in any of them."""
        try:
            found = self._inferred(values)
        except pa.ArrowInvalid:
            found = pa.struct([])
            for number in range(len(values)):
                found = self._with(found, values.slice(number, 1))
        schema = pa.schema([pa.field(child.name, _plain(child.type)) for child in found.fields])
        if not schema.names:
            raise SourceError(
                f"the columns cannot be inferred: none of the first {len(values):,} values is a JSON object with a "
                "member; pass a schema"
            )
        return schema

    def _with(self, known: pa.StructType, value: pa.Array) -> pa.StructType:
        """Return the fields that are known and the fields of a value; the known ones alone if they do not agree."""
        try:
            schemas = [pa.schema(known.fields), pa.schema(self._inferred(value).fields)]
            return pa.struct(list(pa.unify_schemas(schemas, promote_options="permissive")))
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            return known

    def _inferred(self, values: pa.Array) -> pa.StructType:
        data = _lines(values)
        reading = pj.ReadOptions(use_threads=False, block_size=data.size + 1)
        found = pj.read_json(pa.BufferReader(data), read_options=reading).schema.field(_WRAP).type.value_type
        return found if pa.types.is_struct(found) else pa.struct([])


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


def _nullable(data_type: pa.DataType, path: str) -> pa.DataType:
    """Return the type with nullable fields. Raises: UnsupportedError for a type that cannot be read from JSON."""
    types = pa.types
    if types.is_struct(data_type):
        return pa.struct([pa.field(f.name, _nullable(f.type, f"{path}.{f.name}")) for f in data_type.fields])
    if types.is_list(data_type):
        return pa.list_(pa.field(LIST_ITEM, _nullable(data_type.value_type, f"{path}[]")))
    if types.is_timestamp(data_type):
        return pa.timestamp("us", data_type.tz)
    plain = (types.is_integer, types.is_floating, types.is_boolean, types.is_string, types.is_decimal, types.is_date)
    if not any(fits(data_type) for fits in plain):
        raise UnsupportedError(
            f"column {path!r}: JSON values are not read as {data_type}; declare it as string or struct, and convert it "
            "in a transform"
        )
    return data_type


def _plain(data_type: pa.DataType) -> pa.DataType:
    """Return an inferred type without dates and times, which stay text, and without types of no value."""
    if pa.types.is_struct(data_type):
        if not data_type.num_fields:
            return pa.string()
        return pa.struct([pa.field(child.name, _plain(child.type)) for child in data_type.fields])
    if pa.types.is_list(data_type):
        return pa.list_(pa.field(LIST_ITEM, _plain(data_type.value_type)))
    if pa.types.is_null(data_type) or pa.types.is_temporal(data_type):
        return pa.string()
    return data_type


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
