"""Read an HFile: all entries, or those of given keys, as Arrow columns (docs/format/metadata.md §1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFileError
from hoodie.format.hfile.block import DATA, FILE_INFO, INDEX, META, Block, read_block
from hoodie.format.hfile.entries import parse_entries
from hoodie.format.hfile.index import IndexEntry, descend, parse_root_index, row_of_key
from hoodie.format.hfile.trailer import TRAILER_BYTES, Trailer
from hoodie.format.hfile.wire import Cursor

_FILE_INFO_MAGIC = b"PBUF"


class HFileReader:
    """One HFile in memory. Opening parses trailer, index and file info; data blocks are decompressed on use.

    Memory: the given buffer (not copied), the index, and what the calls return.

    Raises:
        CorruptFileError: from the constructor and every method, whatever is wrong with the bytes.
    """

    def __init__(self, buf: bytes | memoryview, *, path: str) -> None:
        self._buf = memoryview(buf).cast("B") if not isinstance(buf, bytes) else memoryview(buf)
        self._path = path
        self._limit = len(self._buf) - TRAILER_BYTES
        self._trailer = Trailer.parse(self._buf, path=path)
        root = self._block(self._trailer.load_on_open_offset, INDEX)
        entries = parse_root_index(root, self._trailer.data_index_count, path=path)
        self._index = descend(
            self._buf, entries, self._trailer.index_levels, limit=self._limit, codec=self._trailer.codec, path=path
        )
        meta = self._block(root.end, INDEX)
        self._meta_index = parse_root_index(meta, self._trailer.meta_index_count, path=path)
        self._file_info = _parse_file_info(self._block(meta.end, FILE_INFO), path=path)

    def __len__(self) -> int:
        """Number of entries, as the trailer says."""
        return self._trailer.entry_count

    @property
    def file_info(self) -> Mapping[str, bytes]:
        """Names and values of the file info, among them `schema`."""
        return self._file_info

    @property
    def block_count(self) -> int:
        """Number of data blocks."""
        return len(self._index)

    def meta_block(self, name: str) -> bytes | None:
        """Content of a meta block (`bloomFilter`), or None if the file has none of that name."""
        for entry in self._meta_index:
            if entry.key == name.encode():
                return bytes(self._block(entry.offset, META).payload)
        return None

    def entries(self) -> tuple[pa.BinaryArray, pa.BinaryArray]:
        """All keys and their values, ascending by key bytes."""
        keys, values = parse_entries([self._data_block(entry) for entry in self._index], path=self._path)
        if len(keys) != self._trailer.entry_count:
            raise CorruptFileError(f"expected {self._trailer.entry_count} entries, found {len(keys)}", path=self._path)
        return keys, values

    def batches(self) -> Iterator[tuple[pa.BinaryArray, pa.BinaryArray]]:
        """Keys and values block by block: bounded memory for files of any size."""
        for entry in self._index:
            yield parse_entries([self._data_block(entry)], path=self._path)

    def get_many(self, keys: pa.Array) -> pa.BinaryArray:
        """Values of `keys` (string or binary, not null, in any order), in their order; null where a key is absent.

        Only blocks that can hold one of the keys are decompressed. Sorted keys are not required.
        """
        wanted = keys.cast(pa.binary())
        if not len(wanted) or not self._index:
            return pa.nulls(len(wanted), pa.binary())
        touched = np.unique(_floor(self._first_keys, wanted))
        blocks = [self._data_block(self._index[number]) for number in touched[touched >= 0]]
        found_keys, found_values = parse_entries(blocks, path=self._path)
        return found_values.take(pc.index_in(wanted, value_set=found_keys))

    def get_prefix(self, prefix: bytes) -> tuple[pa.BinaryArray, pa.BinaryArray]:
        """Keys that start with `prefix`, and their values, ascending."""
        if not self._index:
            return pa.array([], pa.binary()), pa.array([], pa.binary())
        first = max(0, int(_floor(self._first_keys, pa.array([prefix], pa.binary()))[0]))
        # Equal first keys may repeat an entry that began in the block before (HBase files with duplicate keys).
        while first and self._first_rows[first] >= prefix:
            first -= 1
        stop = first + 1
        while stop < len(self._index) and self._first_rows[stop][: len(prefix)] <= prefix:
            stop += 1
        keys, values = parse_entries([self._data_block(entry) for entry in self._index[first:stop]], path=self._path)
        matches = pc.starts_with(keys, pattern=prefix)
        return keys.filter(matches), values.filter(matches)

    @cached_property
    def _first_rows(self) -> list[bytes]:
        return [row_of_key(entry.key, path=self._path) for entry in self._index]

    @cached_property
    def _first_keys(self) -> pa.BinaryArray:
        return pa.array(self._first_rows, pa.binary())

    def _data_block(self, entry: IndexEntry) -> Block:
        return self._block(entry.offset, DATA)

    def _block(self, start: int, magic: bytes) -> Block:
        return read_block(
            self._buf, start, limit=self._limit, magics=(magic,), codec=self._trailer.codec, path=self._path
        )


def _floor(first_keys: pa.BinaryArray, wanted: pa.BinaryArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """For each wanted key the number of the last block whose first key is not greater, or -1.

    One sort of both columns together: Arrow compares binary values byte by byte and keeps the order of equal ones,
    so that first keys, which come first, stay in front of the wanted keys that equal them.
    """
    order = pc.sort_indices(pa.concat_arrays([first_keys, wanted])).to_numpy().astype(np.int64)
    is_wanted = order >= len(first_keys)
    floors = np.cumsum(~is_wanted) - 1
    result = np.empty(len(wanted), dtype=np.int64)
    result[order[is_wanted] - len(first_keys)] = floors[is_wanted]
    return result


def _parse_file_info(block: Block, *, path: str) -> dict[str, bytes]:
    """The name-value pairs of the file info block (docs/format/metadata.md §1.7)."""
    cursor = Cursor(block.payload, path=path, origin=block.start)
    if cursor.take(len(_FILE_INFO_MAGIC)) != _FILE_INFO_MAGIC:
        raise cursor.error("the file info has an unknown form")
    pairs: dict[str, bytes] = {}
    message = Cursor(cursor.take(cursor.varint()), path=path, origin=block.start)
    for _, pair in message.message():
        if isinstance(pair, int):
            raise message.error("a file info pair is a number")
        fields = dict(Cursor(pair, path=path, origin=block.start).message())
        name, value = fields.get(1, b""), fields.get(2, b"")
        if isinstance(name, int) or isinstance(value, int):
            raise message.error("a file info name or value is a number")
        pairs[bytes(name).decode("utf-8", errors="replace")] = bytes(value)
    return pairs
