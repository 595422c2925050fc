"""Bloom filters over record keys, as base file footers and the metadata table store them; built as the JVM does.

On-disk format: docs/format/table.md §3.6 (footer keys), §7 (bytes, hashing, sizing, growth of rows).
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.errors import CorruptFileError, InvalidConfigError
from hoodie.format.hashes.murmur import chained_hashes

FOOTER_KEY: Final = "org.apache.hudi.bloomfilter"
TYPE_FOOTER_KEY: Final = "hoodie_bloom_filter_type_code"
MIN_KEY_FOOTER_KEY: Final = "hoodie_min_record_key"
MAX_KEY_FOOTER_KEY: Final = "hoodie_max_record_key"

_HEADER: Final = struct.Struct(">iibi")  # version -1, hash functions, hash type, bits
_OLD_HEADER: Final = struct.Struct(">ii")  # hash functions, bits; the hash type is JENKINS
_DYNAMIC_HEADER: Final = struct.Struct(">iii")  # keys per row, keys in the last row, rows
_VERSION: Final = -1
_JENKINS: Final = 0
_MURMUR: Final = 1
FIRST_HASHES: Final = 4
"""This number of hashes already excludes nearly every absent key. All hashes are computed only for the other keys."""

Bits = npt.NDArray[np.uint8]
Hashes = npt.NDArray[np.uint32]
_LOOSE_BYTES = 64 * 1024 * 1024
"""Rows of the filter are kept with one byte for each bit up to this size; the others are packed."""
_BITS_MAX: Final = 2**31 - 1


class BloomFilterType(StrEnum):
    """Layout of a filter's bytes. On disk (`hoodie_bloom_filter_type_code`): do not change."""

    SIMPLE = "SIMPLE"
    DYNAMIC = "DYNAMIC_V0"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BloomFilter:
    """A bloom filter: rows of `bit_count` bits each. A SIMPLE filter has exactly one row.

    `entries_per_row` and `entries_in_last_row` are counts of keys of DYNAMIC filters; they are 0 in other filters.
    """

    filter_type: BloomFilterType
    hash_count: int
    bit_count: int
    rows: tuple[Bits, ...]
    entries_per_row: int = 0
    entries_in_last_row: int = 0
    hash_type: int = _MURMUR

    @classmethod
    def parse(
        cls, text: str | bytes, filter_type: BloomFilterType | str | None = None, *, path: str = "<memory>"
    ) -> BloomFilter:
        """Parse the Base64 text of a footer; `filter_type` is the footer's type code, None (absent) means SIMPLE.

        Raises: CorruptFileError if the text is not Base64, the type is unknown, or the sizes do not fit the bytes.
        """
        try:
            data = base64.b64decode(text, validate=True)
            kind = BloomFilterType((filter_type or BloomFilterType.SIMPLE).upper())
        except ValueError as error:
            raise CorruptFileError(f"a bloom filter of a known type in Base64 expected: {error}", path=path) from error
        reader = _Reader(data, path)
        found = reader.read_row() if kind is BloomFilterType.SIMPLE else reader.read_dynamic()
        reader.expect_end()
        return found

    @classmethod
    def saturated(cls) -> BloomFilter:
        """Return the smallest filter that may contain every key: one hash and eight bits, all set.

        It is DYNAMIC, because with a SIMPLE filter the bloom index of the JVM's metadata table fails under default
        settings (docs/decisions/0001-bloom-footers.md).
        """
        return cls(
            filter_type=BloomFilterType.DYNAMIC,
            hash_count=1,
            bit_count=8,
            rows=(np.array([0xFF], dtype=np.uint8),),
            entries_per_row=1,
            entries_in_last_row=1,
        )

    def to_bytes(self) -> bytes:
        """Encode the filter as bytes."""
        header = _HEADER.pack(_VERSION, self.hash_count, self.hash_type, self.bit_count)
        rows = b"".join(header + row.tobytes() for row in self.rows)
        if self.filter_type is BloomFilterType.SIMPLE:
            return rows
        return header + _DYNAMIC_HEADER.pack(self.entries_per_row, self.entries_in_last_row, len(self.rows)) + rows

    def to_base64(self) -> str:
        """Encode the filter as the Base64 text of a footer."""
        return base64.b64encode(self.to_bytes()).decode("ascii")

    def may_contain(self, keys: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        """Return for each key (non-null string) whether the filter may contain it; False is certain.

        For a filter with the hash type of very old releases, every result is True. This is correct, but it excludes no
        key.
        """
        if self.hash_type != _MURMUR:
            return np.ones(len(keys), dtype=np.bool_)
        flat = single_array(keys)
        found = self._pass(flat, min(FIRST_HASHES, self.hash_count))
        if self.hash_count > FIRST_HASHES and found.any():
            survivors = np.flatnonzero(found)
            found[survivors] = self._pass(flat.take(pa.array(survivors)), self.hash_count)
        return found

    def may_contain_hashed(self, first: Sequence[Hashes]) -> npt.NDArray[np.bool_]:
        """Return for keys with these `first_hashes` whether the filter may contain them; False is certain.

        It lets more keys pass than `may_contain`, which tests all hashes. It is for keys that are looked up in several
        filters: they are hashed once.
        """
        count = len(first[0])
        if self.hash_type != _MURMUR:
            return np.ones(count, dtype=np.bool_)
        found = np.zeros(count, dtype=np.bool_)
        for bits in self.rows:
            left = np.arange(count)
            for values in first[: self.hash_count]:
                positions = bit_numbers(values[left], self.bit_count)
                masks = np.left_shift(1, positions & 7, dtype=np.uint8, casting="unsafe")
                left = left[(bits[positions >> 3] & masks) != 0]
            found[left] = True
        return found

    def _pass(self, keys: pa.Array, hash_count: int) -> npt.NDArray[np.bool_]:
        found = np.zeros(len(keys), dtype=np.bool_)
        for start, order, hashes in chained_hashes(keys, hash_count):
            has_all = np.ones((len(self.rows), len(order)), dtype=np.bool_)
            for values in hashes:
                positions = bit_numbers(values, self.bit_count)
                masks = np.left_shift(1, positions & 7, dtype=np.uint8, casting="unsafe")
                for row, bits in enumerate(self.rows):
                    has_all[row] &= (bits[positions >> 3] & masks) != 0
            found[start + order.astype(np.int64)] = has_all.any(axis=0)
        return found


def footer_entries(bloom: BloomFilter | None, *, min_key: str, max_key: str) -> Mapping[str, str]:
    """Return the footer entries of a base file whose keys are between `min_key` and `max_key` (both inclusive).

    As in the JVM, the type code of a SIMPLE filter is absent.
    """
    entries = {MIN_KEY_FOOTER_KEY: min_key, MAX_KEY_FOOTER_KEY: max_key}
    if bloom is None:
        return entries
    entries[FOOTER_KEY] = bloom.to_base64()
    if bloom.filter_type is not BloomFilterType.SIMPLE:
        entries[TYPE_FOOTER_KEY] = bloom.filter_type.value
    return entries


def first_hashes(keys: pa.Array | pa.ChunkedArray) -> list[Hashes]:
    """Return `FIRST_HASHES` arrays of hashes of keys (non-null strings), which are the same for every filter.

    Memory: 16 bytes for each key.
    """
    flat = single_array(keys)
    found = [np.empty(len(flat), np.uint32) for _ in range(FIRST_HASHES)]
    for start, order, hashes in chained_hashes(flat, FIRST_HASHES):
        places = start + order.astype(np.int64)
        for values, target in zip(hashes, found, strict=True):
            target[places] = values
    return found


def single_array(keys: pa.Array | pa.ChunkedArray) -> pa.Array:
    return keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys


def bit_numbers(hashes: npt.NDArray[np.uint32], bit_count: int) -> npt.NDArray[np.uint32]:
    """Return the bit number of each hash: the absolute value of the signed remainder, as Java computes it."""
    magnitudes = np.abs(hashes.view(np.int32)).view(np.uint32)  # the least int32 becomes 2**31, which is its magnitude
    return magnitudes % np.uint32(bit_count)


@dataclass(slots=True)
class _Reader:
    """A bounded read position in a filter's bytes."""

    data: bytes
    path: str
    offset: int = 0

    def read_row(self) -> BloomFilter:
        """Read one SIMPLE filter, with the present or the old header."""
        hash_count, hash_type, bit_count = self._read_header()
        content = self._take((bit_count + 7) // 8)
        return BloomFilter(
            filter_type=BloomFilterType.SIMPLE,
            hash_count=hash_count,
            hash_type=hash_type,
            bit_count=bit_count,
            rows=(np.frombuffer(content, dtype=np.uint8),),
        )

    def read_dynamic(self) -> BloomFilter:
        hash_count, hash_type, bit_count = self._read_header()
        per_row, in_last_row, row_count = _DYNAMIC_HEADER.unpack(self._take(_DYNAMIC_HEADER.size))
        if row_count < 1 or row_count > len(self.data):
            raise self._corrupt(f"at least one row of bits expected, found {row_count}")
        rows = [self.read_row() for _ in range(row_count)]
        if any((row.hash_count, row.hash_type, row.bit_count) != (hash_count, hash_type, bit_count) for row in rows):
            raise self._corrupt(f"rows of {bit_count} bits and {hash_count} hashes expected, found rows of other sizes")
        return BloomFilter(
            filter_type=BloomFilterType.DYNAMIC,
            hash_count=hash_count,
            hash_type=hash_type,
            bit_count=bit_count,
            rows=tuple(row.rows[0] for row in rows),
            entries_per_row=per_row,
            entries_in_last_row=in_last_row,
        )

    def expect_end(self) -> None:
        if self.offset != len(self.data):
            raise self._corrupt(f"the filter's end expected, found {len(self.data) - self.offset} more bytes")

    def _read_header(self) -> tuple[int, int, int]:
        begin = self.offset
        hash_count, bit_count = _OLD_HEADER.unpack(self._take(_OLD_HEADER.size))
        hash_type = _JENKINS
        if hash_count <= 0:
            self.offset = begin
            version, hash_count, hash_type, bit_count = _HEADER.unpack(self._take(_HEADER.size))
            if version != _VERSION or hash_type not in (_JENKINS, _MURMUR):
                raise self._corrupt(f"version -1 and hash type 0 or 1 expected, found {version} and {hash_type}")
        if hash_count < 1 or bit_count < 1:
            raise self._corrupt(f"at least one hash and one bit expected, found {hash_count} and {bit_count}")
        return hash_count, hash_type, bit_count

    def _take(self, size: int) -> bytes:
        chunk = self.data[self.offset : self.offset + size]
        if len(chunk) != size:
            raise self._corrupt(f"{size} bytes expected, found {len(chunk)}")
        self.offset += size
        return chunk

    def _corrupt(self, message: str) -> CorruptFileError:
        return CorruptFileError(f"bloom filter: {message}", path=self.path, offset=self.offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterOptions:
    """The options of a filter, with the JVM's defaults.

    `entries` is the expected number of keys (per row if DYNAMIC). A DYNAMIC filter adds rows until they hold
    `entries_max` keys. Raises: InvalidConfigError if a row would have more than 2^31 - 1 bits.
    """

    filter_type: BloomFilterType = BloomFilterType.DYNAMIC
    entries: int = 60_000
    false_positive_rate: float = 1e-9
    entries_max: int = 100_000

    def __post_init__(self) -> None:
        if not 1 <= self.bit_count <= _BITS_MAX:
            raise InvalidConfigError(
                f"a bloom filter for {self.entries:,} keys with the rate {self.false_positive_rate} has "
                f"{self.bit_count:,} bits; expected at most {_BITS_MAX:,}: lower the number of keys, or raise the rate"
            )

    @property
    def bit_count(self) -> int:
        """Number of bits of a row."""
        return math.ceil(self.entries * -math.log(self.false_positive_rate) / (math.log(2) * math.log(2)))

    @property
    def hash_count(self) -> int:
        """Number of hashes of a key."""
        return math.ceil(math.log(2) * self.bit_count / self.entries)

    @property
    def rows_max(self) -> int:
        """Greatest number of rows."""
        if self.filter_type is BloomFilterType.SIMPLE:
            return 1
        return max(1, math.ceil(self.entries_max / self.entries))


class FilterBuilder:
    """Builds one filter. Memory: the filter, 64 MiB or one row with a byte for each bit, and one chunk of keys."""

    def __init__(self, options: FilterOptions, *, loose_bytes_max: int = _LOOSE_BYTES) -> None:
        self._options = options
        self._loose_bytes_max = loose_bytes_max
        self._count = 0
        self._packed: dict[int, Bits] = {}
        self._loose: dict[int, Bits] = {}

    def add(self, keys: pa.Array | pa.ChunkedArray) -> None:
        """Add keys (non-null strings), in this order."""
        flat = single_array(keys)
        for start, order, hashes in chained_hashes(flat, self._options.hash_count):
            bits = np.stack([bit_numbers(values, self._options.bit_count) for values in hashes])
            rows = self._rows_of(self._count + start + order.astype(np.int64))
            lowest, highest = int(rows.min()), int(rows.max())
            if lowest == highest:
                self._row(lowest)[bits.ravel()] = 1
                continue
            for row in np.unique(rows).tolist():
                self._row(row)[bits[:, rows == row].ravel()] = 1
        self._count += len(flat)

    def build(self) -> BloomFilter:
        """Return the filter of all keys."""
        options = self._options
        is_dynamic = options.filter_type is BloomFilterType.DYNAMIC
        row_count = min(options.rows_max, max(1, math.ceil(self._count / options.entries)))
        self._pack()
        empty = np.zeros((options.bit_count + 7) // 8, np.uint8)
        return BloomFilter(
            filter_type=options.filter_type,
            hash_count=options.hash_count,
            bit_count=options.bit_count,
            rows=tuple(self._packed.get(row, empty) for row in range(row_count)),
            entries_per_row=options.entries if is_dynamic else 0,
            entries_in_last_row=self._count - (row_count - 1) * options.entries if is_dynamic else 0,
        )

    def _rows_of(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the row of each key, by the numbers of the keys.

        Keys beyond the maximum are added to the rows in turn. The JVM adds the first two of these keys to the first
        row.
        """
        entries, rows_max = self._options.entries, self._options.rows_max
        beyond = np.maximum(numbers - rows_max * entries - 1, 0) % rows_max
        return np.where(numbers < rows_max * entries, numbers // entries, beyond)

    def _row(self, row: int) -> Bits:
        """Return a row with one byte for each bit."""
        found = self._loose.get(row)
        if found is None:
            bit_count = self._options.bit_count
            if (len(self._loose) + 1) * bit_count > self._loose_bytes_max:
                self._pack()
            packed = self._packed.pop(row, None)
            found = np.zeros(bit_count, np.uint8)
            if packed is not None:
                found[:] = np.unpackbits(packed, count=bit_count, bitorder="little")
            self._loose[row] = found
        return found

    def _pack(self) -> None:
        self._packed |= {row: np.packbits(bits, bitorder="little") for row, bits in self._loose.items()}
        self._loose = {}
