"""Index blocks: they map keys to data blocks. A file has a root index; HBase also writes inner levels below it.

docs/format/metadata.md §1.5. Inner blocks are read when a look-up needs them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from hoodie.errors import CorruptFileError
from hoodie.format.hfile.block import HEADER_BYTES, Block
from hoodie.format.hfile.key_order import Int64Array, ascends_somehow, first_not_less, lower_bounds
from hoodie.format.hfile.wire import Cursor, hadoop_vint_to_bytes

_PLACE = struct.Struct(">QI")
_ROW_LENGTH_BYTES = 2
_FAKE_KEY_TYPE = 0xFF


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """The place of a block, and its first key in the stored form."""

    offset: int
    size_bytes: int
    key: bytes

    def to_bytes(self) -> bytes:
        """Encode as an entry of a root index; `key` must be in its full stored form."""
        return _PLACE.pack(self.offset, self.size_bytes) + hadoop_vint_to_bytes(len(self.key)) + self.key


@dataclass(frozen=True, slots=True)
class IndexLevel:
    """Entries of one level, in file order, as columns.

    `rows` are the first rows of the blocks. HBase may store a shorter row instead; `is_exact` is then not set. Such a
    row is greater than all rows before the block and not greater than the first row of the block.
    """

    offsets: Int64Array
    size_bytes: Int64Array
    rows: pa.BinaryArray
    is_exact: np.ndarray[tuple[int], np.dtype[np.bool_]]

    def __len__(self) -> int:
        return len(self.offsets)

    @classmethod
    def of_entries(cls, entries: Sequence[IndexEntry], *, limit: int, path: str) -> IndexLevel:
        """Build a level; check that blocks ascend, do not overlap and end at or before `limit`, and that rows ascend.

        Without this check, an index that contains one block many times could make a small file seem endless.

        Raises: CorruptFileError if a check fails.
        """
        end = 0
        for entry in entries:
            if entry.offset < end or entry.size_bytes < HEADER_BYTES:
                raise CorruptFileError("the blocks of an index level do not ascend", path=path, offset=entry.offset)
            end = entry.offset + entry.size_bytes
        if end > limit:
            message = f"an index entry is outside the file: expected its block to end at or before {limit}, found {end}"
            raise CorruptFileError(message, path=path, offset=entries[-1].offset)
        rows = pa.array([_row_of(entry, path=path) for entry in entries], pa.binary())
        if not ascends_somehow(rows):
            raise CorruptFileError("the keys of an index level do not ascend", path=path, offset=entries[0].offset)
        return cls(
            np.array([entry.offset for entry in entries], np.int64),
            np.array([entry.size_bytes for entry in entries], np.int64),
            rows,
            np.array([_is_exact(entry.key) for entry in entries], np.bool_),
        )

    def take(self, places: Int64Array) -> IndexLevel:
        """Return the entries at `places`."""
        return IndexLevel(
            self.offsets[places], self.size_bytes[places], self.rows.take(pa.array(places)), self.is_exact[places]
        )

    def slice(self, first: int, stop: int) -> IndexLevel:
        """Return the entries `[first, stop)`, without a copy."""
        here = slice(first, stop)
        return IndexLevel(self.offsets[here], self.size_bytes[here], self.rows[here], self.is_exact[here])

    def holding(self, sorted_keys: pa.BinaryArray) -> Int64Array:
        """Return the places of the entries whose blocks may hold one of the keys; other blocks hold none of them."""
        starts = lower_bounds(sorted_keys, self.rows)
        return np.flatnonzero(np.diff(starts, append=len(sorted_keys)))

    def between(self, start: bytes, stop: bytes | None) -> Int64Array:
        """Return the places of the entries whose blocks may hold a row in `[start, stop)`; None means no end."""
        # The previous block may end with rows that equal `start`, because HBase files can repeat a row.
        first = max(0, first_not_less(self.rows, start) - 1)
        return np.arange(first, len(self) if stop is None else first_not_less(self.rows, stop), dtype=np.int64)


Select = Callable[[IndexLevel], Int64Array]
ReadBlocks = Callable[[IndexLevel], Iterable[Block]]


@dataclass(frozen=True, slots=True)
class DataIndex:
    """The index of one file, from the root index down to the data blocks."""

    root: IndexLevel
    level_count: int
    read_blocks: ReadBlocks
    limit: int
    path: str

    def find(self, select: Select) -> IndexLevel:
        """Return the data blocks that `select` chooses; at each level, `select` chooses the blocks to follow."""
        level = self.root.take(select(self.root))
        for _ in range(self.level_count - 1):
            entries: list[IndexEntry] = []
            for block in self.read_blocks(level):
                entries += parse_inner_index(block, path=self.path)
                check_entry_count(len(entries), limit=self.limit, path=self.path, offset=block.start)
            below = IndexLevel.of_entries(entries, limit=self.limit, path=self.path)
            level = below.take(select(below))
        return level

    def all(self) -> IndexLevel:
        """Return every data block."""
        return self.find(lambda level: np.arange(len(level), dtype=np.int64))


def check_entry_count(count: int, *, limit: int, path: str, offset: int) -> None:
    """Check that so many blocks fit into `limit` bytes, before a record is made of each entry of an index.

    Raises: CorruptFileError if they do not fit.
    """
    if count * HEADER_BYTES > limit:
        raise CorruptFileError(f"an index of {count} blocks does not fit the file", path=path, offset=offset)


def parse_root_index(block: Block, count: int, *, is_only_level: bool, path: str) -> list[IndexEntry]:
    """Return the first `count` entries of a root index, with keys in the stored form.

    If this is the only level, the entries must fill the block. With more levels, HBase stores a few numbers about the
    middle key after the entries.
    """
    cursor = Cursor(memoryview(block.payload), path=path, origin=block.start)
    if count > len(block.payload) // (_PLACE.size + 1):
        raise cursor.error(f"an index of {count} entries does not fit its block")
    entries: list[IndexEntry] = []
    for _ in range(count):
        offset, size_bytes = _PLACE.unpack(cursor.take(_PLACE.size))
        entries.append(IndexEntry(offset, size_bytes, bytes(cursor.take(cursor.hadoop_vint()))))
    if is_only_level and not cursor.exhausted:
        raise cursor.error(f"expected the end of the index block after {count} entries, found more bytes")
    return entries


def parse_inner_index(block: Block, *, path: str) -> list[IndexEntry]:
    """Return the entries of a leaf or intermediate index block: at least one, and they must fill the block."""
    cursor = Cursor(memoryview(block.payload), path=path, origin=block.start)
    count = cursor.unsigned(4)
    if not 0 < count < len(block.payload) // 4:
        raise cursor.error(f"an index of {count} entries does not fit its block")
    bounds = [cursor.unsigned(4) for _ in range(count + 1)]
    if bounds[0] != 0:
        raise cursor.error(f"expected the first entry of an index block at offset 0, found {bounds[0]}")
    entries: list[IndexEntry] = []
    for start, end in pairwise(bounds):
        offset, size_bytes = _PLACE.unpack(cursor.take(_PLACE.size))
        entries.append(IndexEntry(offset, size_bytes, bytes(cursor.take(end - start - _PLACE.size))))
    if not cursor.exhausted:
        raise cursor.error(f"expected the end of the index block after {count} entries, found more bytes")
    return entries


def _row_of(entry: IndexEntry, *, path: str) -> bytes:
    """Return the row of a stored key. A stored key is two bytes of length, the row, and perhaps a suffix."""
    end = _ROW_LENGTH_BYTES + int.from_bytes(entry.key[:_ROW_LENGTH_BYTES], "big")
    if len(entry.key) < _ROW_LENGTH_BYTES or end > len(entry.key):
        raise CorruptFileError("an index key is shorter than its row", path=path, offset=entry.offset)
    return entry.key[_ROW_LENGTH_BYTES:end]


def _is_exact(key: bytes) -> bool:
    """Return whether the key is the true first key of a block: a bare row, or a key of another type than FF.

    HBase gives the type FF to keys that it shortens.
    """
    end = _ROW_LENGTH_BYTES + int.from_bytes(key[:_ROW_LENGTH_BYTES], "big")
    return end == len(key) or key[-1] != _FAKE_KEY_TYPE
