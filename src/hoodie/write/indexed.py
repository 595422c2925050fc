"""Upsert, update, insert and delete: tag the rows, then rewrite, or append to, only the file groups that change."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hoodie.commit.call import Call
from hoodie.commit.conflicts import refuse_clustered
from hoodie.commit.steps import Step, reached
from hoodie.commit.write_instant import WriteInstant
from hoodie.config import clustering, writes
from hoodie.engine import Dataset, known_bytes_of
from hoodie.errors import RecordKeyError, UnsupportedError
from hoodie.files.staging.staged import rows_folder, stage_folder
from hoodie.files.staging.staged_keys import KeyStage
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.index import Purpose, Tagged, index_kind
from hoodie.index.record.entries import WrittenEntries
from hoodie.progress import PhaseTimes
from hoodie.records.keys.automatic_keys import KeySource
from hoodie.storage import asking_ahead, forget_answers
from hoodie.view.ahead import LISTING
from hoodie.view.pending_plans import groups_being_clustered
from hoodie.view.slices import list_slices
from hoodie.write.attempt import begin, retries_of
from hoodie.write.files.context import RowCounts, Written
from hoodie.write.files.log_task import WriteFileGroup
from hoodie.write.insert_policy import KnownKeys, apply_policy, for_look_up, known_only, known_row_count, looks_up_keys
from hoodie.write.jobs import context_of, key_source_of, preparation_of, skeletons_of, storage_of, tag_request_of
from hoodie.write.outcome import FollowUps, Tagging, result_of
from hoodie.write.plan import FileTask, SizePlacement, TaggedRows, plan_files
from hoodie.write.result import WRITE_PHASES, WriteResult
from hoodie.write.setup import WriteSetup, set_up
from hoodie.write.staging import Staged, stage


@asking_ahead()
def upsert(call: Call, data: Dataset) -> WriteResult:
    """Insert rows with new keys, and merge rows with known keys into the stored rows by the table's merge rule.

    In a table with automatic keys, `data` has the `_hoodie_record_key` of stored rows, and rows with unknown keys
    change nothing.

    Raises: UnsupportedError if `data` lacks these keys; SchemaMismatchError, RecordKeyError, PartitionPathError,
    CommitConflictError; nothing is committed then.
    """
    return write_rows(set_up(call, WriteOperation.UPSERT, data), WriteOperation.UPSERT)


@asking_ahead()
def update(call: Call, data: Dataset, changed: tuple[str, ...]) -> WriteResult:
    """Set some columns of existing records; a merge-on-read table logs only these columns.

    `data` has the key and partition columns, the ordering columns, and the `changed` columns. Rows with unknown keys
    change nothing. Raises: as `upsert`; PartsMoveError if a record would move to another partition.
    """
    return write_rows(set_up(call, WriteOperation.UPSERT, None, changed=changed), WriteOperation.UPSERT, data)


@asking_ahead()
def insert(call: Call, data: Dataset) -> WriteResult:
    """Add rows: to small file groups first, then to new file groups.

    Keys are looked up only if `config.INSERT_DUP_POLICY` requires it, or if the table has a record index and the data
    few rows; else a row with a known key becomes a further row of the key. In a table with automatic keys, each row
    gets a new key, which has the time of the attempt that commits. Raises: as `upsert`; InvalidConfigError.
    """
    return write_rows(set_up(call, WriteOperation.INSERT, data), WriteOperation.INSERT)


@asking_ahead()
def delete(call: Call, keys: Dataset) -> WriteResult:
    """Delete the records with these keys, regardless of their ordering values; unknown keys change nothing.

    `keys` has the record key columns, and the partition columns unless the index is global. Instead, `keys` may have
    the `_hoodie_record_key` and `_hoodie_partition_path` columns of rows that were read. Raises: as `upsert`.
    """
    return write_rows(set_up(call, WriteOperation.DELETE, None), WriteOperation.DELETE, keys)


@asking_ahead()
def merge(call: Call, data: Dataset, *, computed: bool, one_row_per_key: bool = True) -> WriteResult:
    """Write the changes of a merge as one commit: updates, inserts, and deletes.

    `computed`: `data` has the kind of each change in the column `KIND`, and the table's columns; otherwise
    all rows are upserted. `one_row_per_key`: refuse several changes of one key. In a table with automatic keys, `data`
    has the `_hoodie_record_key` of stored rows; it is null in rows to insert, which get new keys as by `insert`.

    Raises: as `upsert`; RecordKeyError for several changes of one key.
    """
    operation = WriteOperation.UPSERT
    setup = set_up(call, operation, None if computed else data)
    source = KeySource.STORED_OR_AUTOMATIC if computed and setup.has_automatic_keys else None
    rows = data if computed else None
    return write_rows(setup, operation, rows, one_row_per_key=one_row_per_key, key_source=source)


def write_rows(
    setup: WriteSetup,
    operation: WriteOperation,
    rows: Dataset | None = None,
    *,
    one_row_per_key: bool = False,
    key_source: KeySource | None = None,
) -> WriteResult:
    """Stage the rows once, then tag, write and commit them, again after a conflict that a retry can solve.

    `rows`: partial rows, keys, or computed rows; None for the data of the setup. `key_source`: where the record keys
    come from; None if the operation decides.
    """
    data = setup.rows if rows is None else rows
    watch = PhaseTimes(*WRITE_PHASES)
    looks_up = looks_up_keys(setup, operation)
    source = key_source or key_source_of(setup, operation)
    key_stage = setup.index.key_stage(setup.merger) if looks_up else None
    forget_answers()
    setup = for_look_up(setup) if looks_up and operation is WriteOperation.INSERT else setup
    retries = retries_of(setup)
    known_bytes, in_process = known_bytes_of(data), setup.call.is_in_process
    with (
        stage_folder(setup.view.store, in_process=in_process, known_bytes=known_bytes) as folder,
        rows_folder(folder, in_process=in_process, known_bytes=known_bytes) as memory,
    ):
        with watch.phase("stage"):
            staged = _stage(setup, data, operation, source, folder, key_stage, memory)
        setup = setup.settled(staged.nulls)
        follow_ups = FollowUps(setup, watch)
        batch = _Batch(setup, operation, source, looks_up, staged, watch, follow_ups, one_row_per_key)
        done = retries.run(lambda number: _attempt(batch, f"{folder}/{number}"))
    after = follow_ups.run(done.write.completed_view, slices=done.tagged.slices, stats=done.written.stats)
    after = replace(after, notes=(*retries.notes, *after.notes))
    return result_of(setup, done.write, done.written, watch, tagging=done.tagging, index=done.index, after=after)


class PartsMoveError(UnsupportedError):
    """Rows with only some of the columns would move to another partition: whole rows are needed."""


@dataclass(frozen=True, slots=True)
class _Batch:
    """The staged rows of one write, which all attempts to commit them share."""

    setup: WriteSetup
    operation: WriteOperation
    source: KeySource
    looks_up: bool
    staged: Staged
    watch: PhaseTimes
    follow_ups: FollowUps
    one_row_per_key: bool
    """Whether several rows with one key are an error; otherwise the merge rule decides between them."""

    @property
    def is_indexed(self) -> bool:
        """Whether rows with known keys change the stored rows; a plain insert adds them."""
        return _merges(self.setup, self.operation)

    @property
    def known_only(self) -> bool:
        """Whether rows with unknown keys change nothing."""
        is_update = self.source is KeySource.STORED or self.setup.changed is not None
        return is_update or self.operation is WriteOperation.DELETE


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A committed attempt to write a batch."""

    write: WriteInstant
    tagged: Tagged
    written: Written
    index: WrittenEntries
    tagging: Tagging


def _attempt(batch: _Batch, folder: str) -> _Attempt:
    """Tag, write and commit the staged rows under a new instant; `folder` gets the staged files of this attempt.

    Raises: CommitConflictError; the attempt is undone then, and the staged rows are still there.
    """
    setup, staged, watch, is_indexed = batch.setup, batch.staged, batch.watch, batch.is_indexed
    is_global = setup.index.is_global and is_indexed
    kind = index_kind(setup.index.name).metadata_partition if batch.looks_up else None
    reads = LISTING if kind is None else (*LISTING, kind.name)
    with begin(setup, batch.operation, reads) as write:
        clustered = groups_being_clustered(write.view)
        with watch.phase("tag"):
            tagged = _tag(batch, write, folder)
            forget_answers()
            known = KnownKeys(hits=tagged.hits)
            moves = any(hit.moves for hit in tagged.hits)
            if moves and setup.changed is not None:
                raise PartsMoveError(
                    "update: some records are stored in another partition than their columns name, so that rows with "
                    "only some columns would move; nothing was committed"
                )
            if batch.known_only and moves:
                known = known_only(setup, staged, tagged.hits, folder)
            if not is_indexed:
                known = apply_policy(setup, staged.runs, tagged.hits if batch.looks_up else None, folder)
                tagged = replace(tagged, hits=())
        if clustering.CLUSTER_UPDATES.get(setup.options) == "reject":
            refuse_clustered(write.view, {(hit.partition_path, hit.file_id) for hit in tagged.hits}, clustered)
        tasks = plan_files(
            staged.runs,
            tagged.hits,
            tagged.slices,
            placement=write.index.placement(SizePlacement.of(write.view, staged.runs, setup.options)),
            known_only=batch.known_only and not moves,
            storage=storage_of(setup, is_indexed=is_indexed),
            closed=clustered.keys() | skeletons_of(setup, tagged.slices),
        )
        write.refuse_early({(task.partition_path, task.file_id): task.appends for task in tasks})
        tagging = _tagging(batch, tagged, known)
        with watch.phase("write"):
            rows = TaggedRows(staged.runs, known.hits, is_global or not is_indexed)
            written = _write_files(setup, write, tasks, rows, folder, is_indexed=is_indexed)
        if batch.one_row_per_key:
            _refuse_duplicates(tagging.counts.duplicates + written.counts.duplicates)
        reached(Step.WRITTEN)
        with watch.phase("index"):
            index = write.index.note_locations(written.entries)
        with watch.phase("commit"):
            write.commit(
                written.stats,
                schema=setup.schema.avro,
                extra_metadata=setup.call.extra_metadata,
                is_global=is_global,
                follow_up=batch.follow_ups.under_lock,
            )
    return _Attempt(write, tagged, written, index, tagging)


def _refuse_duplicates(duplicates: int) -> None:
    """Raises: RecordKeyError if changes have the key of another change of the merge."""
    if duplicates:
        raise RecordKeyError(
            f"merge: {duplicates:,} rows change a record that another row of the merge changes too: expected at most "
            "one source row for each record key, and one stored row; remove the duplicates from the source, or add "
            "conditions that only one of the rows meets; nothing was committed"
        )


def _tag(batch: _Batch, write: WriteInstant, folder: str) -> Tagged:
    """Find the file groups of the rows. Without a look-up every row is an insert, unless the index places all rows."""
    setup, staged = batch.setup, batch.staged
    if batch.looks_up or setup.places_rows:
        purpose = Purpose.MERGE if batch.is_indexed else Purpose.ADD
        return write.index.tag(tag_request_of(setup, staged, folder, purpose))
    return Tagged(slices=tuple(list_slices(write.view, {run.partition_path for run in staged.runs})))


def _tagging(batch: _Batch, tagged: Tagged, known: KnownKeys) -> Tagging:
    """Return what tagging found out about the rows."""
    counts = RowCounts(ignored=known.ignored, duplicates=batch.staged.duplicates)
    notes = known.notes
    for hit in tagged.hits:
        # Rows without a file group lost against another row of the batch; others lost against the stored row.
        counts += RowCounts(ignored=hit.drops) if hit.file_id else RowCounts(duplicates=hit.drops)
    if batch.known_only:
        unknown = batch.staged.rows - _rows_with_hits(batch.setup, tagged)
        counts.ignored += unknown
        if unknown and batch.operation is WriteOperation.UPSERT and batch.setup.changed is None:
            where = "" if batch.setup.index.is_global else " in the partition of their columns"
            notes += (f"{unknown:,} rows have keys that the table does not have{where}, and changed nothing",)
    moves = sum(hit.moves for hit in tagged.hits)
    return Tagging(moves=moves, look_up=tagged.look_up, counts=counts, notes=notes)


def _rows_with_hits(setup: WriteSetup, tagged: Tagged) -> int:
    """Return the number of rows that have a hit. The record index finds each key once, other indexes every copy."""
    if setup.index.indexes_logs:
        return sum(hit.updates + hit.moves + hit.drops for hit in tagged.hits)
    return known_row_count(setup.view.store, tagged.hits)


def _merges(setup: WriteSetup, operation: WriteOperation) -> bool:
    """Return whether rows with known keys change the stored rows; inserts add their rows.

    Inserts merge too if they are appended to the file group of their key: a read merges the rows of a log file.
    """
    if operation not in (WriteOperation.INSERT, WriteOperation.BULK_INSERT):
        return True
    return setup.places_rows and setup.is_merge_on_read


def _stage(
    setup: WriteSetup,
    data: Dataset,
    operation: WriteOperation,
    source: KeySource,
    folder: str,
    key_stage: KeyStage | None,
    memory: str | None,
) -> Staged:
    """Stage the rows, and the keys if the index requires them; merge rows with the same key first where necessary."""
    index, engine = setup.index, setup.call.engine
    is_indexed = _merges(setup, operation)
    # Some merges need whole rows. So rows with the same key are merged first, even if the index does not need it.
    meets = is_indexed and (index.needs_exchange or (index.is_global and setup.merger.merges_batches))
    is_delete, buckets = operation is WriteOperation.DELETE, engine.parallelism if meets else 0
    preparation = preparation_of(setup, key_source=source, keys_only=is_delete, buckets=buckets)
    store, merger = setup.view.store.spec, setup.merger if meets else None
    return stage(engine, data, preparation, store, folder, merger=merger, key_stage=key_stage, memory=memory)


def _write_files(
    setup: WriteSetup, write: WriteInstant, tasks: list[FileTask], rows: TaggedRows, folder: str, *, is_indexed: bool
) -> Written:
    is_insert = write.operation is WriteOperation.INSERT
    combine = is_indexed or (is_insert and writes.COMBINE_BEFORE_INSERT.get(setup.options))
    context = context_of(setup, write, folder, combine=combine, merge_stored=is_indexed)
    row_bytes = sum(run.size_bytes for run in rows.runs)
    engine = setup.call.engine_for(row_bytes + sum(task.size_bytes for task in tasks))
    each = row_bytes // max(sum(run.rows for run in rows.runs), 1)
    sizes = [task.size_bytes + task.changed_rows * each for task in tasks]
    return Written.together(engine.run(WriteFileGroup(context, rows), tasks, sizes))
