"""`hoodie timeline`, `show` and `inspect`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any

import pyarrow as pa
import typer

import hoodie
from hoodie.cli.options import Call, table_command
from hoodie.cli.terminal import output, print_json, to_json


class Part(StrEnum):
    """The parts of a table that can be inspected."""

    FILES = "files"
    SLICES = "slices"
    PARTITIONS = "partitions"
    STATISTICS = "statistics"
    INDEX = "index"
    LOCKS = "locks"


_INDEX_ROWS = 20
"""Entries of the record index printed to a terminal; `--json` prints all entries."""


@table_command(own=True)
def timeline(
    call: Call,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=0, help="Maximum number of instants.")] = 20,
    archived: Annotated[bool, typer.Option("--archived", help="Go on with archived instants.")] = False,
) -> pa.Table:
    """Print the newest instants: time, operation, and numbers of records, files and bytes."""
    history = call.table.history(limit, archived=archived)
    return history if call.as_json else _summary(history)


@table_command()
def show(
    call: Call,
    instant: Annotated[str | None, typer.Argument(help="Requested time of the instant; default: the newest.")] = None,
) -> None:
    """Print the content of the file of one instant."""
    table = call.table
    if instant is None:
        newest = table.timeline.latest()
        if newest is None:
            raise hoodie.InstantNotFoundError(f"the timeline of {table.path} is empty: the table has no instant yet")
        instant = newest.requested_time
    content = table.inspect.instant(instant)
    if call.as_json:
        print_json(content)
    else:
        output().print_json(to_json(content), ensure_ascii=False)


@table_command(own=True)
def inspect(
    call: Call,
    part: Annotated[Part, typer.Argument(help="Part of the table to print.")] = Part.PARTITIONS,
) -> pa.Table:
    """Print files, file slices, partitions, column statistics, locks, or the first entries of the record index.

    With --json all entries of the record index are printed.
    """
    inspection = call.table.inspect
    tables: Mapping[Part, Callable[[], pa.Table]] = {
        Part.FILES: inspection.files,
        Part.SLICES: inspection.slices,
        Part.PARTITIONS: inspection.partitions,
        Part.STATISTICS: inspection.statistics,
        Part.LOCKS: inspection.locks,
        Part.INDEX: lambda: inspection.index(limit=None if call.as_json else _INDEX_ROWS),
    }
    return tables[part]()


@table_command(own=True)
def schema(call: Call) -> pa.Table:
    """Print the columns of the table: name, type, and whether values can be null."""
    fields = call.table.schema
    return pa.table(
        {
            "column": [field.name for field in fields],
            "type": [str(field.type) for field in fields],
            "nullable": [field.nullable for field in fields],
        }
    )


def _summary(history: pa.Table) -> pa.Table:
    """Reduce the history to six columns, which fit a terminal of 80 characters."""
    rows = history.to_pylist()
    files = [None if row["files_created"] is None else row["files_created"] + row["files_updated"] for row in rows]
    return pa.table(
        {
            "instant": history["instant"],
            "what": [_named(row) for row in rows],
            "records": [_changed(row) for row in rows],
            "files": pa.array(files, pa.int64()),
            "bytes_written": history["bytes_written"],
            "seconds": history["seconds"],
        }
    )


def _named(row: Mapping[str, Any]) -> str:
    name = row["operation"] or row["action"]
    return name if row["state"] == "completed" else f"{name} ({row['state']})"


def _changed(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{row[name]:,} {name}" for name in ("inserted", "updated", "deleted") if row[name])
