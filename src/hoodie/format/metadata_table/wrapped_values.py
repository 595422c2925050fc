"""Bounds of column statistics on disk: numbers, texts and bytes in wrappers (docs/format/metadata.md §4.2, §4.4).

Rows of index version V2 have the type of their values beside the bounds, rows of V1 only the wrapper.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hoodie.format.metadata_table.metadata_record import NULL, string_to_bytes
from hoodie.format.metadata_table.value_types import (
    UNTYPED_DECIMAL,
    ValueKind,
    ValueType,
    untyped_bounds,
)
from hoodie.format.varint import zigzag_to_bytes


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A wrapped value: the branch of its wrapper in the union, 0 for none, and its number, text or bytes."""

    branch: int
    value: Any


def unwrapped(low: Wrapped, high: Wrapped, kind: ValueType | None) -> tuple[Any, Any, ValueType | None]:
    """Return the raw values of both wrappers and their type; a row without type has the type of its wrappers."""
    kind = kind or _UNTYPED_TYPES.get(max(low.branch, high.branch))
    raws = (low.value, high.value)
    if kind is not None and kind.kind is ValueKind.DECIMAL:
        raws = tuple(None if raw is None else int.from_bytes(raw, "big", signed=True) for raw in raws)  # type: ignore[assignment]
    return *raws, kind


def wrapped(low: Any, high: Any, value_type: ValueType | None, *, typed: bool) -> tuple[bytes, bytes]:
    """Encode the bounds of a range; those of a row that is not `typed` may be rounded outwards."""
    if value_type is None:
        assert not typed
        return NULL, NULL
    if typed:
        return _encoded(low, value_type, _WRAPPERS), _encoded(high, value_type, _WRAPPERS)
    low, high = untyped_bounds(low, high, value_type)
    return _encoded(low, value_type, _UNTYPED_WRAPPERS), _encoded(high, value_type, _UNTYPED_WRAPPERS)


def _encoded(raw: Any, value_type: ValueType, wrappers: Mapping[ValueKind, tuple[int, _Encode]]) -> bytes:
    if raw is None:
        return NULL
    branch, encode = wrappers.get(value_type.kind, _LONG)
    return zigzag_to_bytes(branch) + encode(raw)


def _double(raw: Any) -> bytes:
    return struct.pack("<d", raw)


def _float(raw: Any) -> bytes:
    return struct.pack("<f", raw)


def _bytes(raw: bytes) -> bytes:
    return zigzag_to_bytes(len(raw)) + raw


def _unscaled(raw: int) -> bytes:
    # The fewest bytes, as Java's BigInteger.
    length = (raw if raw >= 0 else ~raw).bit_length() // 8 + 1
    return _bytes(raw.to_bytes(length, "big", signed=True))


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


_UNTYPED_WRAPPERS: Final[Mapping[ValueKind, tuple[int, _Encode]]] = {
    **_WRAPPERS,
    ValueKind.DATE: (8, zigzag_to_bytes),
    ValueKind.DECIMAL: (9, _unscaled),
}
_UNTYPED_TYPES: Final = {
    1: ValueType(ValueKind.BOOLEAN),
    2: ValueType(ValueKind.INT),
    3: ValueType(ValueKind.LONG),
    4: ValueType(ValueKind.FLOAT),
    5: ValueType(ValueKind.DOUBLE),
    6: ValueType(ValueKind.BYTES),
    7: ValueType(ValueKind.STRING),
    8: ValueType(ValueKind.DATE),
    9: UNTYPED_DECIMAL,
    10: ValueType(ValueKind.TIME_MICROS),
    11: ValueType(ValueKind.TIMESTAMP_MICROS),
    12: ValueType(ValueKind.DATE),
}
"""The type of the values of each branch, in rows of index version V1."""
