"""Execute a clustering: one task for each group of its plan, then complete the instant in one atomic step.

Implements docs/format/table.md §9.3. Readers are not affected. If the process dies, its files are uncommitted, and the
next process that clusters executes the plan again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hoodie.commit.call import Call
from hoodie.commit.column_ids import column_metadata
from hoodie.commit.conflicts import refuse_changed
from hoodie.commit.data_commit import DataCommit
from hoodie.commit.metadata_table import commit_metadata
from hoodie.commit.steps import Step, reached
from hoodie.config import clustering
from hoodie.errors import InstantNotFoundError
from hoodie.files.slices import FileSlice
from hoodie.files.staging.staged import stage_folder
from hoodie.format.instants.commit_metadata import SCHEMA_KEY, CommitMetadata, WriteOperation
from hoodie.format.instants.service_metadata import ClusteringPlan
from hoodie.format.schema.table_schema import with_meta_fields
from hoodie.format.table.call_options import check_call_options
from hoodie.index.api import TableFacts
from hoodie.index.session import IndexUpdates
from hoodie.metadata.kinds.registry import collected, parquet_options
from hoodie.progress import PhaseTimes
from hoodie.services.clustering.order import check_order
from hoodie.services.clustering.pending import CLUSTERING, Work, check_clusterable, check_strategy, work_of
from hoodie.services.clustering.plan import RowOrder, Trigger
from hoodie.services.clustering.schedule import Wish, schedule_clustering
from hoodie.services.clustering.sorting import SortLimits
from hoodie.services.clustering.task import Clustered, ClusterGroup
from hoodie.services.planned.claim import ClaimedPlan, Wanted, claim_plan
from hoodie.services.planned.coordination import TableCoordinator
from hoodie.services.planned.pending import roll_back_plan, take_back_metadata
from hoodie.services.planned.service import Failures, schema_at
from hoodie.services.results import ServiceResult
from hoodie.view.columns import stored_columns
from hoodie.view.slices import data_table, list_slices
from hoodie.view.table_view import TableView

OPERATION = "clustering"
ClaimedClustering = ClaimedPlan[ClusteringPlan]


def cluster(call: Call, wish: Wish | None = None, *, trigger: Trigger | None = None) -> ServiceResult:
    """Execute the pending plans that no other process executes, then plan a clustering as `wish` says and execute it.

    The result is that of the new plan; it has no instant if there was nothing to cluster. The notes name the others. If
    a plan fails, the others are still executed, and then the first error is raised.
    Memory of one task: as `ClusterGroup`; an engine runs `parallelism` tasks at once.

    Raises: as `schedule_clustering` and `execute_plan`.
    """
    failures, waiting = Failures(), list[ServiceResult]()
    with failures.kept():
        waiting = execute_waiting(call)
    result = ServiceResult(operation=OPERATION)
    with failures.kept():
        result = _cluster_anew(call, wish, trigger)
    failures.raise_first()
    return _together(result, waiting)


def _cluster_anew(call: Call, wish: Wish | None, trigger: Trigger | None) -> ServiceResult:
    scheduled = schedule_clustering(call.state, wish, trigger)
    if scheduled is None:
        return ServiceResult(operation=OPERATION)
    result = execute_plan(call, scheduled.instant)
    if scheduled.left_out:
        note = (
            f"the plan has the maximum of groups ({clustering.CLUSTER_GROUPS_MAX.key}), and "
            f"{len(scheduled.left_out):,} partitions have more small file slices: cluster again"
        )
        result = replace(result, notes=(*result.notes, note))
    return result


def execute_waiting(call: Call) -> list[ServiceResult]:
    """Execute all pending plans that no other process executes, oldest first.

    If a plan fails, with whatever error, the other plans are still executed, and then the first error is raised.

    Raises: as `execute_plan`.
    """
    results: list[ServiceResult] = []
    tried: set[str] = set()
    failures = Failures()
    while True:
        times = PhaseTimes()
        wanted = Wanted(skip=tried, properties=call.properties)
        try:
            claimed = claim_plan(CLUSTERING, _checked(call), TableCoordinator(), wanted)
        except Exception as error:
            # No plan can be claimed now; an error of an earlier plan is the one to raise.
            failures.keep(error)
            break
        if claimed is None:
            break
        tried.add(claimed.instant_time)
        with failures.kept():
            results.append(_carry_out(call, claimed, times))
    failures.raise_first()
    return results


def execute_plan(call: Call, instant: str) -> ServiceResult:
    """Execute the pending plan of `instant`, also if another process started it and does not run any more.

    File groups that a writer changed since the plan was made are left out, with a note. A plan of which nothing is left
    is rolled back.

    Raises:
        UnsupportedError: this release does not cluster the table.
        InvalidConfigError: a table property among the options.
        InstantNotFoundError: no clustering of `instant` is pending.
        CommitConflictError: another process executes the plan, or a writer changed a file group of it meanwhile.
    """
    times = PhaseTimes()
    view = _checked(call)
    if all(found.requested_time != instant for found in CLUSTERING.pending_plans(view)):
        raise InstantNotFoundError(
            f"{view.store.uri('')} has no pending clustering {instant}: it was completed or rolled back, or never "
            "scheduled; t.pending_clusterings() returns the pending clusterings"
        )
    wanted = Wanted(instant_time=instant, properties=call.properties)
    claimed = claim_plan(CLUSTERING, view, TableCoordinator(), wanted)
    if claimed is None:
        raise InstantNotFoundError(f"{view.store.uri('')}: the clustering {instant} was completed or rolled back")
    return _carry_out(call, claimed, times)


def _checked(call: Call) -> TableView:
    view = TableView.load(call.state)
    check_call_options(call.properties, view.config)
    check_clusterable(view)
    return view


@dataclass(slots=True)
class _Execution:
    """One attempt at a claimed plan."""

    call: Call
    claimed: ClaimedClustering
    work: Work
    index: IndexUpdates
    times: PhaseTimes
    notes: list[str] = field(default_factory=list)

    @property
    def view(self) -> TableView:
        """Return the table as it was when the plan was claimed."""
        return self.claimed.view

    def run(self) -> ServiceResult:
        """Write the files and complete the instant."""
        with stage_folder(self.view.store) as folder:
            with self.times.phase("cluster"):
                parts = self._rewrite(folder)
            reached(Step.WRITTEN)
            with self.times.phase("index"):
                self.index.note_locations([part.entries for part in parts if part.entries is not None])
                self.index.retract(self._left_out(), folder)
        with self.times.phase("commit"):
            metadata = self._complete(parts)
        return self._result(metadata)

    def _left_out(self) -> list[FileSlice]:
        """Return the newest slices of file groups that an earlier attempt at the plan may have rewritten."""
        changed = set(self.work.changed)
        slices = list_slices(self.view, {path for path, _ in changed}) if changed else []
        return [found for found in slices if (found.partition_path, found.file_id) in changed]

    def _rewrite(self, folder: str) -> list[Clustered]:
        engine = self.call.engine_for(self.work.size_bytes)
        # The largest groups first, so that no large task runs alone at the end.
        tasks = sorted(self.work.tasks, key=lambda task: -task.size_bytes)
        return engine.run(self._function(folder), tasks)

    def _function(self, folder: str) -> ClusterGroup:
        view, plan = self.view, self.claimed.plan
        properties = {**view.config.raw, **self.call.properties}
        schema = schema_at(view, self.claimed.instant_time)
        rows = with_meta_fields(schema.arrow)
        stored = stored_columns(view, rows, as_of=self.claimed.instant_time)
        order = _order_of(plan, properties)
        check_order(order, schema.arrow)
        return ClusterGroup(
            store=view.store.spec,
            read=replace(view.slice_read(), schema=rows, columns=tuple(rows.names), stored=stored),
            parquet=parquet_options(data_table(view), properties, schema.arrow),
            instant_time=self.claimed.instant_time,
            number=self.claimed.number,
            order=order,
            limits=SortLimits(sample_rows=clustering.CLUSTER_SAMPLE_ROWS.get(properties)),
            target_bytes=clustering.CLUSTER_TARGET_BYTES.get(properties),
            entries=self.index.entry_stage(folder),
            keeps_meta=plan.preserve_hoodie_metadata is not False,
        )

    def _complete(self, parts: Sequence[Clustered]) -> CommitMetadata:
        claimed = self.claimed
        replaced: dict[str, list[str]] = {}
        for path, file_id in sorted(self.work.inputs):
            replaced.setdefault(path, []).append(file_id)
        ids = column_metadata(self.view, as_of=claimed.instant_time)
        schema = schema_at(self.view, claimed.instant_time).avro
        extra = {**(claimed.plan.extra_metadata or {}), **ids, **self.index.commit_entries, SCHEMA_KEY: schema}
        stats = [stat for part in parts for stat in part.stats]
        metadata = commit_metadata(stats, WriteOperation.CLUSTER, extra, replaced)
        reached(Step.LOCATED)

        def check(now: TableView) -> None:
            refuse_changed(self.view, now, dict.fromkeys(self.work.inputs, False))

        with collected(data_table(self.view), metadata) as collect:
            completion = DataCommit(
                instant_time=claimed.instant_time,
                metadata=metadata,
                collect=collect,
                index=self.index,
                check_conflicts=check,
                engine_for=self.call.engine_for,
            )
            claimed.pending.finish(completion)
        self.notes += completion.notes
        self.view.state.commits[claimed.instant_time] = metadata
        return metadata

    def _result(self, metadata: CommitMetadata) -> ServiceResult:
        stats = list(metadata.write_stats())
        return ServiceResult(
            operation=OPERATION,
            instant=self.claimed.instant_time,
            counts={
                "groups": len(self.work.tasks),
                "file_slices": len(self.work.inputs),
                "files_created": len(stats),
                "records": sum(stat.num_writes for stat in stats),
            },
            bytes_written=sum(stat.total_write_bytes for stat in stats),
            seconds=self.times.seconds(),
            notes=tuple(self.notes),
        )

    def give_back(self) -> None:
        """Undo the attempt after an error; the plan stays. Never raises an error."""
        if not self.claimed.pending.is_in_metadata_table:
            # What cannot be deleted now is deleted by the next process that executes the plan.
            with contextlib.suppress(Exception):
                self.index.discard()
        self.claimed.give_back()


def _carry_out(call: Call, claimed: ClaimedClustering, times: PhaseTimes) -> ServiceResult:
    index = IndexUpdates.begin(TableFacts(claimed.view), claimed.instant_time, call.engine_for, call.properties)
    execution = _Execution(call, claimed, Work(tasks=(), changed=()), index, times)
    try:
        reached(Step.BEGUN)
        check_strategy(claimed.view, claimed.instant_time, claimed.plan)
        with times.phase("clear"):
            _clear(claimed)
        execution.work = work_of(claimed.view, claimed.plan)
        execution.notes += _notes(claimed, execution.work)
        result = execution.run() if execution.work.tasks else None
    except BaseException:
        execution.give_back()
        raise
    if result is None:
        claimed.give_back()
        roll_back_plan(CLUSTERING, call.state, claimed.instant_time, remove_plan=True)
        note = f"the plan {claimed.instant_time} was rolled back: nothing of it was left to cluster"
        return ServiceResult(operation=OPERATION, seconds=times.seconds(), notes=(*execution.notes, note))
    claimed.end()
    return result


def _clear(claimed: ClaimedClustering) -> None:
    """Delete what an interrupted attempt left: files, markers, and index entries, which this attempt would commit."""
    if claimed.interrupted is not None:
        with claimed.view.state.table_lock(claimed.pending.properties) as lock:
            now = claimed.view.refreshed(lock)
            claimed.pending.ensure_mine(now)
            take_back_metadata(now, claimed.instant_time)
    claimed.clear()


def _order_of(plan: ClusteringPlan, properties: Mapping[str, str]) -> RowOrder:
    """Return the order that a plan asks for; a plan of the JVM names no layout, which the executor's options decide."""
    params = dict((plan.strategy.strategy_params if plan.strategy is not None else None) or {})
    columns = clustering.CLUSTER_SORT_COLUMNS.get(params)
    return RowOrder(columns=columns, layout=clustering.CLUSTER_LAYOUT.get(params, properties))


def _notes(claimed: ClaimedClustering, work: Work) -> list[str]:
    notes = []
    if claimed.interrupted is not None:
        notes.append(f"executed again a plan that {claimed.interrupted} had started and not completed")
    if work.changed:
        few = ", ".join(f"{path}/{file_id}" for path, file_id in work.changed[:3])
        notes.append(
            f"{len(work.changed):,} file groups were left out, because writers changed or replaced them since the plan "
            f"was made: {few}"
        )
    return notes


def _together(result: ServiceResult, others: Sequence[ServiceResult]) -> ServiceResult:
    """Return the result with a note for each plan that was executed before."""
    notes = [note for other in others for note in other.notes]
    notes += [f"executed the pending plan {other.instant} first" for other in others if other.instant is not None]
    return replace(result, notes=(*notes, *result.notes))
