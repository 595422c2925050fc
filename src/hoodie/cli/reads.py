"""`hoodie head`, `count` and `changes`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import pyarrow as pa
import typer

import hoodie
from hoodie.cli.options import AsJson, AsOf, Columns, StorageOptions, TablePath, Where, names_of, pairs
from hoodie.ui.console import output
from hoodie.ui.json_lines import print_json, print_rows
from hoodie.ui.tables import print_table

Meta = Annotated[bool, typer.Option("--meta", help="Print the _hoodie_* columns too.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=0, help="Maximum number of rows.")]


def head(
    path: TablePath,
    limit: Limit = 10,
    column: Columns = None,
    where: Where = None,
    as_of: AsOf = None,
    meta: Meta = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Print a few rows, in no defined order."""
    table = hoodie.open(path, storage_options=pairs(storage_option))
    _print_rows(table.head(limit, columns=_columns(table, column, meta), where=where, as_of=as_of), as_json)


def count(
    path: TablePath,
    where: Where = None,
    as_of: AsOf = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Count the rows, or the rows that match a condition."""
    table = hoodie.open(path, storage_options=pairs(storage_option))
    rows = table.count(where, as_of=as_of)
    if as_json:
        print_json({"rows": rows})
    else:
        typer.echo(str(rows))


def get(
    path: TablePath,
    keys: Annotated[list[str], typer.Argument(metavar="KEY...", help="Record keys; several columns as in id:1,day:2.")],
    column: Columns = None,
    meta: Meta = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Print the records with these keys. Exit code 1 if a key is unknown."""
    from hoodie.records.change import RECORD_KEY

    table = hoodie.open(path, storage_options=pairs(storage_option))
    found = table.read_keys(keys)
    unknown = set(keys) - set(found[RECORD_KEY].to_pylist())
    chosen = _columns(table, column, meta)
    _print_rows(found if chosen is None else found.select(list(chosen)), as_json)
    if unknown:
        raise hoodie.RecordKeyError(f"no record has the key {', '.join(sorted(unknown))}")


def changes(
    path: TablePath,
    since: Annotated[str | None, typer.Option("--since", metavar="TIME", help="After this instant or time.")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Up to this instant or time.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=0, help="Maximum number of rows.")] = None,
    column: Columns = None,
    meta: Meta = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Print the rows changed by commits after --since and up to --until, each row once, as of --until."""
    from hoodie.read.changes import plan_changes
    from hoodie.read.stream import count_rows, first_rows, stream

    table = hoodie.open(path, storage_options=pairs(storage_option))
    plan = plan_changes(table.view(), since, until).with_columns(_columns(table, column, meta))
    if as_json and limit is None:
        print_rows(stream(plan))
        return
    _print_rows(first_rows(plan, 100 if limit is None else limit), as_json)
    if not as_json:
        typer.echo(f"{count_rows(plan):,} rows changed")


def _columns(table: hoodie.Table, columns: Sequence[str] | None, meta: bool) -> Sequence[str] | None:
    """Return the columns to print: the chosen columns, otherwise the table's columns; with `--meta` all columns."""
    chosen = names_of(columns)
    if chosen:
        return chosen
    return None if meta else table.schema.names


def _print_rows(rows: pa.Table, as_json: bool) -> None:
    if as_json:
        print_rows(rows.to_batches())
    else:
        print_table(output(), rows)
