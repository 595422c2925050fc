"""The builder of a merge."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hoodie.arguments import check_methods
from hoodie.table.context import Assignments, TableContext, Text

if TYPE_CHECKING:
    import pyarrow as pa

    from hoodie.merge_into.clauses import Clause, Merge
    from hoodie.merge_into.plan import MergePlan
    from hoodie.view.table_view import TableView
    from hoodie.write.result import WriteResult


@check_methods
class TableMerger:
    """A merge that is built clause by clause, and executed by `execute`; the names are those of Delta.

    Clauses of one kind (matched, not matched, not matched by source) are tried in the order of the calls. The first one
    whose condition is true decides about a row; a condition that is null is not true. Without a condition a clause
    takes every row, so it must be the last of its kind. Rows that no clause takes stay as they are.

    Expressions are Spark SQL. They name columns of the table and of the source by the aliases, `t.fare` and `s.fare`;
    a column that only one side has needs no alias.

    Raises: a clause raises nothing, `execute` checks all of them.

    >>> import hoodie
    >>> t = hoodie.create("memory://doc-merger", {"id": ["a"], "fare": [1.0]}, record_key="id")
    >>> written = t.upsert({"id": ["a", "b", "c"], "fare": [1.0, 2.0, 3.0]})
    >>> merge = t.merge([{"id": "a", "fare": 5.0}, {"id": "b", "fare": 0.0}], on="id")
    >>> merge = merge.when_matched_delete("s.fare = 0").when_matched_update({"fare": "t.fare + s.fare"})
    >>> result = merge.when_not_matched_by_source_update({"fare": "0.0"}).execute()
    >>> result.updated, result.deleted
    (2, 1)
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
        condition `on` that is not a conjunction of equalities of columns, unless the table has automatic keys.

        >>> import hoodie
        >>> t = hoodie.create("memory://doc-merge-execute", {"id": ["a"], "fare": [1.0]}, record_key="id")
        >>> written = t.upsert({"id": ["a"], "fare": [1.0]})
        >>> source = [{"id": "a", "fare": 5.0}, {"id": "b", "fare": 2.0}]
        >>> t.merge(source, on="id").when_matched_update_all().when_not_matched_insert_all().execute().inserted
        1
        """
        from hoodie.merge_into.plan import plan_merge
        from hoodie.table.sessions import is_spark

        session = self._source.sparkSession if is_spark(self._source) else None
        merge = dataclasses.replace(self._merge, clock=self._context.clock(session))
        return execute(
            self._context,
            self._source,
            lambda view, names, properties: plan_merge(view, merge, names, properties),
            extra_metadata=self._extra_metadata,
            properties=self._properties,
        )

    def _with(self, group: str, **parts: Any) -> TableMerger:
        """Return the builder with one more clause; the builder itself is not changed."""
        from hoodie.merge_into.clauses import Clause, Group

        clause: Clause = Clause(group=Group[group], **parts)
        merge = dataclasses.replace(self._merge, clauses=(*self._merge.clauses, clause))
        return TableMerger(
            self._context, self._source, merge, extra_metadata=self._extra_metadata, properties=self._properties
        )


def execute(
    context: TableContext,
    source: Any,
    plan_of: Callable[[TableView, Sequence[str], Text], MergePlan],
    *,
    extra_metadata: Text | None,
    properties: Text | None,
) -> WriteResult:
    """Execute a merge as one commit; `plan_of` plans it for a view, the columns of the source and the options.

    Raises: as `TableMerger.execute`.
    """
    from hoodie.table.sessions import is_spark, spark_room

    session = spark_room() if is_spark(source) else None
    rows = _arrow_source(context, source) if session is None else source
    return context.computed_write(extra_metadata, properties).merge(rows, plan_of, session)


def _arrow_source(context: TableContext, source: Any) -> pa.Table:
    """Return the source as a table; columns without declared types get those of the table."""
    from hoodie.engine.inputs import UntypedDataset, dataset_of

    dataset = dataset_of(source)
    if isinstance(dataset, UntypedDataset):
        dataset = dataset.typed(context.view().schema().arrow)
    return dataset.table()  # type: ignore[attr-defined]  # no Spark data here
