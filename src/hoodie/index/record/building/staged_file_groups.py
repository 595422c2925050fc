"""Staged entries by index file group, as a worker reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.files.staging.staged_keys import KeyGroups
from hoodie.format.hashes.java_hash import file_group_index
from hoodie.index.record.entries import Batches, Codes, StagedEntries, gathered, read_entries
from hoodie.storage import Store


@dataclass(frozen=True, slots=True)
class FileGroupEntries:
    """The staged record batches of one index file group. Picklable.

    A batch may also have entries of other index file groups; `read` leaves them out.
    """

    number: int
    file_group_count: int
    batches: Batches

    def read(self, store: Store) -> tuple[pa.StringArray, Codes]:
        """Return keys, and for each the position of its location, or `DELETED`. Memory: these keys, and one batch."""
        return read_entries(store, self.batches, self._holds)

    def _holds(self, keys: pa.StringArray) -> npt.NDArray[np.bool_]:
        is_own: npt.NDArray[np.bool_] = file_group_index(keys, self.file_group_count) == self.number
        return is_own


@dataclass(frozen=True, slots=True)
class StagedFileGroups:
    """Staged entries of all index file groups, by number. `locations`: partition path and file id of each code."""

    file_groups: tuple[FileGroupEntries, ...]
    locations: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, staged: Sequence[StagedEntries], file_group_count: int) -> StagedFileGroups:
        """Arrange staged entries by index file group. If a group has no entries, its file groups have no batches."""
        batches, locations = gathered(staged)
        groups = KeyGroups(file_group_count).count
        file_groups = (
            FileGroupEntries(number, file_group_count, batches.get(number % groups, ()))
            for number in range(file_group_count)
        )
        return cls(tuple(file_groups), locations)
