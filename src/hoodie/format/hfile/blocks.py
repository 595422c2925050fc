"""Read the blocks of an index: neighbouring blocks with one request, a bounded number of bytes at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hoodie.errors import CorruptFileError
from hoodie.format.hfile.block import Block, read_block
from hoodie.format.hfile.codec import Compression
from hoodie.format.hfile.index import IndexLevel
from hoodie.format.hfile.payloads import SLACK_BYTES, Payloads, UInt8Array
from hoodie.format.hfile.source import BufferSource, ByteSource, read_exactly

# One request to an object store costs about as much time as reading this many bytes.
_GAP_BYTES_MAX = 256 * 1024
_REQUEST_BYTES_MAX = 8 * 1024 * 1024
_GROUP_BYTES_MAX = 8 * 1024 * 1024
# Fewer neighbouring blocks than this are copied to a larger group instead of being used in place.
_BLOCKS_IN_PLACE_MIN = 16


@dataclass(frozen=True, slots=True)
class BlockReader:
    """Blocks of one file, read from its source and decompressed."""

    source: ByteSource
    codec: Compression
    path: str

    def parse(self, view: memoryview, start: int, magics: tuple[bytes, ...]) -> Block:
        """Parse the block at the beginning of `view`, which is at offset `start` of the file."""
        return read_block(view, start=start, magics=magics, codec=self.codec, path=self.path)

    def read(self, level: IndexLevel, magics: tuple[bytes, ...]) -> Iterator[Block]:
        """Yield the blocks of an index level in order; each block must have the length that the index stores."""
        starts, ends = level.offsets.tolist(), (level.offsets + level.size_bytes).tolist()
        for first, stop in _requests(level):
            origin = starts[first]
            view = read_exactly(self.source, origin, ends[stop - 1] - origin, path=self.path)
            for start, end in zip(starts[first:stop], ends[first:stop], strict=True):
                yield self._fill(view[start - origin : end - origin], start, end, magics)

    def _fill(self, view: memoryview, start: int, end: int, magics: tuple[bytes, ...]) -> Block:
        block = self.parse(view, start, magics)
        if block.end != end:
            message = f"expected the block to end at {end} by the index, found its end at {block.end}"
            raise CorruptFileError(message, path=self.path, offset=start)
        return block

    def groups(self, level: IndexLevel, magic: bytes) -> Iterator[tuple[range, Payloads]]:
        """Yield groups of blocks to parse together: the numbers of the blocks, and their payloads.

        A group has at most 8 MiB, or one larger block. Calls into numpy and Arrow would cost more time than the parsing
        of a single block of 64 KiB. The memory of a group is reused for the next group. Neighbouring uncompressed
        blocks are not copied.
        """
        scratch: UInt8Array | None = None
        first = 0
        for blocks in self._parts(level, magic):
            if isinstance(blocks, Payloads):
                payloads = blocks
            else:
                payloads = Payloads.copied(blocks, scratch)
                scratch = payloads.data
            yield range(first, first + len(payloads.starts)), payloads
            first += len(payloads.starts)

    def _parts(self, level: IndexLevel, magic: bytes) -> Iterator[Payloads | list[Block]]:
        """Yield all blocks in order: some blocks in place, the other blocks in lists of bounded size."""
        group: list[Block] = []
        group_bytes = 0
        for first, stop in _requests(level):
            part = level.slice(first, stop)
            in_place = self._in_place(part, magic) if stop - first >= _BLOCKS_IN_PLACE_MIN else None
            if in_place is not None:
                if group:
                    yield group
                    group, group_bytes = [], 0
                yield in_place
                continue
            for block in self.read(part, (magic,)):
                if not len(block.payload):
                    raise CorruptFileError("a data block has no entries", path=self.path, offset=block.start)
                if group and group_bytes + len(block.payload) > _GROUP_BYTES_MAX:
                    yield group
                    group, group_bytes = [], 0
                group.append(block)
                group_bytes += len(block.payload)
        if group:
            yield group

    def _in_place(self, part: IndexLevel, magic: bytes) -> Payloads | None:
        ends = part.offsets + part.size_bytes
        is_gap = self.codec is not Compression.NONE or (part.offsets[1:] != ends[:-1]).any()
        if is_gap or not isinstance(self.source, BufferSource):
            return None
        origin, end = int(part.offsets[0]), int(ends[-1])
        view = read_exactly(self.source, origin, end - origin + SLACK_BYTES, path=self.path)
        return Payloads.in_place(view, part.offsets, np.append(part.offsets, end) - origin, magic)


def _requests(level: IndexLevel) -> Iterator[tuple[int, int]]:
    """Yield ranges `[first, stop)` of blocks that one request reads, with bounded gaps and a bounded size."""
    ends = level.offsets + level.size_bytes
    is_far = np.concatenate([[True], level.offsets[1:] - ends[:-1] > _GAP_BYTES_MAX]) if len(level) else np.zeros(0)
    first = 0
    for number in range(1, len(level)):
        if is_far[number] or ends[number] - level.offsets[first] > _REQUEST_BYTES_MAX:
            yield first, number
            first = number
    if len(level):
        yield first, len(level)
