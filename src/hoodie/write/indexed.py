"""Upsert and delete: find each key's file group, then rewrite just the file groups that change."""

from __future__ import annotations

from collections.abc import Sequence

from hoodie import config as options
from hoodie.engine import Dataset
from hoodie.files.slices import FileSlice
from hoodie.files.staged import StagedHits, StagedRun, stage_folder
from hoodie.format.commit_metadata import WriteOperation, WriteStat
from hoodie.index import TagRequest
from hoodie.timeline import Action
from hoodie.write.conflicts import groups_being_clustered, refuse_clustered
from hoodie.write.file_task import WriteFile
from hoodie.write.outcome import result_of
from hoodie.write.plan import FileTask, plan_files
from hoodie.write.record_size import record_bytes
from hoodie.write.result import Stopwatch, WriteResult
from hoodie.write.setup import WriteCall, WriteSetup
from hoodie.write.staging import stage


def upsert(call: WriteCall, data: Dataset) -> WriteResult:
    """Insert rows with new keys, merge rows with known keys into the stored ones by the table's merge rule.

    Raises: SchemaMismatchError, RecordKeyError, PartitionPathError, CommitConflictError; nothing is committed then.
    """
    return _write(WriteSetup.of(call, data.schema), data, WriteOperation.UPSERT)


def insert(call: WriteCall, data: Dataset) -> WriteResult:
    """Add rows without looking for their keys: to small file groups first, then to new ones.

    Raises: as `upsert`.
    """
    return _write(WriteSetup.of(call, data.schema), data, WriteOperation.INSERT)


def delete(call: WriteCall, keys: Dataset) -> WriteResult:
    """Delete the records with these keys, whatever their ordering values; unknown keys change nothing.

    `keys` has the record key columns, and the partition columns unless the index is global; or the `_hoodie_record_key`
    and `_hoodie_partition_path` columns of rows that were read. Raises: as `upsert`.
    """
    return _write(WriteSetup.of(call, None), keys, WriteOperation.DELETE)


def _write(setup: WriteSetup, data: Dataset, operation: WriteOperation) -> WriteResult:
    watch = Stopwatch()
    store = setup.view.store
    is_indexed = operation is not WriteOperation.INSERT
    meets_everywhere = setup.index.is_global and is_indexed
    preparation = setup.preparation(
        keys_only=operation is WriteOperation.DELETE,
        buckets=setup.call.engine.parallelism if meets_everywhere else 0,
    )
    with stage_folder(store) as folder:
        with watch.phase("stage"):
            merger = setup.merger if meets_everywhere else None
            runs = stage(setup.call.engine, data, preparation, store.spec, folder, merger)
        with setup.begin(Action.COMMIT, operation) as write:
            clustered = groups_being_clustered(write.view)
            touched = None if meets_everywhere else {run.partition_path for run in runs}
            slices = write.view.slices(touched)
            with watch.phase("tag"):
                hits = _tag(setup, runs, slices, folder) if is_indexed else ()
            refuse_clustered({(hit.partition_path, hit.file_id) for hit in hits}, clustered)
            tasks = plan_files(
                runs,
                hits,
                [found for found in slices if (found.partition_path, found.file_id) not in clustered],
                sizing=setup.sizing,
                record_bytes=record_bytes(write.view, runs, setup.options),
                is_global=meets_everywhere,
                deletes_only=operation is WriteOperation.DELETE,
            )
            with watch.phase("write"):
                stats = _write_files(setup, write.instant_time, tasks, is_indexed=is_indexed)
            with watch.phase("commit"):
                extra = setup.call.extra_metadata
                write.commit(stats, schema=setup.schema.avro, extra_metadata=extra, is_global=meets_everywhere)
    moves = sum(hit.moves for hit in hits)
    return result_of(write, stats, watch, moves=moves)


def _tag(setup: WriteSetup, runs: tuple[StagedRun, ...], slices: list[FileSlice], folder: str) -> Sequence[StagedHits]:
    """Ask the index; an empty table, or empty input, has nothing to look up."""
    if not runs or not slices:
        return ()
    request = TagRequest(
        store=setup.view.store.spec,
        schema=setup.schema.arrow,
        merger=setup.merger,
        runs=runs,
        slices=tuple(slices),
        stage_folder=folder,
    )
    return setup.index.tag(setup.engine_for(sum(found.size_bytes for found in slices)), request)


def _write_files(setup: WriteSetup, instant_time: str, tasks: list[FileTask], *, is_indexed: bool) -> list[WriteStat]:
    combine = is_indexed or options.COMBINE_BEFORE_INSERT.get(setup.options)
    context = setup.context(instant_time, combine=combine, merge_stored=is_indexed)
    work = {run.path + str(run.batch): run.size_bytes for task in tasks for run in task.runs}
    work_bytes = sum(work.values()) + sum(task.base_file.size_bytes for task in tasks if task.base_file)
    stats = setup.engine_for(work_bytes).run(WriteFile(context), tasks)
    return [stat for stat in stats if stat is not None]
