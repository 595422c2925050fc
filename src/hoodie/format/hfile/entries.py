"""Payloads of data blocks: concatenated entries, parsed and encoded in whole blocks (docs/format/metadata.md §1.4).

An entry is: key length, value length, row length, row, ten fixed bytes, value, MVCC byte.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFileError, InvalidConfigError
from hoodie.format.hfile.block_reader import SLACK_BYTES, Payloads, UInt8Array
from hoodie.format.hfile.key_order import Int64Array
from hoodie.format.schema.arrow_types import pieces_of

ROW_BYTES_MAX = 32767
KEY_SUFFIX = b"\0" + b"\x7f" + b"\xff" * 7 + b"\x04"  # no column family, greatest timestamp, type Put

_LENGTHS = struct.Struct(">II")
_ROW_OFFSET = 10  # after key length, value length and row length
_KEY_BYTES_BESIDE_ROW = 2 + len(KEY_SUFFIX)
_MVCC_BYTES = 1
ENTRY_BYTES_BESIDE_ROW_AND_VALUE = _ROW_OFFSET + len(KEY_SUFFIX) + _MVCC_BYTES
_NO_FAMILY = 0
_PUT = 4

# Number of bytes that are read at the start of an entry or at the end of a row. They are read at once, because each
# separate read loads the memory again.
_PIECE_BYTES = 16

_SUFFIX_START = np.frombuffer(KEY_SUFFIX[:8], "<u8")[0]
_FOUR_FF = np.uint32(0xFFFFFFFF)
# With more different row lengths than this, the plain loop over entries is as fast.
_ROW_LENGTHS_MAX = 12

UInt64Array = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Entries:
    """The places of the rows and values of entries in `data`.

    `first_of_block[i]` is the number of the first entry of block i; its last item is the number of entries. All
    offsets are less than 2**31.
    """

    data: UInt8Array
    row_start: Int64Array
    row_bytes: Int64Array
    value_bytes: Int64Array
    first_of_block: Int64Array

    def __len__(self) -> int:
        return len(self.row_start)

    @classmethod
    def parse(cls, payloads: Payloads, *, path: str) -> Entries:
        """Find the entries of blocks, in file order.

        By the lengths of its key and value, each entry must end where the next entry begins or where its block ends.

        Raises: CorruptFileError if an entry ends at another place.
        """
        row_ends = _suffixes(payloads)
        for find in (_starts_of_one_length, _starts_of_some_lengths):
            starts = find(payloads, row_ends)
            entries = None if starts is None else cls._of_starts(payloads, starts)
            if entries is not None:
                return entries
        entries = cls._of_starts(payloads, _starts_one_by_one(payloads, path=path))
        if entries is None:
            raise CorruptFileError(
                "the lengths of entries do not fit each other or their block",
                path=path,
                offset=int(payloads.offsets[0]),
            )
        return entries

    @classmethod
    def _of_starts(cls, payloads: Payloads, starts: Int64Array) -> Entries | None:
        """Read the lengths of entries that may begin at `starts`; return None if the lengths do not fit the starts."""
        data, end = payloads.data, int(payloads.ends[-1])
        if int(starts[0]) != int(payloads.starts[0]) or int(starts[-1]) + ENTRY_BYTES_BESIDE_ROW_AND_VALUE > end:
            return None
        first_of_block = np.minimum(np.searchsorted(starts, payloads.starts), len(starts) - 1)
        if not np.array_equal(starts[first_of_block], payloads.starts):
            return None
        lengths = _words(data, starts)
        row_bytes = (lengths >> np.uint64(32)).view(np.int64) - _KEY_BYTES_BESIDE_ROW
        value_bytes = (lengths & np.uint64(0xFFFFFFFF)).view(np.int64)
        ends = np.empty_like(starts)
        ends[:-1] = starts[1:]
        ends[first_of_block[1:] - 1] = payloads.ends[:-1]
        ends[-1] = end
        ends -= starts
        ends -= row_bytes
        ends -= value_bytes
        is_wrong = (ends != ENTRY_BYTES_BESIDE_ROW_AND_VALUE).any()
        if is_wrong or int(row_bytes.min()) < 0 or int(row_bytes.max()) > ROW_BYTES_MAX:
            return None
        return cls(data, starts + _ROW_OFFSET, row_bytes, value_bytes, np.append(first_of_block, len(starts)))

    def check_fixed_bytes(self, places: Int64Array | slice, *, path: str, offset: int) -> None:
        """Check the bytes of the entries at `places` that `parse` does not check, because no result depends on them.

        The row length of each entry must agree with its key length. The ten bytes after the rows must be equal in all
        entries and mean: no column family, type Put. The last byte must be zero.

        Raises: CorruptFileError if a byte has another value. `offset` is the offset of the first block.
        """
        row_start, row_bytes = self.row_start[places], self.row_bytes[places]
        if not len(row_start):
            return
        row_end = row_start + row_bytes
        words = _pieces(self.data, row_end).view("<u8")
        first = self.data[row_end[0] : row_end[0] + len(KEY_SUFFIX)]
        if (
            first[0] != _NO_FAMILY
            or first[-1] != _PUT
            or (words[:, 0] != words[0, 0]).any()
            or ((words[:, 1] ^ words[0, 1]) & np.uint64(0xFFFF)).any()
            or (_row_lengths(self.data, row_start) != row_bytes).any()
            or self.data[row_end + self.value_bytes[places] + len(KEY_SUFFIX)].any()
        ):
            raise CorruptFileError(
                "wrong fixed bytes of an entry: expected its row length, no column family, type Put, a zero at its end",
                path=path,
                offset=offset,
            )

    def columns(self) -> tuple[pa.BinaryArray, pa.BinaryArray]:
        """Return the rows and the values, copied."""
        return self.rows(slice(None)), self.values(slice(None))

    def rows(self, places: Int64Array | slice) -> pa.BinaryArray:
        """Return the rows at ascending `places`, copied."""
        start = self.row_start[places]
        return pieces_of(self.data, start, start + self.row_bytes[places])

    def values(self, places: Int64Array | slice) -> pa.BinaryArray:
        """Return the values at ascending `places`, copied."""
        start = self.row_start[places] + self.row_bytes[places] + len(KEY_SUFFIX)
        return pieces_of(self.data, start, start + self.value_bytes[places])

    def row_words(self, skipped_bytes: int) -> UInt64Array:
        """Return eight bytes of each row after the first `skipped_bytes`, as numbers that sort like the bytes."""
        return words_of(self.data, self.row_start + skipped_bytes, self.row_bytes - skipped_bytes)


def words_of(data: UInt8Array, starts: Int64Array, lengths: Int64Array) -> UInt64Array:
    """Return the first eight bytes of pieces of `data` as numbers; shorter pieces are padded with zeros.

    At least eight bytes of `data` must follow each start.
    """
    words = _words(data, starts)
    if len(lengths) and int(lengths.min()) < 8:
        missing = (8 * (8 - np.clip(lengths, 1, 8))).astype(np.uint64)
        words = np.where(lengths > 0, words >> missing << missing, np.uint64(0))
    return words


def _words(data: UInt8Array, starts: Int64Array) -> UInt64Array:
    """Return the big-endian numbers of eight bytes at `starts`, which need no alignment."""
    view: UInt64Array = np.ndarray((len(data) - 7,), "<u8", data.data, strides=(1,))
    return view[starts].byteswap(inplace=True)


def _row_lengths(data: UInt8Array, row_starts: Int64Array) -> Int64Array:
    """Return the numbers in the two bytes before each row."""
    view = np.ndarray((len(data) - 1,), ">u2", data.data, strides=(1,))
    return view[row_starts - 2].astype(np.int64)


def _pieces(data: UInt8Array, starts: Int64Array) -> UInt8Array:
    """Return the sixteen bytes from each start, copied: one array row for each start."""
    view = np.ndarray((len(data) - _PIECE_BYTES + 1,), f"V{_PIECE_BYTES}", data.data, strides=(1,))
    pieces: UInt8Array = view[starts].view(np.uint8).reshape(-1, _PIECE_BYTES)
    return pieces


def _big_endian(columns: UInt8Array) -> Int64Array:
    """Return the big-endian number in the bytes of each array row."""
    numbers: Int64Array = columns.view(f">u{columns.shape[1]}")[:, 0].astype(np.int64)
    return numbers


def _suffixes(payloads: Payloads) -> Int64Array:
    """Find the places that look like the ten fixed bytes: after each row, and perhaps inside values.

    Seven of the ten bytes are FF. Exactly one aligned word of four bytes is therefore all FF; up to three of the FF
    bytes are before this word.
    """
    end = int(payloads.ends[-1]) + SLACK_BYTES
    words = payloads.data[: end // 4 * 4].view("<u4")
    places = np.flatnonzero(words[:-1] == _FOUR_FF)
    behind = words[places + 1]
    missing = (behind != np.uint32(0x04FFFFFF)).view(np.uint8)
    missing += (behind & np.uint32(0xFFFF)) != np.uint32(0xFFFF)
    missing += (behind & np.uint32(0xFF)) != np.uint32(0xFF)
    places *= 4
    places -= 2
    places -= missing
    return places


def _starts_of_one_length(payloads: Payloads, row_ends: Int64Array) -> Int64Array | None:
    """Guess the offsets of the entries, as if all rows had the length of the first row; the caller checks the guess."""
    if not len(row_ends):
        return None
    starts: Int64Array = row_ends - (int(row_ends[0]) - int(payloads.starts[0]))
    return starts


def _starts_of_some_lengths(payloads: Payloads, row_ends: Int64Array) -> Int64Array | None:
    """Guess the offsets of the entries, as if their rows had only a few lengths; the caller checks the guess.

    The first entry that is not found yet starts where the entry before it ends. This gives the length of its row. All
    entries with rows of this length are found in the same step.
    """
    data = payloads.data
    first = int(payloads.starts[0])
    row_ends = row_ends[row_ends >= first]
    row_ends = row_ends[_pieces(data, row_ends).view("<u8")[:, 0] == _SUFFIX_START]
    starts = np.full(len(row_ends), -1, np.int64)
    is_open = np.arange(len(row_ends))
    following = dict(zip(payloads.ends.tolist(), payloads.starts.tolist()[1:], strict=False))
    for _ in range(_ROW_LENGTHS_MAX):
        if not len(is_open):
            break
        start = first
        if is_open[0]:
            before = int(is_open[0]) - 1
            value_bytes = int.from_bytes(data[starts[before] + 4 : starts[before] + 8].tobytes(), "big")
            start = int(row_ends[before]) + len(KEY_SUFFIX) + value_bytes + _MVCC_BYTES
            start = following.get(start, start)
        row_bytes = int(row_ends[is_open[0]]) - start - _ROW_OFFSET
        if not 0 <= row_bytes <= ROW_BYTES_MAX:
            return None
        guess = row_ends[is_open] - (row_bytes + _ROW_OFFSET)
        heads = _pieces(data, np.maximum(guess, 0))
        fits = (guess >= first) & (_big_endian(heads[:, 8:10]) == row_bytes)
        fits &= _big_endian(heads[:, 0:4]) == row_bytes + _KEY_BYTES_BESIDE_ROW
        if not fits[0]:
            return None
        starts[is_open[fits]] = guess[fits]
        is_open = is_open[~fits]
    return starts if len(starts) and not len(is_open) else None


def _starts_one_by_one(payloads: Payloads, *, path: str) -> Int64Array:
    """Find the offset of each entry from the entry before it: for rows of many lengths."""
    starts: list[int] = []
    append, unpack = starts.append, _LENGTHS.unpack_from
    data = payloads.data.data
    blocks = zip(payloads.starts.tolist(), payloads.ends.tolist(), payloads.offsets.tolist(), strict=True)
    for position, end, offset in blocks:
        last = end - ENTRY_BYTES_BESIDE_ROW_AND_VALUE
        while position <= last:
            append(position)
            key_bytes, value_bytes = unpack(data, position)
            if key_bytes < _KEY_BYTES_BESIDE_ROW:
                break
            position += _LENGTHS.size + key_bytes + value_bytes + _MVCC_BYTES
        if position != end:
            raise CorruptFileError("the block's entries do not end where the block does", path=path, offset=offset)
    return np.array(starts, dtype=np.int64)


def entry_bounds(keys: pa.Array, values: pa.Array) -> Int64Array:
    """Return the n + 1 offsets at which encoded entries start and end.

    Raises: InvalidConfigError if a key is longer than 32767 bytes.
    """
    row_bytes, value_bytes = _lengths(keys), _lengths(values)
    if len(row_bytes) and int(row_bytes.max()) > ROW_BYTES_MAX:
        raise InvalidConfigError(
            f"expected keys of at most {ROW_BYTES_MAX} UTF-8 bytes in an HFile, found {int(row_bytes.max())} bytes; "
            f"use shorter keys"
        )
    bounds = np.zeros(len(row_bytes) + 1, np.int64)
    np.cumsum(row_bytes + value_bytes + ENTRY_BYTES_BESIDE_ROW_AND_VALUE, out=bounds[1:])
    return bounds


def entries_to_bytes(keys: pa.BinaryArray, values: pa.BinaryArray) -> memoryview:
    """Encode entries one after the other; all entries together must have less than 2 GiB."""
    row_bytes, value_bytes = _lengths(keys), _lengths(values)
    heads = np.empty((len(row_bytes), _ROW_OFFSET), dtype=np.uint8)
    heads[:, 0:4] = (row_bytes + _KEY_BYTES_BESIDE_ROW).astype(">u4").view(np.uint8).reshape(-1, 4)
    heads[:, 4:8] = value_bytes.astype(">u4").view(np.uint8).reshape(-1, 4)
    heads[:, 8:10] = row_bytes.astype(">u2").view(np.uint8).reshape(-1, 2)
    offsets = np.arange(0, heads.size + 1, _ROW_OFFSET, dtype=np.int32)
    head = pa.BinaryArray.from_buffers(pa.binary(), len(heads), [None, pa.py_buffer(offsets), pa.py_buffer(heads)])
    suffix, mvcc, nothing = (pa.scalar(piece, pa.binary()) for piece in (KEY_SUFFIX, bytes(_MVCC_BYTES), b""))
    joined = pc.binary_join_element_wise(head, keys, suffix, values, mvcc, nothing)
    return memoryview(joined.buffers()[2])


def _lengths(column: pa.Array) -> Int64Array:
    return np.asarray(pc.binary_length(column)).astype(np.int64)
