"""Check whether a write can still be committed after other writers committed while it ran.

Implements docs/format/table.md §10.4. It is stricter than the JVM, which allows two writers to insert the same new key.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from hoodie.errors import CommitConflictError, InvalidConfigError
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteOperation
from hoodie.index.api import IndexUpdate
from hoodie.timeline import Instant
from hoodie.view.busy_groups import FileGroup, groups_being_clustered
from hoodie.view.stored_columns import visible_schemas
from hoodie.view.table_view import TableView

_KEYS_STAY_UNIQUE = frozenset(
    {
        WriteOperation.UPSERT,
        WriteOperation.UPSERT_PREPPED,
        WriteOperation.INSERT_OVERWRITE,
        WriteOperation.INSERT_OVERWRITE_TABLE,
    }
)
"""Operations that keep keys unique in a partition in which they are unique; a plain insert does not look up keys."""

_COMPACTIONS = frozenset({WriteOperation.COMPACT, WriteOperation.LOG_COMPACT})
"""Operations that change no record. Log files appended while they run belong to the file slice that they create."""


def refuse_clustered(touched: AbstractSet[FileGroup], clustered: AbstractSet[FileGroup]) -> None:
    """Raise CommitConflictError if the write touches file groups that are being clustered."""
    shared = sorted(touched & clustered)
    if shared:
        raise CommitConflictError(
            f"file groups {[f'{path}/{file_id}' for path, file_id in shared[:3]]} are being clustered; nothing was "
            "committed, try again when the clustering is completed"
        )


def check_conflicts(
    baseline: TableView,
    now: TableView,
    metadata: CommitMetadata,
    *,
    is_global: bool,
    index: IndexUpdate,
) -> None:
    """Refuse to commit if a write that completed after `baseline` conflicts with this write.

    `baseline` is the view from which this write was prepared. Two writes conflict:
    - if they changed the same file group;
    - if both inserted the same new key into one partition (with a global index: into any partition). Neither write
      finds the key of the other; `index` detects common keys;
    - if a location that the other write stored in the record index would override a location of this write.
    A change of the table's schema conflicts with every write that runs at the time.

    Raises: CommitConflictError.
    """
    if known_schema(baseline) != known_schema(now):
        raise CommitConflictError(
            f"another writer changed the schema of {now.store.uri('')} while this write ran; nothing was committed, "
            "try again"
        )
    ours = _touched(metadata)
    refuse_clustered(ours, groups_being_clustered(now))
    before = {instant.requested_time for instant in baseline.timeline.completed().instants}
    for instant in now.completed_writes():
        if instant.requested_time not in before:
            theirs = now.commit_metadata(instant)
            _check_against(_Ours(now, metadata, ours, index, is_global), instant, theirs)


def known_schema(view: TableView) -> tuple[str | None, int]:
    """Return the schema that the newest commit or the table's creation stored, and the version of its columns' ids.

    The schema is None if neither stored one; the version is 0 without ids.
    """
    visible = visible_schemas(view)
    version = visible[-1].version if visible else 0
    try:
        return view.schema().avro, version
    except InvalidConfigError:
        return None, version


@dataclass(frozen=True, slots=True)
class _Ours:
    """The changes of the write that is about to commit."""

    now: TableView
    metadata: CommitMetadata
    touched: AbstractSet[FileGroup]
    index: IndexUpdate
    is_global: bool


def _check_against(ours: _Ours, instant: Instant, theirs: CommitMetadata) -> None:
    if theirs.operation_type in _COMPACTIONS:
        _check_against_compaction(ours.metadata, instant, theirs)
        return
    shared = ours.touched & _touched(theirs)
    our_inserts, their_inserts = _inserting_partitions(ours.metadata), _inserting_partitions(theirs)
    partitions = their_inserts if ours.is_global and our_inserts else our_inserts & their_inserts
    if partitions and not shared and not ours.index.shares_keys_with(ours.now, instant):
        return
    if shared or partitions:
        where = sorted(f"{path}/{file_id}" for path, file_id in shared) or sorted(partitions)
        raise CommitConflictError(
            f"{instant} completed while this write ran and changed the same file groups or inserted into the same "
            f"partitions: {where[:3]}; nothing was committed, try again"
        )
    if ours.index.would_lose_to(ours.now, instant):
        raise CommitConflictError(
            f"{instant} completed while this write ran and may have changed records with the same keys; nothing was "
            "committed, try again"
        )


def _check_against_compaction(metadata: CommitMetadata, instant: Instant, theirs: CommitMetadata) -> None:
    """Refuse if this write rewrote a compacted file group.

    Its new base file was made from the base file before the compaction, and would hide the log records that the
    compaction merged. Raises: CommitConflictError.
    """
    rewritten = {
        (stat.partition_path or "", stat.file_id)
        for stat in metadata.write_stats()
        if not (stat.is_log_append or stat.is_new_file_group)
    }
    shared = sorted(rewritten & _touched(theirs))
    if shared:
        raise CommitConflictError(
            f"{instant} compacted file groups {[f'{path}/{file_id}' for path, file_id in shared[:3]]}, which this "
            "write rewrote at the same time; nothing was committed, try again"
        )


def _touched(metadata: CommitMetadata) -> set[FileGroup]:
    written = {(stat.partition_path or "", stat.file_id) for stat in metadata.write_stats()}
    for path, file_ids in (metadata.partition_to_replace_file_ids or {}).items():
        written |= {(path, file_id) for file_id in file_ids}
    return written


def _inserting_partitions(metadata: CommitMetadata) -> set[str]:
    """Return the partitions into which the write inserted new keys and in which keys must be unique."""
    if metadata.operation_type not in _KEYS_STAY_UNIQUE:
        return set()
    return {stat.partition_path or "" for stat in metadata.write_stats() if stat.num_inserts}
