"""Execute pending plans of a planned service: one, or all that no other process executes.

`claim` grants the right to execute a plan. Each service defines the work of its plans (`PlannedService.run`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Generic

from hoodie.commit.call import Call
from hoodie.commit.column_ids import column_metadata
from hoodie.commit.data_commit import DataCommit
from hoodie.commit.metadata_table import commit_metadata
from hoodie.commit.steps import Step, reached
from hoodie.commit.writable import check_no_exclusive_service
from hoodie.errors import InstantNotFoundError
from hoodie.files.base_file import ParquetOptions
from hoodie.files.slice_read import SliceRead
from hoodie.format.instants.commit_metadata import SCHEMA_KEY, WriteOperation, WriteStat
from hoodie.format.schema.table_schema import with_meta_fields
from hoodie.format.table.call_options import effective_options
from hoodie.index.api import IndexUpdate
from hoodie.metadata.kinds.registry import collected, parquet_options
from hoodie.progress import PhaseTimes
from hoodie.results import OnResult, ServiceResult
from hoodie.services.planned.claim import ClaimedPlan, PlannedService, PlanT, RunState, Wanted, claim_plan, runner_of
from hoodie.services.planned.coordination import Coordinator, TableCoordinator
from hoodie.services.planned.pending import roll_back_plan
from hoodie.view.columns import stored_columns, visible_schemas
from hoodie.view.slices import data_table
from hoodie.view.table_view import TableSchema, TableView


def execute(
    service: PlannedService[PlanT], call: Call, instant: str | None = None, *, coordinator: Coordinator | None = None
) -> ServiceResult:
    """Execute the pending plan of `instant`, by default the oldest that no other process executes.

    An interrupted plan is executed again, after its files are deleted. If no plan is pending, the result has no
    instant. `coordinator` grants the claim if several machines share the work.

    Raises: as `Table.compact` and `Table.cluster`.
    """
    times = PhaseTimes()
    with times.phase("plan"):
        view = _checked(service, call)
        if instant is not None and all(found.requested_time != instant for found in service.pending_plans(view)):
            raise InstantNotFoundError(
                f"{view.store.uri('')} has no pending {service.name} {instant}: it was completed or rolled back, or "
                f"never scheduled; t.pending_{service.name}s() returns the pending {service.name}s"
            )
        wanted = Wanted(instant_time=instant, properties=call.properties)
        claimed = claim_plan(service, view, coordinator or TableCoordinator(), wanted)
    if claimed is not None:
        return _carry_out(service, call, claimed, times)
    if instant is not None:
        raise InstantNotFoundError(f"{view.store.uri('')}: the {service.name} {instant} was completed or rolled back")
    return ServiceResult(operation=service.name, seconds=times.seconds())


def execute_waiting(
    service: PlannedService[PlanT],
    call: Call,
    *,
    coordinator: Coordinator | None = None,
    report: OnResult | None = None,
    stopped: Callable[[], bool] | None = None,
) -> list[ServiceResult]:
    """Execute every pending plan that no other process executes, oldest first; see `execute`.

    `report` is called with each result. `stopped` is called before each plan; if it returns True, no further plan is
    executed. If a plan fails, with whatever error, the other plans are still executed, and then the first error is
    raised; its notes name the others.
    """
    coordinator = coordinator or TableCoordinator()
    tried: set[str] = set()
    results: list[ServiceResult] = []
    failures = Failures()
    while stopped is None or not stopped():
        times, claimed = PhaseTimes(), None
        with failures.kept():
            wanted = Wanted(skip=tried, properties=call.properties)
            claimed = claim_plan(service, _checked(service, call), coordinator, wanted)
        if claimed is None:
            break
        tried.add(claimed.instant_time)
        with failures.kept():
            results.append(_carry_out(service, call, claimed, times))
            if report is not None:
                report(results[-1])
    failures.raise_first()
    return results


def has_waiting_plan(service: PlannedService[PlanT], view: TableView) -> bool:
    """Return whether a plan is pending that no process executes."""
    return any(runner_of(view, found).state is not RunState.RUNNING for found in service.pending_plans(view))


def _checked(service: PlannedService[PlanT], call: Call) -> TableView:
    view = call.checked_view()
    service.check(view)
    check_no_exclusive_service(view)
    return view


def _carry_out(
    service: PlannedService[PlanT], call: Call, claimed: ClaimedPlan[PlanT], times: PhaseTimes
) -> ServiceResult:
    """Run one attempt at a claimed plan. A plan without work left is rolled back, with a note."""
    try:
        reached(Step.BEGUN)
        result = service.run(call, claimed, times)
    except BaseException:
        claimed.give_back()
        raise
    notes: tuple[str, ...] = ()
    if claimed.interrupted is not None:
        notes = (f"executed again a plan that {claimed.interrupted} had started and not completed",)
    if result.instant is None:
        claimed.give_back()
        roll_back_plan(service, call.state, claimed.instant_time, remove_plan=True)
        left = f"the plan {claimed.instant_time} was rolled back: it had no work left"
        return replace(result, seconds=times.seconds(), notes=(*notes, *result.notes, left))
    claimed.end()
    return replace(result, seconds=times.seconds(), notes=(*notes, *result.notes))


class PlanExecution(ABC, Generic[PlanT]):
    """One attempt at a claimed plan; a service defines `run`."""

    def __init__(self, call: Call, claimed: ClaimedPlan[PlanT], times: PhaseTimes) -> None:
        self.call = call
        self.claimed = claimed
        self.times = times

    @abstractmethod
    def run(self) -> ServiceResult:
        """Write the files and complete the instant. The result has no instant if no work of the plan is left."""

    @property
    def view(self) -> TableView:
        """The table as it was when the plan was claimed."""
        return self.claimed.view

    @property
    def options(self) -> Mapping[str, str]:
        """The effective options."""
        return effective_options(self.view.config, self.call.properties)

    @cached_property
    def schema(self) -> TableSchema:
        """The columns of the files that the plan writes.

        If columns have ids, readers find the names in a file by its instant. So an instant that was planned before the
        columns changed writes the columns of that time.
        """
        return self.view.schema(as_of=self.claimed.instant_time if visible_schemas(self.view) else None)

    @property
    def read(self) -> SliceRead:
        """How the plan's file slices are read: with all columns that are written."""
        rows = with_meta_fields(self.schema.arrow)
        stored = stored_columns(self.view, rows, as_of=self.claimed.instant_time)
        return replace(self.view.slice_read(), schema=rows, columns=tuple(rows.names), stored=stored)

    @property
    def parquet(self) -> ParquetOptions:
        """How base files are written."""
        return parquet_options(data_table(self.view), self.options, self.schema.arrow)

    def complete(
        self,
        stats: Sequence[WriteStat],
        operation: WriteOperation,
        check: Callable[[TableView], None],
        *,
        replaced: Mapping[str, Sequence[str]] | None = None,
        index: IndexUpdate | None = None,
        entries: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Complete the instant, if this process still owns it; return notes.

        `check` refuses changes of other writers, under the lock. `replaced`: file ids by partition path; None if the
        plan replaces none. `entries`: what the index adds to the commit's extra metadata.
        """
        ids = column_metadata(self.view, as_of=self.claimed.instant_time)
        planned = self.claimed.plan.extra_metadata or {}
        extra = {**planned, **ids, **(entries or {}), SCHEMA_KEY: self.schema.avro}
        metadata = commit_metadata(stats, operation, extra, replaced, compacted=replaced is None)
        reached(Step.LOCATED)
        with collected(data_table(self.view), metadata) as collect:
            completion = DataCommit(
                instant_time=self.claimed.instant_time,
                metadata=metadata,
                collect=collect,
                index=index,
                check_conflicts=check,
                engine_for=self.call.engine_for,
            )
            self.claimed.pending.finish(completion)
        self.call.state.commits[self.claimed.instant_time] = metadata
        return completion.notes


class Failures:
    """The errors of the plans of one call. Errors of every library are kept, as those of Arrow or Spark."""

    def __init__(self) -> None:
        self._errors: list[Exception] = []

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep the error of the body instead of raising it."""
        try:
            yield
        except Exception as error:
            self._errors.append(error)

    def raise_first(self) -> None:
        """Raise the first error, if there is one; its notes name the others."""
        if not self._errors:
            return
        first, *others = self._errors
        for other in others:
            first.add_note(f"another plan failed too: {type(other).__name__}: {other}")
        raise first
