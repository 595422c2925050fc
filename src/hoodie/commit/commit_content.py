"""Make the content of a commit: its completed file, and its changes of the metadata table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hoodie.commit.filters import add_filters
from hoodie.commit.statistics import commit_ranges, replaced_partitions
from hoodie.engine import EngineFor, local_engine
from hoodie.errors import CommitConflictError
from hoodie.files.filter_stash import FilterStash
from hoodie.format.filenames import name_of
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteOperation, WriteStat
from hoodie.format.instants.write_stat import by_partition
from hoodie.metadata.changes import MetadataChanges
from hoodie.metadata.locked_table import LockedTable
from hoodie.metadata.table import MetadataTable
from hoodie.view.table_view import TableView


def commit_metadata(
    stats: Iterable[WriteStat],
    operation: WriteOperation,
    extra_metadata: Mapping[str, str],
    replaced: Mapping[str, Sequence[str]] | None = None,
    *,
    compacted: bool = False,
) -> CommitMetadata:
    """Return the commit metadata of a write; `replaced` are the file ids that it replaces, by partition path."""
    return CommitMetadata(
        partition_to_write_stats=by_partition(stats),
        compacted=compacted,
        operation_type=operation.value,
        extra_metadata=dict(extra_metadata),
        partition_to_replace_file_ids=(
            None if replaced is None else {path: tuple(file_ids) for path, file_ids in replaced.items()}
        ),
    )


def commit_to_metadata_table(
    now: TableView,
    instant_time: str,
    metadata: CommitMetadata,
    written_logs: Sequence[WriteStat],
    engine_for: EngineFor,
    filters: FilterStash,
) -> None:
    """Write the delta commit of the metadata table, before the write itself completes. Call it under the table's lock.

    `now` was loaded under that lock. `written_logs` are the log files of metadata partitions that tasks have written.
    `filters` has the bloom filters that were read before.

    Raises: as `MetadataTable.commit`.
    """
    changes = MetadataChanges(
        files_added=_sizes(metadata),
        written_logs=tuple(written_logs),
        ranges=commit_ranges(now, metadata),
        filters=add_filters(filters, now, metadata),
        replaced_partitions=replaced_partitions(now, metadata),
    )
    with now.state.lock:
        open_metadata_table(now).commit(instant_time, changes, locked_table(now, engine_for))


def locked_table(now: TableView, engine_for: EngineFor = local_engine) -> LockedTable:
    """Return the input that changes of the metadata table require; `now` was loaded under the table's lock."""
    return LockedTable(
        config=now.config,
        timeline=now.timeline,
        clock=now.clock,
        create_last=now.held_lock.create_last,
        ensure_held=now.held_lock.ensure_held,
        engine_for=engine_for,
    )


def open_metadata_table(now: TableView) -> MetadataTable:
    """Return the metadata table's object; all views of the table share one object.

    Raises: CommitConflictError if another process removed the metadata table.
    """
    table = now.state.metadata_table or MetadataTable.open(now.store, now.config)
    if table is None:
        raise CommitConflictError(
            f"the metadata table of {now.store.uri('')} was removed while this write ran; nothing was "
            "committed, try again"
        )
    now.state.metadata_table = table
    return table


def _sizes(metadata: CommitMetadata) -> dict[str, dict[str, int]]:
    """Return the size in bytes of each written file, CDC log files too, by partition path and file name."""
    added: dict[str, dict[str, int]] = {}
    for stat in metadata.write_stats():
        sizes = added.setdefault(stat.partition_path or "", {})
        for path, size_bytes in stat.sizes.items():
            sizes[name_of(path)] = size_bytes
    return added
