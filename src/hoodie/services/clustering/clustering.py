"""Clustering as a planned service: the work of a plan, its commit, and the pending plans of a table.

Implements docs/format/table.md §9.3. Readers are not affected. If the process dies, its files are uncommitted, and the
next process that clusters executes the plan again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hoodie.commit.call import Call, Occasion
from hoodie.commit.conflicts import refuse_changed
from hoodie.commit.metadata_table import take_back_metadata
from hoodie.commit.steps import Step, reached
from hoodie.config import clustering
from hoodie.display import size_text
from hoodie.errors import UnsupportedError
from hoodie.files.compaction_operation import LOG_BYTES, READ_MIB
from hoodie.files.slices import FileSlice
from hoodie.files.staging.staged import stage_folder
from hoodie.format.filenames import name_of
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.format.instants.service_metadata import ClusteringPlan, SliceInfo
from hoodie.format.table.call_options import effective_options
from hoodie.index.index_write import IndexWrite
from hoodie.results import OnResult, ServiceResult
from hoodie.services.clustering.plan import RowOrder, Trigger
from hoodie.services.clustering.schedule import Wish, check_clusterable, schedule_clustering
from hoodie.services.clustering.sorting import SortLimits, check_order
from hoodie.services.clustering.task import Clustered, ClusterGroup, GroupTask
from hoodie.services.planned.claim import PlannedService, runner_of
from hoodie.services.planned.executor import Failures, PlanExecution, execute, execute_waiting, has_waiting_plan
from hoodie.services.planned.pending import PendingPlan, PendingPlans, age_seconds
from hoodie.services.service import TableService
from hoodie.timeline import Action
from hoodie.view.listing import note_unknown
from hoodie.view.pending_plans import FileGroup, stored_clustering
from hoodie.view.slices import list_slices
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

_STRATEGIES = frozenset(
    {
        "SparkSortAndSizeExecutionStrategy",
        "SparkSingleFileSortExecutionStrategy",
        "JavaSortAndSizeExecutionStrategy",
        "FlinkSortAndSizeExecutionStrategy",
        "SparkStreamCopyClusteringExecutionStrategy",
    }
)
"""Strategy classes of Hudi whose plans ask for larger or sorted files. Others change the buckets of a bucket index."""


def _check_strategy(view: TableView, instant_time: str, plan: ClusteringPlan) -> None:
    """Refuse a plan that another kind of execution needs than writing the rows to new files."""
    name = (plan.strategy.strategy_class_name or "") if plan.strategy is not None else ""
    if name and name.rpartition(".")[2] not in _STRATEGIES:
        raise UnsupportedError(
            f"the clustering {instant_time} of {view.store.uri('')} is planned for {name}, which this release does not "
            f"execute: execute it with JVM Hudi, or roll it back with t.rollback({instant_time!r})"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """The tasks of a plan. `changed`: file groups that changed, or were replaced, since the plan was made."""

    tasks: tuple[GroupTask, ...]
    changed: tuple[FileGroup, ...]

    @property
    def inputs(self) -> frozenset[FileGroup]:
        """Return the file groups that the tasks read; the clustering replaces them."""
        return frozenset(found.group for task in self.tasks for found in task.slices)

    @property
    def size_bytes(self) -> int:
        return sum(task.size_bytes for task in self.tasks)


def _work_of(view: TableView, plan: ClusteringPlan) -> _Work:
    """Return the work of a plan as of a view.

    The slices are those of the view: no path of the plan is opened. A file group whose newest slice is not the slice of
    the plan is left out: the plan does not know the rows that a later write added to it.
    """
    slices = {found.group: found for found in list_slices(view, _partitions_of(plan))}
    tasks: list[GroupTask] = []
    changed: list[FileGroup] = []
    for group in plan.input_groups:
        by_partition: dict[str, list[FileSlice]] = {}
        for piece in group.slices:
            found = _unchanged(piece, slices)
            if found is None:
                changed.append((piece.partition_path, piece.file_id))
            else:
                by_partition.setdefault(piece.partition_path, []).append(found)
        for members in by_partition.values():
            # Other members of the group may be left out.
            files = (group.num_output_file_groups or 1) * len(members) / len(group.slices)
            tasks.append(GroupTask(tuple(members), max(1, round(files))))
    return _Work(tasks=tuple(tasks), changed=tuple(changed))


def _unchanged(piece: SliceInfo, slices: Mapping[FileGroup, FileSlice]) -> FileSlice | None:
    found = slices.get((piece.partition_path, piece.file_id))
    if found is None:
        return None
    base = "" if found.base_file is None else found.base_file.name
    logs = {log.name.name for log in found.log_files}
    planned_logs = {name_of(path) for path in piece.delta_file_paths or ()}
    return found if name_of(piece.data_file_path or "") == base and planned_logs == logs else None


class _Clustering(PlanExecution[ClusteringPlan]):
    """One attempt at a plan. Memory of one task: as `ClusterGroup`; an engine runs `parallelism` tasks at once.

    File groups that a writer changed since the plan was made are left out, with a note.
    """

    def run(self) -> ServiceResult:
        claimed = self.claimed
        index = IndexWrite.begin(None, self.view, claimed.instant_time, self.call.engine_for, self.call.properties)
        _check_strategy(self.view, claimed.instant_time, claimed.plan)
        with self.times.phase("clear"):
            self._clear()
        work = _work_of(self.view, claimed.plan)
        notes = []
        if work.changed:
            few = ", ".join(f"{path}/{file_id}" for path, file_id in work.changed[:3])
            notes.append(
                f"{len(work.changed):,} file groups were left out, because writers changed or replaced them since the "
                f"plan was made: {few}"
            )
        if not work.tasks:
            return ServiceResult(operation=CLUSTERING.name, notes=tuple(notes))
        with stage_folder(self.view.store) as folder:
            with self.times.phase("cluster"):
                # The largest groups first, so that no large task runs alone at the end.
                tasks = sorted(work.tasks, key=lambda task: -task.size_bytes)
                parts = self.call.engine_for(work.size_bytes).run(self._function(index, folder), tasks)
            reached(Step.WRITTEN)
            with self.times.phase("index"):
                # The index files of a process that took the plan over have the same names.
                claimed.pending.ensure_pending(self.view)
                index.note_locations([part.entries for part in parts if part.entries is not None])
                index.retract(self._left_out(work), folder)
            with self.times.phase("commit"):
                notes += self._complete(index, work, parts)
        stats = [stat for part in parts for stat in part.stats]
        return ServiceResult(
            operation=CLUSTERING.name,
            instant=claimed.instant_time,
            counts={
                "groups": len(work.tasks),
                "file_slices": len(work.inputs),
                "files_created": len(stats),
                "records": sum(stat.num_writes for stat in stats),
            },
            bytes_written=sum(stat.total_write_bytes for stat in stats),
            notes=tuple(notes),
        )

    def _left_out(self, work: _Work) -> list[FileSlice]:
        """Return the newest slices of file groups that an earlier attempt at the plan may have rewritten."""
        changed = set(work.changed)
        slices = list_slices(self.view, {path for path, _ in changed}) if changed else []
        return [found for found in slices if found.group in changed]

    def _function(self, index: IndexWrite, folder: str) -> ClusterGroup:
        options = self.options
        order = _order_of(self.claimed.plan, options)
        check_order(order, self.schema.arrow)
        return ClusterGroup(
            store=self.view.store.spec,
            read=self.read,
            parquet=self.parquet,
            instant_time=self.claimed.instant_time,
            number=self.claimed.number,
            order=order,
            limits=SortLimits(sample_rows=clustering.CLUSTER_SAMPLE_ROWS.get(options)),
            target_bytes=clustering.CLUSTER_TARGET_BYTES.get(options),
            entries=index.entry_stage(folder),
            keeps_meta=self.claimed.plan.preserve_hoodie_metadata is not False,
        )

    def _complete(self, index: IndexWrite, work: _Work, parts: Sequence[Clustered]) -> list[str]:
        replaced: dict[str, list[str]] = {}
        for path, file_id in sorted(work.inputs):
            replaced.setdefault(path, []).append(file_id)

        def check(now: TableView) -> None:
            refuse_changed(self.view, now, dict.fromkeys(work.inputs, False))

        stats = [stat for part in parts for stat in part.stats]
        return self.complete(
            stats, WriteOperation.CLUSTER, check, replaced=replaced, index=index, entries=index.commit_entries
        )

    def _clear(self) -> None:
        """Delete what an interrupted attempt left: files, markers, and index entries, which this one would commit."""
        claimed = self.claimed
        if claimed.interrupted is not None:
            with self.view.state.table_lock(claimed.pending.properties) as lock:
                now = self.view.refreshed(lock)
                claimed.pending.ensure_mine(now)
                take_back_metadata(now, claimed.instant_time)
        claimed.clear()


def _partitions_of(plan: ClusteringPlan) -> set[str]:
    return {piece.partition_path for group in plan.input_groups for piece in group.slices}


CLUSTERING: Final = PlannedService(
    name="clustering",
    actions=frozenset({Action.CLUSTERING}),
    check=check_clusterable,
    stored_plan=stored_clustering,
    partitions_of=_partitions_of,
    run=lambda call, claimed, times: _Clustering(call, claimed, times).run(),
)


def cluster(call: Call, wish: Wish | None = None, *, trigger: Trigger | None = None) -> ServiceResult:
    """Execute the pending plans that no other process executes, then plan a clustering by `wish` and execute it.

    Returns the result of the new plan, without an instant if there was nothing to cluster. The notes name the others.
    If a plan fails, the others are still executed, and then the first error is raised.

    Raises: as `schedule_clustering` and `executor.execute`.
    """
    failures, waiting = Failures(), list[ServiceResult]()
    with failures.kept():
        waiting = execute_waiting(CLUSTERING, call)
    result = ServiceResult(operation=CLUSTERING.name)
    with failures.kept():
        result = _cluster_anew(call, wish, trigger)
    failures.raise_first()
    notes = [note for other in waiting for note in other.notes]
    notes += [f"executed the pending plan {other.instant} first" for other in waiting if other.instant is not None]
    return replace(result, notes=(*notes, *result.notes))


def _cluster_anew(call: Call, wish: Wish | None, trigger: Trigger | None) -> ServiceResult:
    notes = _note_unknown(call, wish) if call.occasion is Occasion.CALL else ()
    scheduled = schedule_clustering(call.state, wish, trigger)
    if scheduled is None:
        return ServiceResult(operation=CLUSTERING.name, notes=notes)
    instant, planned = scheduled
    result = execute(CLUSTERING, call, instant)
    notes = (*notes, *result.notes)
    if planned.left_out:
        notes += (
            f"the plan has the maximum of groups ({clustering.CLUSTER_GROUPS_MAX.key}), and "
            f"{len(planned.left_out):,} partitions have more small file slices: cluster again",
        )
    return replace(result, notes=notes)


def _note_unknown(call: Call, wish: Wish | None) -> tuple[str, ...]:
    """Return a note of partitions that a call selects and the table does not have."""
    option = clustering.CLUSTER_PARTITIONS
    selected = option.get(effective_options(call.state.last_config(), (wish or Wish()).options()))
    return note_unknown(call.load(), selected, option.key) if selected else ()


def _order_of(plan: ClusteringPlan, properties: Mapping[str, str]) -> RowOrder:
    """Return the order that a plan requires; a plan of the JVM names no layout, which the executor's options decide."""
    params = dict((plan.strategy.strategy_params if plan.strategy is not None else None) or {})
    columns = clustering.CLUSTER_SORT_COLUMNS.get(params)
    return RowOrder(columns=columns, layout=clustering.CLUSTER_LAYOUT.get(params, properties))


def _is_on(properties: Mapping[str, str]) -> bool:
    return clustering.CLUSTER_INLINE.get(properties) or clustering.CLUSTER_SCHEDULE_INLINE.get(properties)


def _is_due(call: Call, view: TableView) -> bool:
    """Return whether a plan is due, or an interrupted plan can be executed by a write that clusters inline."""
    effective = effective_options(view.config, call.properties)
    if clustering.CLUSTER_INLINE.get(effective) and has_waiting_plan(CLUSTERING, view):
        return True
    return Trigger.of(effective).is_due(view)


def _run(call: Call, report: OnResult) -> None:
    effective = effective_options(call.state.last_config(), call.properties)
    if clustering.CLUSTER_INLINE.get(effective):
        cluster_if_due(call, report)
        return
    scheduled = schedule_clustering(call.state, Wish(properties=call.properties), Trigger.of(effective))
    if scheduled is not None:
        report(ServiceResult(operation=f"schedule {CLUSTERING.name}", instant=scheduled[0]))


def cluster_if_due(call: Call, report: OnResult) -> None:
    """Execute the plans that wait, and a new plan if one is due; report the result if anything was done.

    Raises: as `cluster`.
    """
    trigger = Trigger.of(effective_options(call.state.last_config(), call.properties))
    result = cluster(call, Wish(properties=call.properties), trigger=trigger)
    if result.instant is not None or result.notes:
        report(result)


INLINE_CLUSTERING: Final = TableService(
    name="cluster", about="Sort rows, and join small files.", is_on=_is_on, is_due=_is_due, run=_run
)
"""Clustering as a service that can follow a write; off by default."""


_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingClustering(PendingPlan):
    """One pending plan. `state`: waiting, running or interrupted; `runner` is the process that executes it, or did.

    `by` are the columns by which rows are sorted; `layout` is empty if the executor's options decide it, or if rows are
    not sorted. `bytes_to_read` is approximate.
    """

    state: str
    runner: str
    groups: int
    file_slices: int
    files_after: int
    bytes_to_read: int
    by: tuple[str, ...]
    layout: str
    age_seconds: float

    def __str__(self) -> str:
        who = f" ({self.runner})" if self.runner else ""
        order = f" {self.layout} by {', '.join(self.by)}".replace("  ", " ") if self.by else ""
        return (
            f"{self.instant} clustering{order}  {self.state}{who}: {self.file_slices:,} file slices in {self.groups:,} "
            f"groups to {self.files_after:,} files, {size_text(self.bytes_to_read)} to read, scheduled "
            f"{self.age_seconds:,.0f} s ago"
        )


PendingClusterings = PendingPlans[PendingClustering]
"""The pending plans of a table, oldest first."""


def pending_clusterings(state: TableState) -> PendingClusterings:
    """Return the pending clusterings of a table, those of the JVM too; one small file is read for each.

    Raises: CorruptFileError if a plan does not parse.
    """
    view = TableView.load(state)
    found = []
    for instant in CLUSTERING.pending_plans(view):
        plan = CLUSTERING.stored_plan(view, instant)
        groups = () if plan is None else plan.input_groups
        params = (plan.strategy.strategy_params or {}) if plan is not None and plan.strategy is not None else {}
        order = RowOrder.of(params)
        metrics = [group.metrics or {} for group in groups]
        runner = runner_of(view, instant)
        found.append(
            PendingClustering(
                instant=instant.requested_time,
                state=runner.state.value,
                runner=str(runner),
                groups=len(groups),
                file_slices=sum(len(group.slices) for group in groups),
                files_after=sum(group.num_output_file_groups or 1 for group in groups),
                bytes_to_read=sum(int(one.get(READ_MIB, 0) * _MIB or one.get(LOG_BYTES, 0)) for one in metrics),
                by=order.columns,
                layout=order.layout if order.columns else "",
                age_seconds=age_seconds(view, instant),
            )
        )
    return PendingPlans(CLUSTERING.name, tuple(found))
