"""`hoodie.sql`: run one SQL statement on a table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from sqlglot import exp

from hoodie.arguments import check_arguments
from hoodie.errors import HoodieError, UnsupportedError
from hoodie.records.sql.parse import behind_comments, other_clauses, parse_statement, to_sql
from hoodie.statements.alter import ALTER, run_alter_columns
from hoodie.statements.call import run_call
from hoodie.statements.create import is_ours, run_create
from hoodie.statements.definition import SHOW, run_alter, run_describe, run_drop, run_show, run_truncate, shown_table
from hoodie.statements.indexes import INDEX, run_index, table_named
from hoodie.statements.insert import run_insert
from hoodie.statements.merge import run_merge
from hoodie.statements.names import Names, assignments, named_table, without_qualifier
from hoodie.statements.procedures.registry import NAMES
from hoodie.statements.select import is_of_tables, run_select
from hoodie.table.context import Session, Text
from hoodie.table.sessions import spark_room

_CALL: Final = re.compile(r"\s*call\b(.*?);?\s*\Z", re.IGNORECASE | re.DOTALL)

_OURS: Final = re.compile(
    r"[\s(]*(select|with|from|table|values|insert|update|delete|merge|create|drop|truncate|describe|desc|alter)\b",
    re.IGNORECASE,
)
"""Statements that can be about a table of ours; Spark runs others, such as SET, USE and SHOW TABLES."""


@check_arguments
def sql(
    spark: Session,
    statement: str,
    *,
    tables: Mapping[str, Any] | None = None,
    properties: Text | None = None,
    storage_options: Text | None = None,
) -> Any:
    """Run one statement of Hudi's Spark SQL, and return its answer. docs/sql.md has the list of statements.

    In a session each statement returns a DataFrame, as `spark.sql` does: the rows of queries, DESCRIBE, SHOW and CALL;
    of a write one row with `instant`, `inserted`, `updated`, `deleted` and `ignored`; of other statements no rows. The
    attribute `result` of the last two is the `WriteResult`, the `AlterResult` (changes of columns and properties), the
    `Table` (CREATE TABLE) or None, and its notes are warnings. Without a session the results themselves are returned,
    and rows as a pyarrow Table.

    Args:
        spark: a Spark session, classic or Connect; None to run in this process: MERGE INTO, UPDATE, DELETE FROM,
            CALL, TRUNCATE, ALTER TABLE, SHOW PARTITIONS and SHOW TBLPROPERTIES. The source of a MERGE is then a table
            or data of `tables`, and expressions are those that the library evaluates.
        statement: Spark SQL. A table is named by its path, as hoodie.`/data/trips`, by a name of `tables`, or as a
            table of Spark's catalog that was created `USING hoodie`.
        tables: for each name a `Table` or a path; as the source of a MERGE also data in the forms of `Table.upsert`.
        properties: `hoodie.*` options of the write or service (docs/options.md).
        storage_options: settings of the object store, for tables that are named by path.

    Warns: in a session, `HoodieWarning` for each note of a result.

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
    found = run(statement, names, properties)
    # The caller is behind the check of the arguments.
    return found if names.session is None else spark_room().answer(names.session, found, stacklevel=4)


def run(statement: str, names: Names, properties: Text | None = None) -> Any:
    """Run a statement; see `sql`."""
    statement = behind_comments(statement)
    if called := _CALL.match(statement):
        return names.rows(run_call(called.group(1), names, properties))
    if shown := SHOW.match(statement):
        return run_show(shown, names)
    if indexed := INDEX.match(statement):
        return run_index(indexed, names, properties)
    if altered := ALTER.match(statement):
        return run_alter_columns(altered, names, properties)
    if names.session is not None and not _OURS.match(statement):
        return names.catalog.query(statement)
    return _run_tree(statement, parse_statement(statement), names, properties)


def _run_tree(text: str, tree: exp.Expression, names: Names, properties: Text | None) -> Any:
    if names.session is not None and isinstance(tree, exp.Merge | exp.Update | exp.Delete):
        # Their expressions are written anew of the tree, so that later checks do not see the literals of the caller.
        spark_room().check_literals(names.session, text)
    match tree:
        case exp.Merge():
            return run_merge(tree, names, properties)
        case exp.Update():
            return _update(tree, names, properties)
        case exp.Delete():
            return _delete(tree, names, properties)
        case exp.Insert():
            return run_insert(text, tree, names, properties)
        case exp.Query():
            return run_select(text, tree, names)
        case exp.Create() if is_ours(tree, names):
            return run_create(text, tree, names, properties)
        case exp.Drop() if tree.args.get("kind") == "TABLE":
            return run_drop(tree, names)
        case exp.TruncateTable():
            return run_truncate(tree, names, properties)
        case exp.Describe() if isinstance(tree.this, exp.Table):
            return run_describe(tree, names)
        case exp.Alter() if tree.args.get("kind") == "TABLE":
            return run_alter(text, tree, names, properties)
    if isinstance(tree, exp.Create | exp.Drop) and tree.args.get("kind") != "TABLE":
        return names.catalog.query(text)
    raise UnsupportedError(
        f"hoodie.sql runs no {text.split(None, 1)[0].upper()} of this form: docs/sql.md has the list of statements; "
        "CREATE TABLE needs USING hoodie or USING hudi"
    )


def concerns(statement: str, names: Names) -> bool:
    """Return whether a statement is about a table of ours; False for text that is not understood."""
    statement = behind_comments(statement)
    if called := _CALL.match(statement):
        return called.group(1).partition("(")[0].strip().rpartition(".")[2].lower() in NAMES
    try:
        if indexed := INDEX.match(statement):
            return names.is_known(table_named(indexed))
        if altered := ALTER.match(statement):
            return names.is_known(named_table(altered["table"]))
        shown = SHOW.match(statement)
        if shown is None and not _OURS.match(statement):
            return False
        tree = parse_statement(statement) if shown is None else shown_table(shown)[0]
    except HoodieError:
        return False
    match tree:
        case exp.Create():
            return is_ours(tree, names)
        case exp.Query():
            return is_of_tables(statement, tree, names)
        case exp.Merge() | exp.Update() | exp.Delete() | exp.Insert() | exp.Describe() | exp.Alter() | exp.Drop():
            changed = tree.args.get("tables") or [tree.this.this if isinstance(tree.this, exp.Schema) else tree.this]
        case exp.TruncateTable():
            changed = tree.expressions
        case _:
            return False
    return any(isinstance(node, exp.Table) and names.is_known(node) for node in changed)


def _update(tree: exp.Update, names: Names, properties: Text | None) -> Any:
    _refuse_others(tree, ("this", "expressions", "where"))
    table, alias = names.target(tree.this)
    for item in tree.expressions:
        if not isinstance(item, exp.EQ):
            raise UnsupportedError(f"UPDATE: expected SET column = expression, found {to_sql(item)!r}")
    pairs = [(item.this, to_sql(without_qualifier(item.expression, alias))) for item in tree.expressions]
    values = assignments(pairs, alias)
    return table.update(values, where=_where(tree, alias), properties=names.changes("update", table, properties))


def _delete(tree: exp.Delete, names: Names, properties: Text | None) -> Any:
    _refuse_others(tree, ("this", "where"))
    table, alias = names.target(tree.this)
    return table.delete_where(_where(tree, alias) or "true", properties=names.changes("delete", table, properties))


def _where(tree: exp.Expression, alias: str) -> str | None:
    where = tree.args.get("where")
    return None if where is None else to_sql(without_qualifier(where.this, alias))


def _refuse_others(tree: exp.Expression, known: tuple[str, ...]) -> None:
    """Refuse parts of a statement that would be ignored. Raises: UnsupportedError."""
    others = other_clauses(tree, known)
    if others:
        raise UnsupportedError(f"{tree.key.upper()}: {', '.join(others)} is not supported in {to_sql(tree)!r}")
