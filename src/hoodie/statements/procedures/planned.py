"""Procedures that plan, execute and list compactions and clusterings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import compress
from typing import Any, Final

from hoodie.config.patterns import check_pattern, match_whole
from hoodie.errors import InstantNotFoundError, InvalidConfigError, UnsupportedError
from hoodie.format.table.table_config import TableType
from hoodie.read.partition_pruning import PartitionPruning
from hoodie.records.condition import Condition
from hoodie.statements.procedures.procedure import OPTIONS, TABLE, Call, Row, optional, procedure, required
from hoodie.timeline import Action, Instant
from hoodie.view.listing import list_files
from hoodie.view.pending_plans import stored_clustering, stored_plan
from hoodie.view.table_view import TableView

_RUN, _SCHEDULE, _EXECUTE = ("run", "scheduleandexecute"), ("schedule",), ("execute",)
_COMPACTIONS: Final = (Action.COMPACTION, Action.COMMIT)
_CLUSTERINGS: Final = (Action.CLUSTERING, Action.REPLACE_COMMIT)
_PLANS: Final = "timestamp string, operation_size integer, state string"
_GROUPS: Final = "timestamp string, input_group_size integer, state string, involved_partitions string"


def _chosen(call: Call, pending: Iterable[str], schedule: Callable[[], str | None]) -> tuple[list[str], bool]:
    """Return the plans of a call, and whether they are executed; a new plan is made for some values of `op`.

    As in Hudi, `run` executes the new plan; if there is nothing new to do, the pending ones.
    Raises: InvalidConfigError, also for named instants and an `op` that makes a new plan only; InstantNotFoundError for
    instants that are not pending.
    """
    waiting = sorted(pending)
    named = call.names_in("instants") or call.names_in("timestamp")
    op = (call["op"] or "run").lower()
    if op not in (*_RUN, *_SCHEDULE, *_EXECUTE):
        raise InvalidConfigError(f"CALL: op => {call['op']!r}: expected run, schedule, execute or scheduleAndExecute")
    if named:
        if op not in ("run", *_EXECUTE):
            raise InvalidConfigError(
                f"CALL: op => {call['op']!r} makes a new plan, and instants => {', '.join(named)} are pending plans: "
                "expected op => 'execute', or no instants"
            )
        lost = sorted(set(named) - set(waiting))
        if lost:
            raise InstantNotFoundError(f"CALL: {lost} are not pending; pending are {waiting}")
        return named, True
    if op in _EXECUTE:
        return waiting[: call.values.get("limit")], True
    made = schedule()
    if op in _SCHEDULE:
        return [] if made is None else [made], False
    return waiting[: call.values.get("limit")] if made is None else [made], True


def _newest_first(view: TableView, actions: Collection[Action], chosen: Collection[str] | None) -> Iterable[Instant]:
    """Yield the instants of these actions, of the chosen times only unless that is None."""
    for instant in reversed(view.timeline.instants):
        if instant.action in actions and (chosen is None or instant.requested_time in chosen):
            yield instant


def _compactions(view: TableView, chosen: Collection[str] | None = None) -> Iterable[Row]:
    for instant in _newest_first(view, _COMPACTIONS, chosen):
        plan = stored_plan(view, instant)
        if plan is not None:
            yield {**_of(instant), "operation_size": len(plan.operations)}


def _clusterings(call: Call, view: TableView, chosen: Collection[str] | None = None) -> Iterable[Row]:
    for instant in _newest_first(view, _CLUSTERINGS, chosen):
        plan = stored_clustering(view, instant)
        if plan is not None:
            paths = {piece.partition_path for group in plan.input_groups for piece in group.slices}
            involved = ",".join(sorted(paths)) if call["show_involved_partition"] else "*"
            yield {**_of(instant), "input_group_size": len(plan.input_groups), "involved_partitions": involved}


def _of(instant: Instant) -> dict[str, Any]:
    return {"timestamp": instant.requested_time, "state": instant.state.name}


@procedure(parameters=(*TABLE, optional("limit", 20)), columns=_PLANS)
def show_compaction(call: Call) -> Iterable[Row]:
    """List the compactions of the active timeline, newest first."""
    view = call.table.view()
    if view.config.table_type is not TableType.MERGE_ON_READ:
        raise UnsupportedError(f"CALL show_compaction: {view.store.uri('')} is no merge-on-read table")
    return call.limited(_compactions(view))


@procedure(
    parameters=(
        required("op"),
        *TABLE,
        optional("timestamp"),
        OPTIONS,
        optional("instants"),
        optional("limit", kind=int),
    ),
    columns=_PLANS,
)
def run_compaction(call: Call) -> Iterable[Row]:
    """Plan a compaction and execute it; op: run, schedule, execute or scheduleAndExecute."""
    table, options = call.table, call.options()
    known = [compaction.instant for compaction in table.pending_compactions() if compaction.action == Action.COMPACTION]
    chosen, executes = _chosen(call, known, lambda: table.schedule_compaction(properties=options))
    for instant in chosen if executes else ():
        table.compact(instant, properties=options)
    return _compactions(table.view(), chosen)


@procedure(
    parameters=(
        *TABLE,
        optional("predicate"),
        optional("order"),
        optional("show_involved_partition", False),
        optional("op"),
        optional("order_strategy"),
        OPTIONS,
        optional("instants"),
        optional("selected_partitions"),
        optional("partition_regex_pattern"),
        optional("limit", kind=int),
    ),
    columns=_GROUPS,
)
def run_clustering(call: Call) -> Iterable[Row]:
    """Plan a clustering and execute it, sorted by the columns of order; op as for run_compaction."""
    table, options = call.table, call.options()
    by = call.names_in("order") or None
    layout = (call["order_strategy"] or "").replace("-", "") or None
    parts = _wanted_partitions(call, table.view())
    if parts == []:
        return []
    chosen, executes = _chosen(
        call,
        [found.instant for found in table.pending_clusterings()],
        lambda: table.schedule_clustering(by, layout=layout, partitions=parts, properties=options),
    )
    for instant in chosen if executes else ():
        table.cluster(instant=instant, properties=options)
    return _clusterings(call, table.view(), chosen)


def _wanted_partitions(call: Call, view: TableView) -> list[str] | None:
    """Return the partitions that a call selects; None for all. Raises: InvalidConfigError."""
    predicate, pattern = call["predicate"], call["partition_regex_pattern"]
    if predicate:
        schema = view.schema().arrow
        where = Condition.of_call(predicate, lambda: schema.names)
        pruning = PartitionPruning.of(view, where, schema)
        if pruning is None or not where.columns(schema) <= set(pruning.fields):
            raise InvalidConfigError(
                f"CALL: predicate => {predicate!r}: expected a condition on the partition columns "
                f"{', '.join(view.config.partition_fields)} only"
            )
        return sorted(pruning.keep(list_files(view)))
    if pattern:
        try:
            check_pattern(pattern)
        except ValueError as error:
            raise InvalidConfigError(f"CALL: partition_regex_pattern => {pattern!r}: {error}") from error
        paths = sorted(list_files(view))
        return [*compress(paths, match_whole(pattern, paths))]
    return call.names_in("selected_partitions") or None


@procedure(parameters=(*TABLE, optional("limit", 20), optional("show_involved_partition", False)), columns=_GROUPS)
def show_clustering(call: Call) -> Iterable[Row]:
    """List the clusterings of the active timeline, newest first."""
    return call.limited(_clusterings(call, call.table.view()))
