"""Read an HFile as Arrow columns: all entries, or the entries of given keys and ranges (docs/format/metadata.md §1)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFileError
from hoodie.format.hfile.block import DATA, FILE_INFO, INDEX, INTERMEDIATE_INDEX, LEAF_INDEX
from hoodie.format.hfile.block_reader import BlockReader
from hoodie.format.hfile.entries import Entries
from hoodie.format.hfile.index import DataIndex, IndexLevel, check_entry_count, parse_root_index
from hoodie.format.hfile.key_order import (
    Int64Array,
    as_java_sorts,
    ascends,
    ascends_somehow,
    first_not_less,
    is_less,
    is_plain,
    lower_bounds,
)
from hoodie.format.hfile.lookup import SortedKeys, find_rows
from hoodie.format.hfile.source import ByteSource, open_source, read_exactly
from hoodie.format.hfile.trailer import CREATED, LAST_KEY, TRAILER_BYTES, Trailer, parse_file_info

# Size of the first read: it contains the trailer and, unless the file is large, the index and the file info.
_TAIL_BYTES = 128 * 1024

# Files whose entries are larger in memory, and compressed better than real entries are, are refused.
_ENTRIES_BYTES_MAX = 256 << 20
_EXPANSION_MAX = 100

Columns = tuple[pa.BinaryArray, pa.BinaryArray]


KEPT_BYTES_MAX = 256 * 1024
"""Bytes of entries that a reader keeps for the next call."""


class HFileReader:
    """One HFile. Opening reads trailer, index and file info; data blocks are read and decompressed on use.

    `content` is the whole file (bytes, memoryview, mmap: not copied) or a `ByteSource`. Of a `ByteSource`, only the
    ranges that a call needs are read. Every method may be called again; only the index is kept. The reader is not
    thread-safe if the source is not.

    `entries_bytes_max`: larger entries than that are refused in a file that is less than a hundredth of them.

    Memory: the index, about 16 MiB while blocks are parsed (more if one block is larger), and the result of a call.

    Damage that is found:
    - a wrong length, magic, codec or gzip checksum of a block, and a wrong CRC32 or CRC32C if the writer stored one;
    - entries whose lengths do not fit each other or their block, and wrong fixed bytes of returned entries;
    - rows that are out of order within the blocks that a call reads, or do not fit the index;
    - an index whose blocks overlap or are outside the file, or whose number of entries differs from the trailer's;
    - after a whole scan: a wrong number of entries, and a wrong last key.

    Damage that is not found:
    - in files without codec and without checksums: wrong bytes of a value, of the file info, or of a row that stays in
      order, and a wrong index key if the call reads no block next to it;
    - a wrong comparator name, and wrong sizes that no reader uses.

    Raises: CorruptFileError in the constructor or a method, for damage of any kind.
    """

    def __init__(self, content: Any | ByteSource, *, path: str, entries_bytes_max: int = _ENTRIES_BYTES_MAX) -> None:
        source = open_source(content)
        self._entries_bytes_max = entries_bytes_max
        self._path = path
        self._size_bytes = source.size
        self._kept: Columns | None = None
        tail_start = max(0, source.size - _TAIL_BYTES)
        tail = read_exactly(source, tail_start, source.size - tail_start, path=path)
        self._trailer = trailer = Trailer.parse(tail[-TRAILER_BYTES:], file_bytes=source.size, path=path)
        limit = source.size - TRAILER_BYTES
        self._blocks = BlockReader(source, trailer.codec, path)
        start = trailer.load_on_open_offset
        section = (
            tail[start - tail_start : -TRAILER_BYTES]
            if start >= tail_start
            else read_exactly(source, start, limit - start, path=path)
        )
        root = self._blocks.parse(section, start, (INDEX,))
        meta = self._blocks.parse(section[root.end - start :], root.end, (INDEX,))
        info = self._blocks.parse(section[meta.end - start :], meta.end, (FILE_INFO,))
        self.file_info: Mapping[str, bytes] = parse_file_info(info, path=path)
        """Names and values of the file info, among them `schema`."""
        is_only_level = trailer.index_levels == 1
        check_entry_count(trailer.data_index_count, limit=start, path=path, offset=root.start)
        check_entry_count(trailer.meta_index_count, limit=start, path=path, offset=meta.start)
        entries = parse_root_index(root, trailer.data_index_count, is_only_level=is_only_level, path=path)
        self._index = DataIndex(
            IndexLevel.of_entries(entries, limit=start, path=path),
            trailer.index_levels,
            partial(self._blocks.read, magics=(LEAF_INDEX, INTERMEDIATE_INDEX)),
            limit=start,
            path=path,
        )
        # No method uses the meta index. Parsing it finds damage in it.
        parse_root_index(meta, trailer.meta_index_count, is_only_level=True, path=path)
        wrong = trailer.check(
            file_info_start=info.start,
            file_info_end=info.end,
            last_block_offset=entries[-1].offset if is_only_level and entries else None,
            file_bytes=source.size,
        )
        if wrong:
            raise CorruptFileError(wrong, path=path, offset=limit)

    def __len__(self) -> int:
        """Return the number of entries that the trailer stores."""
        return self._trailer.entry_count

    @property
    def block_count(self) -> int:
        """Number of data blocks. Reads the inner levels of the index, if there are any."""
        return len(self._index.all())

    def entries(self) -> Columns:
        """Return all keys and their values, ascending by key bytes.

        Memory: the columns twice. They have at most 256 MiB, or 100 times the bytes of the file. A few rows are kept:
        the next call returns them again.

        Raises: CorruptFileError if the columns would be larger.
        """
        if self._kept is not None:
            return self._kept
        keys, values = _joined(list(self._bounded(self.batches())))
        if ascends(keys):
            if keys.nbytes + values.nbytes <= KEPT_BYTES_MAX:
                self._kept = keys, values
            return keys, values
        if not ascends(as_java_sorts(keys)):
            raise CorruptFileError("the keys of the file do not ascend", path=self._path, offset=0)
        order = pc.sort_indices(keys)
        return keys.take(order), values.take(order)

    def batches(self) -> Iterator[Columns]:
        """Yield keys and values some blocks at a time: bounded memory for files of any size.

        A batch holds at most 8 MiB, or one larger block. Keys ascend by their bytes, or in Java's order in a file that
        Java wrote. The number of entries and the last key are checked at the end.
        """
        count = 0
        last: bytes | None = None
        level = self._index.all()
        for blocks, entries in self._groups(level):
            offset = int(level.offsets[blocks.start])
            entries.check_fixed_bytes(slice(None), path=self._path, offset=offset)
            keys, values = entries.columns()
            first = keys.slice(0, 1)
            if not ascends_somehow(keys) or (last is not None and is_less(first, pa.array([last], pa.binary()))[0]):
                raise CorruptFileError("the keys of a block do not ascend", path=self._path, offset=offset)
            count += len(keys)
            last = keys[-1].as_py()
            yield keys, values
        self._check_end(count, last)

    def get(self, key: bytes) -> bytes | None:
        """Return the value of one key, or None if it is absent."""
        value: bytes | None = self.get_many(pa.array([key], pa.binary()))[0].as_py()
        return value

    def get_many(self, keys: pa.Array) -> pa.BinaryArray:
        """Return the values of `keys` (string or binary, not null, any order), in their order; null for absent keys.

        Only blocks that can hold one of the keys are read. Sorted keys save a sort. For a key that the file repeats,
        one of its values is returned. Memory: the keys twice, and the found values twice. In a file that Java wrote,
        keys whose place is different in Java's order are searched among all entries.
        """
        wanted = keys.cast(pa.binary())
        if not self._is_by_java:
            return self._sought(wanted)
        if is_plain(wanted):
            # Keys with the same place in both orders are found by the index, unless the blocks next to them are in
            # Java's order.
            with contextlib.suppress(CorruptFileError):
                return self._sought(wanted)
        all_keys, values = self.entries()
        return values.take(pc.index_in(wanted, value_set=all_keys))

    def _sought(self, keys: pa.BinaryArray) -> pa.BinaryArray:
        """Look up keys as `get_many` does, in a file in byte order; another order that is found raises an error."""
        wanted, places = _sorted_distinct(keys)
        found = np.full(len(wanted), -1, np.int64)
        pieces: list[pa.BinaryArray] = []
        count = 0
        if len(wanted) and len(self._index.root):
            level = self._index.find(lambda level: level.holding(wanted))
            bounds = np.append(lower_bounds(wanted, level.rows), len(wanted))
            sorted_keys = SortedKeys.of(wanted)
            for blocks, entries in self._groups(level):
                first, stop = int(bounds[blocks.start]), int(bounds[blocks.stop])
                offset = int(level.offsets[blocks.start])
                numbers, rows = find_rows(entries, sorted_keys, first, stop, path=self._path, offset=offset)
                entries.check_fixed_bytes(rows, path=self._path, offset=offset)
                found[numbers] = np.arange(count, count + len(numbers))
                count += len(numbers)
                if len(numbers):
                    pieces.append(entries.values(rows))
        values = pa.concat_arrays(pieces) if pieces else pa.array([], pa.binary())
        if places is None and count == len(wanted):
            return values
        found = found if places is None else found[places]
        return values.take(pa.array(found, mask=found < 0))

    def get_range(self, start: bytes = b"", stop: bytes | None = None) -> Columns:
        """Return the keys in `[start, stop)` and their values, ascending by key bytes; `stop=None` means to the end."""
        pieces: list[Columns] = []
        level = self._index.find(lambda level: level.between(start, stop))
        for blocks, entries in self._groups(level):
            entries.check_fixed_bytes(slice(None), path=self._path, offset=int(level.offsets[blocks.start]))
            pieces.append(_between(entries.columns(), start, stop))
        found = _joined(pieces)
        bounds = pa.array([start, stop or b""], pa.binary())
        if not self._is_by_java or (is_plain(bounds) and ascends(found[0])):
            return found
        return _between(self.entries(), start, stop)

    @property
    def _is_by_java(self) -> bool:
        """Whether the file may be in Java's order. Our writer writes no such files."""
        return CREATED in self.file_info

    def _groups(self, level: IndexLevel) -> Iterator[tuple[range, Entries]]:
        """Yield the numbers of neighbouring blocks of `level`, and the entries of these blocks."""
        # Callers copy rows and values before the next group reuses the memory of this group.
        for numbers, payloads in self._blocks.groups(level, DATA):
            entries = Entries.parse(payloads, path=self._path)
            self._check_rows(level, numbers, entries)
            yield numbers, entries

    def _check_rows(self, level: IndexLevel, numbers: range, entries: Entries) -> None:
        """Check that the first row of each block fits the index, and that no block holds a row of the next block."""
        here: Int64Array = np.arange(numbers.start, numbers.stop, dtype=np.int64)
        indexed = level.rows[numbers.start : numbers.stop]
        first = entries.rows(entries.first_of_block[:-1])
        last = entries.rows(entries.first_of_block[1:] - 1)
        is_wrong = is_less(first, indexed) | (np.asarray(pc.not_equal(first, indexed)) & level.is_exact[here])
        following = level.rows[numbers.start + 1 : numbers.stop + 1]
        is_wrong[: len(following)] |= is_less(following, last[: len(following)])
        if is_wrong.any():
            offset = int(level.offsets[here[is_wrong][0]])
            message = "the keys of a block do not fit its key in the index"
            raise CorruptFileError(message, path=self._path, offset=offset)

    def _bounded(self, batches: Iterator[Columns]) -> Iterator[Columns]:
        limit = max(self._entries_bytes_max, self._size_bytes * _EXPANSION_MAX)
        size_bytes = 0
        for keys, values in batches:
            size_bytes += keys.nbytes + values.nbytes
            if size_bytes > limit:
                message = f"expected at most {limit} bytes of entries in a file of {self._size_bytes} bytes, found more"
                raise CorruptFileError(message, path=self._path)
            yield keys, values

    def _check_end(self, count: int, last: bytes | None) -> None:
        stored = self.file_info.get(LAST_KEY)
        wrong = ""
        if count != self._trailer.entry_count:
            wrong = f"expected {self._trailer.entry_count} entries, found {count}"
        elif stored is not None and last is not None and stored[2 : 2 + int.from_bytes(stored[:2], "big")] != last:
            wrong = "the last key is not the last key that the file info stores"
        if wrong:
            raise CorruptFileError(wrong, path=self._path, offset=self._trailer.load_on_open_offset)


def _between(columns: Columns, start: bytes, stop: bytes | None) -> Columns:
    keys, values = columns
    first = first_not_less(keys, start)
    end = len(keys) if stop is None else first_not_less(keys, stop)
    return keys[first:end], values[first:end]


def _joined(pieces: list[Columns]) -> Columns:
    if not pieces:
        return pa.array([], pa.binary()), pa.array([], pa.binary())
    if len(pieces) == 1:
        return pieces[0]
    return pa.concat_arrays([keys for keys, _ in pieces]), pa.concat_arrays([values for _, values in pieces])


def _sorted_distinct(keys: pa.BinaryArray) -> tuple[pa.BinaryArray, Int64Array | None]:
    """Return the distinct keys in byte order, and the place of each given key among them.

    The places are None if the given keys already are distinct and in byte order.
    """
    if len(keys) < 2 or pc.all(pc.greater(keys[1:], keys[:-1])).as_py():
        return keys, None
    order = np.asarray(pc.sort_indices(keys)).astype(np.int64)
    ordered = keys.take(pa.array(order))
    is_new = np.concatenate([[True], np.asarray(pc.not_equal(ordered[1:], ordered[:-1]))])
    places = np.empty(len(keys), np.int64)
    places[order] = np.cumsum(is_new) - 1
    return ordered.filter(pa.array(is_new)), places
