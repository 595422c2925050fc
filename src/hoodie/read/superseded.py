"""Find the rows of base files that log files replace or delete, for engines that read base files themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hoodie.errors import UnsupportedError
from hoodie.files.merged_slice import SliceRead, superseded_positions
from hoodie.files.slices import FileSlice
from hoodie.read.plan import ScanPlan
from hoodie.storage import Store

Words = npt.NDArray[np.int64]
_WORD_BITS = 64


@dataclass(frozen=True, slots=True)
class Superseded:
    """Finds the superseded rows of the file slices of a scan. Picklable."""

    read: SliceRead

    @classmethod
    def of(cls, plan: ScanPlan) -> Superseded:
        """Create it for a scan whose engine filters the rows of base files by the scan's condition, keys and instants.

        Raises: as `ScanPlan.slice_read`.
        """
        try:
            names = [] if plan.where is None else sorted(plan.where.columns(plan.schema))
            names += [] if plan.keys is None else plan.keys.column_names
        except UnsupportedError:
            return cls(replace(plan.slice_read((), in_utc=False), base_filter=None, base_filter_on_keys=False))
        return cls(plan.slice_read(tuple(dict.fromkeys(names)), in_utc=False))

    def words(self, store: Store, found: FileSlice) -> Words:
        """Return a bit for each row of the slice's base file, up to the last superseded row: set if it is superseded.

        Row n is bit n % 64 (0 is the lowest) of word n // 64. The bits of rows that the scan's condition rules out may
        be wrong. Memory: two bytes for each row of the base file, and as `files.merged_slice`.
        """
        bits = Bits()
        for positions in superseded_positions(store, found, self.read):
            bits.add(positions)
        return bits.words()


class Bits:
    """Positions as bits. Memory: two bytes for each position up to the greatest."""

    def __init__(self) -> None:
        self._marked = np.zeros(0, np.bool_)
        self._end = 0

    def add(self, positions: npt.NDArray[np.int64]) -> None:
        """Set the bits of these positions, of which there is at least one."""
        self._end = max(self._end, int(positions.max()) + 1)
        if self._end > len(self._marked):
            more = max(self._end, 2 * len(self._marked)) - len(self._marked)
            self._marked = np.concatenate([self._marked, np.zeros(more, np.bool_)])
        self._marked[positions] = True

    def words(self) -> Words:
        """Return the bits as in `Superseded.words`."""
        padded = np.zeros(-(-self._end // _WORD_BITS) * _WORD_BITS, np.bool_)
        padded[: self._end] = self._marked[: self._end]
        return np.packbits(padded, bitorder="little").view("<i8")
