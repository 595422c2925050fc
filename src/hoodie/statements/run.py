"""`hoodie.sql`: run one SQL statement on a table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from sqlglot import exp

from hoodie.arguments import check_arguments
from hoodie.errors import UnsupportedError
from hoodie.records.sql.parse import other_clauses, parse_statement, to_sql
from hoodie.statements.call import run_call
from hoodie.statements.merge import run_merge
from hoodie.statements.names import Names, assignments, without_qualifier
from hoodie.table.context import Session, Text

_CALL: Final = re.compile(r"\s*call\b(.*?);?\s*\Z", re.IGNORECASE | re.DOTALL)


@check_arguments
def sql(
    spark: Session,
    statement: str,
    *,
    tables: Mapping[str, Any] | None = None,
    properties: Text | None = None,
    storage_options: Text | None = None,
) -> Any:
    """Run one MERGE INTO, UPDATE, DELETE FROM or CALL statement, and return its result.

    Writes return a `WriteResult`. CALL returns the rows of the procedure: a DataFrame if there is a session, otherwise
    a pyarrow Table.

    Args:
        spark: a Spark session, classic or Connect; None to run in this process. Without a session the source of a MERGE
            is a table or data of `tables`, and expressions are those that the library evaluates.
        statement: Spark SQL. A table is named by its path, as hoodie.`/data/trips`, by a name of `tables`, or as a
            table of Spark's catalog that was created `USING hoodie`.
        tables: for each name a `Table` or a path; as the source of a MERGE also data in the forms of `Table.upsert`.
        properties: `hoodie.*` options of the write or service (docs/options.md).
        storage_options: settings of the object store, for tables that are named by path.

    Raises: InvalidConfigError for text that is no statement, unknown procedures and arguments; UnsupportedError for
        other statements; TableNotFoundError; otherwise as the method of `Table` that does the work.

    >>> import hoodie
    >>> rows = {"id": ["a", "b"], "fare": [1.0, 2.0]}
    >>> t = hoodie.create("memory://doc-sql", rows, record_key="id")
    >>> t.upsert(rows).inserted
    2
    >>> hoodie.sql(None, "UPDATE trips SET fare = fare * 2 WHERE id = 'a'", tables={"trips": t}).updated
    1
    >>> hoodie.sql(None, "CALL show_commits(table => 'trips')", tables={"trips": t}).num_rows
    2
    """
    names = Names(session=spark or None, tables=tables or {}, storage_options=storage_options)
    if called := _CALL.match(statement):
        return names.rows(run_call(called.group(1), names, properties))
    tree = parse_statement(statement)
    if isinstance(tree, exp.Merge):
        return run_merge(tree, names, properties)
    if isinstance(tree, exp.Update):
        return _update(tree, names, properties)
    if isinstance(tree, exp.Delete):
        return _delete(tree, names, properties)
    raise UnsupportedError(
        f"hoodie.sql runs MERGE INTO, UPDATE, DELETE FROM and CALL, found {statement.split(None, 1)[0].upper()}: use "
        "spark.sql on a view of t.read(), the data source format('hoodie'), or the methods of the table"
    )


def _update(tree: exp.Update, names: Names, properties: Text | None) -> Any:
    _refuse_others(tree, ("this", "expressions", "where"))
    table, alias = names.target(tree.this)
    for item in tree.expressions:
        if not isinstance(item, exp.EQ):
            raise UnsupportedError(f"UPDATE: expected SET column = expression, found {to_sql(item)!r}")
    pairs = [(item.this, to_sql(without_qualifier(item.expression, alias))) for item in tree.expressions]
    values = assignments(pairs, alias)
    return table.update(values, where=_where(tree, alias), properties=properties)


def _delete(tree: exp.Delete, names: Names, properties: Text | None) -> Any:
    _refuse_others(tree, ("this", "where"))
    table, alias = names.target(tree.this)
    return table.delete_where(_where(tree, alias) or "true", properties=properties)


def _where(tree: exp.Expression, alias: str) -> str | None:
    where = tree.args.get("where")
    return None if where is None else to_sql(without_qualifier(where.this, alias))


def _refuse_others(tree: exp.Expression, known: tuple[str, ...]) -> None:
    """Refuse parts of a statement that would be ignored. Raises: UnsupportedError."""
    others = other_clauses(tree, known)
    if others:
        raise UnsupportedError(f"{tree.key.upper()}: {', '.join(others)} is not supported in {to_sql(tree)!r}")
