"""Compaction and log compaction as a planned service: the work of a plan, and the pending plans of a table.

Implements docs/format/table.md §9.2. Writers and readers are not blocked. If the process dies, its files are
uncommitted, and the next compactor executes the plan again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from hoodie.commit.call import Call
from hoodie.commit.steps import Step, reached
from hoodie.config import compaction
from hoodie.display import size_text
from hoodie.engine import LocalEngine, TaskContext
from hoodie.files.compaction_operation import LOG_BYTES, slice_of, work_bytes
from hoodie.files.logs.log_file import log_block_format
from hoodie.files.slices import FileSlice
from hoodie.format.filenames import LogFileName, name_of
from hoodie.format.instants.commit_metadata import WriteOperation, WriteStat
from hoodie.format.instants.service_metadata import CompactionPlan
from hoodie.format.log.data_block import log_schema
from hoodie.format.table.call_options import effective_options
from hoodie.results import OnResult, ServiceResult
from hoodie.services.compaction.log_compaction import CompactLogs, LogOrder, schedule_log_compaction
from hoodie.services.compaction.plan import Trigger, check_compactable, deltas_since_compaction, schedule_compaction
from hoodie.services.compaction.task import CompactSlice
from hoodie.services.planned.claim import ClaimedPlan, PlannedService, runner_of
from hoodie.services.planned.coordination import Coordinator
from hoodie.services.planned.executor import Failures, PlanExecution, execute, execute_waiting, has_waiting_plan
from hoodie.services.planned.pending import PendingPlan, PendingPlans, age_seconds
from hoodie.timeline import Action
from hoodie.view.listing import list_files
from hoodie.view.pending_plans import stored_plan
from hoodie.view.slices import list_slices
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

TaskFunction = Callable[[FileSlice, TaskContext], WriteStat | None]


class _Compaction(PlanExecution[CompactionPlan]):
    """One attempt at a plan. Memory of one task: as `CompactSlice`; an engine runs `parallelism` tasks at once."""

    def run(self) -> ServiceResult:
        """Write a file for each file slice of the plan, then complete the instant in one atomic step."""
        claimed = self.claimed
        with self.times.phase("clear"):
            claimed.clear()
        stats = self._compact_slices()
        reached(Step.WRITTEN)
        is_compaction = claimed.instant.action is Action.COMPACTION

        def check(now: TableView) -> None:
            claimed.claim.ensure_held()

        with self.times.phase("commit"):
            operation = WriteOperation.COMPACT if is_compaction else WriteOperation.LOG_COMPACT
            notes = self.complete(stats, operation, check)
        skipped = len(claimed.plan.operations) - len(stats)
        if skipped:
            why = "their file groups were replaced, or cannot be folded"
            notes.insert(0, f"{skipped} file slices were skipped: {why}")
        return ServiceResult(
            operation=COMPACTION.name if is_compaction else f"log {COMPACTION.name}",
            instant=claimed.instant_time,
            counts={
                "file_slices": len(stats),
                "log_files": sum(stat.total_log_files_compacted for stat in stats),
                "records": sum(stat.num_writes for stat in stats),
                "updated": sum(stat.num_update_writes for stat in stats),
                "deleted": sum(stat.num_deletes for stat in stats),
            },
            bytes_written=sum(stat.total_write_bytes for stat in stats),
            notes=tuple(notes),
        )

    def _compact_slices(self) -> list[WriteStat]:
        tasks = slices_to_compact(self.view, self.claimed)
        claimed, function = self.claimed, self._function()

        def while_held(task: FileSlice, attempt: TaskContext) -> WriteStat | None:
            claimed.claim.ensure_held()
            return function(task, attempt)

        engine = self.call.engine_for(sum(found.size_bytes for found in tasks))
        # The largest slices first, so that no large task runs alone at the end.
        ordered = sorted(tasks, key=lambda found: -found.size_bytes)
        with self.times.phase("compact"):
            stats = engine.run(while_held if isinstance(engine, LocalEngine) else function, ordered)
        return [stat for stat in stats if stat is not None]

    def _function(self) -> TaskFunction:
        view, claimed, schema = self.view, self.claimed, self.schema
        if claimed.instant.action is Action.LOG_COMPACTION:
            return CompactLogs(
                store=view.store.spec,
                read=self.read,
                avro_schema=log_schema(schema.avro, table_name=view.config.name),
                data_format=log_block_format(view.config, schema.arrow, self.options),
                instant_time=claimed.instant_time,
                number=claimed.number,
                range_columns=self.parquet.range_columns,
            )
        return CompactSlice(
            store=view.store.spec,
            read=self.read,
            parquet=self.parquet,
            instant_time=claimed.instant_time,
            number=claimed.number,
        )


def _partitions_of(plan: CompactionPlan) -> set[str]:
    return {operation.partition_path for operation in plan.operations}


COMPACTION: Final = PlannedService(
    name="compaction",
    actions=frozenset({Action.COMPACTION, Action.LOG_COMPACTION}),
    check=check_compactable,
    stored_plan=stored_plan,
    partitions_of=_partitions_of,
    run=lambda call, claimed, times: _Compaction(call, claimed, times).run(),
)
"""Compaction and log compaction: a pending plan of one of them excludes its file groups from plans of both."""


def compact_once(
    call: Call,
    *,
    coordinator: Coordinator | None = None,
    schedule: bool = True,
    report: OnResult | None = None,
    stopped: Callable[[], bool] | None = None,
) -> list[ServiceResult]:
    """Run one round: schedule a compaction if one is due, then execute every plan that no other process executes.

    The oldest plan is executed first.

    Raises: as `schedule_compaction` and `execute_waiting`.
    """
    if schedule:
        trigger = Trigger.of(effective_options(call.load().config, call.properties))
        schedule_compaction(call.state, properties=call.properties, trigger=trigger)
    return execute_waiting(COMPACTION, call, coordinator=coordinator, report=report, stopped=stopped)


def compact_inline(call: Call, *, view: TableView | None = None) -> ServiceResult | None:
    """Schedule or execute a compaction after a completed write, then a log compaction; None if nothing was to do.

    Returns the result of the compaction, or of the log compaction if there was no compaction.
    """
    options = effective_options(call.state.last_config(), call.properties)
    compacted = _compact_inline(call, view, options)
    folded = _fold_inline(call, view if compacted is None else None, options)
    return compacted or folded


def is_inline_due(call: Call, view: TableView) -> bool:
    """Return whether `compact_inline` may have something to do. Files are read for the trigger `log_size` only."""
    options = effective_options(view.config, call.properties)
    if compaction.LOG_COMPACTION_INLINE.get(options):
        return True
    if not (compaction.COMPACT_INLINE.get(options) or compaction.COMPACT_SCHEDULE_INLINE.get(options)):
        return False
    return has_waiting_plan(COMPACTION, view) or Trigger.of(options).is_due(view)


def _compact_inline(call: Call, view: TableView | None, options: Mapping[str, str]) -> ServiceResult | None:
    """Schedule or execute a compaction; None if there is nothing to do.

    With `hoodie.compact.inline`, all pending plans that no process executes are executed; then a compaction that is due
    is scheduled and executed. With `hoodie.compact.schedule.inline` only, a compaction that is due is scheduled. If a
    compaction fails, its plan stays pending, and a note contains the error: the write is committed already.
    """
    runs = compaction.COMPACT_INLINE.get(options)
    if not runs and not compaction.COMPACT_SCHEDULE_INLINE.get(options):
        return None
    results, failures = list[ServiceResult](), Failures()
    try:
        trigger = Trigger.of(options)
        view = view or call.load()
        is_due = trigger.is_due(view)
        if runs and (is_due or has_waiting_plan(COMPACTION, view)):
            with failures.kept():
                results += execute_waiting(COMPACTION, call)
        if is_due:
            with failures.kept():
                scheduled = schedule_compaction(call.state, properties=call.properties, trigger=trigger)
                if scheduled is not None and runs:
                    results.append(execute(COMPACTION, call, scheduled))
                elif scheduled is not None:
                    results.append(ServiceResult(operation="schedule compaction", instant=scheduled))
        failures.raise_first()
    except Exception as error:
        # Also errors of Arrow or Spark: the rows are committed, and a caller that sees an error would write them again.
        return _failed(COMPACTION.name, error)
    return results[-1] if results else None


def _fold_inline(call: Call, view: TableView | None, options: Mapping[str, str]) -> ServiceResult | None:
    """Schedule and execute a log compaction, with `hoodie.log.compaction.inline`; None if there is nothing to do.

    It is due after `hoodie.log.compaction.blocks.threshold` delta commits since the last (log) compaction. The metadata
    of these commits is read if it is not cached.
    """
    if not compaction.LOG_COMPACTION_INLINE.get(options):
        return None
    try:
        view = view or call.load()
        blocks_min = compaction.LOG_COMPACTION_BLOCKS.get(options)
        newest = deltas_since_compaction(view.timeline)[-blocks_min:]
        operations = (view.commit_facts(instant).operation_type for instant in newest)
        if len(newest) != blocks_min or WriteOperation.LOG_COMPACT in operations:
            return None
        scheduled = schedule_log_compaction(call.state, blocks_min=blocks_min)
        return None if scheduled is None else execute(COMPACTION, call, scheduled)
    except Exception as error:
        # As after a compaction: the rows are committed.
        return _failed(f"log {COMPACTION.name}", error)


def _failed(operation: str, error: Exception) -> ServiceResult:
    note = f"the {operation} after this write failed, and the write is committed: {error}"
    return ServiceResult(operation=operation, notes=(note,))


def slices_to_compact(view: TableView, claimed: ClaimedPlan[CompactionPlan]) -> list[FileSlice]:
    """Return the file slices of the plan, without the slices of file groups that were replaced since.

    The cleaner may have deleted the files of replaced file groups, and readers do not read them any more. Slices of a
    log compaction that would change the order of the writes are left out too: an engine that plans may not look at
    pending writes.
    """
    operations = claimed.plan.operations
    paths = {operation.partition_path for operation in operations}
    sizes = dict(list_files(view, paths))
    if not view.config.version.validates_log_blocks:
        for path, recorded in _recorded_log_sizes(view, claimed).items():
            sizes[path] = {**sizes.get(path, {}), **recorded}
    there = {found.group: found for found in list_slices(view, paths)}
    planned = [
        slice_of(operation, operation.partition_path, sizes.get(operation.partition_path, {}))
        for operation in operations
        if (operation.partition_path, operation.file_id) in there
    ]
    if claimed.instant.action is not Action.LOG_COMPACTION:
        return planned
    order = LogOrder(view)
    return [one for one in planned if order.keeps(one.log_files, there[one.group].log_files)]


def _recorded_log_sizes(view: TableView, claimed: ClaimedPlan[CompactionPlan]) -> dict[str, dict[str, int]]:
    """Return the sizes of the plan's log files that the commits recorded, by partition path and name.

    A metadata table that was built from a listing has the sizes that files had on storage then. A compaction makes the
    loss of blocks final, so it compares with the commits: one read for each that is not in the cache.
    """
    names = {name for operation in claimed.plan.operations for name in operation.delta_file_paths}
    parsed = (LogFileName.parse(name) for name in names)
    found: dict[str, dict[str, int]] = {}
    for requested_time in sorted({name.instant_time for name in parsed if name is not None}):
        instant = view.timeline.get(requested_time)
        if instant is None or not instant.is_completed:
            continue
        for stat in view.commit_metadata(instant).write_stats():
            name = name_of(stat.path or "")
            if stat.is_log_append and name in names:
                found.setdefault(stat.partition_path or "", {})[name] = stat.file_size_bytes
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCompaction(PendingPlan):
    """One pending plan. `action`: compaction or logcompaction; `state`: waiting, running or interrupted.

    `runner` is the process that executes, or executed, the plan. `bytes_to_read` counts base and log files, `log_bytes`
    counts log files only.
    """

    action: str
    state: str
    runner: str
    file_slices: int
    log_files: int
    log_bytes: int
    bytes_to_read: int
    age_seconds: float

    def __str__(self) -> str:
        who = f" ({self.runner})" if self.runner else ""
        return (
            f"{self.instant} {self.action}  {self.state}{who}: {self.file_slices:,} file slices, "
            f"{self.log_files:,} log files, {size_text(self.bytes_to_read)} to read, "
            f"scheduled {self.age_seconds:,.0f} s ago"
        )


PendingCompactions = PendingPlans[PendingCompaction]
"""The pending plans of a table, oldest first."""


def pending_compactions(state: TableState) -> PendingCompactions:
    """Return the pending compactions and log compactions of a table; one small file is read for each.

    The result contains plans of this library and of the JVM.

    Raises: CorruptFileError if a plan does not parse.
    """
    view = TableView.load(state)
    found = []
    for instant in COMPACTION.pending_plans(view):
        plan = COMPACTION.stored_plan(view, instant)
        operations = () if plan is None else plan.operations
        runner = runner_of(view, instant)
        found.append(
            PendingCompaction(
                instant=instant.requested_time,
                action=instant.action.value,
                state=runner.state.value,
                runner=str(runner),
                file_slices=len(operations),
                log_files=sum(len(operation.delta_file_paths) for operation in operations),
                log_bytes=sum(int((operation.metrics or {}).get(LOG_BYTES, 0)) for operation in operations),
                bytes_to_read=sum(map(work_bytes, operations)),
                age_seconds=age_seconds(view, instant),
            )
        )
    return PendingPlans(COMPACTION.name, tuple(found))
