"""Build rows of bytes from columns of pieces.

Small pieces (numbers, lengths, tags) are collected as matrices of bytes with a mask of the used bytes. Texts and bytes
stay Arrow columns. One join at the end writes every byte once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.format.avro.rows.cursor import BoolArray, Int64Array, UInt8Array
from hoodie.format.varint import zigzag_cells

_LARGE = pa.large_binary()


@dataclass(slots=True)
class Pieces:
    """The pieces of `count` rows, in order."""

    count: int
    _parts: list[Any] = field(default_factory=list)
    _cells: list[tuple[UInt8Array, BoolArray | None]] = field(default_factory=list)

    def add_cells(self, cells: UInt8Array, is_used: BoolArray | None = None) -> None:
        """Add bytes to each row: a matrix, and a mask of the used bytes (None: all bytes)."""
        self._cells.append((cells, is_used))

    def add_constant(self, byte: int, present: BoolArray | None = None) -> None:
        """Add one byte to each row that is present."""
        self.add_cells(np.full((self.count, 1), byte, np.uint8), None if present is None else present[:, None])

    def add_varints(self, numbers: Int64Array, present: BoolArray | None = None) -> None:
        """Add an int or long to each row that is present."""
        self.add_cells(*zigzag_cells(numbers, present))

    def add_bytes(self, column: pa.Array) -> None:
        """Add a value of a binary or string column to each row; null adds nothing."""
        self._close_cells()
        self._parts.append(column.cast(_LARGE))

    def join(self, *, framed: bool = False) -> pa.LargeBinaryArray:
        """Return the rows; `framed` writes each row's length before the row, as four big-endian bytes."""
        self._close_cells()
        if framed:
            lengths = sum((byte_lengths(part) for part in self._parts), np.zeros(self.count, np.int64))
            self.add_cells(lengths.astype(">i4").view(np.uint8).reshape(-1, 4))
            self._close_cells()
            self._parts.insert(0, self._parts.pop())
        if not self._parts:
            return pa.repeat(pa.scalar(b"", _LARGE), self.count)
        if len(self._parts) == 1 and not self._parts[0].null_count:
            return self._parts[0]
        separator = pa.scalar(b"", _LARGE)
        return pc.binary_join_element_wise(*self._parts, separator, null_handling="replace", null_replacement="")

    def content(self) -> bytes:
        """Return the joined rows, one after the other."""
        rows = self.join()
        offsets = np.frombuffer(rows.buffers()[1], dtype=np.int64)[rows.offset : rows.offset + len(rows) + 1]
        data = rows.buffers()[2]
        return b"" if data is None or not len(rows) else bytes(memoryview(data)[offsets[0] : offsets[-1]])

    def _close_cells(self) -> None:
        """Convert the matrices since the last text to one column."""
        if not self._cells:
            return
        cells = np.hstack([cells for cells, _ in self._cells])
        offsets = np.zeros(self.count + 1, np.int64)
        if all(is_used is None for _, is_used in self._cells):
            data = cells
            offsets[1:] = np.arange(1, self.count + 1) * cells.shape[1]
        else:
            masks = [np.broadcast_to(True if used is None else used, part.shape) for part, used in self._cells]
            mask = np.hstack(masks)
            data = cells[mask]
            np.cumsum(np.count_nonzero(mask, axis=1), out=offsets[1:])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        self._parts.append(pa.LargeBinaryArray.from_buffers(_LARGE, self.count, buffers))
        self._cells = []


def byte_lengths(column: pa.Array) -> Int64Array:
    """Return the lengths of binary or string values; the length of null is 0."""
    lengths = pc.binary_length(column)
    if lengths.null_count:
        lengths = pc.fill_null(lengths, 0)
    found: Int64Array = lengths.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return found
