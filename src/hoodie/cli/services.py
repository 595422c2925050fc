"""`hoodie compact`, `cluster`, `clean`, `archive` and `expire-partitions` by hand; `services run` beside writers."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

import typer

import hoodie
from hoodie.cli.options import Call, Properties, pairs, table_command
from hoodie.cli.signals import interrupted
from hoodie.cli.terminal import Answer, going_on, print_answer, print_error, progress_bar
from hoodie.cli.words import in_words
from hoodie.format.table.call_options import check_call_options
from hoodie.results import ServiceResult
from hoodie.services.planned.pending import PendingPlans
from hoodie.services.registry import all_services

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
By = Annotated[
    list[str] | None,
    typer.Option("--by", metavar="COLUMN", help="Sort by this column; repeat the option for several columns."),
]
Layout = Annotated[str | None, typer.Option("--layout", help="linear, zorder or hilbert.")]
Partitions = Annotated[
    list[str] | None, typer.Option("--partition", metavar="PATH", help="Cluster only this partition; may be repeated.")
]
_LOOK_SECONDS = 1.0
"""How often the command looks whether its thread still runs."""

app = typer.Typer(help="Run table services beside the writers.", no_args_is_help=True, rich_markup_mode=None)


@table_command()
def compact(
    call: Call,
    plan: Annotated[bool, typer.Option("--plan", help="Only plan, and print the instant.")] = False,
    run: Annotated[bool, typer.Option("--run", help="Only execute the pending plans.")] = False,
    pending: Annotated[bool, typer.Option("--pending", help="Only print the pending plans.")] = False,
    instant: Instant = None,
    strategy: Strategy = None,
    metadata: Metadata = None,
    option: Properties = None,
) -> Answer:
    """Merge log files with base files: execute the pending plans, or a new plan if none is pending."""
    if plan + run + pending > 1 or (instant is not None and (plan or pending)):
        raise typer.BadParameter(
            "use at most one of --plan, --run and --pending; --instant cannot be combined with --plan or --pending"
        )
    if (strategy or metadata) and (run or pending or instant):
        raise typer.BadParameter("--strategy and --metadata are for a new plan; a pending plan has its own")
    table = call.table
    properties = pairs(option)
    check_call_options(properties)
    if pending:
        return _plans(table.pending_compactions())
    waits = table.pending_compactions().instants
    if waits and (strategy or metadata) and not plan:
        raise hoodie.InvalidConfigError(
            f"--strategy and --metadata are for a new plan, and {', '.join(waits)} waits to be executed first: use "
            "--run, or --plan for another plan beside it"
        )
    if plan or not (waits or run or instant):
        planned = table.schedule_compaction(strategy, pairs(metadata), properties=properties)
        if plan:
            return Answer(planned or "nothing to compact", [{"instant": planned}])
        waits = [] if planned is None else [planned]
    with progress_bar("compaction"):
        results = [table.compact(found, properties=properties) for found in ([instant] if instant else waits)]
    return Answer.of(*(results or [ServiceResult(operation="compaction")]), table=call.path)


def _plans(found: PendingPlans[Any]) -> Answer:
    return Answer(str(found), found.to_dicts())


@table_command()
def cluster(
    call: Call,
    by: By = None,
    layout: Layout = None,
    partition: Partitions = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only plan, and print the instant.")] = False,
    run: Annotated[bool, typer.Option("--run", help="Only execute the pending plans.")] = False,
    pending: Annotated[bool, typer.Option("--pending", help="Only print the pending plans.")] = False,
    advice: Annotated[bool, typer.Option("--advice", help="Only print whether a clustering is needed.")] = False,
    instant: Instant = None,
    option: Properties = None,
) -> Answer:
    """Rewrite small files into larger ones, sorted by columns if there are any: pending plans, then a new plan."""
    if plan + run + pending + advice + (instant is not None) > 1:
        raise typer.BadParameter("use at most one of --plan, --run, --pending, --advice and --instant")
    if (by or layout or partition) and (run or pending or advice or instant):
        raise typer.BadParameter("--by, --layout and --partition are for a new plan; a pending plan has its own")
    table = call.table
    properties = pairs(option)
    check_call_options(properties)
    if pending:
        return _plans(table.pending_clusterings())
    if advice:
        found = table.clustering_advice()
        return Answer(in_words(str(found), call.path), [{"is_advised": found.is_advised, **asdict(found)}])
    if plan:
        planned = table.schedule_clustering(by, layout=layout, partitions=partition, properties=properties)
        return Answer(planned or "nothing to cluster", [{"instant": planned}])
    with progress_bar("clustering"):
        if run:
            waits = table.pending_clusterings().instants
            results = [table.cluster(instant=found, properties=properties) for found in waits]
        else:
            results = [table.cluster(by, layout=layout, partitions=partition, instant=instant, properties=properties)]
    return Answer.of(*results, table=call.path)


def _with_services(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each service of the registry; the function gets the names of those that are on."""
    flags = {service.name.replace("-", "_"): service for service in all_services()}

    @functools.wraps(function)
    def command(call: Call, **given: Any) -> None:
        names = [service.name for flag, service in flags.items() if given.pop(flag)]
        function(call, names, **given)

    first, _, *others = inspect.signature(function, eval_str=True).parameters.values()
    options = (
        first.replace(
            name=flag, annotation=Annotated[bool, typer.Option(f"--{service.name}", help=service.about)], default=False
        )
        for flag, service in flags.items()
    )
    command.__signature__ = inspect.Signature([first, *options, *others])  # type: ignore[attr-defined]
    return command


@app.command("run")
@table_command()
@_with_services
def run(
    call: Call,
    names: list[str],
    interval: Annotated[float, typer.Option("--interval", min=0.01, help="Seconds between rounds.")] = 60.0,
    once: Annotated[bool, typer.Option("--once", help="Run one round, then exit.")] = False,
    schedule: Annotated[
        bool, typer.Option(help="Schedule compactions that are due; otherwise only execute the pending compactions.")
    ] = True,
    zookeeper: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT[/PATH]", help="Share the work with compactors on other machines through ZooKeeper."
        ),
    ] = None,
    option: Properties = None,
) -> None:
    """Run the services that are due until interrupted; running work is finished first.

    Without a service, those run that are on in the table's properties. Several processes can serve one table. The exit
    code is 1 if a service of the last round failed.
    """
    runner = call.table.services(
        names or None,
        interval=interval,
        schedule=schedule,
        coordinator=None if zookeeper is None else f"zookeeper://{zookeeper}",
        properties=pairs(option),
        report=going_on()(lambda result: print_answer(result, call.as_json, table=call.path)),
        on_error=going_on()(lambda name, error: print_error(hoodie.HoodieError(f"{name}: {error}"))),
    )
    if once:
        done = runner.run_once()
        if done.errors:
            raise typer.Exit(1)
        if not done.results:
            print_answer(Answer(str(done), []), call.as_json)
        return
    with interrupted() as stopped, runner:
        while runner.is_running and not stopped.wait(_LOOK_SECONDS):
            pass
    if runner.errors or not stopped.is_set():
        raise typer.Exit(1)
