"""Read the blocks that an index names: near ones with one request, a bounded amount at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hoodie.errors import CorruptFileError
from hoodie.format.hfile.block import Block, read_block
from hoodie.format.hfile.codec import Compression
from hoodie.format.hfile.index import IndexLevel
from hoodie.format.hfile.source import ByteSource, read_exactly

# A request to an object store costs about what so many bytes cost.
_GAP_BYTES_MAX = 256 * 1024
_REQUEST_BYTES_MAX = 8 * 1024 * 1024
_GROUP_BYTES_MAX = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class BlockReader:
    """Blocks of one file, read from its source and decompressed."""

    source: ByteSource
    codec: Compression
    path: str

    def parse(self, view: memoryview, start: int, magics: tuple[bytes, ...]) -> Block:
        """The block at the beginning of `view`, which stands at offset `start` of the file."""
        return read_block(view, start=start, magics=magics, codec=self.codec, path=self.path)

    def read_one(self, start: int, size_bytes: int, magic: bytes) -> Block:
        """The block that fills `size_bytes` from `start` on."""
        view = read_exactly(self.source, start, size_bytes, path=self.path)
        return self._fill(view, start, start + size_bytes, (magic,))

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

    def groups(self, level: IndexLevel, magic: bytes) -> Iterator[tuple[range, list[Block]]]:
        """Blocks, none of them empty, to be worked on together: 8 MiB of payload, or one larger block.

        Calls into numpy and Arrow cost more than a single block of 64 KiB is worth.
        """
        group: list[Block] = []
        first = group_bytes = 0
        for block in self.read(level, (magic,)):
            if not len(block.payload):
                raise CorruptFileError("a data block without entries", path=self.path, offset=block.start)
            if group and group_bytes + len(block.payload) > _GROUP_BYTES_MAX:
                yield range(first, first + len(group)), group
                first, group, group_bytes = first + len(group), [], 0
            group.append(block)
            group_bytes += len(block.payload)
        if group:
            yield range(first, first + len(group)), group


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
