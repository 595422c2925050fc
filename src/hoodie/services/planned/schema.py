"""The schema of the files that a planned service writes."""

from __future__ import annotations

from hoodie.view.columns import visible_schemas
from hoodie.view.table_view import TableSchema, TableView


def schema_at(view: TableView, instant_time: str) -> TableSchema:
    """Return the schema of the files that the instant of a plan writes.

    If columns have ids, readers find the names in a file by its instant. So an instant that was planned before the
    columns changed writes the columns of that time.
    """
    return view.schema(as_of=instant_time if visible_schemas(view) else None)
