"""`hoodie savepoint`: create, list and delete savepoints."""

from __future__ import annotations

from typing import Annotated

import typer

import hoodie
from hoodie.cli.compact import print_result
from hoodie.cli.options import AsJson, StorageOptions, TablePath, pairs
from hoodie.ui.json_lines import print_json

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
