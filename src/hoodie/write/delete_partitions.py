"""Delete whole partitions: replace all their file groups in one replace commit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from hoodie.commit.call import Call
from hoodie.engine import ArrowDataset
from hoodie.errors import InvalidConfigError, SchemaMismatchError
from hoodie.files.staging.row_files import RowFiles
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.progress import PhaseTimes
from hoodie.records.keys.key_columns import KeyColumns
from hoodie.records.keys.key_generator import table_key_generator
from hoodie.view.listing import list_files
from hoodie.view.table_view import TableView
from hoodie.write.attempt import retries_of
from hoodie.write.files.context import Written
from hoodie.write.outcome import FollowUps, result_of
from hoodie.write.replace import remove_partitions
from hoodie.write.result import WRITE_PHASES, WriteResult
from hoodie.write.setup import set_up


def delete_partitions(call: Call, partition_paths: Collection[str]) -> WriteResult:
    """Remove all file groups of the partitions from the table; their files exist until the cleaner deletes them.

    Raises: InvalidConfigError if `partition_paths` is empty or has an unknown path.
    """
    setup = set_up(call, WriteOperation.DELETE_PARTITION, None)
    wanted = set(partition_paths)
    if isinstance(partition_paths, str) or not wanted:
        raise InvalidConfigError(f"delete_partitions: expected a list of partition paths, got {partition_paths!r}")
    known = set(list_files(setup.view))
    if wanted - known:
        raise InvalidConfigError(
            f"no partitions {sorted(wanted - known)} in {setup.view.store.uri('')}; it has {sorted(known)[:10]}"
        )
    watch = PhaseTimes(*WRITE_PHASES)
    retries = retries_of(setup)
    follow_ups = FollowUps(setup, watch)
    removed = retries.run(lambda _number: remove_partitions(setup, lambda _view: wanted, watch, follow_ups.under_lock))
    assert removed is not None, "the partitions do not depend on the view"
    write, count = removed
    after = follow_ups.run(write.completed_view)
    after = replace(after, notes=(*retries.notes, *after.notes))
    return result_of(setup, write, Written(), watch, replaced=count, after=after)


def partitions_of(
    view: TableView, rows: ArrowDataset | RowFiles, properties: Mapping[str, str] | None = None
) -> list[str]:
    """Return the partition paths of rows with the partition columns, sorted. Memory: one batch, and the paths.

    `properties`: the options of the write.

    Raises: SchemaMismatchError if a partition column is missing; PartitionPathError.
    """
    columns = KeyColumns(table_key_generator(view.config, properties), view.schema().arrow)
    if missing := columns.missing_paths(rows.schema):
        raise SchemaMismatchError(f"delete_partition: the rows lack the partition columns {missing}")
    found: set[str] = set()
    for part in rows.parts(1):
        for batch in part:
            paths = columns.partition_paths(batch.select(columns.needed(batch.schema.names)))
            assert paths is not None, "no partition column is missing"
            found.update(paths.unique().to_pylist())
    return sorted(found)
