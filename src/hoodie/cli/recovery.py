"""`hoodie verify`, `repair`, `rollback`, `restore` and `savepoint`: find damage, mend it, and go back."""

from __future__ import annotations

from typing import Annotated

import typer

import hoodie
from hoodie.cli.options import Call, Execute, Properties, pairs, table_command
from hoodie.cli.terminal import Answer
from hoodie.results import Report, ServiceResult

FOUND = 3
"""Exit code of `hoodie verify` if it found errors. Warnings alone do not fail."""

_LOST = "For a table that lost hoodie.properties."
Full = Annotated[bool, typer.Option("--full", help="Read every file, every key and the record index too.")]


@table_command("verify", failed=FOUND)
def verify(call: Call, full: Full = False) -> Report:
    """Check a table. Exit code 0: sound, warnings included; 1: the table cannot be checked; 3: errors were found."""
    return call.table.verify(full)


@table_command("repair")
def repair(
    call: Call,
    execute: Execute = False,
    full: Full = False,
    min_age: Annotated[
        float, typer.Option("--min-age", min=0, help="Keep orphaned and temporary files that are younger, in seconds.")
    ] = 3600.0,
    accept_loss: Annotated[
        list[str] | None,
        typer.Option(
            "--accept-loss", metavar="FILE", help="Give up this lost file and its rows instead; may be repeated."
        ),
    ] = None,
    key: Annotated[list[str] | None, typer.Option("--key", "-k", help="Record key column. " + _LOST)] = None,
    partition_by: Annotated[
        list[str] | None, typer.Option("--partition-by", "-p", help="Partition column. " + _LOST)
    ] = None,
    ordering: Annotated[list[str] | None, typer.Option("--ordering", "-o", help="Ordering column. " + _LOST)] = None,
    no_ordering: Annotated[bool, typer.Option("--no-ordering", help="There is no ordering column. " + _LOST)] = False,
    index: Annotated[str | None, typer.Option("--index", help="The index. " + _LOST)] = None,
    option: Properties = None,
) -> ServiceResult | Answer:
    """Mend what `hoodie verify` found; by default only print what would be done. Rebuild a lost hoodie.properties."""
    options = pairs(call.storage_options)
    if ordering and no_ordering:
        raise typer.BadParameter("--ordering and --no-ordering contradict each other: leave out one")
    if not hoodie.exists(call.path, storage_options=options):
        if accept_loss:
            raise typer.BadParameter("--accept-loss requires a table with hoodie.properties: rebuild that file first")
        found = hoodie.rebuild_properties(
            call.path,
            record_key=key,
            partition_by=partition_by,
            ordering=[] if no_ordering else ordering,
            index=index,
            properties=pairs(option),
            dry_run=not execute,
            storage_options=options,
        )
        lines = [str(found), *(f"  {name}={value}" for name, value in sorted(found.properties.items()))]
        return Answer("\n".join(lines), [found.to_dict()])
    if key or partition_by or ordering or no_ordering or index or option:
        raise typer.BadParameter(
            "--key, --partition-by, --ordering, --no-ordering, --index and --option are for a table that lost "
            "hoodie.properties"
        )
    return call.table.repair(not execute, full=full, min_age_seconds=min_age, accept_loss=accept_loss or None)


@table_command()
def rollback(
    call: Call,
    instant: Annotated[str, typer.Argument(help="Requested time of a write or compaction, pending or completed.")],
    chain: Annotated[bool, typer.Option("--chain", help="Roll back all later commits too.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be rolled back.")] = False,
) -> ServiceResult:
    """Roll back a write or compaction: delete its files, and its instant from the timeline.

    The result counts the instants, the rows that they had inserted, updated and deleted, and the deleted files.
    """
    return call.table.rollback(instant, chain=chain, dry_run=dry_run)


@table_command()
def restore(
    call: Call,
    savepoint: Annotated[str, typer.Argument(help="Requested time of a savepoint, or of another completed commit.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be rolled back.")] = False,
) -> ServiceResult:
    """Restore the table to a savepoint: roll back everything after it. Completes a restore whose process died."""
    return call.table.restore(savepoint, dry_run=dry_run)


app = typer.Typer(
    help="Keep the files of commits, to restore the table to them.", no_args_is_help=True, rich_markup_mode=None
)


@app.command("create")
@table_command()
def create(
    call: Call,
    instant: Annotated[
        str | None, typer.Argument(help="Requested time of a completed commit; default: the newest.")
    ] = None,
    user: Annotated[str, typer.Option(help="Name of the user, for the list.")] = "",
    comment: Annotated[str, typer.Option(help="Comment, for the list.")] = "",
) -> ServiceResult:
    """Create a savepoint of a commit."""
    return call.table.savepoint(instant, user=user, comment=comment)


@app.command("list")
@table_command()
def list_(call: Call) -> Answer:
    """Print the savepoints."""
    lines, documents = [], []
    for savepoint in call.table.savepoints():
        counts = savepoint.to_dict()
        named = " ".join(text for text in (savepoint.user, savepoint.comment) if text)
        lines.append(
            f"{savepoint.instant}  {counts['files']} files in {counts['partitions']} partitions  {named}".rstrip()
        )
        documents.append(counts)
    return Answer("\n".join(lines) or "no savepoints", documents)


@app.command("delete")
@table_command()
def delete(
    call: Call,
    instant: Annotated[str, typer.Argument(help="Requested time of the savepoint's commit.")],
) -> ServiceResult:
    """Delete a savepoint; its files stay until a clean finds them obsolete."""
    return call.table.delete_savepoint(instant)
