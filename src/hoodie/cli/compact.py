"""`hoodie compact schedule`, `run` and `pending`."""

from __future__ import annotations

from typing import Annotated

import typer

import hoodie
from hoodie.cli.options import AsJson, Properties, StorageOptions, TablePath, pairs
from hoodie.services.result import ServiceResult
from hoodie.ui.json_lines import print_json
from hoodie.ui.progress import progress_bar

app = typer.Typer(
    help="Schedule compactions of log files, carry them out, and see what waits.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Instant = Annotated[str | None, typer.Option("--instant", metavar="TIME", help="A certain plan; default: the oldest.")]


@app.command("schedule")
def schedule(
    path: TablePath,
    strategy: Annotated[
        str | None,
        typer.Option(help="log_file_size, log_file_num, bounded_io, day_based, unbounded, or Hudi's class."),
    ] = None,
    metadata: Annotated[
        list[str] | None, typer.Option("--metadata", metavar="KEY=VALUE", help="Extra metadata of the compaction.")
    ] = None,
    option: Properties = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Plan a compaction of the file slices that have log files; prints its instant."""
    table = hoodie.open(path, storage_options=pairs(storage_option))
    instant = table.schedule_compaction(strategy, pairs(metadata), properties=pairs(option))
    if as_json:
        print_json({"instant": instant})
    else:
        typer.echo(instant or "nothing to compact")


@app.command("run")
def run(
    path: TablePath,
    instant: Instant = None,
    option: Properties = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Carry out one pending compaction, taking up one that was interrupted."""
    table = hoodie.open(path, storage_options=pairs(storage_option))
    with progress_bar("compaction"):
        result = table.compact(instant, properties=pairs(option))
    print_result(result, as_json)


@app.command("pending")
def pending(path: TablePath, storage_option: StorageOptions = None, as_json: AsJson = False) -> None:
    """Show the plans that wait for compaction, how much each has to do, and who is at it."""
    found = hoodie.open(path, storage_options=pairs(storage_option)).pending_compactions()
    if as_json:
        for plan in found.to_dicts():
            print_json(plan)
    else:
        typer.echo(str(found))


def print_result(result: ServiceResult, as_json: bool) -> None:
    """Print what a service did."""
    if as_json:
        print_json(result.to_dict())
    else:
        typer.echo(str(result))
