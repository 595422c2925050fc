"""Index blocks: the root index of data and meta blocks, and the inner levels that HBase writes.

docs/format/metadata.md §1.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from hoodie.errors import CorruptFileError
from hoodie.format.hfile.block import INTERMEDIATE_INDEX, LEAF_INDEX, Block, Compression, read_block
from hoodie.format.hfile.wire import Cursor, hadoop_vint_to_bytes


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """Where a block is, and its first key (for a data block: a row that is not greater than its first row)."""

    offset: int
    size_bytes: int
    key: bytes

    def to_bytes(self) -> bytes:
        """Encode as an entry of a root index; `key` must be in its full stored form."""
        head = self.offset.to_bytes(8, "big") + self.size_bytes.to_bytes(4, "big")
        return head + hadoop_vint_to_bytes(len(self.key)) + self.key


def parse_root_index(block: Block, count: int, *, path: str) -> list[IndexEntry]:
    """The first `count` entries of a root index, keys as stored (what follows them is ignored, as HBase wants it)."""
    cursor = Cursor(block.payload, path=path, origin=block.start)
    return [
        IndexEntry(cursor.unsigned(8), cursor.unsigned(4), bytes(cursor.take(cursor.hadoop_vint())))
        for _ in range(count)
    ]


def parse_inner_index(block: Block, *, path: str) -> list[IndexEntry]:
    """The entries of a leaf or intermediate index block."""
    cursor = Cursor(block.payload, path=path, origin=block.start)
    count = cursor.unsigned(4)
    if 4 * (count + 1) > len(block.payload):
        raise cursor.error(f"an index of {count} entries does not fit its block")
    bounds = [cursor.unsigned(4) for _ in range(count + 1)]
    return [
        IndexEntry(cursor.unsigned(8), cursor.unsigned(4), bytes(cursor.take(end - start - 12)))
        for start, end in pairwise(bounds)
    ]


def row_of_key(key: bytes, *, path: str) -> bytes:
    """The row of a stored key: two bytes of length, the row, and perhaps a suffix."""
    end = 2 + int.from_bytes(key[:2], "big")
    if len(key) < 2 or end > len(key):
        raise CorruptFileError("an index key is shorter than its row", path=path)
    return key[2:end]


def descend(
    buf: memoryview, root: Sequence[IndexEntry], levels: int, *, limit: int, codec: Compression, path: str
) -> list[IndexEntry]:
    """Follow the inner levels of a multi-level index down to the entries that name data blocks."""
    entries = list(root)
    for _ in range(levels - 1):
        _check_ascending(entries, path=path)
        below: list[IndexEntry] = []
        for entry in entries:
            block = read_block(
                buf, entry.offset, limit=limit, magics=(LEAF_INDEX, INTERMEDIATE_INDEX), codec=codec, path=path
            )
            below += parse_inner_index(block, path=path)
        entries = below
    _check_ascending(entries, path=path)
    return entries


def _check_ascending(entries: Sequence[IndexEntry], *, path: str) -> None:
    """Refuse an index that names a block twice: it could make a small file look endless."""
    for before, after in pairwise(entries):
        if after.offset <= before.offset:
            raise CorruptFileError("the blocks of an index level do not ascend", path=path, offset=after.offset)
