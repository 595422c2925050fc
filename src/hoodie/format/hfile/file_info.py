"""The file info block: name-value pairs about the whole file (docs/format/metadata.md §1.7)."""

from __future__ import annotations

from collections.abc import Mapping

from hoodie.format.hfile.block import Block
from hoodie.format.hfile.wire import Cursor, message_to_bytes
from hoodie.format.varint import varint_to_bytes

_MAGIC = b"PBUF"
_NAME = 1
_VALUE = 2

LAST_KEY = "hfile.LASTKEY"
AVERAGE_KEY_BYTES = "hfile.AVG_KEY_LEN"
AVERAGE_VALUE_BYTES = "hfile.AVG_VALUE_LEN"
ENTRY_VERSION = "KEY_VALUE_VERSION"
MVCC_MAX = "MAX_MEMSTORE_TS_KEY"
CREATED = "hfile.CREATE_TIME_TS"
"""Time at which a Java writer wrote the file. Our writer omits it, so that the same entries give the same bytes."""
SCHEMA = "schema"


def parse_file_info(block: Block, *, path: str) -> dict[str, bytes]:
    """Return the name-value pairs of the block; the pairs must fill the block.

    Raises:
        CorruptFileError: the block has another form.
    """
    cursor = Cursor(memoryview(block.payload), path=path, origin=block.start)
    if cursor.take(len(_MAGIC)) != _MAGIC:
        raise cursor.error(f"expected file info magic {_MAGIC!r}, found other bytes")
    pairs: dict[str, bytes] = {}
    message = Cursor(cursor.take(cursor.varint()), path=path, origin=block.start)
    for number, pair in message.message():
        if isinstance(pair, int) or number != 1:
            raise message.error("expected only name-value pairs in the file info, found another field")
        fields = dict(Cursor(pair, path=path, origin=block.start).message())
        name, value = fields.get(_NAME, b""), fields.get(_VALUE, b"")
        if isinstance(name, int) or isinstance(value, int) or not fields.keys() <= {_NAME, _VALUE}:
            raise message.error("expected only a name and a value in a file info pair, found other fields")
        pairs[bytes(name).decode("utf-8", errors="replace")] = bytes(value)
    if not cursor.exhausted:
        raise cursor.error("expected the end of the block after the file info's pairs, found more bytes")
    return pairs


def file_info_to_bytes(pairs: Mapping[str, bytes]) -> bytes:
    """Encode the block's payload, pairs sorted by name."""
    message = message_to_bytes(
        (1, message_to_bytes(((_NAME, name.encode()), (_VALUE, pairs[name])))) for name in sorted(pairs)
    )
    return _MAGIC + varint_to_bytes(len(message)) + message
