"""Values of rows and results as JSON, for the command line and the pages of `hoodie ui`.

Dates and times are ISO texts, in any year: Python has no dates before year 1 or after year 9999, and no nanoseconds.
Years outside 0 to 9999 get a sign, as in Spark: `+10000-01-01`, `-0001-12-31`.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hoodie.errors import SchemaMismatchError
from hoodie.format.schema.arrow_types import with_leaves

_JSON_CONTROLS: Final = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029)}
"""Characters that `json` leaves as they are: commands of some terminals, and ends of lines in Python."""
_EXACT_MAX: Final = 2**53 - 1
"""The greatest integer that is exact in JavaScript."""


def printable_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return the values of a column; dates and times are ISO texts, maps are dicts at every depth.

    A map that has a key twice is a list of pairs. Raises: SchemaMismatchError: a text is not UTF-8.
    """
    convert = _conversion(column.type)
    try:
        if convert is None:
            values: list[Any] = column.to_pylist()
            return values
        stored = column.cast(with_leaves(column.type, _stored))
        return [None if value is None else convert(value) for value in stored.to_pylist()]
    except UnicodeDecodeError as error:
        raise SchemaMismatchError(
            f"a text is not UTF-8 ({error.object!r:.60}); update the row with the right text, or print other columns"
        ) from error


def _time_text(number: int, data_type: pa.DataType) -> str:
    """Return the ISO text of a stored date or timestamp; a time with a zone ends with `+00:00`.

    >>> _time_text(-1, pa.date32()), _time_text(1_500_000, pa.timestamp("us", "UTC"))
    ('1969-12-31', '1970-01-01T00:00:01.500000+00:00')
    """
    if pa.types.is_date(data_type):
        return _signed_year(str(np.datetime64(number, "D" if pa.types.is_date32(data_type) else "ms").astype("M8[D]")))
    text = _signed_year(str(np.datetime64(number, data_type.unit)))
    whole, _, fraction = text.partition(".")
    digits = "" if not fraction.strip("0") else f".{fraction:0<6}"
    return f"{whole}{digits}{'+00:00' if data_type.tz is not None else ''}"


def _signed_year(text: str) -> str:
    """Return a date as NumPy prints it, with at least four digits of the year, and a sign beyond 9999."""
    sign = "-" if text.startswith("-") else ""
    year, rest = text.removeprefix("-").split("-", 1)
    return f"{sign or ('+' if len(year) > 4 else '')}{year:0>4}-{rest}"


def _is_moment(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_date(data_type) or pa.types.is_timestamp(data_type))


def _stored(data_type: pa.DataType) -> pa.DataType:
    """Return the type of the stored numbers of dates and timestamps; other types as they are."""
    if not _is_moment(data_type):
        return data_type
    return pa.int32() if pa.types.is_date32(data_type) else pa.int64()


def _conversion(data_type: pa.DataType) -> Callable[[Any], Any] | None:
    """Return the conversion of one stored value that is not null; None if it is printed as it is."""
    if _is_moment(data_type):
        return lambda number: _time_text(number, data_type)
    if pa.types.is_struct(data_type):
        children = {child.name: _conversion(child.type) for child in data_type.fields}
        return lambda value: {name: _applied(convert, value[name]) for name, convert in children.items()}
    if pa.types.is_map(data_type):
        of_items = _conversion(data_type.item_type)
        return lambda pairs: _dict_of([(key, _applied(of_items, item)) for key, item in pairs])
    if pa.types.is_list(data_type):
        of_value = _conversion(data_type.value_type)
        return None if of_value is None else lambda items: [_applied(of_value, item) for item in items]
    return None


def _applied(convert: Callable[[Any], Any] | None, value: Any) -> Any:
    return value if value is None or convert is None else convert(value)


def _dict_of(pairs: Sequence[tuple[Any, Any]]) -> Any:
    found = dict(pairs)
    return found if len(found) == len(pairs) else pairs


def rows_of(rows: pa.Table | pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Return the rows one by one, as dicts of values by column. Raises: as `printable_values`."""
    columns = map(printable_values, rows.columns)
    # Without columns `zip` ends at once.
    for row in zip(*columns, strict=True) if rows.num_columns else [()] * rows.num_rows:
        yield dict(zip(rows.schema.names, row, strict=True))


def to_json(value: Any, *, wide_as_text: bool = False) -> str:
    """Convert a value to JSON: times in ISO form, decimals as strings, bytes in base64.

    NaN and infinities become the strings `NaN`, `Infinity` and `-Infinity`. Control characters are escaped.
    `wide_as_text`: integers of more than 53 bits become strings, because browsers round them.

    >>> to_json({"day": date(2013, 1, 31), "fare": float("nan")})
    '{"day": "2013-01-31", "fare": "NaN"}'
    >>> to_json([2**53, 1], wide_as_text=True)
    '["9007199254740992", 1]'
    """
    plain = _plain(value, _EXACT_MAX if wide_as_text else None)
    return json.dumps(plain, ensure_ascii=False, allow_nan=False).translate(_JSON_CONTROLS)


def _plain(value: Any, exact_max: int | None) -> Any:
    match value:
        case dict():
            return {str(name): _plain(item, exact_max) for name, item in value.items()}
        case list() | tuple():
            return [_plain(item, exact_max) for item in value]
        case int() if exact_max is not None and abs(value) > exact_max:
            return str(value)
        case float() if math.isnan(value):
            return "NaN"
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case _:
            return value
