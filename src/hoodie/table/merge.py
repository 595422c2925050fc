"""The builder of a merge."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hoodie.arguments import check_methods
from hoodie.table.context import Assignments, TableContext, Text

if TYPE_CHECKING:
    import pyarrow as pa

    from hoodie.view.table_view import TableView
    from hoodie.write.merge_plan import Clause, Merge, MergePlan
    from hoodie.write.result import WriteResult


@check_methods
class TableMerger:
    """A merge that is built clause by clause, and executed by `execute`; the names are those of Delta.

    Clauses of one kind (matched, not matched, not matched by source) are tried in the order of the calls. The first one
    whose condition is true decides about a row; a condition that is null is not true. Without a condition a clause
    takes every row, so it must be the last of its kind. Rows that no clause takes stay as they are.

    Expressions are Spark SQL. They name columns of the table and of the source by the aliases, `t.fare` and `s.fare`;
    a column that only one side has needs no alias.
    """

    def __init__(
        self,
        context: TableContext,
        source: Any,
        merge: Merge,
        *,
        extra_metadata: Text | None = None,
        properties: Text | None = None,
    ) -> None:
        """Hold the parts of a merge; `Table.merge` makes the builder."""
        self._context, self._source, self._merge = context, source, merge
        self._extra_metadata, self._properties = extra_metadata, properties

    def when_matched_update(self, set: Assignments, condition: str | None = None) -> TableMerger:
        """Set columns of stored rows that a source row matches to expressions; other columns keep their values."""
        return self._with("MATCHED", values=dict(set), condition=condition)

    def when_matched_update_all(self, condition: str | None = None) -> TableMerger:
        """Set all columns of stored rows that a source row matches to the columns of the source."""
        return self._with("MATCHED", condition=condition)

    def when_matched_delete(self, condition: str | None = None) -> TableMerger:
        """Delete stored rows that a source row matches, whatever their ordering values."""
        return self._with("MATCHED", deletes=True, condition=condition)

    def when_not_matched_insert(self, values: Assignments, condition: str | None = None) -> TableMerger:
        """Insert source rows that match no stored row; columns without an expression become null."""
        return self._with("NOT_MATCHED", values=dict(values), condition=condition)

    def when_not_matched_insert_all(self, condition: str | None = None) -> TableMerger:
        """Insert source rows that match no stored row, with all columns of the table."""
        return self._with("NOT_MATCHED", condition=condition)

    def when_not_matched_by_source_update(self, set: Assignments, condition: str | None = None) -> TableMerger:
        """Set columns of stored rows that no source row matches. Reads the whole table."""
        return self._with("BY_SOURCE", values=dict(set), condition=condition)

    def when_not_matched_by_source_delete(self, condition: str | None = None) -> TableMerger:
        """Delete stored rows that no source row matches. Reads the whole table."""
        return self._with("BY_SOURCE", deletes=True, condition=condition)

    def execute(self) -> WriteResult:
        """Execute the merge as one commit.

        Computed again after a conflict that a retry can solve, from the same source rows: a Spark DataFrame is
        evaluated once, unless Arrow has no type for one of its columns.

        Raises: as `Table.update`; RecordKeyError if several source rows change one record, unless the merge only
        deletes matched rows without a condition, and for inserts of keys that the table has; UnsupportedError for a
        condition `on` that is not a conjunction of equalities of columns.
        """
        from hoodie.write.merge_plan import plan_merge

        properties = self._properties or {}
        return execute(
            self._context,
            self._source,
            lambda view, names: plan_merge(view, self._merge, names, properties),
            extra_metadata=self._extra_metadata,
            properties=properties,
        )

    def _with(self, group: str, **parts: Any) -> TableMerger:
        """Return the builder with one more clause; the builder itself is not changed."""
        from hoodie.write.merge_plan import Clause, Group

        clause: Clause = Clause(group=Group[group], **parts)
        merge = dataclasses.replace(self._merge, clauses=(*self._merge.clauses, clause))
        return TableMerger(
            self._context, self._source, merge, extra_metadata=self._extra_metadata, properties=self._properties
        )


def execute(
    context: TableContext,
    source: Any,
    plan_of: Callable[[TableView, Sequence[str]], MergePlan],
    *,
    extra_metadata: Text | None,
    properties: Text | None,
) -> WriteResult:
    """Execute a merge as one commit; `plan_of` plans it for a view and the columns of the source.

    Raises: as `TableMerger.execute`.
    """
    from hoodie.engine import ArrowDataset
    from hoodie.engine.selection import is_spark, spark_room
    from hoodie.records.sql.quoting import quoted
    from hoodie.write.conditional import again_from_the_read
    from hoodie.write.indexed import merge
    from hoodie.write.setup import ignored_columns

    staged: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
    if is_spark(source):
        staged = spark_room().merge_source(source, context.state.store)
        context.write_call(source, None, None)  # Refuses a table that Spark's workers cannot read.
        names = list(source.columns)
    else:
        source = _arrow_source(context, source)
        names = source.schema.names

    def attempt(view: TableView) -> WriteResult:
        plan = plan_of(view, names)
        is_upsert = plan.is_upsert
        if is_upsert:
            rows = source.select([quoted(name) if is_spark(source) else name for name in plan.schema.names])
        else:
            rows = _computed(plan, source, staged_rows, properties or {})
            rows = rows if is_spark(rows) else ArrowDataset(rows, is_computed=True)
        call, dataset = context.write_call(rows, extra_metadata, properties)
        # The rows of an upsert are not computed from stored rows, so they have no baseline.
        call = dataclasses.replace(call, baseline=None if is_upsert else view)
        result = merge(call, dataset, computed=not is_upsert, one_row_per_key=not plan.merge.takes_duplicates)
        used = " ".join(text for clause in plan.merge.clauses for text in (clause.values or {}).values() if text)
        return dataclasses.replace(result, notes=(*result.notes, *ignored_columns(names, used)))

    with staged as staged_rows:
        return again_from_the_read(context.view, properties or {}, attempt)


def execute_partial(
    context: TableContext, data: Any, schema: str | None, *, extra_metadata: Text | None, properties: Text | None
) -> WriteResult:
    """Upsert rows that may lack columns of the table, as one commit.

    Raises: as `TableMerger.execute`; InvalidConfigError if `schema` allows new columns.
    """
    from hoodie.errors import InvalidConfigError, SchemaMismatchError
    from hoodie.write.partial_upsert import plan_partial_upsert

    if schema not in (None, "strict"):
        raise InvalidConfigError(
            f"partial upsert: it never changes the schema; expected schema='strict', not {schema!r}"
        )
    if isinstance(data, list) and len({frozenset(row) for row in data if isinstance(row, Mapping)}) > 1:
        raise SchemaMismatchError(
            "partial upsert: the dicts have different keys, so that it is not clear which values to keep; pass rows "
            "with other columns in another call"
        )

    def plan_of(view: TableView, names: Sequence[str]) -> MergePlan:
        return plan_partial_upsert(view, names, properties or {})

    return execute(context, data, plan_of, extra_metadata=extra_metadata, properties=properties)


def _arrow_source(context: TableContext, source: Any) -> pa.Table:
    """Return the source as a table; columns without declared types get those of the table."""
    from hoodie.engine.selection import engine_and_dataset
    from hoodie.engine.untyped import UntypedDataset

    _, dataset = engine_and_dataset(source)
    if isinstance(dataset, UntypedDataset):
        view = context.view()
        key_fields = (*view.config.record_key_fields, *view.config.partition_fields)
        dataset = dataset.typed(view.schema().arrow, key_fields)
    return dataset.table()  # type: ignore[attr-defined]  # no Spark data here


def _computed(plan: MergePlan, source: Any, staged: Any, properties: Text) -> Any:
    """Return the changes; `staged` returns the rows of a Spark source.

    Raises: CommitConflictError if a clean took files of the view meanwhile.
    """
    from hoodie import config as options
    from hoodie.commit.conflicts import conflict
    from hoodie.engine.selection import spark_room
    from hoodie.errors import ViewOvertakenError
    from hoodie.write.merge_rows import merged_rows
    from hoodie.write.setup import effective_options

    try:
        if staged is None:
            return merged_rows(plan, source)
        bytes_max = options.LOCAL_BYTES_MAX.get(effective_options(plan.view.config, properties))
        return spark_room().merged_rows(plan, source, staged(), bytes_max)
    except ViewOvertakenError as error:
        raise conflict(str(error)) from error
