"""`hoodie compact`: plan a compaction, execute it, or show the pending compactions."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import hoodie
from hoodie.cli.options import AsJson, Properties, StorageOptions, TablePath, pairs
from hoodie.format.table.call_options import check_call_options
from hoodie.services.planned.listing import PendingPlans
from hoodie.services.results import ServiceResult
from hoodie.ui.json_lines import print_json
from hoodie.ui.progress import progress_bar

Instant = Annotated[
    str | None, typer.Option("--instant", metavar="TIME", help="Execute the plan with this requested time.")
]
Strategy = Annotated[
    str | None,
    typer.Option(
        help="log_file_size, log_file_num, bounded_io, day_based, unbounded, or the name of Hudi's strategy class."
    ),
]
Metadata = Annotated[
    list[str] | None, typer.Option("--metadata", metavar="KEY=VALUE", help="Extra metadata of the compaction.")
]


def compact(
    path: TablePath,
    plan: Annotated[bool, typer.Option("--plan", help="Only plan, and print the instant.")] = False,
    run: Annotated[bool, typer.Option("--run", help="Only execute the pending plans.")] = False,
    pending: Annotated[bool, typer.Option("--pending", help="Only print the pending plans.")] = False,
    instant: Instant = None,
    strategy: Strategy = None,
    metadata: Metadata = None,
    option: Properties = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Merge log files with base files: execute the pending plans, or a new plan if none is pending."""
    if plan + run + pending > 1 or (instant is not None and (plan or pending)):
        raise typer.BadParameter(
            "use at most one of --plan, --run and --pending; --instant cannot be combined with --plan or --pending"
        )
    table = hoodie.open(path, storage_options=pairs(storage_option))
    properties = pairs(option)
    check_call_options(properties)
    if pending:
        print_plans(table.pending_compactions(), as_json)
        return
    waits = table.pending_compactions().instants
    if plan or not (waits or run or instant):
        planned = table.schedule_compaction(strategy, pairs(metadata), properties=properties)
        if plan:
            print_scheduled(planned, as_json, nothing="nothing to compact")
            return
        waits = [] if planned is None else [planned]
    with progress_bar("compaction"):
        results = [table.compact(found, properties=properties) for found in ([instant] if instant else waits)]
    for result in results or [ServiceResult(operation="compaction")]:
        print_result(result, as_json)


def print_plans(found: PendingPlans[Any], as_json: bool) -> None:
    """Print the pending plans of a table service."""
    if as_json:
        for plan in found.to_dicts():
            print_json(plan)
    else:
        typer.echo(str(found))


def print_scheduled(instant: str | None, as_json: bool, *, nothing: str) -> None:
    """Print the instant of a new plan; `nothing` is the text if there is none."""
    if as_json:
        print_json({"instant": instant})
    else:
        typer.echo(instant or nothing)


def print_result(result: ServiceResult, as_json: bool) -> None:
    """Print the result of a table service."""
    if as_json:
        print_json(result.to_dict())
    else:
        typer.echo(str(result))
