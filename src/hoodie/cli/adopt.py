"""`hoodie adopt`: make a table of a folder or of a list of Parquet files."""

from __future__ import annotations

from typing import Annotated

import typer

import hoodie
from hoodie.cli.options import (
    AsJson,
    Ordering,
    Properties,
    RecordKey,
    StorageOptions,
    TableName,
    TableType,
    TableVersion,
    pairs,
)
from hoodie.cli.terminal import print_json, print_note

REFUSED = 1
"""Exit code of a dry run that found something that an adoption refuses."""
_Modes = Annotated[
    list[str] | None,
    typer.Option(
        "--mode",
        metavar="[PARTITION:]MODE",
        help="rewrite (default) the rows, or metadata_only: they stay in the source files. May be repeated.",
    ),
]
_Duplicates = Annotated[
    str,
    typer.Option("--duplicates", help="error, or merge: of rows with one key the newest by the ordering column stays."),
]


def adopt(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...", help="A folder of Parquet files; or with --files, the files.", show_default=False
        ),
    ],
    target: Annotated[
        str | None, typer.Option("--target", "-t", metavar="TABLE", help="Folder or URI of the new table.")
    ] = None,
    files: Annotated[bool, typer.Option("--files", help="The sources are Parquet files, not a folder.")] = False,
    key: RecordKey = None,
    partition_by: Annotated[
        list[str] | None,
        typer.Option("--partition-by", "-p", help="Partition column; may be repeated. Default: those of the folders."),
    ] = None,
    no_partitions: Annotated[bool, typer.Option("--no-partitions", help="The table has no partitions.")] = False,
    ordering: Ordering = None,
    table_type: TableType = "copy_on_write",
    index: Annotated[str | None, typer.Option("--index", help="As for `hoodie create`.")] = None,
    mode: _Modes = None,
    duplicates: _Duplicates = "error",
    table_version: TableVersion = None,
    name: TableName = None,
    execute: Annotated[
        bool, typer.Option("--execute", help="Write the table; default: only print what would be done.")
    ] = False,
    option: Properties = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Make a table of Parquet files; by default only print what would be done."""
    if len(sources) > 1 and not files:
        raise typer.BadParameter("several sources: expected one folder, or --files for Parquet files")
    if partition_by and no_partitions:
        raise typer.BadParameter("--partition-by and --no-partitions contradict each other: leave out one")
    found = hoodie.adopt(
        None if files else sources[0],
        target,
        files=sources if files else None,
        record_key=key,
        partition_by=[] if no_partitions else partition_by,
        ordering=ordering,
        type=table_type,
        index=index,
        name=name,
        table_version=table_version,
        duplicates=duplicates,
        mode=_mode(mode or []),
        properties=pairs(option),
        dry_run=not execute,
        storage_options=pairs(storage_option),
    )
    if as_json:
        print_json(found.to_dict())
    else:
        typer.echo(str(found))
    if not found.ok:
        print_note("the files cannot be adopted as they are")
        raise typer.Exit(REFUSED)


def _mode(texts: list[str]) -> str | dict[str, str]:
    """Return one mode, or modes by partition path."""
    pairs = [text.rpartition(":") for text in texts]
    if len(pairs) == 1 and not pairs[0][1]:
        return texts[0]
    return {path or "*": mode for path, _, mode in pairs} if pairs else "rewrite"
