"""The payloads of neighbouring data blocks in one buffer, so that they can be parsed together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hoodie.format.hfile.block import HEADER_BYTES, Block
from hoodie.format.hfile.checksum import CHECKSUM_BYTES
from hoodie.format.hfile.search import Int64Array

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
