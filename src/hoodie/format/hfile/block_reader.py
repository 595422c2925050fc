"""Read the blocks of an index: neighbouring blocks with one request, a bounded number of bytes at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hoodie.errors import CorruptFileError
from hoodie.format.hfile.block import CHECKSUM_BYTES, HEADER_BYTES, Block, read_block
from hoodie.format.hfile.compression import Compression
from hoodie.format.hfile.index import IndexLevel
from hoodie.format.hfile.key_order import Int64Array
from hoodie.format.hfile.source import BufferSource, ByteSource, read_exactly

# Number of bytes that can be read before the first payload and after the last payload.
SLACK_BYTES = 16

UInt8Array = npt.NDArray[np.uint8]

_FIELDS = np.dtype(
    {
        "names": ["magic", "stored", "payload", "previous", "kind", "chunk", "checked"],
        "formats": ["V8", ">i4", ">i4", ">i8", "u1", ">i4", ">i4"],
        "offsets": [0, 8, 12, 16, 24, 25, 29],
        "itemsize": HEADER_BYTES,
    }
)
# One request to an object store costs about as much time as reading this many bytes.
_GAP_BYTES_MAX = 256 * 1024
_REQUEST_BYTES_MAX = 8 * 1024 * 1024
_GROUP_BYTES_MAX = 8 * 1024 * 1024
# Fewer neighbouring blocks than this are copied to a larger group instead of being used in place.
_BLOCKS_IN_PLACE_MIN = 16


@dataclass(frozen=True, slots=True)
class Payloads:
    """Payload i is `data[starts[i]:ends[i]]`; it belongs to the block at offset `offsets[i]` of the file.

    No payload is empty. The payloads ascend in `data`. Between two payloads there may be the bytes that are between
    them in the file.
    """

    data: UInt8Array
    starts: Int64Array
    ends: Int64Array
    offsets: Int64Array

    @classmethod
    def copied(cls, blocks: Sequence[Block], scratch: UInt8Array | None = None) -> Payloads:
        """Copy the payloads to one buffer: to `scratch` if it is large enough, else to new memory."""
        bounds = np.cumsum([SLACK_BYTES, *(len(block.payload) for block in blocks)], dtype=np.int64)
        end = int(bounds[-1])
        data = scratch
        if data is None or len(data) < end + SLACK_BYTES:
            data = np.empty(end + SLACK_BYTES, np.uint8)
        for block, start in zip(blocks, bounds.tolist(), strict=False):
            data[start : start + len(block.payload)] = np.frombuffer(block.payload, np.uint8)
        data[:SLACK_BYTES] = 0
        data[end : end + SLACK_BYTES] = 0
        return cls(data, bounds[:-1], bounds[1:], np.array([block.start for block in blocks], np.int64))

    @classmethod
    def in_place(cls, view: memoryview, offsets: Int64Array, bounds: Int64Array, magic: bytes) -> Payloads | None:
        """Use uncompressed blocks without a copy: block i is `view[bounds[i]:bounds[i + 1]]`, at offset `offsets[i]`.

        `SLACK_BYTES` of the view must follow the last block. The method makes the checks of `block.read_block` for all
        blocks at once. It returns None if a check fails or if there are checksums. The caller must then read block by
        block; `block.read_block` raises the error.
        """
        data = np.frombuffer(view, np.uint8)
        starts = bounds[:-1]
        headers = np.ndarray((len(data) - HEADER_BYTES + 1,), f"V{HEADER_BYTES}", view, strides=(1,))[starts]
        fields = headers.view(_FIELDS)
        checked, chunk = fields["checked"].astype(np.int64), fields["chunk"].astype(np.int64)
        lengths = fields["stored"].astype(np.int64) + HEADER_BYTES
        payload_bytes = fields["payload"].astype(np.int64)
        if (
            (headers.view(np.uint8).reshape(-1, HEADER_BYTES)[:, :8] != np.frombuffer(magic, np.uint8)).any()
            or (lengths != np.diff(bounds)).any()
            or (checked != payload_bytes + HEADER_BYTES).any()
            or (chunk <= 0).any()
            or int(payload_bytes.min()) <= 0
            or (fields["previous"] < -1).any()
            or (fields["previous"] > offsets).any()
            or fields["kind"].any()
            or (lengths - checked != CHECKSUM_BYTES * -(-checked // chunk)).any()
        ):
            return None
        if not _are_zero(data, starts + checked, bounds[1:]):
            return None
        return cls(data, starts + HEADER_BYTES, starts + checked, offsets)


def _are_zero(data: UInt8Array, starts: Int64Array, ends: Int64Array) -> bool:
    """Return whether short ranges of the data contain only zeros."""
    lengths = ends - starts
    places = np.arange(int(lengths.sum()), dtype=np.int64)
    places += np.repeat(starts - np.cumsum(lengths) + lengths, lengths)
    return not data[places].any()


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
