"""Write an HFile that every known reader accepts: 64 KiB blocks, full keys, one index level.

docs/format/metadata.md §1, especially §1.13 (what to emit) and §1.14 (why blocks are limited to 64 KiB).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidConfigError
from hoodie.format.hfile.block import DATA, FILE_INFO, INDEX, block_parts, block_to_bytes
from hoodie.format.hfile.compression import Compression
from hoodie.format.hfile.entries import KEY_SUFFIX, entries_to_bytes, entry_bounds
from hoodie.format.hfile.index import IndexEntry
from hoodie.format.hfile.key_order import Int64Array
from hoodie.format.hfile.trailer import (
    AVERAGE_KEY_BYTES,
    AVERAGE_VALUE_BYTES,
    ENTRY_VERSION,
    LAST_KEY,
    MVCC_MAX,
    SCHEMA,
    Trailer,
    file_info_to_bytes,
)
from hoodie.format.schema.arrow_types import ranges_of

# Java readers up to 1.2.0 lose entries at the end of larger blocks: do not increase.
BLOCK_BYTES_MAX = 65536
# Blocks are encoded in groups of at most this many bytes. A larger block is a group of its own.
_GROUP_BYTES_MAX = 4 * 1024 * 1024


def hfile_to_bytes(
    keys: pa.Array,
    values: pa.Array,
    *,
    schema_json: str,
    codec: Compression = Compression.GZIP,
    file_info: Mapping[str, bytes] | None = None,
) -> bytes:
    """Encode keys (string or binary) and values (binary) as a whole HFile.

    Keys must ascend strictly by their UTF-8 bytes. Nulls are not allowed. An entry larger than 64 KiB gets a block of
    its own. `file_info` adds pairs to the file info. The same input gives the same bytes, on machines of one kind and
    with one version of the compression library.

    Memory: the file twice, and without a codec the entries once more.

    Raises: InvalidConfigError if keys are out of order or repeated, a key has more than 32767 bytes, the numbers of
        keys and values differ, or there are nulls.
    """
    keys, values = keys.cast(pa.binary()), values.cast(pa.binary())
    _check(keys, values)
    bounds = entry_bounds(keys, values)
    parts: list[bytes | memoryview] = []
    index: list[IndexEntry] = []
    position = 0
    for first, payload in _payloads(keys, values, bounds):
        block = block_parts(DATA, payload, codec=codec, previous_offset=position if first else -1)
        size_bytes = sum(map(len, block))
        # HBase's readers require the suffix in the index.
        index.append(IndexEntry(position, size_bytes, _bare_key(keys[first].as_py()) + KEY_SUFFIX))
        parts += block
        position += size_bytes
    pairs = _pairs(keys, values, bounds, schema_json) | dict(file_info or {})
    # What a reader reads on open: data index, meta index (always empty), file info.
    parts += (
        block_to_bytes(INDEX, b"".join(entry.to_bytes() for entry in index), codec=codec),
        block_to_bytes(INDEX, b"", codec=codec),
        block_to_bytes(FILE_INFO, file_info_to_bytes(pairs), codec=codec),
    )
    trailer = Trailer(
        load_on_open_offset=position,
        data_index_count=len(index),
        entry_count=len(keys),
        meta_index_count=0,
        codec=codec,
        file_info_offset=position + len(parts[-3]) + len(parts[-2]),
        index_bytes=int(bounds[-1]),
        payload_bytes=int(bounds[-1]),
        last_block_offset=index[-1].offset if index else None,
    )
    return b"".join((*parts, trailer.to_bytes()))


def _check(keys: pa.BinaryArray, values: pa.BinaryArray) -> None:
    if len(keys) != len(values) or keys.null_count or values.null_count:
        raise InvalidConfigError(
            f"expected as many values as keys and no nulls, found {len(keys)} keys ({keys.null_count} nulls) "
            f"and {len(values)} values ({values.null_count} nulls)"
        )
    if len(keys) > 1 and not pc.all(pc.greater(keys[1:], keys[:-1])).as_py():
        raise InvalidConfigError("keys of an HFile must ascend strictly by their UTF-8 bytes")


def _payloads(keys: pa.BinaryArray, values: pa.BinaryArray, bounds: Int64Array) -> Iterator[tuple[int, memoryview]]:
    """Yield the number of the first entry and the payload of each data block; several blocks are encoded together."""
    blocks = list(ranges_of(bounds, BLOCK_BYTES_MAX))
    starts = np.array([0, *(stop for _, stop in blocks)], np.int64)
    for first_block, stop_block in ranges_of(bounds[starts], _GROUP_BYTES_MAX):
        first, stop = int(starts[first_block]), int(starts[stop_block])
        encoded = entries_to_bytes(keys[first:stop], values[first:stop])
        for begin, end in blocks[first_block:stop_block]:
            yield begin, encoded[bounds[begin] - bounds[first] : bounds[end] - bounds[first]]


def _bare_key(row: bytes) -> bytes:
    """Return a row after its length, as the native writer of the JVM stores the last key."""
    return len(row).to_bytes(2, "big") + row


def _pairs(keys: pa.BinaryArray, values: pa.BinaryArray, bounds: Int64Array, schema_json: str) -> dict[str, bytes]:
    count = max(1, len(keys))
    value_bytes = int(pc.sum(pc.binary_length(values)).as_py() or 0)
    key_bytes = int(bounds[-1]) - value_bytes - 9 * len(keys)
    # HBase's reader fails on a last key of zero bytes, which Hudi 1.x writes in a file without entries.
    last = {LAST_KEY: _bare_key(keys[-1].as_py())} if len(keys) else {}
    return {
        ENTRY_VERSION: (1).to_bytes(4, "big"),
        MVCC_MAX: bytes(8),
        AVERAGE_KEY_BYTES: (key_bytes // count).to_bytes(4, "big"),
        AVERAGE_VALUE_BYTES: (value_bytes // count).to_bytes(4, "big"),
        **last,
        SCHEMA: schema_json.encode(),
    }
