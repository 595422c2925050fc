"""Detect conflicts by comparing the keys that two writes recorded in the record index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import MissingFileError
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteStat
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.index.record.state import partitioned_index, record_index
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.places import METADATA_FOLDER, METADATA_HOODIE_FOLDER
from hoodie.metadata.slice_reader import read_log
from hoodie.timeline import Action, Instant, read_instant
from hoodie.view.table_view import TableView


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedWrite:
    """The log files that a write wrote to the record index before its commit: `stats` are their write statistics.

    `now` is the view loaded under the table's lock. `was_switched`: the index was built since the write began, so the
    entries of other writes are in the files of the build.
    """

    now: TableView
    instant_time: str
    stats: Sequence[WriteStat]
    was_switched: bool = False

    def shares_keys_with(self, other: Instant) -> bool:
        """Return whether the completed write `other` and this write wrote an entry of the same key.

        Reads the log files of both writes in the index file groups that both changed. Also true if a log file of the
        other write does not exist any more.
        """
        return bool(self.stats) and (self.was_switched or any(self._meets(*pair) for pair in self._pairs(other)))

    def would_lose_to(self, other: Instant) -> bool:
        """Return whether an entry of `other`, which completed before this write, would replace an entry of this write.

        Entries of a file group count in the order of the requested times of their writes. Entries in the base file are
        older than all log files. Also true if the log files of the other write do not exist any more.
        """
        if not self.stats or self.was_switched:
            return bool(self.stats)
        if other.requested_time < self.instant_time:
            return False
        pairs = self._pairs(other)
        starts = self._slice_starts() if pairs else {}
        completed = other.completion_time or other.requested_time
        return any(starts.get(own.file_id, "") <= completed and self._meets(own, theirs) for own, theirs in pairs)

    def _pairs(self, other: Instant) -> list[tuple[WriteStat, WriteStat | None]]:
        """Return pairs of log files in one file group, of this and the other write; None for unknown log files."""
        folder = MetadataFolder(self.now.store, self.now.config)
        instant = folder.timeline().get(other.requested_time, Action.DELTA_COMMIT)
        if instant is None:
            return [(stat, None) for stat in self.stats]
        content = read_instant(folder.store, folder.layout, instant, folder=METADATA_HOODIE_FOLDER)
        told = CommitMetadata.parse(content, path=str(instant)).partition_to_write_stats.get(RECORD_INDEX, ())
        return [(own, theirs) for own in self.stats for theirs in told if own.file_id == theirs.file_id]

    def _slice_starts(self) -> Mapping[str, str]:
        """Return the base instant of the newest slice of each file group, by file id."""
        state = record_index(self.now)
        states = (partitioned_index(self.now) or {}).values() if state is None else [state]
        slices = [file_group.file_slice for found in states for file_group in found.file_groups]
        return {found.file_id: found.base_instant_time for found in slices if found.base_file is not None}

    def _meets(self, own: WriteStat, theirs: WriteStat | None) -> bool:
        if theirs is None:
            return True
        try:
            keys = self._keys(theirs)
        except MissingFileError:
            return True
        return bool(pc.any(pc.is_in(self._keys(own), value_set=keys)).as_py())

    def _keys(self, stat: WriteStat) -> pa.BinaryArray:
        blocks = read_log(self.now.store, f"{METADATA_FOLDER}/{stat.path}").blocks
        return pa.concat_arrays([pa.array([], pa.binary()), *(block.keys.cast(pa.binary()) for block in blocks)])
