"""`hoodie update` and `delete-partitions`: change or remove rows that are in the table."""

from __future__ import annotations

from typing import Annotated

import typer

import hoodie
from hoodie.cli.options import AsJson, Properties, StorageOptions, TablePath, Where, pairs
from hoodie.cli.writes import print_result
from hoodie.ui.progress import progress_bar


def update(
    path: TablePath,
    assignment: Annotated[
        list[str],
        typer.Option("--set", metavar="COLUMN=EXPRESSION", help="New value in Spark SQL; may be repeated."),
    ],
    where: Where = None,
    option: Properties = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Set columns of all records, or of the records that match a condition."""
    table = hoodie.open(path, storage_options=pairs(storage_option))
    with progress_bar("update"):
        result = table.update(pairs(assignment), where, properties=pairs(option))
    print_result(result, as_json)


def delete_partitions(
    path: TablePath,
    partitions: Annotated[list[str], typer.Argument(metavar="PARTITION...", help="Partition paths, as in city=sf.")],
    option: Properties = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Remove whole partitions from the table."""
    table = hoodie.open(path, storage_options=pairs(storage_option))
    print_result(table.delete_partitions(partitions, properties=pairs(option)), as_json)
