"""Did two writes put the same new key into the table? The record index can tell; without it only partitions can."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.format.commit_metadata import WriteStat
from hoodie.metadata.buckets import Bucket, RecordIndexState
from hoodie.metadata.places import partition_folder
from hoodie.metadata.record_index import PARTITION
from hoodie.metadata.slice_reader import read_log
from hoodie.storage import Store
from hoodie.timeline import Instant


@dataclass(frozen=True, slots=True)
class IndexedWrite:
    """What a write that is about to commit wrote to the record index, and the index as it is now."""

    store: Store
    state: RecordIndexState
    stats: Sequence[WriteStat]

    def shares_keys_with(self, other: Instant) -> bool:
        """Whether the other write wrote an entry of a key that this one wrote an entry of.

        Reads the log files of both in the buckets that both touched. True as well where that cannot be told any more,
        because the bucket was compacted since.
        """
        by_file_id = {bucket.file_slice.file_id: bucket for bucket in self.state.buckets}
        for stat in self.stats:
            bucket = by_file_id[stat.file_id]
            if bucket.file_slice.base_instant_time > (other.completion_time or other.requested_time):
                return True
            theirs = [self._keys(path) for path in _logs_of(bucket, other)]
            if theirs and _meet(self._keys(f"{partition_folder(PARTITION)}/{_name(stat)}"), pa.concat_arrays(theirs)):
                return True
        return False

    def _keys(self, path: str) -> pa.BinaryArray:
        keys = [block.keys.cast(pa.binary()) for block in read_log(self.store, path).blocks]
        return pa.concat_arrays(keys) if keys else pa.array([], pa.binary())


def _logs_of(bucket: Bucket, instant: Instant) -> Iterator[str]:
    for log in bucket.file_slice.log_files:
        if log.name.instant_time == instant.requested_time:
            yield log.path


def _name(stat: WriteStat) -> str:
    return (stat.path or "").rpartition("/")[2]


def _meet(some: pa.BinaryArray, others: pa.BinaryArray) -> bool:
    return bool(pc.any(pc.is_in(some, value_set=others)).as_py())
