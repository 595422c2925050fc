"""Make the index entries of a write at its commit, if the record index was exchanged while the write ran."""

from __future__ import annotations

from hoodie.engine import LocalEngine, local_engine
from hoodie.files.staging.staged import stage_folder
from hoodie.files.staging.staged_keys import KeyGroups
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteStat
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.index.record import EntryStage, write_entries
from hoodie.index.record.differences import changes_of, stage_changes
from hoodie.index.record.file_groups import RecordIndexState
from hoodie.metadata.build_instants import build_time
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.kinds.record_index import is_partitioned_record_index
from hoodie.timeline import Action, Timeline, ms_of_instant_time
from hoodie.view.table_view import TableView


def index_was_exchanged(began: TableView, now: TableView) -> bool:
    """Return whether the record index may have been exchanged since a write began.

    The file ids do not show this. A pending build counts too: it may have stopped after it had switched the index on.
    """
    if (RECORD_INDEX in began.config.metadata_partitions) != (RECORD_INDEX in now.config.metadata_partitions):
        return True
    if not _builds(now.timeline) - _builds(began.timeline.completed()):
        return False
    # This release does not build partitioned record indexes, so such an index was not exchanged.
    return RECORD_INDEX not in now.config.metadata_partitions or not is_partitioned_record_index(now.store)


def index_was_switched(began: TableView, now: TableView) -> bool:
    """Return whether the index that the table has now was switched on since a write began."""
    if RECORD_INDEX not in now.config.metadata_partitions:
        return False
    if RECORD_INDEX not in began.config.metadata_partitions:
        return True
    builds = _builds(now.timeline) - _builds(began.timeline.completed())
    if not builds:
        return False
    completed = MetadataFolder(now.store, now.config).timeline().completed()
    return any(completed.get(build_time(requested_time)) is not None for requested_time in builds)


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
    current = now.slices({*touched, *(metadata.partition_to_replace_file_ids or {})})
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
