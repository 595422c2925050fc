"""Bulk insert and insert overwrite: write every row to a new file group, in one pass over the data."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass, replace

from hoodie.commit.call import Call
from hoodie.commit.steps import Step, reached
from hoodie.commit.write_instant import WriteInstant
from hoodie.config import writes
from hoodie.engine import ArrowDataset, Dataset, Exchange, PartedDataset, known_bytes_of
from hoodie.errors import InvalidConfigError, SchemaMismatchError
from hoodie.files.slices import FileSlice
from hoodie.files.staging.staged import rows_folder, stage_folder
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.index import Purpose
from hoodie.index.api import Placement
from hoodie.progress import PhaseTimes
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.records.keys.automatic_keys import KeySource, consumer_of
from hoodie.storage import asking_ahead
from hoodie.view.ahead import LOGGED
from hoodie.view.slices import list_slices
from hoodie.write.attempt import begin, not_repeated
from hoodie.write.distribution import TASKS_PER_CORE, Distribution, PiecePlanner, tasks_of
from hoodie.write.files.bulk_task import BulkWrite, StageOrWrite, WritePieces
from hoodie.write.files.context import Written
from hoodie.write.files.log_task import WriteFileGroup
from hoodie.write.indexed import write_rows
from hoodie.write.jobs import context_of, key_source_of, preparation_of, tag_request_of
from hoodie.write.outcome import FollowUps, result_of
from hoodie.write.plan import SizePlacement, TaggedRows, known_record_bytes, plan_files
from hoodie.write.replace import commit_groups
from hoodie.write.result import WRITE_PHASES, WriteResult
from hoodie.write.setup import WriteSetup, set_up
from hoodie.write.staging import ROW_NUMBER, process, stage

SORTS = ("none", "partition", "global")
_SORT_MODES: dict[str, tuple[str, Distribution]] = {
    "none": ("none", Distribution.NONE),
    "global_sort": ("global", Distribution.AUTO),
    "partition_path_repartition": ("none", Distribution.PARTITION),
    "partition_path_repartition_and_sort": ("none", Distribution.PARTITION),
}
"""The arguments that mean the same as the values of the JVM's option."""
_AUTO = Distribution.AUTO


@asking_ahead()
def bulk_insert(
    call: Call, data: Dataset, sort: str | Sequence[str] | None = None, distribution: str = "auto"
) -> WriteResult:
    """Write all rows to new file groups without looking up their keys; with a bucket index, to those of their buckets.

    `sort`: `none`, `partition` (by partition path), `global` (by partition path and record key: narrow key ranges), or
    column names to sort by within partitions; a sort decides which rows come together. `distribution` decides it
    without a sort (see `Distribution`). Automatic keys are made as the rows are staged or written, after the sort.

    Raises: SchemaMismatchError, RecordKeyError, PartitionPathError, InvalidConfigError; nothing is committed then.
    """
    operation = WriteOperation.BULK_INSERT
    setup = _obeyed(set_up(call, operation, data), operation)
    _check_placed(setup, sort, distribution)
    if setup.places_rows:
        return write_rows(setup, operation)
    return _write_anew(setup, operation, sort, distribution)


@asking_ahead()
def insert_overwrite(
    call: Call,
    data: Dataset,
    *,
    whole_table: bool = False,
    partitions: Collection[str] = (),
    distribution: str = "auto",
) -> WriteResult:
    """Replace the partitions of the data (or the whole table) by the data, in one replace commit.

    `partitions`: paths of partitions that are replaced even if the data has no row of them.
    With `hoodie.combine.before.insert`, rows of the data with one key become one row, by the table's merge rule.

    `distribution`: see `Distribution`; without effect if rows are combined. Time travel can read the old file groups
    until the cleaner deletes them. Raises: as `bulk_insert`.
    """
    operation = WriteOperation.INSERT_OVERWRITE_TABLE if whole_table else WriteOperation.INSERT_OVERWRITE
    setup = _obeyed(set_up(call, operation, data), operation)
    _check_placed(setup, None, distribution)
    return _write_anew(setup, operation, None, distribution, {*partitions})


def _write_anew(
    setup: WriteSetup,
    operation: WriteOperation,
    sort: str | Sequence[str] | None,
    distribution: str,
    partitions: Set[str] = frozenset(),
) -> WriteResult:
    """Write all rows to new file groups; an overwrite commits them together with the file groups that they replace."""
    watch = PhaseTimes(*WRITE_PHASES)
    spread = _spread(setup, sort, distribution)
    source = key_source_of(setup, operation)
    adds = operation is WriteOperation.BULK_INSERT
    with (
        not_repeated(operation.value.lower()),
        stage_folder(setup.view.store, in_process=setup.call.is_in_process) as folder,
        begin(setup, operation, LOGGED if adds else (), partitions=partitions) as write,
    ):
        if setup.places_rows or _combines(setup, operation):
            written = _write_in_place(setup, write, folder, watch)
        elif spread.exchange is None and spread.distribution is not Distribution.NONE:
            written = _write_together(setup, write, folder, spread.distribution, source, watch)
        else:
            written = _write(setup, write, folder, spread, source, watch)
        reached(Step.WRITTEN)
        setup = setup.settled(written.nulls)
        replaced = None if adds else _to_replace(write, written, partitions)
        follow_ups = FollowUps(setup, watch)
        index, count = commit_groups(setup, write, written, replaced, folder, watch, follow_ups.under_lock)
    after = follow_ups.run(write.completed_view, stats=written.stats)
    return result_of(setup, write, written, watch, replaced=count, index=index, after=after)


def _to_replace(write: WriteInstant, written: Written, partitions: Set[str]) -> list[FileSlice]:
    """Return the file slices of the partitions with new rows and of `partitions`, or all; add notes to the write."""
    filled = {stat.partition_path or "" for stat in written.stats}
    whole_table = write.operation is WriteOperation.INSERT_OVERWRITE_TABLE
    replaced = list_slices(write.view, None if whole_table else filled | partitions)
    if not (filled or partitions or whole_table):
        write.notes.append("the data has no rows, so it names no partition to replace: no row of the table changed")
    if missing := sorted(partitions - filled - {found.partition_path for found in replaced}):
        write.notes.append(f"the table has no partition {', '.join(missing)}, so no row was replaced there")
    return replaced


@dataclass(frozen=True, slots=True)
class _Spread:
    """Which rows come to one task: by a sort, or by a distribution. `threads`: those that encode files in a task."""

    exchange: Exchange | None
    distribution: Distribution
    threads: int = 1


def _write(
    setup: WriteSetup, write: WriteInstant, folder: str, spread: _Spread, source: KeySource, watch: PhaseTimes
) -> Written:
    """Write the rows as the tasks of the data, or of a sort, have them."""
    context = context_of(setup, write, folder, combine=False, merge_stored=False)
    exchange, buckets = spread.exchange, 0
    if exchange is not None and source is KeySource.AUTOMATIC:
        # A sort without ties: a repeated task numbers the rows as the first one did.
        exchange, buckets = replace(exchange, sort_by=(*(exchange.sort_by or exchange.range_by), ROW_NUMBER)), 1
    preparation = preparation_of(setup, key_source=source, buckets=buckets)
    with watch.phase("write"):
        consume = consumer_of(source, BulkWrite(context, spread.threads), write.instant_time)
        parts, nulls = process(setup.call.engine, setup.rows, preparation, consume, exchange)
    return replace(Written.together(parts), nulls=nulls)


def _write_together(
    setup: WriteSetup,
    write: WriteInstant,
    folder: str,
    distribution: Distribution,
    source: KeySource,
    watch: PhaseTimes,
) -> Written:
    """Stage the rows, and write the staged rows of each partition path to files of the wanted size."""
    context = context_of(setup, write, folder, combine=False, merge_stored=False)
    stages_all, in_process = distribution is Distribution.PARTITION, setup.call.is_in_process
    known_bytes = known_bytes_of(setup.rows)
    with rows_folder(folder, in_process=in_process, known_bytes=known_bytes) as memory:
        with watch.phase("stage"):
            consume = StageOrWrite(context, folder, stages_all=stages_all, stages_few=not in_process, memory=memory)
            preparation = preparation_of(setup, key_source=source)
            consumer = consumer_of(source, consume, write.instant_time)
            first, nulls = process(setup.call.engine, setup.rows, preparation, consumer)
        runs = [run for found in first for run in found.runs]
        engine = setup.call.engine_for(sum(run.size_bytes for run in runs))
        with watch.phase("write"):
            record_size = known_record_bytes(write.view, setup.options)
            at_once = 0 if stages_all or not runs else engine.parallelism
            pieces = PiecePlanner(context, setup.view.store, record_size, at_once).pieces(runs)
            work = WritePieces(context, max((found.task for found in first), default=-1) + 1)
            tasks = tasks_of(pieces, TASKS_PER_CORE * engine.parallelism) if pieces else []
            parts = engine.run(work, tasks)
    return replace(Written.together([*(found.written for found in first), *parts]), nulls=nulls)


def _write_in_place(setup: WriteSetup, write: WriteInstant, folder: str, watch: PhaseTimes) -> Written:
    """Write all rows to new file groups that the index chooses, or that keep the rows of a key together."""
    combines = _combines(setup, write.operation)
    # Rows of a key can be of several partitions; one of them stays if keys are unique in the whole table.
    meets = combines and setup.index.is_global
    with watch.phase("stage"):
        engine, store = setup.call.engine, setup.view.store.spec
        preparation = preparation_of(setup, buckets=engine.parallelism if meets else 0)
        merger = setup.merger if meets else None
        staged = stage(engine, setup.rows, preparation, store, folder, merger=merger, key_stage=None)
    placement: Placement = SizePlacement.of(write.view, staged.runs, setup.options)
    if setup.places_rows:
        with watch.phase("tag"):
            write.index.tag(tag_request_of(setup, staged, folder, Purpose.REPLACE))
        placement = write.index.placement(placement)
    tasks = plan_files(staged.runs, (), (), placement=placement)
    context = context_of(setup, write, folder, combine=combines, merge_stored=False)
    with watch.phase("write"):
        engine = setup.call.engine_for(sum(run.size_bytes for run in staged.runs))
        parts = engine.run(WriteFileGroup(context, TaggedRows(staged.runs, ())), tasks)
    written = Written.together(parts)
    written.counts.duplicates += staged.duplicates
    return replace(written, nulls=staged.nulls)


def _combines(setup: WriteSetup, operation: WriteOperation) -> bool:
    """Return whether rows of the data with one key become one row."""
    if operation is WriteOperation.BULK_INSERT or setup.has_automatic_keys:
        return False
    return writes.COMBINE_BEFORE_INSERT.get(setup.options)


def _obeyed(setup: WriteSetup, operation: WriteOperation) -> WriteSetup:
    """Refuse options of the call that the operation does not obey; note those that the table stores."""
    ignored: dict[str, str] = {}
    combine, policy, name = writes.COMBINE_BEFORE_INSERT, writes.INSERT_DUP_POLICY, operation.value.lower()
    if policy.get(setup.options) != "none":
        ignored[policy.key] = f"{name} looks up no keys; use insert"
    merges = setup.places_rows and setup.is_merge_on_read  # when the rows are read
    if operation is WriteOperation.BULK_INSERT and combine.get(setup.options) and not merges:
        ignored[combine.key] = "bulk_insert does not merge duplicates; use upsert"
    for key, reason in ignored.items():
        if key in setup.call.properties:
            raise InvalidConfigError(f"{key}={setup.options[key]}: {reason}, or omit the option")
    notes = (f"{key} of the table has no effect: {reason}" for key, reason in ignored.items())
    return replace(setup, notes=(*setup.notes, *notes))


def _check_placed(setup: WriteSetup, sort: str | Sequence[str] | None, distribution: str) -> None:
    """Refuse a sort or a distribution if the index decides where rows are. Raises: InvalidConfigError."""
    asked = {"sort": _exchange(setup, sort) is not None, "distribution": Distribution.of(distribution) is not _AUTO}
    for name, value in (("sort", sort), ("distribution", distribution)):
        if setup.places_rows and asked[name]:
            raise InvalidConfigError(
                f"{name}={value!r}: the index {setup.index.name!r} decides the file group of each row; omit {name}"
            )


def _spread(setup: WriteSetup, sort: str | Sequence[str] | None, distribution: str) -> _Spread:
    """Return how rows come to tasks: by the arguments, else by the JVM's option, else `auto`."""
    asked, option = Distribution.of(distribution), writes.BULK_SORT_MODE
    mode = option.get(setup.options)
    if sort is not None or asked is not _AUTO:
        if option.key in setup.call.properties:
            raise InvalidConfigError(f"{option.key} repeats sort and distribution; omit it, or the arguments")
    elif mode != option.default:
        sort, asked = _SORT_MODES[mode]
    exchange = _exchange(setup, sort)
    if exchange is not None and asked is not _AUTO:
        raise InvalidConfigError(
            f"distribution={distribution!r} with sort={sort!r}: the sort decides which rows come together; omit one"
        )
    data, threads = setup.data, setup.call.engine.parallelism
    if exchange is None and isinstance(data, ArrowDataset | PartedDataset) and len(data.parts(threads)) == 1:
        # One thread reads all data: it makes one file for each partition path until it is full.
        return _Spread(None, Distribution.NONE, threads)
    return _Spread(exchange, asked)


def _exchange(setup: WriteSetup, sort: str | Sequence[str] | None) -> Exchange | None:
    if sort is None or sort == "none":
        return None
    if sort == "partition":
        return Exchange(range_by=(PARTITION_PATH,))
    if sort == "global" and setup.has_automatic_keys:
        raise InvalidConfigError(
            "sort='global' sorts by the record key, and automatic keys are made after the sort: use sort='none', which "
            "keeps the order of the data, sort='partition', or columns to sort by"
        )
    if sort == "global":
        return Exchange(range_by=(PARTITION_PATH, RECORD_KEY), sort_by=(PARTITION_PATH, RECORD_KEY))
    columns = (sort,) if isinstance(sort, str) else tuple(sort)
    known = set(setup.schema.arrow.names)
    unknown = [name for name in columns if name not in known]
    if isinstance(sort, str) and unknown:
        raise InvalidConfigError(f"sort={sort!r}: expected one of {', '.join(SORTS)}, or columns of the table")
    if unknown:
        raise SchemaMismatchError(f"sort by {unknown}: expected columns of the table, {setup.schema.arrow.names}")
    return Exchange(range_by=(PARTITION_PATH, *columns), sort_by=(PARTITION_PATH, *columns))
