"""Staged entries bucket by bucket: what a worker reads that works on one bucket of the record index."""

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
class BucketEntries:
    """Where the staged entries of one bucket are: batches by path, and where the codes of their file begin. Picklable.

    A batch has the entries of a group of buckets, of which the bucket takes its own.
    """

    number: int
    bucket_count: int
    batches: Batches

    def read(self, store: Store) -> tuple[pa.StringArray, Codes]:
        """Keys, and for each the place of its location, or `DELETED`. Memory: the bucket's keys, and one batch."""
        return read_entries(store, self.batches, self._holds)

    def _holds(self, keys: pa.StringArray) -> npt.NDArray[np.bool_]:
        is_own: npt.NDArray[np.bool_] = file_group_index(keys, self.bucket_count) == self.number
        return is_own


@dataclass(frozen=True, slots=True)
class StagedBuckets:
    """Staged entries of all buckets, by number; `locations` are the partition paths and file ids their codes name."""

    buckets: tuple[BucketEntries, ...]
    locations: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, staged: Sequence[StagedEntries], bucket_count: int) -> StagedBuckets:
        """The same entries, seen from the buckets. A bucket of a group without entries has no batches."""
        batches, locations = gathered(staged)
        groups = KeyGroups(bucket_count).count
        buckets = (
            BucketEntries(number, bucket_count, batches.get(number % groups, ())) for number in range(bucket_count)
        )
        return cls(tuple(buckets), locations)
