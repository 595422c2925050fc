"""The source `query`: the rows of a SQL query over tables, all of them in each run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from hoodie.ingest.options import check_types, require
from hoodie.ingest.run_sql import query_in_process, query_on_spark
from hoodie.ingest.source import Batch, Request
from hoodie.table import open as open_table

_SHOWN_MAX = 80


@dataclass(frozen=True, slots=True)
class Query:
    """Runs a query: Spark SQL with a session, otherwise DuckDB's SQL. Each run reads all its rows; it has no place.

    `tables`: paths of Hudi tables by the names that the query has for them; on Spark the query may name tables of the
    session's catalog too. `storage_options`: of these tables.
    """

    query: str
    _: KW_ONLY
    tables: Mapping[str, str] = field(default_factory=dict)
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        check_types(self, "source query, ")
        require(bool(self.query.strip()), "source query, query", "a query", self.query)

    def plan(self, request: Request) -> Batch:
        """Return one batch of all rows. Raises: nothing; `Batch.read` raises as `hoodie.open` and the query."""
        text = " ".join(self.query.split())
        about = text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"
        return Batch(place="", read=lambda: self._rows(request), about=f"query {about}", lag_rows=0)

    def _rows(self, request: Request) -> Any:
        session = request.spark
        opened = {
            name: open_table(path, storage_options=self.storage_options, spark=session or False)
            for name, path in self.tables.items()
        }
        if session is not None:
            frames = {name: table.read(table.schema.names) for name, table in opened.items()}
            return query_on_spark(session, self.query, frames)
        views: dict[str, Callable[[Any], Any]] = {name: table.to_duckdb for name, table in opened.items()}
        return query_in_process(self.query, views, request.schema)
