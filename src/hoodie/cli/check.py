"""`hoodie verify` and `hoodie repair`."""

from __future__ import annotations

from typing import Annotated

import typer

import hoodie
from hoodie.cli.compact import print_result
from hoodie.cli.options import AsJson, StorageOptions, TablePath, pairs
from hoodie.ui.json_lines import print_json
from hoodie.ui.progress import progress_bar

FOUND = 3
"""Exit code of `hoodie verify` if it found errors. Warnings alone do not fail."""

Full = Annotated[bool, typer.Option("--full", help="Read every file, every key and the record index too.")]


def verify(path: TablePath, full: Full = False, storage_option: StorageOptions = None, as_json: AsJson = False) -> None:
    """Check a table. Exit code 0: sound, warnings included; 1: the table cannot be checked; 3: errors were found."""
    table = hoodie.open(path, storage_options=pairs(storage_option), spark=False)
    with progress_bar("verify"):
        report = table.verify(full)
    if as_json:
        print_json(report.to_dict())
    else:
        typer.echo(str(report))
    if not report.ok:
        raise typer.Exit(FOUND)


def repair(
    path: TablePath,
    execute: Annotated[
        bool, typer.Option("--execute", "--no-dry-run", help="Do it; without this option nothing is changed.")
    ] = False,
    full: Full = False,
    min_age: Annotated[
        float, typer.Option("--min-age", min=0, help="Keep orphaned and temporary files that are younger, in seconds.")
    ] = 3600.0,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Mend what `hoodie verify` found; by default only say what would be done."""
    table = hoodie.open(path, storage_options=pairs(storage_option), spark=False)
    with progress_bar("repair"):
        result = table.repair(not execute, full=full, min_age_seconds=min_age)
    print_result(result, as_json)
