"""SELECT: each name of a table becomes a native read of it, and Spark runs the rest of the text as it is."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.read.times import BY_REQUEST, jvm_time
from hoodie.records.sql.parse import parse_statement
from hoodie.statements.names import Names, path_of
from hoodie.statements.references import Reference, references
from hoodie.table import Table
from hoodie.timeline import Instant
from hoodie.view.table_view import TableView

_TEXTS: Final = ("Timestamp", "Action", "State", "Completion_Time", "File_Name")
_COUNTS: Final = (
    "Total_Bytes_Written",
    "Total_Files_Updated",
    "Total_Partitions_Written",
    "Total_Records_Written",
    "Total_Updated_Records_Written",
    "Total_Write_Errors",
)
_TIMELINE: Final = pa.schema([*((name, pa.string()) for name in _TEXTS), *((name, pa.int64()) for name in _COUNTS)])
_FORMATS: Final = ("latest_state", "cdc")


def run_select(text: str, tree: exp.Expression, names: Names) -> Any:
    """Run a query and return its DataFrame. Raises: UnsupportedError without a session."""
    if names.session is None:
        raise UnsupportedError(
            "SELECT needs a Spark session: hoodie.sql(spark, …). Without Spark, read with t.to_arrow(columns, where), "
            "and query the Arrow table, by DuckDB say"
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
        return names.catalog.query(text, {})
    return names.catalog.query("".join((*parts, _plain(text[end:]))), frames)


def run_query(text: str, names: Names) -> Any:
    """Run the text of a query, as a part of another statement."""
    return run_select(text, parse_statement(text), names)


def is_of_tables(text: str, tree: exp.Expression, names: Names) -> bool:
    """Return whether a query names a table of ours."""
    return any(found.function or _table(found, names) is not None for found in references(text, tree))


def _plain(text: str) -> str:
    """Escape braces: PySpark puts the names of DataFrames between them."""
    return text.replace("{", "{{").replace("}", "}}")


def _alias(reference: Reference) -> str:
    """Return the alias that keeps the name of a table valid before its columns."""
    if reference.has_alias or reference.table is None or path_of(reference.table) is not None:
        return ""
    return f" AS `{reference.table.name}`"


def _rows(reference: Reference, names: Names) -> Any:
    """Return the rows of a reference as a DataFrame; None if Spark knows what it is."""
    if reference.function == "hudi_table_changes":
        return _changes(reference.arguments, names)
    if reference.function == "hudi_query":
        name, kind = (*reference.arguments, "snapshot")[:2]
        return names.named_or_at(name).read(view=kind)
    if reference.function:
        return _timeline(names.named_or_at(reference.arguments[0]), names)
    table = _table(reference, names)
    if table is None:
        return names.given(reference.table)
    if reference.as_of is None:
        return table.read()
    when = jvm_time(reference.as_of)
    return table.read(as_of=BY_REQUEST + (when if isinstance(when, str) else when.isoformat()))


def _table(reference: Reference, names: Names) -> Table | None:
    return None if reference.table is None else names.known(reference.table)


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
    stats = list(view.commit_metadata(instant).write_stats())
    return (
        *texts,
        sum(stat.total_write_bytes for stat in stats),
        sum(not stat.is_new_file_group for stat in stats),
        len({stat.partition_path for stat in stats}),
        sum(stat.num_writes for stat in stats),
        sum(stat.num_update_writes for stat in stats),
        sum(stat.total_write_errors for stat in stats),
    )
