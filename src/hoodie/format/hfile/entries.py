"""The payload of data blocks: keys and values as Arrow columns ⇄ concatenated entries, by whole blocks.

docs/format/metadata.md §1.4. An entry is: key length, value length, row length, row, ten fixed bytes, value, MVCC byte.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFileError, InvalidConfigError
from hoodie.format.hfile.block import Block

_LENGTHS = struct.Struct(">II")
_ROW_OFFSET = 10  # behind key length, value length and row length
_MVCC_BYTES = 1
ROW_BYTES_MAX = 32767
KEY_SUFFIX = b"\0" + b"\x7f" + b"\xff" * 7 + b"\x04"  # no column family, greatest timestamp, type Put
_GROUP_BYTES_MAX = 4 * 1024 * 1024

Int64Array = npt.NDArray[np.int64]


def parse_entries(blocks: Sequence[Block], *, path: str) -> tuple[pa.BinaryArray, pa.BinaryArray]:
    """Keys and values of the entries of all `blocks`, in file order.

    Memory: the columns, and 4 MiB or the largest block. Python runs once per block where a block's entries have one
    length, and otherwise once per entry for nothing but the next entry's offset.

    Raises:
        CorruptFileError: the lengths of an entry do not fit its block.
    """
    pieces = [_parse_group(group, path=path) for group in _groups(blocks)]
    if not pieces:
        return pa.array([], pa.binary()), pa.array([], pa.binary())
    if len(pieces) == 1:
        return pieces[0]
    return pa.concat_arrays([keys for keys, _ in pieces]), pa.concat_arrays([values for _, values in pieces])


def _groups(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Blocks that are parsed together, as calls into numpy and Arrow cost more than a block of 64 KiB is worth."""
    group: list[Block] = []
    group_bytes = 0
    for block in blocks:
        if group and group_bytes + len(block.payload) > _GROUP_BYTES_MAX:
            yield group
            group, group_bytes = [], 0
        if len(block.payload):
            group.append(block)
            group_bytes += len(block.payload)
    if group:
        yield group


def _parse_group(blocks: list[Block], *, path: str) -> tuple[pa.BinaryArray, pa.BinaryArray]:
    payload = blocks[0].payload if len(blocks) == 1 else memoryview(b"".join(block.payload for block in blocks))
    data = np.frombuffer(payload, dtype=np.uint8)
    starts = _entry_starts(blocks, path=path)
    lengths = data[starts[:, None] + np.arange(_ROW_OFFSET)]
    key_bytes = _big_endian(lengths[:, 0:4])
    row_bytes = _big_endian(lengths[:, 8:10])
    row_start = starts + _ROW_OFFSET
    value_start = starts + 8 + key_bytes
    value_end = value_start + _big_endian(lengths[:, 4:8])
    if (row_bytes + 2 > key_bytes).any():
        raise CorruptFileError("an entry's row is longer than its key", path=path, offset=blocks[0].start)
    # One binary array over the blocks' own bytes: row, rest of the key, value, rest of the entry, row, …
    # Taking each fourth element copies the rows, or the values, in C++.
    bounds = np.empty(4 * len(starts), dtype=np.int32)
    bounds[0::4] = row_start
    bounds[1::4] = row_start + row_bytes
    bounds[2::4] = value_start
    bounds[3::4] = value_end
    cut = pa.BinaryArray.from_buffers(pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), pa.py_buffer(payload)])
    every_fourth = np.arange(0, 4 * len(starts), 4, dtype=np.int64)
    return cut.take(pa.array(every_fourth)), cut.take(pa.array(every_fourth + 2))


def _entry_starts(blocks: list[Block], *, path: str) -> Int64Array:
    """Offsets of all entries, counted from the first block's payload as if the payloads lay one behind the other."""
    starts: list[Int64Array] = []
    before = 0
    for block in blocks:
        found = _constant_stride(block.payload)
        starts.append((_chained(block, path=path) if found is None else found) + before)
        before += len(block.payload)
    return starts[0] if len(starts) == 1 else np.concatenate(starts)


def _constant_stride(payload: memoryview) -> Int64Array | None:
    """Offsets of the entries if all have the lengths of the first one, else None."""
    if len(payload) < _ROW_OFFSET + _MVCC_BYTES:
        return None
    key_bytes, value_bytes = _LENGTHS.unpack_from(payload, 0)
    stride = 8 + key_bytes + value_bytes + _MVCC_BYTES
    if len(payload) % stride:
        return None
    table = np.frombuffer(payload, dtype=np.uint8).reshape(-1, stride)
    if not (table[:, :_ROW_OFFSET] == table[0, :_ROW_OFFSET]).all():
        return None
    return np.arange(0, len(payload), stride, dtype=np.int64)


def _chained(block: Block, *, path: str) -> Int64Array:
    """Offsets of entries of different lengths: each is found from the one before."""
    starts: list[int] = []
    append, unpack, payload = starts.append, _LENGTHS.unpack_from, block.payload
    position, end = 0, len(payload)
    last_header = end - _ROW_OFFSET - _MVCC_BYTES
    while position <= last_header:
        append(position)
        key_bytes, value_bytes = unpack(payload, position)
        position += 9 + key_bytes + value_bytes
    if position != end:
        raise CorruptFileError("the block's entries do not end where the block does", path=path, offset=block.start)
    return np.array(starts, dtype=np.int64)


def _big_endian(columns: npt.NDArray[np.uint8]) -> Int64Array:
    value = np.zeros(len(columns), dtype=np.int64)
    for index in range(columns.shape[1]):
        value = value << 8 | columns[:, index]
    return value


def entries_to_bytes(keys: pa.Array, values: pa.Array) -> tuple[pa.Buffer, Int64Array]:
    """Encode all entries; gives the bytes and the n + 1 offsets at which entries start and end.

    Raises:
        InvalidConfigError: a key is longer than 32767 bytes.
    """
    row_bytes = pc.binary_length(keys).to_numpy(zero_copy_only=False).astype(np.int64)
    value_bytes = pc.binary_length(values).to_numpy(zero_copy_only=False).astype(np.int64)
    if len(row_bytes) and int(row_bytes.max()) > ROW_BYTES_MAX:
        raise InvalidConfigError(
            f"a key of {int(row_bytes.max())} UTF-8 bytes is longer than an HFile can hold ({ROW_BYTES_MAX})"
        )
    heads = np.empty((len(row_bytes), _ROW_OFFSET), dtype=np.uint8)
    heads[:, 0:4] = (row_bytes + 2 + len(KEY_SUFFIX)).astype(">u4").view(np.uint8).reshape(-1, 4)
    heads[:, 4:8] = value_bytes.astype(">u4").view(np.uint8).reshape(-1, 4)
    heads[:, 8:10] = row_bytes.astype(">u2").view(np.uint8).reshape(-1, 2)
    offsets = np.arange(len(heads) + 1, dtype=np.int64) * _ROW_OFFSET
    head = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(heads), [None, pa.py_buffer(offsets), pa.py_buffer(heads)]
    )
    large = pa.large_binary()
    joined = pc.binary_join_element_wise(
        head,
        keys.cast(large),
        pa.scalar(KEY_SUFFIX, large),
        values.cast(large),
        pa.scalar(b"\0", large),
        pa.scalar(b"", large),
    )
    starts = np.frombuffer(joined.buffers()[1], dtype=np.int64)[: len(joined) + 1]
    return joined.buffers()[2] or pa.py_buffer(b""), starts
