"""What other writers changed in the record index while a write ran: an exchange of the index, and entries of same keys.

If the index was exchanged, the index entries of the write are made at its commit. Two writes conflict if both recorded
an entry of the same key.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import LocalEngine, local_engine
from hoodie.errors import MissingFileError
from hoodie.files.staging.staged import stage_folder
from hoodie.files.staging.staged_keys import KeyGroups
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteStat
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.index.record.differences import changes_of, stage_changes
from hoodie.index.record.entries import EntryStage, write_entries
from hoodie.index.record.file_groups import RecordIndexState
from hoodie.index.record.state import partitioned_index, record_index
from hoodie.metadata.delta_commit import is_staged_log, read_staged_log
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.instants import build_time
from hoodie.metadata.kinds.record_index import is_partitioned_record_index
from hoodie.metadata.paths import METADATA_FOLDER
from hoodie.metadata.slices import log_content, read_log
from hoodie.timeline import Action, Instant, Timeline, ms_of_instant_time, read_instant
from hoodie.view.slices import list_slices
from hoodie.view.table_view import TableView


def index_was_exchanged(began: TableView, now: TableView, switched: Collection[str] | None = None) -> bool:
    """Return whether the record index may have been exchanged since a write began.

    The file ids do not show this. A pending build counts too: it may have stopped after it had switched the index on.
    `switched`: the `switched_builds` when the write began, if they are known. Then only a build counts that has
    switched its index on since.
    """
    if (RECORD_INDEX in began.config.metadata_partitions) != (RECORD_INDEX in now.config.metadata_partitions):
        return True
    builds = _builds(now.timeline) - _builds(began.timeline.completed())
    if not builds or (switched is not None and not switched_builds(now, builds) - set(switched)):
        return False
    # This release does not build partitioned record indexes, so such an index was not exchanged.
    return RECORD_INDEX not in now.config.metadata_partitions or not is_partitioned_record_index(now.store)


def index_was_switched(began: TableView, now: TableView) -> bool:
    """Return whether the index that the table has now was switched on since a write began."""
    if RECORD_INDEX not in now.config.metadata_partitions:
        return False
    if RECORD_INDEX not in began.config.metadata_partitions:
        return True
    return bool(switched_builds(now, _builds(now.timeline) - _builds(began.timeline.completed())))


def switched_builds(view: TableView, builds: Collection[str] | None = None) -> frozenset[str]:
    """Return those of the builds (by default the pending ones) that have switched their index on.

    It takes one listing of the metadata timeline, and no request without builds.
    """
    asked = _builds(view.timeline.pending()) if builds is None else builds
    if not asked or not view.config.has_metadata_table:
        return frozenset()
    completed = MetadataFolder(view.store, view.config).timeline().completed()
    return frozenset(time for time in asked if completed.get(build_time(time)) is not None)


def index_was_replaced_or_dropped(began: TableView, now: TableView) -> bool:
    """Return whether the index that the table had when a write began was deleted, with its files."""
    if RECORD_INDEX not in began.config.metadata_partitions:
        return False
    is_gone = RECORD_INDEX not in now.config.metadata_partitions
    return is_gone or bool(_builds(now.timeline.completed()) - _builds(began.timeline.completed()))


def _builds(timeline: Timeline) -> set[str]:
    return {instant.requested_time for instant in timeline if instant.action is Action.INDEXING}


def late_entries(
    now: TableView, instant_time: str, metadata: CommitMetadata, state: RecordIndexState
) -> tuple[WriteStat, ...]:
    """Write the entries of a write to the current index at its commit, under the table's lock.

    The entries are found by comparing the file groups before and after the write. Memory: as `stage_changes`, on
    threads of this process.
    """
    store = now.store
    touched = {stat.partition_path or "" for stat in metadata.write_stats()}
    current = list_slices(now, {*touched, *(metadata.partition_to_replace_file_ids or {})})
    with stage_folder(store, in_process=True) as folder:
        stage = EntryStage(folder, KeyGroups(len(state.file_groups)))
        staged = stage_changes(local_engine, store.spec, changes_of(metadata, current), stage, now.slice_read())
        written = write_entries(
            LocalEngine(),
            store.spec,
            staged,
            instant_time=instant_time,
            instant_ms=ms_of_instant_time(instant_time, now.layout.zone),
            file_ids=state.file_ids,
        )
    return written.stats


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
        return bool(self.stats) and (
            self.was_switched or any(self._meets(*pair, other.requested_time) for pair in self._pairs(other))
        )

    def would_lose_to(self, other: Instant) -> bool:
        """Return whether the entries of both writes would not be the rows: `other` completed before this write.

        Either an entry of `other` would replace one of this write, or a deletion of this write would hide the location
        of a row that `other` added without a look-up. Entries of a file group count in the order of the requested times
        of their writes. Entries in the base file are older than all log files. Also true if the log files of the other
        write do not exist any more.
        """
        if not self.stats or self.was_switched:
            return bool(self.stats)
        # In version 6 log files count in the order in which they are named: at the commit.
        is_last = self.now.config.version.log_name_has_base_instant or other.requested_time < self.instant_time
        if is_last:
            deletes = any(stat.num_deletes for stat in self.stats)
            return deletes and any(
                own.num_deletes and self._meets(own, theirs, other.requested_time, only_hidden=True)
                for own, theirs in self._pairs(other)
            )
        pairs = self._pairs(other)
        starts = self._slice_starts() if pairs else {}
        completed = other.completion_time or other.requested_time
        return any(
            starts.get(own.file_id, "") <= completed and self._meets(own, theirs, other.requested_time)
            for own, theirs in pairs
        )

    def _pairs(self, other: Instant) -> list[tuple[WriteStat, WriteStat | None]]:
        """Return pairs of log files in one file group, of this and the other write; None for unknown log files."""
        folder = MetadataFolder(self.now.store, self.now.config)
        instant = folder.timeline().get(other.requested_time, Action.DELTA_COMMIT)
        if instant is None:
            return [(stat, None) for stat in self.stats]
        content = read_instant(folder.store, folder.layout, instant)
        stats = CommitMetadata.parse(content, path=str(instant)).partition_to_write_stats.get(RECORD_INDEX, ())
        return [(own, theirs) for own in self.stats for theirs in stats if own.file_id == theirs.file_id]

    def _slice_starts(self) -> Mapping[str, str]:
        """Return the base instant of the newest slice of each file group, by file id."""
        state = record_index(self.now)
        states = (partitioned_index(self.now) or {}).values() if state is None else [state]
        slices = [file_group.file_slice for found in states for file_group in found.file_groups]
        return {found.file_id: found.base_instant_time for found in slices if found.base_file is not None}

    def _meets(self, own: WriteStat, theirs: WriteStat | None, instant_time: str, *, only_hidden: bool = False) -> bool:
        """Return whether both log files have an entry of the same key; theirs of `instant_time`.

        `only_hidden`: only deletions of this write and locations of the other count.
        """
        if theirs is None:
            return True
        try:
            keys = self._keys(theirs, instant_time, deletes=not only_hidden)
        except MissingFileError:
            return True
        ours = self._keys(own, self.instant_time, locations=not only_hidden)
        return bool(pc.any(pc.is_in(ours, value_set=keys)).as_py())

    def _keys(
        self, stat: WriteStat, instant_time: str, *, locations: bool = True, deletes: bool = True
    ) -> pa.BinaryArray:
        """Return the keys whose entries an instant wrote to a log file: those with a location, and those deleted."""
        store, path = self.now.store, f"{METADATA_FOLDER}/{stat.path}"
        if is_staged_log(stat):
            content = log_content(read_staged_log(store, stat), path=stat.path or "")
        else:
            content = read_log(store, path, version=self.now.config.version)
        blocks = [block for block in content.blocks if block.instant_time == instant_time]
        keys = [block.keys.cast(pa.binary()) for block in blocks if (deletes if block.values is None else locations)]
        return pa.concat_arrays([pa.array([], pa.binary()), *keys])
