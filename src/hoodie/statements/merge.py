"""MERGE INTO: the clauses of the statement become calls of the merge builder."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlglot import exp

from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.records.sql.parse import to_sql
from hoodie.statements.names import Names, assignments, path_of, plain_name, refuse_more
from hoodie.statements.references import is_of_with
from hoodie.table.context import Text
from hoodie.table.merge import TableMerger
from hoodie.table.sessions import is_spark


def run_merge(tree: exp.Merge, names: Names, properties: Text | None) -> Any:
    """Run a merge in one commit. Raises: as `TableMerger.execute`; UnsupportedError for parts that would be ignored."""
    if tree.args.get("with_") or tree.args.get("with") or tree.args.get("returning"):
        raise UnsupportedError("MERGE: expected no WITH before it and no RETURNING; put the query into USING (…) AS s")
    if not isinstance(tree.args.get("on"), exp.Expression) or isinstance(tree.args["on"], exp.Column):
        raise InvalidConfigError(f"MERGE: expected ON and a condition in {to_sql(tree)!r}")
    table, target = names.target(tree.this)
    with _source(tree.args["using"], names) as (data, source):
        merge = table.merge(
            data,
            on=to_sql(tree.args["on"]),
            target_alias=target,
            source_alias=source,
            properties=names.changes("merge", table, properties),
        )
        for clause in tree.args["whens"].expressions:
            merge = _with_clause(merge, clause, target)
        return merge.execute()


@contextmanager
def _source(node: exp.Expression, names: Names) -> Iterator[tuple[Any, str]]:
    """Yield the source rows and the name by which the statement calls them."""
    if isinstance(node, exp.Table):
        yield names.data(node), node.alias or ("s" if path_of(node) is not None else node.name)
    elif isinstance(node, exp.Subquery) and node.alias:
        refuse_more(node)
        with _query(node.this, names) as frame:
            yield frame, node.alias
    else:
        raise InvalidConfigError(f"MERGE: expected USING a table, or (SELECT …) AS s, found {to_sql(node)!r}")


@contextmanager
def _query(query: exp.Expression, names: Names) -> Iterator[Any]:
    """Yield the rows of a query; its hoodie tables and names of `tables` are temporary views while it runs."""
    if names.session is None:
        raise UnsupportedError(
            "MERGE: a query in USING needs Spark; in process name a table, or data of tables={…}, as the source"
        )
    query, views = query.copy(), []
    try:
        # The names of WITH clauses are looked up before any node is replaced.
        for node in [found for found in query.find_all(exp.Table) if not is_of_with(found)]:
            name = plain_name(node)
            if path_of(node) is None and name not in names.tables:
                continue
            views.append(f"hoodie_{uuid.uuid4().hex}")
            frame = names.data(node)
            if not is_spark(frame):
                raise UnsupportedError(
                    f"MERGE: {name!r} in a query: expected a DataFrame or a pyarrow Table in tables={{…}}"
                )
            frame.createOrReplaceTempView(views[-1])
            alias = exp.TableAlias(this=exp.to_identifier(node.alias or node.name, quoted=True))
            node.replace(exp.Table(this=exp.to_identifier(views[-1]), alias=alias))
        yield names.session.sql(to_sql(query))
    finally:
        for view in views:
            names.session.catalog.dropTempView(view)


def _with_clause(merge: TableMerger, clause: exp.When, target: str) -> TableMerger:
    condition = None if clause.args.get("condition") is None else to_sql(clause.args["condition"])
    then = clause.args["then"]
    is_matched, is_by_source = bool(clause.args.get("matched")), bool(clause.args.get("source"))
    if isinstance(then, exp.Insert | exp.Update) and then.args.get("where"):
        raise UnsupportedError(
            f"MERGE: WHERE behind {to_sql(then)!r} is not supported; put the condition before THEN: WHEN … AND … THEN"
        )
    if isinstance(then, exp.Insert) and not is_matched and not is_by_source:
        if _is_star(then.this, then):
            return merge.when_not_matched_insert_all(condition)
        return merge.when_not_matched_insert(_inserted(then, target), condition)
    if isinstance(then, exp.Update) and (is_matched or is_by_source):
        items = then.args.get("expressions")
        is_all = _is_star(items, then)
        if is_all and is_matched:
            return merge.when_matched_update_all(condition)
        if not is_all:
            if not items or not all(isinstance(item, exp.EQ) for item in items):
                raise UnsupportedError(f"MERGE: expected UPDATE SET column = expression, found {to_sql(then)!r}")
            values = assignments([(item.this, to_sql(item.expression)) for item in items], target)
            update = merge.when_matched_update if is_matched else merge.when_not_matched_by_source_update
            return update(values, condition)
    if isinstance(then, exp.Var) and then.name.upper() == "DELETE" and (is_matched or is_by_source):
        delete = merge.when_matched_delete if is_matched else merge.when_not_matched_by_source_delete
        return delete(condition)
    raise UnsupportedError(f"MERGE: the clause {to_sql(clause)!r} is not supported")


def _is_star(items: Any, then: exp.Expression) -> bool:
    """Return whether the items of a clause are `*`. Raises: UnsupportedError for a `*` that is not alone."""
    listed = items if isinstance(items, list) else [items]
    stars = [item for item in listed if isinstance(item, exp.Star)]
    if stars and (len(listed) > 1 or any(stars[0].args.values())):
        raise UnsupportedError(f"MERGE: expected * alone, or columns, found {to_sql(then)!r}")
    return bool(stars)


def _inserted(then: exp.Insert, target: str) -> dict[str, str]:
    """Return the expression of each column of INSERT (…) VALUES (…)."""
    columns, values = then.this, then.expression
    if not isinstance(columns, exp.Tuple) or not isinstance(values, exp.Tuple):
        raise UnsupportedError(f"MERGE: expected INSERT * or INSERT (columns) VALUES (values), found {to_sql(then)!r}")
    if len(columns.expressions) != len(values.expressions):
        raise InvalidConfigError(
            f"MERGE: {len(columns.expressions)} columns and {len(values.expressions)} values in {to_sql(then)!r}"
        )
    names = [column if isinstance(column, exp.Column) else exp.column(column) for column in columns.expressions]
    return assignments(zip(names, map(to_sql, values.expressions), strict=True), target)
