"""Integers and messages inside HFiles: protobuf varints and messages, and Hadoop variable-length integers.

docs/format/metadata.md §1.5 (Hadoop VInt), §1.7 and §1.8 (protobuf). The two encodings of integers are equal only for
numbers below 128.
"""

from __future__ import annotations

from collections.abc import Iterable

from hoodie.errors import CorruptFileError
from hoodie.format.varint import varint_at, varint_to_bytes

_WIRE_VARINT = 0
_WIRE_BYTES = 2
_FIELDS_MAX = 10_000


class Cursor:
    """A bounded read position in one buffer; missing bytes raise a `CorruptFileError`, never an `IndexError`.

    `origin` is the offset of the buffer's first byte in the file, for error messages.
    """

    __slots__ = ("_buf", "_origin", "_path", "position")

    def __init__(self, buf: memoryview, *, path: str, origin: int) -> None:
        self._buf = buf
        self._path = path
        self._origin = origin
        self.position = 0

    @property
    def exhausted(self) -> bool:
        """Whether every byte was read."""
        return self.position >= len(self._buf)

    def error(self, message: str) -> CorruptFileError:
        """Return the error to raise for the bytes at the current position."""
        return CorruptFileError(message, path=self._path, offset=self._origin + self.position)

    def take(self, length: int) -> memoryview:
        """Read the next `length` bytes, without a copy."""
        end = self.position + length
        if length < 0 or end > len(self._buf):
            raise self.error(f"expected {length} more bytes, found {len(self._buf) - self.position}")
        piece = self._buf[self.position : end]
        self.position = end
        return piece

    def rest(self) -> memoryview:
        """Return all bytes that were not read yet; the position does not move."""
        return self._buf[self.position :]

    def unsigned(self, length: int) -> int:
        """Read a big-endian unsigned integer of `length` bytes."""
        return int.from_bytes(self.take(length), "big")

    def varint(self) -> int:
        """Read a protobuf varint of at most 64 bits."""
        try:
            value, self.position = varint_at(self._buf, self.position)
        except ValueError as error:
            raise self.error(f"expected a varint: {error}") from error
        return value & 0xFFFFFFFFFFFFFFFF

    def hadoop_vint(self) -> int:
        """Read a Hadoop `WritableUtils` VInt. It must not be negative, because it is a number of bytes."""
        first = int.from_bytes(self.take(1), "big", signed=True)
        if first >= -112:
            value = first
        elif first >= -120:
            value = self.unsigned(-112 - first)
        else:
            value = -1
        if value < 0:
            raise self.error("a length is negative")
        return value

    def message(self) -> list[tuple[int, int | memoryview]]:
        """Return the field numbers and values of the protobuf message that fills the rest of the buffer.

        Raises: CorruptFileError also after 10,000 fields: real messages have a few.
        """
        fields: list[tuple[int, int | memoryview]] = []
        buf, stop = self._buf, len(self._buf)
        while self.position < stop:
            if len(fields) >= _FIELDS_MAX:
                raise self.error(f"expected a message of up to {_FIELDS_MAX} fields, found more")
            # Most tags and lengths have one byte; a call for each would take most of the time.
            tag = buf[self.position]
            if tag < 0x80:
                self.position += 1
            else:
                tag = self.varint()
            if tag & 7 not in (_WIRE_VARINT, _WIRE_BYTES):
                raise self.error(f"expected protobuf wire type 0 or 2, found {tag & 7}")
            value = buf[self.position] if self.position < stop else 0x80
            if value < 0x80:
                self.position += 1
            else:
                value = self.varint()
            if tag & 7 == _WIRE_BYTES:
                end = self.position + value
                fields.append((tag >> 3, buf[self.position : end] if end <= stop else self.take(value)))
                self.position = end
            else:
                fields.append((tag >> 3, value))
        return fields


def hadoop_vint_to_bytes(value: int) -> bytes:
    """Encode a non-negative Hadoop VInt."""
    if value <= 127:
        return bytes((value,))
    length = (value.bit_length() + 7) // 8
    return bytes((256 - 112 - length,)) + value.to_bytes(length, "big")


def message_to_bytes(fields: Iterable[tuple[int, int | bytes]]) -> bytes:
    """Encode a protobuf message of varint (int) and length-delimited (bytes) fields."""
    out = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            out += varint_to_bytes(number << 3 | _WIRE_VARINT) + varint_to_bytes(value)
        else:
            out += varint_to_bytes(number << 3 | _WIRE_BYTES) + varint_to_bytes(len(value)) + value
    return bytes(out)
