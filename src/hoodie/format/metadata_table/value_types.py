"""Types of the values in column statistics: how each Arrow type is stored (docs/format/metadata.md §4.4).

A *raw* value is the Python value that is stored: bool, int (also for dates, times, timestamps in the type's unit, and
the unscaled value of a decimal), float, str or bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class ValueKind(IntEnum):
    """Kind of the values of a column. On disk: do not change."""

    NULL = 1
    BOOLEAN = 2
    INT = 3
    LONG = 4
    FLOAT = 5
    DOUBLE = 6
    STRING = 7
    BYTES = 8
    FIXED = 9
    DECIMAL = 10
    UUID = 11
    DATE = 12
    TIME_MILLIS = 13
    TIME_MICROS = 14
    TIMESTAMP_MILLIS = 15
    TIMESTAMP_MICROS = 16
    TIMESTAMP_NANOS = 17
    LOCAL_TIMESTAMP_MILLIS = 18
    LOCAL_TIMESTAMP_MICROS = 19
    LOCAL_TIMESTAMP_NANOS = 20


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of a column's values; `details` are precision and scale of decimals, `"p,s"`."""

    kind: ValueKind
    details: str | None = None

    @property
    def is_floating(self) -> bool:
        """Whether values can be NaN."""
        return self.kind in (ValueKind.FLOAT, ValueKind.DOUBLE)

    @property
    def is_text(self) -> bool:
        """Whether values have any length: Parquet footers have no statistics of long values."""
        return self.kind in (ValueKind.STRING, ValueKind.BYTES)


NULL_TYPE: Final = ValueType(ValueKind.NULL)
UNTYPED_DECIMAL: Final = ValueType(ValueKind.DECIMAL, "30,15")
"""Every decimal in rows without types (index version V1). On disk: do not change."""
_READ_WITHOUT_TYPE: Final = frozenset(
    {
        ValueKind.BOOLEAN,
        ValueKind.INT,
        ValueKind.LONG,
        ValueKind.FLOAT,
        ValueKind.DOUBLE,
        ValueKind.STRING,
        ValueKind.BYTES,
        ValueKind.DATE,
        ValueKind.TIMESTAMP_MICROS,
    }
)
_INTEGERS: Final = (ValueKind.INT, ValueKind.LONG)
_WIDTHS: Final = {
    kind: width
    for width, kind in enumerate(
        (
            ValueKind.NULL,
            ValueKind.INT,
            ValueKind.LONG,
            ValueKind.FLOAT,
            ValueKind.DOUBLE,
            ValueKind.DECIMAL,
            ValueKind.STRING,
            ValueKind.BYTES,
        )
    )
}
"""A column can be changed from a kind to each kind after it. All kinds that are not named can become text."""
_WIDEST: Final = {
    ValueKind.STRING: ("", "\U0010ffff" * 4),
    ValueKind.BYTES: (b"", b"\xff" * 16),
}
_TIMESTAMPS: Final = {
    ("ms", True): ValueKind.TIMESTAMP_MILLIS,
    ("us", True): ValueKind.TIMESTAMP_MICROS,
    ("ns", True): ValueKind.TIMESTAMP_NANOS,
    ("ms", False): ValueKind.LOCAL_TIMESTAMP_MILLIS,
    ("us", False): ValueKind.LOCAL_TIMESTAMP_MICROS,
    ("ns", False): ValueKind.LOCAL_TIMESTAMP_NANOS,
}
_BY_ID: Final = {
    pa.bool_().id: ValueKind.BOOLEAN,
    pa.int8().id: ValueKind.INT,
    pa.int16().id: ValueKind.INT,
    pa.int32().id: ValueKind.INT,
    pa.int64().id: ValueKind.LONG,
    pa.float32().id: ValueKind.FLOAT,
    pa.float64().id: ValueKind.DOUBLE,
    pa.string().id: ValueKind.STRING,
    pa.large_string().id: ValueKind.STRING,
    pa.binary().id: ValueKind.BYTES,
    pa.large_binary().id: ValueKind.BYTES,
    pa.date32().id: ValueKind.DATE,
    pa.time32("ms").id: ValueKind.TIME_MILLIS,
    pa.time64("us").id: ValueKind.TIME_MICROS,
}


def value_type_of(data_type: pa.DataType) -> ValueType | None:
    """Return the type of the statistics of a column; None if columns of this type have no statistics."""
    if pa.types.is_decimal(data_type):
        return ValueType(ValueKind.DECIMAL, f"{data_type.precision},{data_type.scale}")
    if pa.types.is_timestamp(data_type):
        kind = _TIMESTAMPS.get((data_type.unit, data_type.tz is not None))
        return None if kind is None else ValueType(kind)
    if pa.types.is_fixed_size_binary(data_type):
        return ValueType(ValueKind.FIXED)
    kind = _BY_ID.get(data_type.id)
    return None if kind is None else ValueType(kind)


def is_read_without_type(value_type: ValueType) -> bool:
    """Return whether JVM Hudi 1.0 reads bounds of this type from rows without types, and loses no rows by them."""
    if value_type.kind is ValueKind.DECIMAL:
        scale, digits = _scale(UNTYPED_DECIMAL), _digits(UNTYPED_DECIMAL)
        return _scale(value_type) <= scale and _digits(value_type) - _scale(value_type) <= digits - scale
    return value_type.kind in _READ_WITHOUT_TYPE


def untyped_bounds(low: Any, high: Any, value_type: ValueType) -> tuple[Any, Any]:
    """Return bounds as rows without types have them: decimals have the scale 15, and are rounded outwards."""
    if value_type.kind is not ValueKind.DECIMAL or low is None or high is None:
        return low, high
    return rescaled(low, high, value_type, UNTYPED_DECIMAL)


def rescaled(low: int, high: int, stored: ValueType, wanted: ValueType) -> tuple[int, int]:
    """Return unscaled bounds of decimals with another scale, rounded outwards."""
    factor = Fraction(10) ** (_scale(wanted) - _scale(stored))
    return math.floor(low * factor), math.ceil(high * factor)


def holds(stored: ValueType, data_type: pa.DataType) -> bool:
    """Return whether raw values of this type are exact values of a column of an Arrow type, which may be wider."""
    wanted = value_type_of(data_type)
    if wanted is None:
        return False
    if stored.kind is ValueKind.INT and wanted.kind in _INTEGERS:
        return True
    if stored.kind is ValueKind.DECIMAL and wanted.kind is ValueKind.DECIMAL:
        # More digits before the point do not change the unscaled values.
        return _scale(stored) == _scale(wanted) and _digits(stored) <= _digits(wanted)
    return stored == wanted


def wider(older: ValueType, newer: ValueType) -> ValueType:
    """Return the type that values of both types can be converted to: the type of a column changed between them.

    The newer type, if neither can be converted to the other.
    """
    if older.kind is ValueKind.DECIMAL and newer.kind is ValueKind.DECIMAL:
        return max(newer, older, key=lambda one: (_scale(one), _digits(one)))
    text = _WIDTHS[ValueKind.STRING]
    old, new = _WIDTHS.get(older.kind), _WIDTHS.get(newer.kind)
    if old is None:
        return newer
    return older if old > (text - 1 if new is None else new) else newer


def promoted(low: Any, high: Any, stored: ValueType, wanted: ValueType) -> tuple[Any, Any]:
    """Return bounds, in raw values of a type, for values that had another type before the column was changed.

    The bounds hold all converted values. A column that became text gets the widest bounds: numbers are in another order
    as text. None means no value.
    """
    if low is None or high is None or stored == wanted or stored.kind is ValueKind.NULL:
        return low, high
    if {stored.kind, wanted.kind} == {ValueKind.BYTES, ValueKind.FIXED}:
        # Rows of index version V1 have bytes for both.
        return low, high
    if wanted.kind in (ValueKind.STRING, ValueKind.BYTES):
        return _WIDEST[wanted.kind]
    if wanted.is_floating:
        scale = 10 ** _scale(stored) if stored.kind is ValueKind.DECIMAL else 1
        # A 32-bit float becomes the double with the same text.
        return tuple(float(str(np.float32(raw))) if stored.is_floating else raw / scale for raw in (low, high))  # type: ignore[return-value]
    if wanted.kind is ValueKind.DECIMAL:
        if stored.is_floating:
            return _decimal_bounds(low, high, wanted)
        factor = 10 ** (_scale(wanted) - _scale(stored))
        return low * factor, high * factor
    return low, high


def _decimal_bounds(low: float, high: float, wanted: ValueType) -> tuple[int, int]:
    """Return unscaled bounds of numbers that became decimals, rounded outwards."""
    greatest = 10 ** _digits(wanted) - 1
    if not (math.isfinite(low) and math.isfinite(high)):
        return -greatest, greatest
    factor = 10 ** _scale(wanted)
    return math.floor(Fraction(low) * factor), math.ceil(Fraction(high) * factor)


def _scale(value_type: ValueType) -> int:
    return int((value_type.details or "0,0").rpartition(",")[2])


def _digits(value_type: ValueType) -> int:
    return int((value_type.details or "0,0").partition(",")[0])


def arrow_values(raws: Sequence[Any], data_type: pa.DataType) -> pa.Array:
    """Return raw values, or None, as an Arrow array; `holds` was true for each of them."""
    kind = value_type_of(data_type)
    assert kind is not None
    if kind.kind is ValueKind.DECIMAL:
        return _decimals(raws, data_type)
    if pa.types.is_temporal(data_type):
        storage = pa.int32() if data_type.bit_width == 32 else pa.int64()
        return pa.array(raws, storage).cast(data_type)
    return pa.array(raws, data_type)


def raw_values(values: pa.Array) -> list[Any]:
    """Return the raw values of an Arrow array of a type that has statistics; the opposite of `arrow_values`."""
    data_type = values.type
    if pa.types.is_temporal(data_type):
        values = values.cast(pa.int32() if data_type.bit_width == 32 else pa.int64())
    found: list[Any] = values.to_pylist()
    if pa.types.is_decimal(data_type):
        return [None if value is None else _unscaled_of(value, data_type.scale) for value in found]
    return found


def _unscaled_of(value: Any, scale: int) -> int:
    """Return the unscaled value of a decimal; arithmetic on Decimal would round it to 28 digits."""
    sign, digits, exponent = value.as_tuple()
    number: int = int("".join(map(str, digits))) * 10 ** (exponent + scale)
    return -number if sign else number


def _decimals(raws: Sequence[int | None], data_type: pa.DataType) -> pa.Array:
    width = data_type.byte_width
    mask = pa.array([raw is not None for raw in raws], pa.bool_())
    data = b"".join((raw or 0).to_bytes(width, "little", signed=True) for raw in raws)
    plain = pa.Array.from_buffers(data_type, len(raws), [None, pa.py_buffer(data)])
    nothing = pa.nulls(len(raws), data_type)
    return pc.if_else(mask, plain, nothing)
