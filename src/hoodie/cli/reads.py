"""A table and its rows: `hoodie info`, `head`, `count`, `changes`; its parts: `timeline`, `show`, `inspect`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import pyarrow as pa
import typer

import hoodie
from hoodie.cli.options import AsOf, Call, Columns, Where, names_of, pairs, table_command
from hoodie.cli.terminal import Answer, cell, output, print_answer, print_json, print_note, print_rows
from hoodie.cli.words import in_words
from hoodie.format.json_values import printable_values, to_json

Meta = Annotated[bool, typer.Option("--meta", help="Print the _hoodie_* columns too.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=0, help="Maximum number of rows.")]


class Fallback(StrEnum):
    """What `changes` does if the changes cannot be computed any more."""

    ERROR = "error"
    SNAPSHOT = "snapshot"


@table_command()
def info(call: Call) -> Answer:
    """Print what the table is: type, keys, rows, size, newest commit, findings; of a folder with tables, each of them.

    It opens no data file.
    """
    from hoodie.storage import open_store
    from hoodie.table.card import card_of, card_text

    options = pairs(call.storage_options)
    paths = [call.path]
    if not hoodie.exists(call.path, storage_options=options):
        store = open_store(call.path, options)
        below = [store.uri(name) for name in store.folders("")]
        paths = [path for path in below if hoodie.exists(path, storage_options=options)]
    if not paths:
        raise hoodie.TableNotFoundError(f"{call.path} is no table, and no folder in it is one")
    tables = [hoodie.open(path, storage_options=options, spark=False) for path in paths]
    cards = {table.path: card_of(table.view()) for table in tables}
    texts = [
        card_text(path, {**card, "findings": in_words(card["findings"], given)})
        for given, (path, card) in zip(paths, cards.items(), strict=True)
    ]
    return Answer("\n\n".join(texts), [{"path": path, **card} for path, card in cards.items()])


@table_command()
def head(
    call: Call,
    limit: Limit = 10,
    column: Columns = None,
    where: Where = None,
    as_of: AsOf = None,
    meta: Meta = False,
) -> pa.Table:
    """Print a few rows, in no defined order."""
    return call.table.head(limit, columns=_columns(call.table, column, meta), where=where, as_of=as_of, meta=meta)


@table_command()
def count(call: Call, where: Where = None, as_of: AsOf = None) -> Answer:
    """Count the rows, or the rows that match a condition."""
    rows = call.table.count(where, as_of=as_of)
    return Answer(str(rows), [{"rows": rows}])


@table_command()
def get(
    call: Call,
    keys: Annotated[list[str], typer.Argument(metavar="KEY...", help="Record keys; several columns as in id:1,day:2.")],
    column: Columns = None,
    meta: Meta = False,
) -> None:
    """Print the records with these keys. Exit code 1 if a key is unknown."""
    from hoodie.records.change import RECORD_KEY

    chosen = _columns(call.table, column, meta)
    is_shown = chosen is None or RECORD_KEY in map(str.lower, chosen)
    found = call.table.read_keys(keys, columns=chosen if is_shown else [*(chosen or ()), RECORD_KEY])
    place = found.column_names.index(RECORD_KEY)
    unknown = set(keys) - set(found.column(place).to_pylist())
    print_answer(found if is_shown else found.remove_column(place), call.as_json)
    if unknown:
        raise hoodie.RecordKeyError(f"no record has the key {', '.join(sorted(unknown))}")


@table_command()
def changes(
    call: Call,
    since: Annotated[str | None, typer.Option("--since", metavar="TIME", help="After this instant or time.")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Up to this instant or time.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=0, help="Maximum number of rows.")] = None,
    column: Columns = None,
    where: Where = None,
    meta: Meta = False,
    place: Annotated[bool, typer.Option("--place", help="Print all rows, then the next --since.")] = False,
    fallback: Annotated[Fallback, typer.Option("--fallback", help="What to do if history is lost.")] = Fallback.ERROR,
) -> None:
    """Print the rows changed by commits after --since and up to --until, each row once, as of --until.

    --where is tested on the rows as of --until.

    With --place the instant to go on from follows the rows: on standard error, or as the last line of --json.
    """
    from hoodie.read.changes import plan_batch
    from hoodie.read.local import count_rows, first_rows, stream

    if place and limit is not None:
        raise typer.BadParameter("--place goes past all rows of the span, so --limit would lose rows: leave out one")
    columns = _columns(call.table, column, meta)
    context = call.table._context
    condition = context.condition_of(where, None)
    batch = context.planned(
        lambda view: plan_batch(view, since, until, columns=columns, where=condition(view), fallback=fallback.value)
    )
    plan = batch.scan
    if call.as_json and limit is None:
        print_rows(stream(plan))
    else:
        rows = count_rows(plan)
        print_answer(first_rows(plan, limit if limit is not None else rows if place else 100), call.as_json)
        if not call.as_json:
            typer.echo(f"{rows:,} rows " + ("in the table" if batch.is_snapshot else "changed"))
    # After all rows: a reader whose pipe broke has no place.
    if place and call.as_json:
        names = ("until", "since", "is_snapshot", "commits")
        print_json({name: getattr(batch, name) for name in names})
    elif place:
        print_note(f"go on with --since {batch.until}")


def _columns(table: hoodie.Table, columns: Sequence[str] | None, meta: bool) -> Sequence[str] | None:
    """Return the columns to print: the chosen columns, otherwise the table's columns; with `--meta` all columns."""
    return names_of(columns) or (None if meta else table.schema.names)


class Part(StrEnum):
    """The parts of a table that can be inspected; each is a method of `Inspection`."""

    FILES = "files"
    SLICES = "slices"
    PARTITIONS = "partitions"
    STATISTICS = "statistics"
    INDEX = "index"
    LOCKS = "locks"
    SUMMARY = "summary"
    SIZES = "sizes"
    WAITS = "waits"
    GROWTH = "growth"
    WRITERS = "writers"
    FLOWS = "flows"
    BACKLOG = "backlog"
    METADATA = "metadata"
    SCHEMAS = "schemas"


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
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="Rows of backlog and writers at most.")] = 200,
    days: Annotated[int, typer.Option("--days", min=1, help="Days of growth.")] = 30,
) -> Answer | pa.Table:
    """Print files, file slices, partitions, column statistics, locks, or the first entries of the record index.

    Or a report: summary, sizes, waits (plans and dead writes), growth by day, writers, flows (places of ingestions and
    streams), backlog (log files), metadata (the metadata table), schemas. With --json all entries of the record index
    are printed.
    """
    from hoodie.read.inspect import notes_of
    from hoodie.table.card import card_text

    inspection = call.table.inspect
    if part in (Part.SUMMARY, Part.SIZES):
        facts = inspection.summary() if part is Part.SUMMARY else inspection.sizes()
        texts = {name.replace("_", " "): _fact_text(name, fact) for name, fact in facts.items()}
        return Answer(card_text(call.path, texts), [facts])
    options: Mapping[Part, Mapping[str, int | None]] = {
        Part.INDEX: {"limit": None if call.as_json else _INDEX_ROWS},
        Part.GROWTH: {"days": days},
        Part.WRITERS: {"limit": limit},
        Part.BACKLOG: {"limit": limit},
    }
    rows: pa.Table = getattr(inspection, part)(**options.get(part, {}))
    for note in notes_of(rows):
        print_note(note)
    return rows if call.as_json else _without_nesting(rows)


def _without_nesting(rows: pa.Table) -> pa.Table:
    """Return the rows with lists and maps as text."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_nested(field.type):
            texts = [
                ", ".join(_fact_text(field.name, value).split("\n")) for value in printable_values(rows[field.name])
            ]
            rows = rows.set_column(place, field.name, pa.array(texts, pa.string()))
    return rows


def _fact_text(name: str, fact: Any) -> str:
    """Return a fact of a report as text: lists of records and mappings have a line for each entry."""
    match fact:
        case {"name": column, "type": data_type, "nullable": is_nullable}:
            return f"{column} {data_type}{'' if is_nullable else ' not null'}"
        case dict():
            return "\n".join(f"{key}: {_fact_text(key, value)}" for key, value in fact.items())
        case [dict(), *_]:
            return "\n".join(", ".join(_fact_text(name, one).split("\n")) for one in fact)
        case list():
            return ", ".join(map(str, fact))
        case datetime():
            return fact.isoformat(" ", "milliseconds")
        case _:
            return cell(name, fact, own=True)


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
    """Reduce the history to seven columns, which fit a terminal of 80 characters; `completed` is a time of day."""
    rows = history.to_pylist()
    completed: list[datetime | None] = [row["completed_at"] for row in rows]
    files = [None if row["files_created"] is None else row["files_created"] + row["files_updated"] for row in rows]
    return pa.table(
        {
            "instant": history["instant"],
            "completed": [time and f"{time.astimezone():%H:%M:%S}" for time in completed],
            "what": [_named(row) for row in rows],
            "records": [_changed(row) for row in rows],
            "files": pa.array(files, pa.int64()),
            "bytes": history["bytes_written"],
            "seconds": history["seconds"],
        }
    )


def _named(row: Mapping[str, Any]) -> str:
    name = row["operation"] or row["action"]
    return name if row["state"] == "completed" else f"{name} ({row['state']})"


def _changed(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{row[name]:,} {name}" for name in ("inserted", "updated", "deleted") if row[name])
