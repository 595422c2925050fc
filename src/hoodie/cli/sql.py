"""`hoodie sql`: run one SQL statement in this process."""

from __future__ import annotations

from typing import Annotated

import pyarrow as pa
import typer

import hoodie
from hoodie.cli.input import InputOptions, open_files
from hoodie.cli.options import AsJson, Properties, StorageOptions, pairs
from hoodie.cli.writes import print_result
from hoodie.ui.console import output
from hoodie.ui.json_lines import print_rows
from hoodie.ui.tables import print_table


def sql(
    statement: Annotated[
        str, typer.Argument(help="MERGE INTO, UPDATE, DELETE FROM or CALL; hoodie.`/path` is a table.")
    ],
    table: Annotated[list[str] | None, typer.Option("--table", "-t", help="A name for a table: NAME=PATH.")] = None,
    data: Annotated[
        list[str] | None, typer.Option("--data", "-d", help="A name for rows, the source of a MERGE: NAME=FILE.")
    ] = None,
    option: Properties = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Run one SQL statement; `hoodie sql "CALL help()"` lists the procedures."""
    sources = {name: open_files([path], InputOptions()).read_all() for name, path in pairs(data).items()}
    result = hoodie.sql(
        None,
        statement,
        tables={**pairs(table), **sources},
        properties=pairs(option),
        storage_options=pairs(storage_option),
    )
    if not isinstance(result, pa.Table):
        print_result(result, as_json)
    elif as_json:
        print_rows(result.to_batches())
    else:
        print_table(output(), result)
