"""Write an HFile that every known reader takes: 64 KiB blocks, full keys, one index level.

docs/format/metadata.md §1, above all §1.13 (what to emit) and §1.14 (why blocks stay at 64 KiB).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidConfigError
from hoodie.format.hfile.block import DATA, FILE_INFO, INDEX, Compression, block_to_bytes
from hoodie.format.hfile.entries import KEY_SUFFIX, Int64Array, entries_to_bytes
from hoodie.format.hfile.index import IndexEntry
from hoodie.format.hfile.trailer import Trailer
from hoodie.format.hfile.wire import message_to_bytes, varint_to_bytes

# Java readers up to 1.2.0 lose entries at the end of larger blocks: do not raise.
BLOCK_BYTES_MAX = 65536
_FILE_INFO_MAGIC = b"PBUF"


def hfile_to_bytes(
    keys: pa.Array,
    values: pa.Array,
    *,
    schema_json: str,
    codec: Compression = Compression.GZIP,
    file_info: Mapping[str, bytes] | None = None,
) -> bytes:
    """Encode keys (string or binary) and values (binary) as a whole HFile.

    Keys must ascend strictly by their UTF-8 bytes; an entry greater than 64 KiB gets a block of its own. Nulls are
    not allowed. `file_info` adds pairs such as `minRecordKey`. Memory: about twice the content.

    Raises:
        InvalidConfigError: keys out of order or repeated, a key over 32767 bytes, lengths that differ, nulls.
    """
    keys, values = keys.cast(pa.binary()), values.cast(pa.binary())
    _check(keys, values)
    payload, offsets = entries_to_bytes(keys, values)
    parts: list[bytes] = []
    index: list[IndexEntry] = []
    position = 0
    whole = memoryview(payload)
    for first, stop in _block_bounds(offsets):
        block = block_to_bytes(
            DATA, whole[offsets[first] : offsets[stop]], codec=codec, previous_offset=position if first else -1
        )
        index.append(IndexEntry(position, len(block), _full_key(keys[first].as_py())))
        parts.append(block)
        position += len(block)
    root = block_to_bytes(INDEX, b"".join(entry.to_bytes() for entry in index), codec=codec)
    meta = block_to_bytes(INDEX, b"", codec=codec)
    info = block_to_bytes(FILE_INFO, _file_info(keys, values, schema_json, file_info or {}), codec=codec)
    trailer = Trailer(
        load_on_open_offset=position,
        data_index_count=len(index),
        entry_count=len(keys),
        codec=codec,
        file_info_offset=position + len(root) + len(meta),
        index_bytes=int(offsets[-1]) if len(keys) else 0,
        payload_bytes=int(offsets[-1]) if len(keys) else 0,
        last_block_offset=index[-1].offset if index else None,
    )
    return b"".join((*parts, root, meta, info, trailer.to_bytes()))


def _check(keys: pa.Array, values: pa.Array) -> None:
    if len(keys) != len(values) or keys.null_count or values.null_count:
        raise InvalidConfigError("an HFile needs as many values as keys, and no nulls")
    if len(keys) > 1 and not pc.all(pc.greater(keys[1:], keys[:-1])).as_py():
        raise InvalidConfigError("keys of an HFile must ascend strictly by their UTF-8 bytes")


def _block_bounds(offsets: Int64Array) -> list[tuple[int, int]]:
    """Entry ranges `[first, stop)` of the data blocks: as many entries as fit, at least one."""
    bounds: list[tuple[int, int]] = []
    first, count = 0, len(offsets) - 1
    while first < count:
        fitting = int(np.searchsorted(offsets, offsets[first] + BLOCK_BYTES_MAX, side="right")) - 1
        stop = max(fitting, first + 1)
        bounds.append((first, stop))
        first = stop
    return bounds


def _bare_key(row: bytes) -> bytes:
    """A row with its length, as the native writer of the JVM stores the last key."""
    return len(row).to_bytes(2, "big") + row


def _full_key(row: bytes) -> bytes:
    """A row with its length and the suffix that HBase's readers need in the index."""
    return _bare_key(row) + KEY_SUFFIX


def _file_info(keys: pa.Array, values: pa.Array, schema_json: str, more: Mapping[str, bytes]) -> bytes:
    count = max(1, len(keys))
    key_bytes = int(pc.sum(pc.binary_length(keys)).as_py() or 0) + (2 + len(KEY_SUFFIX)) * len(keys)
    value_bytes = int(pc.sum(pc.binary_length(values)).as_py() or 0)
    pairs = {
        "KEY_VALUE_VERSION": (1).to_bytes(4, "big"),
        "MAX_MEMSTORE_TS_KEY": bytes(8),
        "hfile.AVG_KEY_LEN": (key_bytes // count).to_bytes(4, "big"),
        "hfile.AVG_VALUE_LEN": (value_bytes // count).to_bytes(4, "big"),
        "hfile.LASTKEY": _bare_key(keys[-1].as_py()) if len(keys) else b"",
        "schema": schema_json.encode(),
        **more,
    }
    message = message_to_bytes((1, message_to_bytes(((1, name.encode()), (2, pairs[name])))) for name in sorted(pairs))
    return _FILE_INFO_MAGIC + varint_to_bytes(len(message)) + message
