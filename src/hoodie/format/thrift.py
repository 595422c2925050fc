"""Thrift's compact protocol, without a schema: the fields of a struct and the items of a list as bytes.

A value stays encoded until it is needed, so that what is not changed is copied. Footers of Parquet files are encoded
so: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hoodie.format.varint import varint_at, varint_to_bytes, zigzag_at, zigzag_to_bytes

_FALSE: Final = 2
I16: Final = 4
I64: Final = 6
_NUMBERS: Final = frozenset({I16, 5, I64})
_SIZES: Final = {1: 0, _FALSE: 0, 3: 1, 7: 8}
"""The bytes of values of other types: booleans as fields, a byte, a double."""
_BINARY: Final = 8
_LIST: Final = 9
_LISTS: Final = frozenset({_LIST, 10})
"""Lists and sets."""
_STRUCT: Final = 12
_DEPTH_MAX: Final = 64
"""Nesting at which a value counts as damaged."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value as it is encoded; `kind` is the number of its type. A boolean has no bytes: its type is its value."""

    kind: int
    data: bytes

    @classmethod
    def of_int(cls, number: int, kind: int = I64) -> Value:
        """Encode an integer of a type."""
        return cls(kind, zigzag_to_bytes(number))

    @classmethod
    def of_struct(cls, fields: Mapping[int, Value]) -> Value:
        """Encode a struct."""
        return cls(_STRUCT, struct_to_bytes(fields))

    @classmethod
    def of_structs(cls, items: Sequence[bytes]) -> Value:
        """Encode a list of structs that are encoded already."""
        count = len(items)
        head = bytes([count << 4 | _STRUCT]) if count < 15 else bytes([0xF0 | _STRUCT]) + varint_to_bytes(count)
        return cls(_LIST, head + b"".join(items))

    @property
    def number(self) -> int:
        """The integer."""
        return zigzag_at(self.data, 0)[0]

    @property
    def fields(self) -> dict[int, Value]:
        """The fields of a struct. Raises: ValueError if the bytes are no struct."""
        return struct_fields(self.data)

    @property
    def items(self) -> list[bytes]:
        """The items of a list, each as it is encoded. Raises: ValueError if the bytes are no list."""
        try:
            count, kind, position = _list_head(self.data, 0)
            found = []
            for _ in range(count):
                end = _end(self.data, position, kind, is_item=True)
                found.append(self.data[position:end])
                position = end
        except IndexError as error:
            raise ValueError(f"the data ends inside a list ({error})") from error
        return found

    @property
    def contents(self) -> list[bytes]:
        """The items of a list of bytes or texts."""
        return [Value(_BINARY, item).content for item in self.items]

    @property
    def content(self) -> bytes:
        """The bytes of a binary value or text. Raises: ValueError for another type."""
        if self.kind != _BINARY:
            raise ValueError(f"expected bytes, found a value of type {self.kind}")
        length, start = varint_at(self.data, 0)
        return self.data[start : start + length]

    @classmethod
    def of_content(cls, content: bytes) -> Value:
        """Encode bytes or text."""
        return cls(_BINARY, varint_to_bytes(len(content)) + content)


def struct_fields(data: bytes) -> dict[int, Value]:
    """Return the fields of an encoded struct, by their numbers. Raises: ValueError if the bytes are no struct."""
    return struct_at(data, 0)[0]


def struct_at(data: bytes, position: int) -> tuple[dict[int, Value], int]:
    """Return the fields of a struct that begins at a position, and the position after it. Raises: ValueError."""
    found: dict[int, Value] = {}
    number = 0
    try:
        while head := data[position]:
            step, kind = head >> 4, head & 0x0F
            number, position = (number + step, position + 1) if step else zigzag_at(data, position + 1)
            end = _end(data, position, kind)
            found[number] = Value(kind, data[position:end])
            position = end
    except IndexError as error:
        raise ValueError(f"the data ends inside a struct ({error})") from error
    return found, position + 1


def struct_to_bytes(fields: Mapping[int, Value]) -> bytes:
    """Encode a struct; its fields are written in the order of their numbers."""
    out = bytearray()
    last = 0
    for number in sorted(fields):
        value, step = fields[number], number - last
        out += bytes([step << 4 | value.kind]) if step < 16 else bytes([value.kind]) + zigzag_to_bytes(number)
        out += value.data
        last = number
    out.append(0)
    return bytes(out)


def _list_head(data: bytes, position: int) -> tuple[int, int, int]:
    """Return the number of items of a list, their type and where they begin."""
    count, kind, position = data[position] >> 4, data[position] & 0x0F, position + 1
    if count == 15:
        count, position = varint_at(data, position)
    return count, kind, position


def _end(data: bytes, position: int, kind: int, *, is_item: bool = False, depth: int = 0) -> int:
    """Return the position after a value. A boolean has a byte only as an item: the type of a field is its value."""
    if depth > _DEPTH_MAX:
        raise ValueError("values are nested too deep")
    if kind == _STRUCT:
        end = position
        while head := data[end]:
            end, kind = end + 1 if head >> 4 else zigzag_at(data, end + 1)[1], head & 0x0F
            # Numbers and short texts are most fields of a footer: a call for each costs more than all the rest.
            if kind in _NUMBERS:
                end = end + 1 if data[end] < 0x80 else varint_at(data, end)[1]
            elif kind == _BINARY and data[end] < 0x80:
                end += 1 + data[end]
            elif not 1 <= kind <= _FALSE:
                end = _end(data, end, kind, depth=depth + 1)
        end += 1
    elif kind in _NUMBERS:
        end = varint_at(data, position)[1]
    elif kind == _BINARY:
        length, start = varint_at(data, position)
        end = start + length
    elif kind in _LISTS:
        count, item, end = _list_head(data, position)
        for _ in range(count):
            if item == _BINARY and data[end] < 0x80:
                end += 1 + data[end]
            else:
                end = _end(data, end, item, is_item=True, depth=depth + 1)
    elif kind in _SIZES:
        end = position + (is_item if kind <= _FALSE else _SIZES[kind])
    else:
        raise ValueError(f"a value of type {kind}")
    if end > len(data):
        raise ValueError("the data ends inside a value")
    return end
