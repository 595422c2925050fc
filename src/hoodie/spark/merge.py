"""Compute the changes of a merge whose source is a DataFrame; its rows are staged once, and read from there.

A small source is looked up by its keys, so that only files that can hold them are read. If these files are small too,
and every Spark session computes the expressions as this process does, then this process computes the changes. Otherwise
Spark joins the source with the rows of these files, or of the whole table.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, reduce
from operator import and_
from typing import Any

from pyspark.sql import functions as F
from sqlglot import exp

from hoodie.errors import RecordKeyError, SchemaMismatchError, UnsupportedError
from hoodie.files.staging.staged import stage_folder
from hoodie.merge_into.changes import KNOWN_KEY, compares_alike, computes_alike, plan_source_lookup
from hoodie.merge_into.changes import merged_rows as merged_here
from hoodie.merge_into.clauses import Clause, Group
from hoodie.merge_into.matching import Equality
from hoodie.merge_into.plan import MergePlan
from hoodie.merge_into.source import SourceFile, StagedSource, stage_source
from hoodie.read.plan import ScanPlan, plan_scan
from hoodie.records.change import KIND, RECORD_KEY, Kind
from hoodie.records.sql.parse import parse_expression, without_parens
from hoodie.records.sql.quoting import quoted
from hoodie.spark.assignment import Assignment, types_of
from hoodie.spark.engine import SparkDataset, SparkEngine
from hoodie.spark.merged import by_groups, pieces
from hoodie.spark.scan import read_scan
from hoodie.spark.small_tables import empty_frame, to_arrow
from hoodie.spark.tasks import Batches
from hoodie.spark.types import spark_schema_of
from hoodie.storage import Store

_CLAUSE = "#clause"
_STORED = "#stored"
_GIVEN = "#given"


@contextlib.contextmanager
def merge_source(frame: Any, store: Store) -> Iterator[Callable[[], StagedSource | None]]:
    """Yield a function that stages the rows in the table's folder, when it is called first; delete them at the end.

    It returns None, and stages nothing, for a source with columns that have no Arrow type here, equal names, or texts
    that are compared by a collation.
    """
    with contextlib.ExitStack() as held:
        yield cache(lambda: _staged(frame, store, held))


def _staged(frame: Any, store: Store, held: contextlib.ExitStack) -> StagedSource | None:
    dataset = SparkDataset(frame)
    names = frame.columns
    if len(set(names)) < len(names) or " collate " in frame.schema.simpleString().lower():
        return None
    try:
        _ = dataset.schema
    except SchemaMismatchError:
        return None
    return stage_source(SparkEngine(frame.sparkSession), dataset, store, held.enter_context(stage_folder(store)))


def _read_source(session: Any, source: StagedSource) -> Any:
    def staged_rows(files: tuple[SourceFile, ...]) -> Batches:
        for file in files:
            for batch in source.batches(file):
                yield from pieces(batch)

    schema = spark_schema_of(source.schema)
    if not source.files:
        return empty_frame(session, schema)
    return by_groups(session, "staged_rows", source.files, lambda file: file.size_bytes, staged_rows, schema)


def merged_rows(plan: MergePlan, frame: Any, staged: StagedSource | None, bytes_max: int) -> Any:
    """Return the changes as a DataFrame or a table, as `merge_into.changes.merged_rows`.

    `staged`: the rows of the DataFrame, if they could be staged; then they are read from there. `bytes_max`: the size
    of the source, and of the files that can hold its keys, up to which this process computes the changes.

    Raises: as `merge_into.changes.merged_rows`; JobFailedError.
    """
    lookup = None if staged is None or staged.size_bytes > bytes_max else _lookup(plan, staged)
    if staged is not None and lookup is not None:
        work = staged.size_bytes + sum(file_slice.size_bytes for file_slice in lookup.slices)
        if work <= bytes_max and computes_alike(plan, staged.schema):
            # Spark decides about what is an error here, such as a number that overflows.
            with contextlib.suppress(SchemaMismatchError, UnsupportedError, RecordKeyError):
                return merged_here(plan, staged.table(), lookup)
    names = plan.stored_names
    scan = plan_scan(plan.view, columns=names) if lookup is None else replace(lookup, columns=tuple(names), keys=None)
    session = frame.sparkSession
    return _joined(plan, read_scan(session, scan), frame if staged is None else _read_source(session, staged))


def _lookup(plan: MergePlan, staged: StagedSource) -> ScanPlan | None:
    """Plan the read of the stored rows that the source can meet; None for a merge that needs the whole table."""
    if plan.merge.of(Group.BY_SOURCE) or not compares_alike(plan, staged.schema):
        return None
    with contextlib.suppress(SchemaMismatchError, RecordKeyError):
        return plan_source_lookup(plan, staged.table(list(plan.source_of.values())))
    return None


def _joined(plan: MergePlan, stored: Any, source: Any) -> Any:
    """Return the changes as a DataFrame: a join of stored rows, which have the table's columns, with the source."""
    stored = stored.withColumn(_STORED, F.lit(True)).alias(plan.merge.target)
    given = source.withColumn(_GIVEN, F.lit(True)).alias(plan.merge.source)
    joined = stored.join(given, reduce(and_, _conditions(plan)), _join_type(plan))
    decided = joined.withColumn(_CLAUSE, _clause_number(plan)).where(F.col(_CLAUSE).isNotNull())
    projections = [plan.projection(clause) for clause in plan.merge.clauses]
    texts = dict.fromkeys(text for one in projections for text in one.values() if text is not None)
    given = types_of(joined, {text: text for text in texts})
    columns = []
    for field in spark_schema_of(plan.schema):
        values = [_assigned(plan, one[field.name], field, given) for one in projections]
        columns.append(_by_clause(values).alias(field.name))
    kinds = [F.lit(int(Kind.DELETE if clause.deletes else Kind.ROW)) for clause in plan.merge.clauses]
    # The join gives rows to insert no stored key.
    keys = [F.col(f"{quoted(plan.merge.target)}.{quoted(RECORD_KEY)}")] if plan.has_automatic_keys else []
    changes = decided.select(_by_clause(kinds).cast("tinyint").alias(KIND), *keys, *columns)
    if plan.joins and not plan.has_automatic_keys and plan.merge.of(Group.NOT_MATCHED):
        _refuse_known(plan, decided.where(F.col(_STORED).isNull()).select(*columns), stored)
    return changes


def _conditions(plan: MergePlan) -> list[Any]:
    """Return the conditions of the join; columns that name a record are equal if both are null."""
    pairs = (
        plan.join if plan.joins else [Equality(key, column, null_safe=True) for key, column in plan.source_of.items()]
    )
    conditions = []
    for pair in pairs:
        target = F.col(f"{quoted(plan.merge.target)}.{quoted(pair.target)}")
        source = F.col(f"{quoted(plan.merge.source)}.{quoted(pair.source)}")
        conditions.append(target.eqNullSafe(source) if pair.null_safe else target == source)
    return conditions if plan.also is None else [*conditions, F.expr(plan.also)]


def _refuse_known(plan: MergePlan, inserts: Any, stored: Any) -> None:
    """Raises: RecordKeyError if an insert has the key of a stored row; a job of Spark finds out."""
    new = inserts.select(*(F.col(quoted(name)).alias(f"new_{n}") for n, name in enumerate(plan.naming)))
    old = stored.select(*(F.col(quoted(name)).alias(f"old_{n}") for n, name in enumerate(plan.naming)))
    same = [F.col(f"new_{n}").eqNullSafe(F.col(f"old_{n}")) for n in range(len(plan.naming))]
    if to_arrow(new.join(old, reduce(and_, same), "left_semi").limit(1)).num_rows:
        raise RecordKeyError(KNOWN_KEY.format("rows"))


def _assigned(plan: MergePlan, text: str | None, field: Any, types: Mapping[str, Any]) -> Any:
    """Return the value of an expression for a column; `types` has those of the expressions.

    No value of a column of the source is changed.

    Raises: as `Assignment.of`.
    """
    if text is None:
        return F.lit(None).cast(field.dataType)
    given, wanted = types[text], field.dataType
    texts = [found.simpleString() for found in (given, wanted)]
    node = without_parens(parse_expression(text))
    is_of_source = (
        isinstance(node, exp.Column)
        and len(node.parts) == 2
        and node.parts[0].name.lower() == plan.merge.source.lower()
    )
    if not is_of_source or texts[0] == texts[1] or "<" in "".join(texts):
        return Assignment("merge", field.name, given, wanted, exact=is_of_source).of(F.expr(text))
    assert isinstance(node, exp.Column)
    cast = f"column {node.parts[1].name} of type {texts[0]} for the table's {field.name} {texts[1]}"
    fitted = F.expr(f"try_cast({text} AS {texts[1]})")
    refused = f"hoodie.errors.SchemaMismatchError: merge: {cast}: a value would be changed; nothing was committed"
    return F.when(fitted.cast(given).eqNullSafe(F.expr(text)), fitted).otherwise(F.raise_error(F.lit(refused)))


def _join_type(plan: MergePlan) -> str:
    inserts, others = bool(plan.merge.of(Group.NOT_MATCHED)), bool(plan.merge.of(Group.BY_SOURCE))
    if inserts and others:
        return "full_outer"
    return "right_outer" if inserts else "left_outer" if others else "inner"


def _clause_number(plan: MergePlan) -> Any:
    """Return the number of the clause that takes a row; null if none does."""
    first, *rest = enumerate(plan.merge.clauses)
    chain = F.when(_takes(first[1]), F.lit(first[0]))
    for number, clause in rest:
        chain = chain.when(_takes(clause), F.lit(number))
    return chain


def _takes(clause: Clause) -> Any:
    is_stored, is_given = F.col(_STORED).isNotNull(), F.col(_GIVEN).isNotNull()
    of_group = {
        Group.MATCHED: is_stored & is_given,
        Group.NOT_MATCHED: is_given & ~is_stored,
        Group.BY_SOURCE: is_stored & ~is_given,
    }[clause.group]
    return of_group if clause.condition is None else of_group & F.expr(clause.condition)


def _by_clause(values: list[Any]) -> Any:
    """Return the value of the clause that took the row."""
    if len(values) == 1:
        return values[0]
    chain = F.when(F.col(_CLAUSE) == 0, values[0])
    for number, value in enumerate(values[1:-1], 1):
        chain = chain.when(F.col(_CLAUSE) == number, value)
    return chain.otherwise(values[-1])
