"""Read many rows of Avro bytes in parallel: one position for each row in one buffer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from hoodie.errors import CorruptFileError
from hoodie.format.varint import signed_of_zigzag, varints_of_words

Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
UInt8Array = npt.NDArray[np.uint8]

SLACK_BYTES = 16
"""Number of bytes after the rows, so that words can be read from any position inside the rows."""


@dataclass(frozen=True, slots=True)
class Source:
    """The buffer of the rows. `origin` is the offset of its first byte in the file `path`.

    The last `SLACK_BYTES` are not part of a row.
    """

    data: UInt8Array
    path: str
    origin: int

    @classmethod
    def of_range(cls, view: memoryview, start: int, end: int, *, path: str, origin: int) -> Source:
        """Build from the bytes `[start, end)` of a buffer that begins at offset `origin` of its file.

        The bytes are copied only if fewer than `SLACK_BYTES` follow them.
        """
        if end + SLACK_BYTES <= len(view):
            data = np.frombuffer(view[start : end + SLACK_BYTES], np.uint8)
        else:
            data = np.zeros(end - start + SLACK_BYTES, np.uint8)
            data[: end - start] = np.frombuffer(view[start:end], np.uint8)
        return cls(data, path, origin + start)

    def words(self, kind: str) -> npt.NDArray[Any]:
        """Return a view with the number of a numpy type at every offset; index the view with positions."""
        count = max(0, len(self.data) - np.dtype(kind).itemsize + 1)
        return np.ndarray((count,), kind, self.data.data, strides=(1,))


@dataclass(slots=True)
class Cursor:
    """One position for each row, never after the row's `end`. Rows ascend in the buffer and do not overlap."""

    source: Source
    position: Int64Array
    end: Int64Array

    def __len__(self) -> int:
        return len(self.position)

    def take(self, rows: Int64Array) -> Cursor:
        """Return a cursor over some of the rows; its reads do not move this cursor before `put`."""
        return Cursor(self.source, self.position[rows], self.end[rows])

    def put(self, rows: Int64Array, part: Cursor) -> None:
        """Move the rows to the positions of a part that `take` returned."""
        self.position[rows] = part.position

    def fail(self, problem: str, where: BoolArray) -> NoReturn:
        """Raise an error with the position of the first row that `where` selects."""
        place = int(self.position[int(np.argmax(where))])
        raise CorruptFileError(problem, path=self.source.path, offset=self.source.origin + place)

    def move_to(self, position: Int64Array) -> None:
        """Set the positions; no position may be after the end of its row."""
        beyond = position > self.end
        if beyond.any():
            self.fail("a value extends past its record", beyond)
        self.position = position

    def skip(self, lengths: Int64Array | int) -> Int64Array:
        """Move the positions by `lengths`; return where the skipped bytes begin."""
        start = self.position
        self.move_to(start + lengths)
        return start

    def skip_piece(self) -> tuple[Int64Array, Int64Array]:
        """Skip a length and that many bytes; return where the bytes begin, and the lengths."""
        lengths = self.read_varints()
        beyond = (lengths < 0) | (lengths > self.end - self.position)
        if beyond.any():
            self.fail("a length extends past its record", beyond)
        start = self.position
        self.position = start + lengths
        return start, lengths

    def read_bytes(self) -> UInt8Array:
        """Read one byte of each row."""
        found: UInt8Array = self.source.data[self.skip(1)]
        return found

    def read_numbers(self, kind: str) -> npt.NDArray[Any]:
        """Read a little-endian number of each row."""
        start = self.skip(np.dtype(kind).itemsize)
        found: npt.NDArray[Any] = self.source.words(kind)[start]
        return found

    def read_varints(self) -> Int64Array:
        """Read an int or long of each row."""
        first = self.source.data[self.position]
        if not len(first) or first.max() < 0x80:
            self.skip(1)
            number = first.astype(np.int64)
            return (number >> 1) ^ -(number & 1)
        words = self.source.words("<u8")[self.position].astype(np.uint64, copy=False)
        numbers, lengths, is_long = varints_of_words(words)
        if is_long.any():
            self._add_high_bytes(numbers, lengths, is_long)
        self.skip(lengths)
        return signed_of_zigzag(numbers)

    def _add_high_bytes(self, numbers: npt.NDArray[np.uint64], lengths: Int64Array, is_long: BoolArray) -> None:
        """Add the ninth and tenth byte of the longest numbers."""
        start = self.position[is_long]
        ninth = self.source.data[start + 8].astype(np.uint64)
        tenth = np.where(ninth >= 0x80, self.source.data[start + 9], 0).astype(np.uint64)
        if (tenth > 1).any():
            self.fail("a number has more than 64 bits", is_long)
        numbers[is_long] |= (ninth & np.uint64(0x7F)) << np.uint64(56) | tenth << np.uint64(63)
        lengths[is_long] = np.where(ninth >= 0x80, 10, 9)
