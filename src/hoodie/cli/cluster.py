"""`hoodie cluster`: plan a clustering, execute it, show the pending clusterings, or tell whether one is needed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

import hoodie
from hoodie.cli.compact import print_plans, print_result, print_scheduled
from hoodie.cli.options import AsJson, Properties, StorageOptions, TablePath, pairs
from hoodie.format.table.call_options import check_call_options
from hoodie.table import Table
from hoodie.ui.json_lines import print_json
from hoodie.ui.progress import progress_bar

By = Annotated[
    list[str] | None,
    typer.Option("--by", metavar="COLUMN", help="Sort by this column; repeat the option for several columns."),
]
Layout = Annotated[str | None, typer.Option("--layout", help="linear, zorder or hilbert.")]
Partitions = Annotated[
    list[str] | None, typer.Option("--partition", metavar="PATH", help="Cluster only this partition; may be repeated.")
]
Instant = Annotated[
    str | None, typer.Option("--instant", metavar="TIME", help="Execute the plan with this requested time.")
]


def cluster(
    path: TablePath,
    by: By = None,
    layout: Layout = None,
    partition: Partitions = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only plan, and print the instant.")] = False,
    run: Annotated[bool, typer.Option("--run", help="Only execute the pending plans.")] = False,
    pending: Annotated[bool, typer.Option("--pending", help="Only print the pending plans.")] = False,
    advice: Annotated[bool, typer.Option("--advice", help="Only tell whether a clustering is needed.")] = False,
    instant: Instant = None,
    option: Properties = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Rewrite small files into larger ones, sorted by columns if there are any: pending plans, then a new plan."""
    if plan + run + pending + advice + (instant is not None) > 1:
        raise typer.BadParameter("use at most one of --plan, --run, --pending, --advice and --instant")
    if (by or layout or partition) and (run or pending or advice or instant):
        raise typer.BadParameter("--by, --layout and --partition are for a new plan; a pending plan has its own")
    table = hoodie.open(path, storage_options=pairs(storage_option))
    properties = pairs(option)
    check_call_options(properties)
    if pending:
        print_plans(table.pending_clusterings(), as_json)
    elif advice:
        _show_advice(table, as_json)
    elif plan:
        planned = table.schedule_clustering(by, layout=layout, partitions=partition, properties=properties)
        print_scheduled(planned, as_json, nothing="nothing to cluster")
    elif run:
        with progress_bar("clustering"):
            results = [
                table.cluster(instant=found, properties=properties) for found in table.pending_clusterings().instants
            ]
        for result in results:
            print_result(result, as_json)
    else:
        with progress_bar("clustering"):
            done = table.cluster(by, layout=layout, partitions=partition, instant=instant, properties=properties)
        print_result(done, as_json)


def _show_advice(table: Table, as_json: bool) -> None:
    found = table.clustering_advice()
    if as_json:
        print_json({"is_advised": found.is_advised, **asdict(found)})
    else:
        typer.echo(str(found))
