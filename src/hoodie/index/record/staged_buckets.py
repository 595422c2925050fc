"""Staged entries bucket by bucket: what a worker reads that works on one bucket of the record index."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.files.staged import StageReader
from hoodie.files.staged_keys import KeyGroups
from hoodie.format.java_hash import file_group_index
from hoodie.index.record.entries import DELETED, StagedEntries
from hoodie.records.change import RECORD_KEY
from hoodie.storage import Store

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class BucketEntries:
    """Where the staged entries of one bucket are: batches by path, and where the codes of their file begin. Picklable.

    A batch has the entries of a group of buckets, of which the bucket takes its own.
    """

    number: int
    bucket_count: int
    batches: tuple[tuple[str, int, int], ...]

    def read(self, store: Store) -> tuple[pa.StringArray, Codes]:
        """Keys, and for each the place of its location, or `DELETED`. Memory: the bucket's keys, and one batch."""
        keys: list[pa.StringArray] = [pa.array([], pa.string())]
        codes: list[Codes] = [np.zeros(0, np.int32)]
        with StageReader(store) as reader:
            for path, found in itertools.groupby(self.batches, key=lambda batch: batch[0]):
                for _, batch, first in found:
                    rows = reader.read_batch(path, batch)
                    mine = np.flatnonzero(file_group_index(rows.column(RECORD_KEY), self.bucket_count) == self.number)
                    if len(mine):
                        keys.append(rows.column(RECORD_KEY).take(pa.array(mine)))
                        local = np.asarray(rows.column("location"))[mine]
                        codes.append(np.where(local == DELETED, local, local + np.int32(first)))
        return pa.concat_arrays(keys), np.concatenate(codes)


@dataclass(frozen=True, slots=True)
class StagedBuckets:
    """Staged entries of all buckets, by number; `locations` are the partition paths and file ids their codes name."""

    buckets: tuple[BucketEntries, ...]
    locations: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, staged: Sequence[StagedEntries], bucket_count: int) -> StagedBuckets:
        """The same entries, seen from the buckets. A bucket of a group without entries has no batches."""
        batches: dict[int, list[tuple[str, int, int]]] = {}
        locations: list[tuple[str, str]] = []
        for entries in staged:
            for batch, group in enumerate(entries.groups):
                batches.setdefault(group, []).append((entries.path, batch, len(locations)))
            locations += entries.locations
        groups = KeyGroups(bucket_count).count
        buckets = (
            BucketEntries(number, bucket_count, tuple(batches.get(number % groups, ())))
            for number in range(bucket_count)
        )
        return cls(tuple(buckets), tuple(locations))
