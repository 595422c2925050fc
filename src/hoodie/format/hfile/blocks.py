"""Read the blocks that an index names: near ones with one request, a bounded amount at a time."""

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

# A request to an object store costs about what so many bytes cost.
_GAP_BYTES_MAX = 256 * 1024
_REQUEST_BYTES_MAX = 8 * 1024 * 1024
_GROUP_BYTES_MAX = 8 * 1024 * 1024
# Fewer blocks are not worth a group of their own.
_BLOCKS_IN_PLACE_MIN = 16


@dataclass(frozen=True, slots=True)
class BlockReader:
    """Blocks of one file, read from its source and decompressed."""

    source: ByteSource
    codec: Compression
    path: str

    def parse(self, view: memoryview, start: int, magics: tuple[bytes, ...]) -> Block:
        """The block at the beginning of `view`, which stands at offset `start` of the file."""
        return read_block(view, start=start, magics=magics, codec=self.codec, path=self.path)

    def read(self, level: IndexLevel, magics: tuple[bytes, ...]) -> Iterator[Block]:
        """The blocks of an index level one after the other; each must be as long as the index says."""
        starts, ends = level.offsets.tolist(), (level.offsets + level.size_bytes).tolist()
        for first, stop in _requests(level):
            origin = starts[first]
            view = read_exactly(self.source, origin, ends[stop - 1] - origin, path=self.path)
            for start, end in zip(starts[first:stop], ends[first:stop], strict=True):
                yield self._fill(view[start - origin : end - origin], start, end, magics)

    def _fill(self, view: memoryview, start: int, end: int, magics: tuple[bytes, ...]) -> Block:
        block = self.parse(view, start, magics)
        if block.end != end:
            message = f"the index says that the block ends at {end}, it ends at {block.end}"
            raise CorruptFileError(message, path=self.path, offset=start)
        return block

    def groups(self, level: IndexLevel, magic: bytes) -> Iterator[tuple[range, Payloads]]:
        """Payloads of blocks to be worked on together: 8 MiB, or one larger block; and which blocks these are.

        Calls into numpy and Arrow cost more than a single block of 64 KiB is worth. A group's memory serves again for
        the next one. Uncompressed blocks that follow each other are not even copied.
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
        """All blocks in their order: some where they lie, the others in lists of bounded size."""
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
                    raise CorruptFileError("a data block without entries", path=self.path, offset=block.start)
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
    """Ranges `[first, stop)` of blocks that are read at once: none far from the one before, and not too much."""
    ends = level.offsets + level.size_bytes
    is_far = np.concatenate([[True], level.offsets[1:] - ends[:-1] > _GAP_BYTES_MAX]) if len(level) else np.zeros(0)
    first = 0
    for number in range(1, len(level)):
        if is_far[number] or ends[number] - level.offsets[first] > _REQUEST_BYTES_MAX:
            yield first, number
            first = number
    if len(level):
        yield first, len(level)
