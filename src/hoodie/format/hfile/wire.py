"""Integers and messages inside HFiles: protobuf varints and pair messages, Hadoop variable-length integers.

docs/format/metadata.md §1.5 (Hadoop VInt), §1.7 and §1.8 (protobuf). The two varints agree below 128 only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hoodie.errors import CorruptFileError
from hoodie.format.varint import varint_at, varint_to_bytes

_WIRE_VARINT = 0
_WIRE_BYTES = 2


class Cursor:
    """A bounded read position in one buffer; running out of bytes is a `CorruptFileError`, never an `IndexError`.

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
        """Whether every byte was taken."""
        return self.position >= len(self._buf)

    def error(self, message: str) -> CorruptFileError:
        """The error to raise for what stands at the current position."""
        return CorruptFileError(message, path=self._path, offset=self._origin + self.position)

    def take(self, length: int) -> memoryview:
        """The next `length` bytes, without a copy."""
        end = self.position + length
        if length < 0 or end > len(self._buf):
            raise self.error(f"expected {length} more bytes, found {len(self._buf) - self.position}")
        piece = self._buf[self.position : end]
        self.position = end
        return piece

    def rest(self) -> memoryview:
        """All bytes that were not taken yet."""
        return self._buf[self.position :]

    def unsigned(self, length: int) -> int:
        """A big-endian unsigned integer of `length` bytes."""
        return int.from_bytes(self.take(length), "big")

    def varint(self) -> int:
        """A protobuf varint of at most 64 bits."""
        try:
            value, self.position = varint_at(self._buf, self.position)
        except ValueError as error:
            raise self.error(f"no varint: {error}") from error
        return value & 0xFFFFFFFFFFFFFFFF

    def hadoop_vint(self) -> int:
        """A Hadoop `WritableUtils` VInt that must not be negative (it counts bytes)."""
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

    def message(self) -> Iterator[tuple[int, int | memoryview]]:
        """Field numbers and values of the protobuf message that fills the rest of the buffer."""
        while not self.exhausted:
            tag = self.varint()
            wire = tag & 7
            if wire == _WIRE_VARINT:
                yield tag >> 3, self.varint()
            elif wire == _WIRE_BYTES:
                yield tag >> 3, self.take(self.varint())
            else:
                raise self.error(f"protobuf wire type {wire} where only 0 and 2 can be")


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
