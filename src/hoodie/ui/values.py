"""Values of Arrow columns as Python objects that are printed: dates and times as ISO text, in any year.

Python has no dates before year 1 or after year 9999, and no nanoseconds. Years outside 0 to 9999 get a sign, as in
Spark: `+10000-01-01`, `-0001-12-31`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hoodie.errors import SchemaMismatchError

_BIDIRECTIONAL: Final = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROLS: Final = {
    code: repr(chr(code))[1:-1] for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *_BIDIRECTIONAL)
}
"""Characters that change a terminal, or the order of a line, and what is shown for them."""


def shown(text: str) -> str:
    r"""Return the text with escapes for control characters, so that data sends no commands to a terminal.

    >>> shown("red \x1b[31m")
    'red \\x1b[31m'
    """
    return text.translate(_CONTROLS)


def printable_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return the values of a column; dates and times are ISO texts, maps are dicts at every depth.

    A map that has a key twice is a list of pairs. Raises: SchemaMismatchError: a text is not UTF-8.
    """
    convert = _conversion(column.type)
    try:
        if convert is None:
            values: list[Any] = column.to_pylist()
            return values
        return [None if value is None else convert(value) for value in column.cast(_stored(column.type)).to_pylist()]
    except UnicodeDecodeError as error:
        raise SchemaMismatchError(
            f"a text is not UTF-8 ({error.object!r:.60}); update the row with the right text, or print other columns"
        ) from error


def time_text(number: int, data_type: pa.DataType) -> str:
    """Return the ISO text of a stored date or timestamp; a time with a zone ends with `+00:00`.

    >>> time_text(-1, pa.date32()), time_text(1_500_000, pa.timestamp("us", "UTC"))
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
    """Return the type with the stored numbers of dates and timestamps, at every depth."""
    if _is_moment(data_type):
        return pa.int32() if pa.types.is_date32(data_type) else pa.int64()
    if pa.types.is_struct(data_type):
        return pa.struct([child.with_type(_stored(child.type)) for child in data_type.fields])
    if pa.types.is_map(data_type):
        return pa.map_(data_type.key_type, data_type.item_field.with_type(_stored(data_type.item_type)))
    if pa.types.is_list(data_type):
        return pa.list_(data_type.value_field.with_type(_stored(data_type.value_type)))
    return data_type


def _conversion(data_type: pa.DataType) -> Callable[[Any], Any] | None:
    """Return the conversion of one stored value that is not null; None if it is printed as it is."""
    if _is_moment(data_type):
        return lambda number: time_text(number, data_type)
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
