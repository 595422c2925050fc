"""The file info block and the trailer, which a reader reads on open.

The file info contains name-value pairs about the whole file (docs/format/metadata.md §1.7). The trailer is the last
4096 bytes of a file and stores the places of the index (§1.8).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hoodie.errors import CorruptFileError
from hoodie.format.hfile.block import Block
from hoodie.format.hfile.compression import Compression
from hoodie.format.hfile.wire import Cursor, message_to_bytes
from hoodie.format.varint import varint_to_bytes

TRAILER_BYTES = 4096
_MAGIC = b'TRABLK"$'
_MAJOR_VERSION = 3
_VERSION_BYTES = 4
_COMPARATOR = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"
_INDEX_LEVELS_MAX = 8

# Field numbers of the trailer message. On disk: do not change.
_FILE_INFO_OFFSET = 1
_LOAD_ON_OPEN_OFFSET = 2
_INDEX_BYTES = 3
_TOTAL_BYTES = 4
_DATA_INDEX_COUNT = 5
_META_INDEX_COUNT = 6
_ENTRY_COUNT = 7
_INDEX_LEVELS = 8
_FIRST_BLOCK_OFFSET = 9
_LAST_BLOCK_OFFSET = 10
_COMPARATOR_NAME = 11
_CODEC = 12

_NO_BLOCK = 0xFFFFFFFFFFFFFFFF
_FILE_INFO_MAGIC = b"PBUF"
_PAIR_NAME = 1
_PAIR_VALUE = 2
LAST_KEY = "hfile.LASTKEY"
AVERAGE_KEY_BYTES = "hfile.AVG_KEY_LEN"
AVERAGE_VALUE_BYTES = "hfile.AVG_VALUE_LEN"
ENTRY_VERSION = "KEY_VALUE_VERSION"
MVCC_MAX = "MAX_MEMSTORE_TS_KEY"
CREATED = "hfile.CREATE_TIME_TS"
"""Time at which a Java writer wrote the file. Our writer omits it, so that the same entries give the same bytes."""
SCHEMA = "schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trailer:
    """The fields of a trailer. Offsets count from the start of the file."""

    load_on_open_offset: int
    data_index_count: int
    entry_count: int
    meta_index_count: int = 0
    index_levels: int = 1
    codec: Compression = Compression.NONE
    file_info_offset: int = 0
    index_bytes: int = 0
    payload_bytes: int = 0
    last_block_offset: int | None = None

    @classmethod
    def parse(cls, tail: memoryview, *, file_bytes: int, path: str) -> Trailer:
        """Parse the last 4096 bytes of a file of `file_bytes` bytes (all bytes if the file is shorter).

        Raises: CorruptFileError if the file is too short, is not an HFile of major version 3, or has an unknown codec.
        """
        start = file_bytes - TRAILER_BYTES
        if start < 0:
            raise CorruptFileError(f"expected at least {TRAILER_BYTES} HFile bytes, found {file_bytes}", path=path)
        if tail[: len(_MAGIC)] != _MAGIC:
            found = bytes(tail[: len(_MAGIC)])
            raise CorruptFileError(f"expected HFile trailer magic {_MAGIC!r}, found {found!r}", path=path, offset=start)
        major = int.from_bytes(tail[-3:], "big")
        if major != _MAJOR_VERSION:
            raise CorruptFileError(
                f"expected HFile version {_MAJOR_VERSION}, found {major}", path=path, offset=file_bytes - 4
            )
        cursor = Cursor(tail[len(_MAGIC) : -_VERSION_BYTES], path=path, origin=start + len(_MAGIC))
        message = cursor.take(cursor.varint())
        if any(cursor.rest()):
            raise cursor.error("expected only zeros after the trailer's fields, found other bytes")
        fields = {
            number: value
            for number, value in Cursor(message, path=path, origin=start).message()
            if isinstance(value, int)
        }
        trailer = cls._of_fields(fields, path=path, offset=start)
        if trailer.load_on_open_offset > start:
            raise CorruptFileError(
                f"the index offset {trailer.load_on_open_offset} is after the start of the trailer",
                path=path,
                offset=start,
            )
        return trailer

    @classmethod
    def _of_fields(cls, fields: dict[int, int], *, path: str, offset: int) -> Trailer:
        code = fields.get(_CODEC, int(Compression.NONE))
        levels = fields.get(_INDEX_LEVELS, 1)
        if code not in (Compression.GZIP, Compression.NONE):
            raise CorruptFileError(f"expected codec 1 (gzip) or 2 (none), found {code}", path=path, offset=offset)
        if _LOAD_ON_OPEN_OFFSET not in fields or not 1 <= levels <= _INDEX_LEVELS_MAX:
            raise CorruptFileError(
                f"expected an index offset and 1 to {_INDEX_LEVELS_MAX} index levels in the trailer, "
                f"found offset {fields.get(_LOAD_ON_OPEN_OFFSET)} and {levels} levels",
                path=path,
                offset=offset,
            )
        return cls(
            load_on_open_offset=fields[_LOAD_ON_OPEN_OFFSET],
            data_index_count=fields.get(_DATA_INDEX_COUNT, 0),
            entry_count=fields.get(_ENTRY_COUNT, 0),
            meta_index_count=fields.get(_META_INDEX_COUNT, 0),
            index_levels=levels,
            codec=Compression(code),
            file_info_offset=fields.get(_FILE_INFO_OFFSET, 0),
            index_bytes=fields.get(_INDEX_BYTES, 0),
            payload_bytes=fields.get(_TOTAL_BYTES, 0),
            last_block_offset=fields.get(_LAST_BLOCK_OFFSET),
        )

    def check(self, *, file_info_start: int, file_info_end: int, last_block_offset: int | None, file_bytes: int) -> str:
        """Compare the trailer with the blocks that were read; return the first problem, or an empty string.

        `last_block_offset` is None if it is not known.
        """
        if self.file_info_offset not in (0, file_info_start):
            return f"the file info is not at byte {self.file_info_offset}"
        if file_info_end != file_bytes - TRAILER_BYTES:
            return "expected the trailer directly after the file info, found other bytes between them"
        if (self.entry_count == 0) != (self.data_index_count == 0) or self.entry_count < self.data_index_count:
            return f"{self.entry_count} entries cannot be in {self.data_index_count} blocks"
        if last_block_offset is not None and self.last_block_offset not in (None, last_block_offset):
            return f"the last block is not at byte {self.last_block_offset}"
        return ""

    def to_bytes(self) -> bytes:
        """Encode the trailer as 4096 bytes."""
        empty = self.last_block_offset is None
        message = message_to_bytes(
            (
                (_FILE_INFO_OFFSET, self.file_info_offset),
                (_LOAD_ON_OPEN_OFFSET, self.load_on_open_offset),
                (_INDEX_BYTES, self.index_bytes),
                (_TOTAL_BYTES, self.payload_bytes),
                (_DATA_INDEX_COUNT, self.data_index_count),
                (_META_INDEX_COUNT, self.meta_index_count),
                (_ENTRY_COUNT, self.entry_count),
                (_INDEX_LEVELS, self.index_levels),
                (_FIRST_BLOCK_OFFSET, _NO_BLOCK if empty else 0),
                (_LAST_BLOCK_OFFSET, self.last_block_offset or 0),
                (_COMPARATOR_NAME, _COMPARATOR),
                (_CODEC, int(self.codec)),
            )
        )
        head = _MAGIC + varint_to_bytes(len(message)) + message
        return head.ljust(TRAILER_BYTES - _VERSION_BYTES, b"\0") + _MAJOR_VERSION.to_bytes(_VERSION_BYTES, "big")


def parse_file_info(block: Block, *, path: str) -> dict[str, bytes]:
    """Return the name-value pairs of the block; the pairs must fill the block.

    Raises: CorruptFileError if the block has another form.
    """
    cursor = Cursor(memoryview(block.payload), path=path, origin=block.start)
    if cursor.take(len(_FILE_INFO_MAGIC)) != _FILE_INFO_MAGIC:
        raise cursor.error(f"expected file info magic {_FILE_INFO_MAGIC!r}, found other bytes")
    pairs: dict[str, bytes] = {}
    message = Cursor(cursor.take(cursor.varint()), path=path, origin=block.start)
    for number, pair in message.message():
        if isinstance(pair, int) or number != 1:
            raise message.error("expected only name-value pairs in the file info, found another field")
        fields = dict(Cursor(pair, path=path, origin=block.start).message())
        name, value = fields.get(_PAIR_NAME, b""), fields.get(_PAIR_VALUE, b"")
        if isinstance(name, int) or isinstance(value, int) or not fields.keys() <= {_PAIR_NAME, _PAIR_VALUE}:
            raise message.error("expected only a name and a value in a file info pair, found other fields")
        pairs[bytes(name).decode("utf-8", errors="replace")] = bytes(value)
    if not cursor.exhausted:
        raise cursor.error("expected the end of the block after the file info's pairs, found more bytes")
    return pairs


def file_info_to_bytes(pairs: Mapping[str, bytes]) -> bytes:
    """Encode the block's payload, pairs sorted by name."""
    message = message_to_bytes(
        (1, message_to_bytes(((_PAIR_NAME, name.encode()), (_PAIR_VALUE, pairs[name])))) for name in sorted(pairs)
    )
    return _FILE_INFO_MAGIC + varint_to_bytes(len(message)) + message
