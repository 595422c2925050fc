"""A query over named rows: Spark SQL on Spark, DuckDB's SQL in this process.

The query is run as a subquery, so that it can be nothing but a query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from hoodie.engine.ahead import reader_of
from hoodie.errors import HoodieError, InvalidConfigError, SchemaMismatchError
from hoodie.ingest.code import library
from hoodie.records.sql.quoting import quoted
from hoodie.table.sessions import is_spark

_PLACE: Final = "hoodie_rows_"
_LONG_SUMS: Final = frozenset({"HUGEINT", "UHUGEINT"})
"""DuckDB's types of sums of integers; Arrow has them as decimals or floats."""


def query_on_spark(session: Any, query: str, frames: Mapping[str, Any]) -> Any:
    """Return the rows of a query of Spark SQL as a DataFrame; `frames` are the DataFrames that it names.

    No temporary view remains in the session. Raises: InvalidConfigError if Spark refuses the query.
    """
    places = {name: f"{_PLACE}{number}" for number, name in enumerate(frames)}
    named = [f"{quoted(name)} AS (SELECT * FROM {{{place}}})" for name, place in places.items()]
    head = f"WITH {', '.join(named)} " if named else ""
    # `session.sql` fills in values at braces, if it is given any.
    text = query.strip().rstrip(";")
    text = text.replace("{", "{{").replace("}", "}}") if named else text
    named_frames = {places[name]: frame for name, frame in frames.items()}
    return resolved(
        lambda: session.sql(f"{head}SELECT * FROM (\n{text}\n)", **named_frames),
        lambda error: InvalidConfigError(f"query: Spark does not run it: {error}"),
    )


def resolved(made: Callable[[], Any], refused: Callable[[Exception], HoodieError]) -> Any:
    """Return a DataFrame with resolved expressions: a Connect session resolves them when the columns are needed.

    Raises: the error that `refused` makes of an error of Spark.
    """
    try:
        found = made()
        found.columns  # noqa: B018
    except Exception as error:
        if not is_spark(error):
            raise
        raise refused(error) from error
    return found


def query_in_process(
    query: str, views: Mapping[str, Callable[[Any], Any]], wanted: pa.Schema | None = None
) -> pa.RecordBatchReader:
    """Return the rows of a query of DuckDB as a stream; DuckDB computes them while they are read.

    `views`: functions that return relations of a connection, by the names that the query has for them, or `StreamView`.
    Sums of integers are 64-bit integers, or have the type of the column of their name in `wanted`. Times with a zone
    are in UTC.

    Memory: what DuckDB needs for the query. Raises: UnsupportedError without DuckDB; InvalidConfigError if DuckDB
    refuses the query; while the rows are read, SchemaMismatchError for values that do not fit, and the errors of the
    rows of the views.
    """
    advice = "a query without Spark needs DuckDB: pip install 'hoodie[query]', or pass a Spark session"
    duckdb = library("duckdb", advice)
    con = duckdb.connect()
    try:
        found = _planned(con, f"SELECT * FROM (\n{query.strip().rstrip(';')}\n)", views)
    except duckdb.Error as error:
        raise InvalidConfigError(f"query: DuckDB does not run it: {error}") from error
    sums = {name for name, kind in zip(found.columns, found.types, strict=True) if str(kind) in _LONG_SUMS}

    @contextmanager
    def own_errors() -> Iterator[None]:
        try:
            yield
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            errors = [view.error for view in views.values() if isinstance(view, StreamView) and view.error]
            raise next(iter(errors), SchemaMismatchError(f"query: {error}")) from error

    with own_errors():
        rows = found.to_arrow_reader()  # it computes the first rows
    schema = pa.schema([_output(child, child.name in sums, wanted) for child in rows.schema])

    def batches() -> Iterator[pa.RecordBatch]:
        with closing(con), own_errors():
            for batch in rows:
                yield _converted(batch, schema)

    return reader_of(schema, batches())


def _planned(con: Any, text: str, views: Mapping[str, Callable[[Any], Any]]) -> Any:
    """Return the relation of a query; streams that the query reads more than once are in memory."""
    # Only the given rows have names: no variable of Python is read.
    con.execute("SET python_enable_replacements = false; SET TimeZone = 'UTC'")
    for name, relation in views.items():
        relation(con).create_view(name)
    found = con.sql(text)
    if found.explain().upper().count("ARROW_SCAN") <= 1:
        return found
    for name, relation in views.items():
        if isinstance(relation, StreamView):
            relation.in_memory(con).create_view(name, replace=True)
    return con.sql(text)


@dataclass
class StreamView:
    """Rows as a view of a query. A reader is a stream, which can be read once; `in_memory` reads it first."""

    rows: pa.Table | pa.RecordBatchReader
    error: HoodieError | None = field(default=None, init=False)

    def __call__(self, con: Any) -> Any:
        """Return the rows as a relation of a connection."""
        return con.from_arrow(self.rows if isinstance(self.rows, pa.Table) else self._watched(self.rows))

    def in_memory(self, con: Any) -> Any:
        """Return the rows as a relation that can be read more than once. Memory: all rows."""
        if not isinstance(self.rows, pa.Table):
            self.rows = self.rows.read_all()
        return self(con)

    def _watched(self, reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
        def batches() -> Iterator[pa.RecordBatch]:
            try:
                yield from reader
            except HoodieError as error:
                self.error = error  # DuckDB raises an error of its own in its place
                raise

        return reader_of(reader.schema, batches())


def _output(child: pa.Field, is_sum: bool, wanted: pa.Schema | None) -> pa.Field:
    """Return a column of the result with the type that a table has for it."""
    if pa.types.is_timestamp(child.type) and child.type.tz is not None:
        return child.with_type(pa.timestamp(child.type.unit, "UTC"))
    if not is_sum:
        return child
    place = -1 if wanted is None else wanted.get_field_index(child.name)
    kind = pa.int64() if wanted is None or place < 0 else wanted.field(place).type
    return child.with_type(kind if pa.types.is_integer(kind) or pa.types.is_decimal(kind) else pa.int64())


def _converted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for column, child in zip(batch.columns, schema, strict=True):
        try:
            columns.append(column.cast(child.type))
        except pa.ArrowInvalid as error:
            raise SchemaMismatchError(
                f"column {child.name!r}: a sum of integers does not fit {child.type} ({error}); CAST it in the query"
            ) from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)
