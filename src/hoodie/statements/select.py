"""SELECT: each name of a table becomes a native read of it, and Spark runs the rest of the text as it is."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.read.times import as_of_jvm
from hoodie.records.sql.parse import parse_statement
from hoodie.records.sql.quoting import quoted
from hoodie.statements.names import Names, path_of
from hoodie.statements.procedures.commits import totals_of
from hoodie.statements.references import Reference, references
from hoodie.table import Table
from hoodie.timeline import Instant
from hoodie.view.table_view import TableView

_TEXTS: Final = ("Timestamp", "Action", "State", "Completion_Time", "File_Name")
_COUNTS: Final = {
    "Total_Bytes_Written": "total_bytes_written",
    "Total_Files_Updated": "total_files_updated",
    "Total_Partitions_Written": "total_partitions_written",
    "Total_Records_Written": "total_records_written",
    "Total_Updated_Records_Written": "total_update_records_written",
    "Total_Write_Errors": "total_errors",
}
"""Columns of `hudi_query_timeline`, and the columns of `show_commits` with these counts."""
_TIMELINE: Final = pa.schema([*((name, pa.string()) for name in _TEXTS), *((name, pa.int64()) for name in _COUNTS)])
_FORMATS: Final = ("latest_state", "cdc")


def run_select(text: str, tree: exp.Expression, names: Names) -> Any:
    """Run a query and return its DataFrame. Raises: UnsupportedError without a session."""
    if names.session is None:
        raise UnsupportedError(
            "SELECT needs a Spark session: hoodie.sql(spark, …). Without Spark use `hoodie query` or t.to_duckdb(), "
            "or read with t.to_arrow(columns, where)"
        )
    parts: list[str] = []
    frames: dict[str, Any] = {}
    end = 0
    for reference in references(text, tree):
        rows = _rows(reference, names)
        if rows is not None:
            name = f"hoodie_{len(frames)}"
            frames[name] = rows
            parts += [_plain(text[end : reference.start]), f"{{{name}}}", _alias(reference)]
            end = reference.end
    if not frames:
        return names.catalog.query(text)
    return names.catalog.query("".join((*parts, _plain(text[end:]))), frames)


def run_query(text: str, names: Names) -> Any:
    """Run the text of a query, as a part of another statement."""
    return run_select(text, parse_statement(text), names)


def is_of_tables(text: str, tree: exp.Expression, names: Names) -> bool:
    """Return whether a query names a table of ours."""
    return any(
        found.function or (found.table is not None and names.is_known(found.table)) for found in references(text, tree)
    )


def _plain(text: str) -> str:
    """Escape braces: PySpark puts the names of DataFrames between them."""
    return text.replace("{", "{{").replace("}", "}}")


def _alias(reference: Reference) -> str:
    """Return the alias that keeps the name of a table valid before its columns."""
    if reference.has_alias or reference.table is None or path_of(reference.table) is not None:
        return ""
    return f" AS {quoted(reference.table.name)}"


def _rows(reference: Reference, names: Names) -> Any:
    """Return the rows of a reference as a DataFrame; None if Spark resolves it."""
    if reference.function == "hudi_table_changes":
        return _changes(reference.arguments, names)
    if reference.function == "hudi_query":
        name, kind = (*reference.arguments, "snapshot")[:2]
        return names.named_or_at(name).read(view=kind)
    if reference.function:
        return _timeline(names.named_or_at(reference.arguments[0]), names)
    if reference.table is None:
        return None
    table = names.known(reference.table)
    if table is None:
        return names.given(reference.table)
    return table.read(as_of=None if reference.as_of is None else as_of_jvm(reference.as_of))


def _changes(arguments: tuple[str, ...], names: Names) -> Any:
    """Return the rows of `hudi_table_changes(table, format, begin[, end])`, bounds as in JVM Hudi."""
    name, kind, begin, *end = (*arguments, *("latest_state", "earliest")[len(arguments) - 1 :])
    if kind not in _FORMATS or len(end) > 1:
        raise InvalidConfigError(
            f"hudi_table_changes{arguments}: expected a table, {' or '.join(_FORMATS)}, and one or two instants"
        )
    options = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.query.incremental.format": kind}
    bounds = dict(zip(("begin", "end"), (begin, *end), strict=False))
    options |= {f"hoodie.datasource.read.{bound}.instanttime": value for bound, value in bounds.items()}
    return names.load(names.named_or_at(name), options)


def _timeline(table: Table, names: Names) -> Any:
    """Return the active timeline, newest instant first, with the counts of completed writes."""
    view = table.view()
    rows = [_instant(view, instant) for instant in reversed(view.timeline.instants)]
    return names.rows(pa.Table.from_pylist([dict(zip(_TIMELINE.names, row, strict=True)) for row in rows], _TIMELINE))


def _instant(view: TableView, instant: Instant) -> tuple[Any, ...]:
    name = view.layout.names(instant, instant.state)[0]
    texts = (instant.requested_time, instant.action.value, instant.state.name, instant.completion_time, name)
    if not (instant.is_completed and instant.action.writes_data):
        return (*texts, *(None for _ in _COUNTS))
    totals = totals_of(view.commit_metadata(instant).write_stats())
    return (*texts, *(totals[name] for name in _COUNTS.values()))
