"""Bulk insert and insert overwrite: write every row to a new file group, in one pass over the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hoodie import config as options
from hoodie.commit.steps import Step, reached
from hoodie.engine import Dataset, Exchange
from hoodie.errors import InvalidConfigError, SchemaMismatchError
from hoodie.files.staging.place import stage_folder
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.format.instants.service_metadata import RequestedReplaceMetadata
from hoodie.index import Purpose
from hoodie.progress import PhaseTimes
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.records.keys.automatic_keys import KeySource, consumer_of
from hoodie.timeline import Action
from hoodie.write.files.bulk_task import BulkWrite
from hoodie.write.files.file_group_task import WriteFileGroup
from hoodie.write.files.written import Written
from hoodie.write.indexed import bulk_insert_in_place
from hoodie.write.key_source import key_source
from hoodie.write.outcome import result_of, services_after
from hoodie.write.placement import SizePlacement
from hoodie.write.plan import TaggedRows, plan_files
from hoodie.write.prepare import ROW_NUMBER
from hoodie.write.record_size import record_bytes
from hoodie.write.replaced import count_replaced, file_ids_of
from hoodie.write.result import WRITE_PHASES, WriteResult
from hoodie.write.retry import not_repeated
from hoodie.write.setup import WriteCall, WriteSetup
from hoodie.write.staging import stage
from hoodie.write.write_instant import WriteInstant

SORTS = ("none", "partition", "global")


def bulk_insert(call: WriteCall, data: Dataset, sort: str | Sequence[str] | None = None) -> WriteResult:
    """Write all rows to new file groups without looking up their keys; with a bucket index, to those of their buckets.

    `sort`: `none` (rows are not moved between tasks: fastest), `partition` (each task gets few partitions: few files),
    `global` (by partition path and record key: narrow key ranges), or column names to sort by within partitions.
    Automatic keys are made as the rows are written, after the sort.

    Raises: SchemaMismatchError, RecordKeyError, PartitionPathError, InvalidConfigError; nothing is committed then.
    """
    setup = _setup(call, data)
    if setup.places_rows:
        if _exchange(setup, sort) is not None:
            raise InvalidConfigError(
                f"sort={sort!r}: the index {setup.index.name!r} decides the file group of each row; omit sort"
            )
        return bulk_insert_in_place(setup)
    watch = PhaseTimes(*WRITE_PHASES)
    exchange = _exchange(setup, sort)
    operation = WriteOperation.BULK_INSERT
    source = key_source(setup, operation)
    with (
        not_repeated("bulk_insert"),
        stage_folder(setup.view.store, in_process=setup.is_in_process) as folder,
        setup.begin(setup.write_action, operation) as write,
    ):
        written = _write(setup, write, folder, exchange, source, watch)
        with watch.phase("index"):
            index = write.index.note_locations(written.entries)
        with watch.phase("commit"):
            extra = call.extra_metadata
            write.commit(written.stats, schema=setup.schema.avro, extra_metadata=extra)
    after = services_after(setup, watch, stats=written.stats)
    return result_of(setup, write, written, watch, index=index, after=after)


def insert_overwrite(call: WriteCall, data: Dataset, *, whole_table: bool = False) -> WriteResult:
    """Replace the partitions of the data (or the whole table) by the data, in one replace commit.

    Time travel can read the old file groups until the cleaner deletes them. Raises: as `bulk_insert`.
    """
    setup = _setup(call, data)
    watch = PhaseTimes(*WRITE_PHASES)
    operation = WriteOperation.INSERT_OVERWRITE_TABLE if whole_table else WriteOperation.INSERT_OVERWRITE
    source = key_source(setup, operation)
    plan = RequestedReplaceMetadata().to_bytes()
    with (
        not_repeated(operation.value.lower()),
        stage_folder(setup.view.store, in_process=setup.is_in_process) as folder,
        setup.begin(Action.REPLACE_COMMIT, operation, plan) as write,
    ):
        if setup.places_rows:
            written = _write_in_place(setup, write, folder, watch)
        else:
            written = _write(setup, write, folder, None, source, watch)
        replaced = write.view.slices(None if whole_table else {stat.partition_path or "" for stat in written.stats})
        with watch.phase("index"):
            gone = write.index.stage_deletes(replaced, folder)
            index = write.index.note_locations((*gone, *written.entries))
            count = count_replaced(setup, write, replaced, gone)
        with watch.phase("commit"):
            write.commit(
                written.stats,
                schema=setup.schema.avro,
                extra_metadata=call.extra_metadata,
                replaced=file_ids_of(replaced),
            )
    after = services_after(setup, watch, stats=written.stats)
    return result_of(setup, write, written, watch, replaced=count, index=index, after=after)


def _write(
    setup: WriteSetup,
    write: WriteInstant,
    folder: str,
    exchange: Exchange | None,
    source: KeySource,
    watch: PhaseTimes,
) -> Written:
    numbers_rows = source is KeySource.AUTOMATIC and exchange is not None
    preparation = setup.preparation(key_source=source, buckets=1 if numbers_rows else 0)
    exchange = _in_order_of_data(exchange) if numbers_rows and exchange is not None else exchange
    context = setup.context(
        write.instant_time, combine=False, merge_stored=False, entries=write.index.entry_stage(folder)
    )
    engine = setup.call.engine
    assert setup.data is not None
    with watch.phase("write"):
        consume = consumer_of(source, BulkWrite(context), write.instant_time)
        parts = engine.process(setup.data, preparation, preparation.prepared_schema, consume, exchange)
    reached(Step.WRITTEN)
    return Written.together(parts)


def _write_in_place(setup: WriteSetup, write: WriteInstant, folder: str, watch: PhaseTimes) -> Written:
    """Write all rows to new file groups that the index chooses."""
    assert setup.data is not None
    with watch.phase("stage"):
        engine, store = setup.call.engine, setup.view.store.spec
        staged = stage(engine, setup.data, setup.preparation(), store, folder, merger=None, key_stage=None)
    with watch.phase("tag"):
        write.index.tag(setup.tag_request(staged, folder, Purpose.REPLACE))
    default = SizePlacement(setup.sizing, record_bytes(write.view, staged.runs, setup.options))
    tasks = plan_files(staged.runs, (), (), placement=write.index.placement(default))
    context = setup.context(
        write.instant_time, combine=False, merge_stored=False, entries=write.index.entry_stage(folder)
    )
    with watch.phase("write"):
        engine = setup.engine_for(sum(run.size_bytes for run in staged.runs))
        parts = engine.run(WriteFileGroup(context, TaggedRows(staged.runs, ())), tasks)
    reached(Step.WRITTEN)
    return Written.together(parts)


def _in_order_of_data(exchange: Exchange) -> Exchange:
    """Return the exchange with a sort that has no ties: a repeated task numbers the rows as the first one did."""
    return replace(exchange, sort_by=(*(exchange.sort_by or exchange.range_by), ROW_NUMBER))


def _setup(call: WriteCall, data: Dataset) -> WriteSetup:
    """Return the setup of a bulk write. Raises: InvalidConfigError if the options require a merge of duplicates."""
    setup = WriteSetup.of(call, data)
    if options.COMBINE_BEFORE_INSERT.get(call.properties):
        raise InvalidConfigError(
            f"{options.COMBINE_BEFORE_INSERT.key}=true: bulk writes do not merge duplicates; use upsert, or omit the "
            "option"
        )
    return setup


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
    unknown = [name for name in columns if name not in setup.schema.arrow.names]
    if isinstance(sort, str) and unknown:
        raise InvalidConfigError(f"sort={sort!r}: expected one of {', '.join(SORTS)}, or columns of the table")
    if unknown:
        raise SchemaMismatchError(f"sort by {unknown}: expected columns of the table, {setup.schema.arrow.names}")
    return Exchange(range_by=(PARTITION_PATH, *columns), sort_by=(PARTITION_PATH, *columns))
