"""Execute a compaction: run one task for each file slice of its plan, then complete the instant in one atomic step.

Implements docs/format/table.md §9.2. Writers and readers are not blocked. If the process dies, its files are
uncommitted, and the next compactor executes the plan again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from hoodie.commit.call import Call
from hoodie.commit.column_ids import column_metadata
from hoodie.commit.data_commit import DataCommit
from hoodie.commit.exclusive import check_no_exclusive_service
from hoodie.commit.metadata_table import commit_metadata
from hoodie.commit.steps import Step, reached
from hoodie.config import compaction
from hoodie.engine import LocalEngine, TaskContext
from hoodie.errors import InstantNotFoundError
from hoodie.files.compaction_operation import slice_of
from hoodie.files.logs.log_file import log_block_format
from hoodie.files.slices import FileSlice
from hoodie.format.filenames import LogFileName, name_of
from hoodie.format.instants.commit_metadata import SCHEMA_KEY, WriteOperation, WriteStat
from hoodie.format.instants.service_metadata import CompactionPlan
from hoodie.format.log.data_block import log_schema
from hoodie.format.schema.table_schema import with_meta_fields
from hoodie.format.table.call_options import check_call_options
from hoodie.metadata.kinds.registry import collected, parquet_options
from hoodie.progress import PhaseTimes
from hoodie.services.compaction.log_compaction import CompactLogs
from hoodie.services.compaction.pending import COMPACTION
from hoodie.services.compaction.plan import Trigger, check_compactable, schedule_compaction
from hoodie.services.compaction.task import CompactSlice
from hoodie.services.planned.claim import ClaimedPlan, RunState, Wanted, claim_plan, runner_of
from hoodie.services.planned.coordination import Coordinator, TableCoordinator
from hoodie.services.planned.service import Failures, schema_at
from hoodie.services.results import OnResult, ServiceResult
from hoodie.timeline import Action
from hoodie.view.columns import stored_columns
from hoodie.view.slices import data_table, list_files, list_slices
from hoodie.view.table_view import TableView

OPERATION = "compaction"
ClaimedCompaction = ClaimedPlan[CompactionPlan]
TaskFunction = Callable[[FileSlice, TaskContext], WriteStat | None]
_OPERATIONS = {Action.COMPACTION: WriteOperation.COMPACT, Action.LOG_COMPACTION: WriteOperation.LOG_COMPACT}


def compact(call: Call, instant: str | None = None, *, coordinator: Coordinator | None = None) -> ServiceResult:
    """Execute the pending (log) compaction of `instant`, by default the oldest that no other process executes.

    An interrupted compaction is executed again from its plan, after its files are deleted. If no plan is pending, the
    result has no instant. `coordinator` grants the claim if several machines share the work. Memory of one task: as
    `CompactSlice`; an engine runs `parallelism` tasks at once.

    Raises:
        UnsupportedError: this release does not compact the table.
        InvalidConfigError: a table property among the options.
        InstantNotFoundError: no compaction of `instant` is pending.
        CommitConflictError: another compactor executes the plan, or claimed it while this call ran.
    """
    times = PhaseTimes()
    with times.phase("plan"):
        view = _checked(call)
        if instant is not None:
            _check_pending(view, instant)
        wanted = Wanted(instant_time=instant, properties=call.properties)
        claimed = claim_plan(COMPACTION, view, coordinator or TableCoordinator(), wanted)
    if claimed is None:
        return ServiceResult(operation=OPERATION, seconds=times.seconds())
    return _carry_out(call, claimed, times)


def compact_all(
    call: Call,
    *,
    coordinator: Coordinator | None = None,
    report: OnResult | None = None,
    stopped: Callable[[], bool] | None = None,
) -> list[ServiceResult]:
    """Execute every pending plan that no other process executes, oldest first; see `compact`.

    `report` is called with each result. `stopped` is called before each plan; if it returns True, no further plan is
    executed. If a plan fails, with whatever error, the other plans are still executed, and then the first error is
    raised; its notes name the others.
    """
    coordinator = coordinator or TableCoordinator()
    tried: set[str] = set()
    results: list[ServiceResult] = []
    failures = Failures()
    while stopped is None or not stopped():
        times = PhaseTimes()
        try:
            wanted = Wanted(skip=tried, properties=call.properties)
            claimed = claim_plan(COMPACTION, _checked(call), coordinator, wanted)
        except Exception as error:
            # No plan can be claimed now; an error of an earlier plan is the one to raise.
            failures.keep(error)
            break
        if claimed is None:
            break
        tried.add(claimed.instant_time)
        with failures.kept():
            results.append(_carry_out(call, claimed, times))
            if report is not None:
                report(results[-1])
    failures.raise_first()
    return results


def compact_inline(call: Call, *, view: TableView | None = None) -> ServiceResult | None:
    """Schedule or execute a compaction after a completed write; None if there is nothing to do.

    The options of the call are the effective options. With `hoodie.compact.inline`, all pending plans that no process
    executes are executed; then a compaction that is due is scheduled and executed. With
    `hoodie.compact.schedule.inline` only, a compaction that is due is scheduled. The timeline of `view` (default:
    loaded here) decides whether a compaction is due; no file is read for that, except by the trigger `log_size`. If a
    compaction fails, its plan stays pending, and a note contains the error: the write is committed already.
    """
    runs = compaction.COMPACT_INLINE.get(call.properties)
    if not runs and not compaction.COMPACT_SCHEDULE_INLINE.get(call.properties):
        return None
    try:
        trigger = Trigger.of(call.properties)
        view = view or TableView.load(call.state)
        is_due = trigger.is_due(view)
        is_left = runs and any(
            runner_of(view, found).state is not RunState.RUNNING for found in COMPACTION.pending_plans(view)
        )
        if not is_due and not is_left:
            return None
        return _inline(call, trigger if is_due else None, runs=runs)
    except Exception as error:
        # Also errors of Arrow or Spark: the rows are committed, and a caller that sees an error would write them again.
        return ServiceResult(
            operation=OPERATION, notes=(f"the compaction after this write failed, and the write is committed: {error}",)
        )


def _inline(call: Call, trigger: Trigger | None, *, runs: bool) -> ServiceResult | None:
    results: list[ServiceResult] = []
    failures = Failures()
    if runs:
        with failures.kept():
            results += compact_all(call)
    if trigger is not None:
        with failures.kept():
            scheduled = schedule_compaction(call.state, properties=call.properties, trigger=trigger)
            if scheduled is not None and runs:
                results.append(compact(call, scheduled))
            elif scheduled is not None:
                results.append(ServiceResult(operation="schedule compaction", instant=scheduled))
    failures.raise_first()
    return results[-1] if results else None


def _checked(call: Call) -> TableView:
    view = TableView.load(call.state)
    check_call_options(call.properties, view.config)
    check_compactable(view)
    check_no_exclusive_service(view)
    return view


def _carry_out(call: Call, claimed: ClaimedCompaction, times: PhaseTimes) -> ServiceResult:
    try:
        stats = _compact_slices(call, claimed, times)
        with times.phase("commit"):
            notes = _complete(call, claimed, stats)
    except BaseException:
        claimed.give_back()
        raise
    claimed.end()
    result = _result(claimed, stats, times)
    return replace(result, notes=(*result.notes, *notes))


def _name(action: Action) -> str:
    return OPERATION if action is Action.COMPACTION else f"log {OPERATION}"


def _check_pending(view: TableView, instant: str) -> None:
    if any(found.requested_time == instant for found in COMPACTION.pending_plans(view)):
        return
    where = view.store.uri("")
    raise InstantNotFoundError(
        f"{where} has no pending compaction {instant}: it was completed or rolled back, or never scheduled; "
        "t.pending_compactions() returns the pending compactions"
    )


def _compact_slices(call: Call, claimed: ClaimedCompaction, times: PhaseTimes) -> list[WriteStat]:
    """Write the files of the plan's file slices."""
    reached(Step.BEGUN)
    view = claimed.view
    with times.phase("clear"):
        claimed.clear()
    tasks = slices_to_compact(view, claimed)
    properties = {**view.config.raw, **call.properties}
    compact_slice = _task_function(view, claimed, properties)
    engine = call.engine_for(sum(found.size_bytes for found in tasks))
    # The largest slices first, so that no large task runs alone at the end.
    ordered = sorted(tasks, key=lambda found: -found.size_bytes)
    with times.phase("compact"):
        if isinstance(engine, LocalEngine):
            stats = engine.run(_WhileHeld(compact_slice, claimed), ordered)
        else:
            stats = engine.run(compact_slice, ordered)
    reached(Step.WRITTEN)
    return [stat for stat in stats if stat is not None]


def _task_function(view: TableView, claimed: ClaimedCompaction, properties: Mapping[str, str]) -> TaskFunction:
    """Return the task function that is called for each file slice of the plan."""
    schema = schema_at(view, claimed.instant_time)
    rows = with_meta_fields(schema.arrow)
    stored = stored_columns(view, rows, as_of=claimed.instant_time)
    read = replace(view.slice_read(), schema=rows, columns=tuple(rows.names), stored=stored)
    parquet = parquet_options(data_table(view), properties, schema.arrow)
    if claimed.instant.action is Action.LOG_COMPACTION:
        return CompactLogs(
            store=view.store.spec,
            read=read,
            avro_schema=log_schema(schema.avro, table_name=view.config.name),
            data_format=log_block_format(view.config, schema.arrow, properties),
            instant_time=claimed.instant_time,
            number=claimed.number,
            range_columns=parquet.range_columns,
        )
    return CompactSlice(
        store=view.store.spec,
        read=read,
        parquet=parquet,
        instant_time=claimed.instant_time,
        number=claimed.number,
    )


@dataclass(frozen=True, slots=True)
class _WhileHeld:
    """A task function that fails if this process does not hold the claim any more."""

    function: TaskFunction
    claimed: ClaimedCompaction

    def __call__(self, task: FileSlice, attempt: TaskContext) -> WriteStat | None:
        self.claimed.claim.ensure_held()
        return self.function(task, attempt)


def slices_to_compact(view: TableView, claimed: ClaimedCompaction) -> list[FileSlice]:
    """Return the file slices of the plan, without the slices of file groups that were replaced since.

    The cleaner may have deleted the files of replaced file groups, and readers do not read them any more.
    """
    operations = claimed.plan.operations
    paths = {operation.partition_path for operation in operations}
    sizes = dict(list_files(view, paths))
    if not view.config.version.validates_log_blocks:
        for path, recorded in _recorded_log_sizes(view, claimed).items():
            sizes[path] = {**sizes.get(path, {}), **recorded}
    there = {(found.partition_path, found.file_id) for found in list_slices(view, paths)}
    return [
        slice_of(operation, operation.partition_path, sizes.get(operation.partition_path, {}))
        for operation in operations
        if (operation.partition_path, operation.file_id) in there
    ]


def _recorded_log_sizes(view: TableView, claimed: ClaimedCompaction) -> dict[str, dict[str, int]]:
    """Return the sizes of the plan's log files that the commits recorded, by partition path and name.

    A metadata table that was built from a listing has the sizes that files had on storage then. A compaction makes the
    loss of blocks final, so it compares with the commits: one read for each that is not in the cache.
    """
    names = {name for operation in claimed.plan.operations for name in operation.delta_file_paths}
    parsed = (LogFileName.parse(name) for name in names)
    found: dict[str, dict[str, int]] = {}
    for time in sorted({name.instant_time for name in parsed if name is not None}):
        instant = view.timeline.get(time)
        if instant is None or not instant.is_completed:
            continue
        for stat in view.commit_metadata(instant).write_stats():
            name = name_of(stat.path or "")
            if stat.is_log_append and name in names:
                found.setdefault(stat.partition_path or "", {})[name] = stat.file_size_bytes
    return found


def _complete(call: Call, claimed: ClaimedCompaction, stats: Sequence[WriteStat]) -> list[str]:
    """Complete the compaction, if this process still owns it; return notes about the metadata table."""
    schema = schema_at(claimed.view, claimed.instant_time).avro
    ids = column_metadata(claimed.view, as_of=claimed.instant_time)
    extra = {**claimed.plan.extra_metadata, **ids, SCHEMA_KEY: schema}
    metadata = commit_metadata(stats, _OPERATIONS[claimed.instant.action], extra, compacted=True)
    reached(Step.LOCATED)

    def check(now: TableView) -> None:
        claimed.claim.ensure_held()

    with collected(data_table(claimed.view), metadata) as collect:
        completion = DataCommit(
            instant_time=claimed.instant_time,
            metadata=metadata,
            collect=collect,
            check_conflicts=check,
            engine_for=call.engine_for,
        )
        claimed.pending.finish(completion)
    call.state.commits[claimed.instant_time] = metadata
    return completion.notes


def _result(claimed: ClaimedCompaction, stats: Sequence[WriteStat], times: PhaseTimes) -> ServiceResult:
    notes = []
    skipped = len(claimed.plan.operations) - len(stats)
    if claimed.interrupted is not None:
        notes.append(f"executed again a plan that {claimed.interrupted} had started and not completed")
    if skipped:
        notes.append(f"{skipped} file slices were skipped: their file groups were replaced, or cannot be folded")
    return ServiceResult(
        operation=_name(claimed.instant.action),
        instant=claimed.instant_time,
        counts={
            "file_slices": len(stats),
            "log_files": sum(stat.total_log_files_compacted for stat in stats),
            "records": sum(stat.num_writes for stat in stats),
            "updated": sum(stat.num_update_writes for stat in stats),
            "deleted": sum(stat.num_deletes for stat in stats),
        },
        bytes_written=sum(stat.total_write_bytes for stat in stats),
        seconds=times.seconds(),
        notes=tuple(notes),
    )
