"""Read JSON lines with numbers as they are written; the strings and numbers become the types of the columns.

What `hoodie head --json` prints is read back: decimals, NaN and infinities as strings, times as ISO texts, binary in
base64, maps as objects.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa

from hoodie.errors import InvalidConfigError, SchemaMismatchError
from hoodie.format.avro.schema import META_FIELDS
from hoodie.format.schema.arrow_types import LIST_ITEM
from hoodie.format.schema.fit import RowOf, misfit, shortened
from hoodie.format.schema.fit_nested import fit_values
from hoodie.format.schema.fit_text import fit_texts, type_of_texts
from hoodie.ingest.rows.rules import BadLine, InputOptions, good_rows

_BATCH_BYTES = 1 << 22
_FLOAT_WORDS = frozenset({"NaN", "Infinity", "-Infinity"})
_Row = Mapping[str, Any]


class _Line(NamedTuple):
    """The number of a line, its row, and its text, if bad rows are reported."""

    number: int
    row: _Row
    text: bytes


class JsonRows:
    """The rows of a file of JSON lines as batches, in order.

    A column of `options.types` that no line has is null, because JSON may omit nulls. Only meta columns are then
    missing, and with `omits_missing` all columns that the first lines lack. Types of other columns are inferred from
    the first lines. `bad` gets lines that are no JSON object, and lines with a value that does not fit; else they are
    errors. Memory: 4 MiB of lines as Python objects, or one line.

    Raises: InvalidConfigError, SchemaMismatchError: a line is no JSON object, or a value does not fit; rows are the
        numbers of the lines, from 1.
    """

    def __init__(self, file: BinaryIO, options: InputOptions, bad: BadLine | None = None) -> None:
        self._bad = bad
        self._batches = _batches(file, bad)
        self._first = next(self._batches, [])
        names = _names(self._first)
        own = set(options.types.names)
        optional = own if options.omits_missing and names else {*META_FIELDS}
        known = [child for child in options.types if child.name in names or child.name not in optional]
        # A batch without columns would have no rows. The columns are listed where the known columns are missed.
        self._ignores_others = options.ignores_others and bool(known)
        others = [] if self._ignores_others else [name for name in names if name not in own]
        numbers = [line.number for line in self._first]
        inferred = [_inferred([line.row.get(name) for line in self._first], numbers, name) for name in others]
        self.schema = pa.schema([*known, *map(pa.field, others, inferred)])

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in itertools.chain([self._first], self._batches):
            yield from self._fit(batch)

    def use_types(self, types: pa.Schema) -> None:
        """Let the rows have these columns, before the first row is read; columns that lines lack are null."""
        self.schema = types

    def _fit(self, batch: list[_Line]) -> Iterator[pa.RecordBatch]:
        def line_of(place: int) -> tuple[int, str]:
            return batch[place].number, _text_of(batch[place].text)

        yield from good_rows(len(batch), lambda start, end: self._fitted(batch[start:end]), self._bad, line_of)

    def _fitted(self, lines: list[_Line]) -> pa.Table:
        if not self._ignores_others:
            self._check_names(lines)
        columns = [
            fit_values(
                [line.row.get(child.name) for line in lines],
                child.type,
                child.name,
                scalars=_fit_scalars,
                row_of=lambda place: lines[place].number,
            )
            for child in self.schema
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _check_names(self, lines: Sequence[_Line]) -> None:
        unknown = _names(lines).keys() - set(self.schema.names)
        for line in lines if unknown else ():
            for name in line.row:
                if name in unknown:
                    raise SchemaMismatchError(
                        f"column {name!r}, row {line.number}: neither the table nor the beginning of the file has this "
                        f"column ({', '.join(self.schema.names)}); drop it, or correct its name"
                    )


def _names(lines: Iterable[_Line]) -> dict[str, None]:
    return dict.fromkeys(itertools.chain.from_iterable(line.row for line in lines))


def _batches(file: BinaryIO, bad: BadLine | None) -> Iterator[list[_Line]]:
    batch: list[_Line] = []
    size = 0
    for number, text in enumerate(file, 1):
        text = text.removeprefix(codecs.BOM_UTF8) if number == 1 else text
        if text.strip():
            try:
                batch.append(_Line(number, _parsed(text, number), b"" if bad is None else text))
            except InvalidConfigError as error:
                if bad is None:
                    raise
                bad(number, str(error), _text_of(text))
                continue
        size += len(text)
        if size >= _BATCH_BYTES and batch:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _text_of(line: bytes) -> str:
    return line.decode(errors="replace").rstrip("\r\n")


def _parsed(line: bytes, number: int) -> _Row:
    try:
        row = _DECODER.decode(line.decode())
    except UnicodeDecodeError as error:
        around = shortened(line[max(error.start - 20, 0) : error.end + 20])
        raise InvalidConfigError(
            f"row {number}: {around} is not UTF-8; convert the file, for example with iconv -f latin1 -t utf-8"
        ) from error
    except _RepeatedNameError as error:
        raise InvalidConfigError(f"row {number}: an object has the name {error.args[0]!r} more than once") from error
    except (ValueError, RecursionError) as error:
        found = shortened(line[:80].decode(errors="replace"))
        raise InvalidConfigError(
            f"row {number}: expected one JSON object on each line, found {found} ({error}); `jq -c .` writes JSON lines"
        ) from error
    if not isinstance(row, dict):
        raise InvalidConfigError(
            f"row {number}: expected a JSON object, found {shortened(row)}; `jq -c '.[]'` makes lines of an array"
        )
    return row


class _RepeatedNameError(Exception):
    """An object has a name twice; `args` has the name."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedNameError(next(name for name in names if names.count(name) > 1))
    return found


_DECODER = json.JSONDecoder(parse_float=Decimal, object_pairs_hook=_object)


def _fit_scalars(values: Sequence[Any], wanted: pa.DataType, path: str, row_of: RowOf) -> pa.Array:
    """Convert values of JSON to an array of a type that is not nested."""
    types = _accepted(wanted)
    for kind in set(map(type, values)) - types - {type(None)}:
        place = next(place for place, value in enumerate(values) if type(value) is kind)
        raise misfit(values[place], wanted, path, row_of(place))
    if types == _BOOLEANS:
        return pa.array(values, wanted)
    if pa.types.is_binary(wanted) or pa.types.is_fixed_size_binary(wanted):
        return pa.array([_decoded(value, wanted, path, row_of, place) for place, value in enumerate(values)], wanted)
    texts = [value if value is None else _text(value) for value in values]
    if pa.types.is_floating(wanted):
        for place, (value, text) in enumerate(zip(values, texts, strict=True)):
            if type(value) is str and text not in _FLOAT_WORDS:
                raise misfit(value, wanted, path, row_of(place))
    try:
        array = pa.array(texts, pa.string())
    except UnicodeEncodeError as error:
        place = next(place for place, text in enumerate(texts) if text is not None and _is_broken(text))
        raise misfit(values[place], wanted, path, row_of(place)) from error
    return fit_texts(array, wanted, path, row_of)


_BOOLEANS = frozenset({bool})
_NUMBERS = frozenset({int, Decimal, float})
_STRINGS = frozenset({str})


def _accepted(wanted: pa.DataType) -> frozenset[type]:
    """Return the Python types of JSON values that a column of the type can have."""
    if pa.types.is_boolean(wanted):
        return _BOOLEANS
    if pa.types.is_integer(wanted):
        return _NUMBERS
    if pa.types.is_floating(wanted) or pa.types.is_decimal(wanted):
        return _NUMBERS | _STRINGS
    return _STRINGS


def _text(value: Any) -> str:
    return value if isinstance(value, str) else repr(value) if isinstance(value, float) else str(value)


def _is_broken(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def _decoded(value: str | None, wanted: pa.DataType, path: str, row_of: RowOf, place: int) -> bytes | None:
    if value is None:
        return None
    try:
        data = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise SchemaMismatchError(
            f"column {path!r}, row {row_of(place)}: {shortened(value)} does not fit {wanted}; expected base64"
        ) from error
    if pa.types.is_fixed_size_binary(wanted) and len(data) != wanted.byte_width:
        raise misfit(data, wanted, path, row_of(place))
    return data


def _inferred(values: Sequence[Any], rows: Sequence[int], path: str) -> pa.DataType:
    """Return the type of values of JSON. Raises: SchemaMismatchError: the values have several types."""
    found = [(value, row) for value, row in zip(values, rows, strict=True) if value is not None]
    present, rows = [value for value, _ in found], [row for _, row in found]
    kinds = set(map(type, present))
    if kinds <= _STRINGS:
        # Text that UTF-8 cannot hold is refused when it is converted.
        return type_of_texts(pa.array([text for text in present if not _is_broken(text)], pa.string()), is_quoted=True)
    if kinds == _BOOLEANS:
        return pa.bool_()
    if kinds <= _NUMBERS:
        numbers = type_of_texts(pa.array(map(_text, present), pa.string()))
        return pa.float64() if pa.types.is_string(numbers) else numbers
    if kinds == {list}:
        repeated = [row for value, row in found for _ in value]
        return pa.list_(_inferred(list(itertools.chain.from_iterable(present)), repeated, f"{path}.{LIST_ITEM}"))
    if kinds == {dict}:
        children = {
            name: [one.get(name) for one in present] for name in dict.fromkeys(itertools.chain.from_iterable(present))
        }
        return pa.struct([(name, _inferred(child, rows, f"{path}.{name}")) for name, child in children.items()])
    value, row = next((value, row) for value, row in found if type(value) is not type(present[0]))
    raise SchemaMismatchError(
        f"column {path!r}, row {row}: {shortened(value)} has another type than {shortened(present[0])} in row "
        f"{rows[0]}; write values of one type"
    )
