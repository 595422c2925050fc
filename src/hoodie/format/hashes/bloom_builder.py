"""Builds bloom filters from keys that come in pieces, byte by byte as the JVM does.

On-disk format: docs/format/table.md §7 (sizing, growth of rows).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.errors import InvalidConfigError
from hoodie.format.hashes.bloom import Bits, BloomFilter, BloomFilterType, bit_numbers, single_array
from hoodie.format.hashes.murmur import chained_hashes

_LOOSE_BYTES = 64 * 1024 * 1024
"""Rows of the filter are kept with one byte for each bit up to this size; the others are packed."""
_BITS_MAX: Final = 2**31 - 1


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

    def __init__(self, options: FilterOptions) -> None:
        self._options = options
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
            if (len(self._loose) + 1) * bit_count > _LOOSE_BYTES:
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
