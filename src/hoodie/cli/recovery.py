"""`hoodie verify`, `repair`, `rollback`, `restore` and `savepoint`: find damage, mend it, and go back."""

from __future__ import annotations

from typing import Annotated

import typer

import hoodie
from hoodie.cli.operations import group_of
from hoodie.cli.options import FOUND, Call, Execute, Full, Properties, pairs, table_command
from hoodie.cli.terminal import Answer
from hoodie.cli.words import result_in_words
from hoodie.results import ServiceResult

_LOST = "For a table that lost hoodie.properties."


@table_command("repair", failed=FOUND)
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
        said = str(result_in_words(found, call.path))
        lines = [said, *(f"  {name}={value}" for name, value in sorted(found.properties.items()))]
        return Answer("\n".join(lines), [found.to_dict()])
    if key or partition_by or ordering or no_ordering or index or option:
        raise typer.BadParameter(
            "--key, --partition-by, --ordering, --no-ordering, --index and --option are for a table that lost "
            "hoodie.properties"
        )
    return call.table.repair(not execute, full=full, min_age_seconds=min_age, accept_loss=accept_loss or None)


app = group_of("savepoint", "Keep the files of commits, to restore the table to them.")


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
