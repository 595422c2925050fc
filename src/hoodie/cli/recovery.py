"""`hoodie verify`, `repair`, `rollback`, `restore` and `savepoint`: find damage, mend it, and go back."""

from __future__ import annotations

from typing import Annotated

import typer

import hoodie
from hoodie.cli.options import AsJson, StorageOptions, TablePath, pairs
from hoodie.cli.services import print_result
from hoodie.cli.terminal import print_json, progress_bar

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


def rollback(
    path: TablePath,
    instant: Annotated[str, typer.Argument(help="Requested time of a write or compaction, pending or completed.")],
    chain: Annotated[bool, typer.Option("--chain", help="Roll back all later commits too.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be rolled back.")] = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Roll back a write or compaction: delete its files, and its instant from the timeline."""
    table = hoodie.open(path, storage_options=pairs(storage_option))
    print_result(table.rollback(instant, chain=chain, dry_run=dry_run), as_json)


def restore(
    path: TablePath,
    savepoint: Annotated[str, typer.Argument(help="Requested time of a savepoint, or of another completed commit.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be rolled back.")] = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Restore the table to a savepoint: roll back everything after it. Completes a restore whose process died."""
    table = hoodie.open(path, storage_options=pairs(storage_option))
    print_result(table.restore(savepoint, dry_run=dry_run), as_json)


app = typer.Typer(
    help="Keep the files of commits, to restore the table to them.", no_args_is_help=True, rich_markup_mode=None
)


@app.command("create")
def create(
    path: TablePath,
    instant: Annotated[
        str | None, typer.Argument(help="Requested time of a completed commit; default: the newest.")
    ] = None,
    user: Annotated[str, typer.Option(help="Name of the user, for the list.")] = "",
    comment: Annotated[str, typer.Option(help="Comment, for the list.")] = "",
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Create a savepoint of a commit."""
    table = hoodie.open(path, storage_options=pairs(storage_option))
    print_result(table.savepoint(instant, user=user, comment=comment), as_json)


@app.command("list")
def list_(path: TablePath, storage_option: StorageOptions = None, as_json: AsJson = False) -> None:
    """Print the savepoints."""
    found = hoodie.open(path, storage_options=pairs(storage_option)).savepoints()
    for savepoint in found:
        told = savepoint.to_dict()
        if as_json:
            print_json(told)
        else:
            named = " ".join(text for text in (savepoint.user, savepoint.comment) if text)
            typer.echo(
                f"{savepoint.instant}  {told['files']} files in {told['partitions']} partitions  {named}".rstrip()
            )
    if not found and not as_json:
        typer.echo("no savepoints")


@app.command("delete")
def delete(
    path: TablePath,
    instant: Annotated[str, typer.Argument(help="Requested time of the savepoint's commit.")],
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Delete a savepoint; its files stay until a clean finds them obsolete."""
    print_result(hoodie.open(path, storage_options=pairs(storage_option)).delete_savepoint(instant), as_json)
