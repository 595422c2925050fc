"""`hoodie index build`, `drop`, `switch`, `rebuild`, `verify` and `compare`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import pyarrow as pa
import typer

import hoodie
from hoodie.cli.input import open_files
from hoodie.cli.operations import group_of
from hoodie.cli.options import Call, NullTexts, table_command
from hoodie.ingest.rows.rules import InputOptions
from hoodie.results import Report

app = group_of("index", "Switch indexes; build, drop, check and compare the record index and column statistics.")


class Comparable(StrEnum):
    """Indexes that can be compared."""

    RECORD = "record"
    SIMPLE = "simple"
    GLOBAL_SIMPLE = "global_simple"
    BLOOM = "bloom"
    GLOBAL_BLOOM = "global_bloom"
    BUCKET = "bucket"


@app.command("compare")
@table_command("index compare")
def compare(
    call: Call,
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE...]", help="Files with the key columns of the records to look up."),
    ] = None,
    first: Annotated[Comparable, typer.Option("--first", help="The first index.")] = Comparable.RECORD,
    second: Annotated[Comparable, typer.Option("--second", help="The second index.")] = Comparable.SIMPLE,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="TIME", help="Check the entries of commits that completed after this instant or time."
        ),
    ] = None,
    null: NullTexts = None,
) -> Report:
    """Look up keys in two indexes, or check the entries of commits since an instant; exit code 1 if they differ."""
    if bool(files) == (since is not None):
        raise typer.BadParameter("pass either files with keys, or --since")
    rows = _keys(call.table, files, null) if files else None
    return call.table.index.compare(first.value, second.value, data=rows, since=since)


def _keys(table: hoodie.Table, files: list[str], null: list[str] | None) -> pa.RecordBatchReader:
    """Open files with key columns; other columns may be missing and are ignored."""
    names = {name.split(".")[0] for name in table.view().config.record_key_fields}
    types = pa.schema([field for field in table.schema if field.name in names])
    return open_files(files, InputOptions(types=types, null_texts=tuple(null or ())))
