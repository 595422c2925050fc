"""Run a merge, an update or a delete by condition: read a view, compute the rows, write them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from hoodie.commit.call import Call
from hoodie.commit.conflicts import conflict, raise_if_deleted_since
from hoodie.config import writes
from hoodie.engine import ArrowDataset, Dataset
from hoodie.errors import InvalidConfigError, MissingFileError, SchemaMismatchError, ViewOvertakenError
from hoodie.merge_into.by_condition import UpdatePlan, plan_matching_keys, plan_update
from hoodie.merge_into.changes import merged_rows
from hoodie.merge_into.plan import MergePlan
from hoodie.read.plan import ScanPlan
from hoodie.records.condition import Condition
from hoodie.records.sql.clock import Clock
from hoodie.records.sql.quoting import quoted
from hoodie.view.table_view import TableView
from hoodie.write.attempt import Retries
from hoodie.write.indexed import PartsMoveError, delete, merge, update, upsert
from hoodie.write.options import ignored_columns
from hoodie.write.result import WriteResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedWrite:
    """One call of a write that computes its rows from rows of the table.

    `load` returns the newest view, `call_of` the call that writes computed rows and these rows as a dataset.
    `properties` are the options of the call.
    """

    load: Callable[[], TableView]
    call_of: Callable[[Any], tuple[Call, Dataset]]
    properties: Mapping[str, str]

    def update(
        self,
        assignments: Mapping[str, str],
        where: Condition | None,
        rows_of: Callable[[UpdatePlan], Any],
        clock: Clock,
    ) -> WriteResult:
        """Set columns of the rows that match a condition; `rows_of` computes them. Raises: as `plan_update`."""

        def attempt(view: TableView) -> WriteResult:
            names = view.schema().arrow.names
            set_to = {name: clock.set_in(text, lambda: names) for name, text in assignments.items()}
            plan = plan_update(view, set_to, where, self.properties)
            try:
                return written(plan)
            except PartsMoveError:
                whole_rows = {**self.properties, writes.PARTIAL_UPDATES.key: "never"}
                return written(plan_update(view, set_to, where, whole_rows))

        def written(plan: UpdatePlan) -> WriteResult:
            call, dataset = self.call_of(rows_of(plan))
            call = replace(call, baseline=plan.scan.view)
            return upsert(call, dataset) if plan.changed is None else update(call, dataset, plan.changed)

        return self._again_from_the_read(attempt)

    def delete_where(self, where: Condition, rows_of: Callable[[ScanPlan], Any]) -> WriteResult:
        """Delete the rows that match a condition; `rows_of` reads their keys."""

        def attempt(view: TableView) -> WriteResult:
            plan = plan_matching_keys(view, where)
            call, dataset = self.call_of(rows_of(plan))
            return delete(replace(call, baseline=plan.view), dataset)

        return self._again_from_the_read(attempt)

    def merge(
        self,
        source: Any,
        plan_of: Callable[[TableView, Sequence[str], Mapping[str, str]], MergePlan],
        session: Any,
    ) -> WriteResult:
        """Merge source rows into the table. `plan_of` plans it for a view, the columns of the source and the options.

        `source`: an Arrow table; or a DataFrame, then `session` is Spark's room, whose functions stage its rows and
        compute the changes (`spark/merge.py`).

        Raises: as `TableMerger.execute`.
        """
        staged: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
        if session is None:
            names = source.schema.names
        else:
            names = list(source.columns)
            # Refuses a table that Spark's workers cannot read.
            staged = session.merge_source(source, self.call_of(source)[0].state.store)

        def attempt(view: TableView) -> WriteResult:
            plan = plan_of(view, names, self.properties)
            is_upsert = plan.is_upsert
            if is_upsert:
                rows = source.select([name if session is None else quoted(name) for name in plan.schema.names])
            elif session is None:
                rows = merged_rows(plan, source)
            else:
                bytes_max = writes.LOCAL_BYTES_MAX.get(self.properties, plan.view.config.raw)
                rows = session.merged_rows(plan, source, staged_rows(), bytes_max)
            if not is_upsert and isinstance(rows, pa.Table):
                rows = ArrowDataset(rows, is_computed=True)
            call, dataset = self.call_of(rows)
            # The rows of an upsert are not computed from stored rows, so they have no baseline.
            call = replace(call, baseline=None if is_upsert else view)
            result = merge(call, dataset, computed=not is_upsert, one_row_per_key=not plan.merge.takes_duplicates)
            used = " ".join(text for clause in plan.merge.clauses for text in (clause.values or {}).values() if text)
            return replace(result, notes=(*result.notes, *ignored_columns(names, used)))

        with staged as staged_rows:
            return self._again_from_the_read(attempt)

    def _again_from_the_read(self, attempt: Callable[[TableView], WriteResult]) -> WriteResult:
        """Read the rows and write them; after a conflict that a retry can solve, read them again.

        The rows were computed from the view that `attempt` gets, so they cannot be written again as they are. A file of
        that view that a clean deleted before it was listed or read is such a conflict too. Raises: CommitConflictError
        of the last attempt.
        """
        first = self.load()
        retries = Retries.of(self.properties, first.config.raw)

        def read_and_write(number: int) -> WriteResult:
            view = self.load() if number else first
            try:
                return attempt(view)
            except MissingFileError as error:
                raise_if_deleted_since(view, error)
                raise
            except ViewOvertakenError as error:
                raise conflict(str(error)) from error

        result = retries.run(read_and_write)
        return replace(result, notes=(*retries.notes, *result.notes))


def check_partial(data: Any, schema: str | None) -> None:
    """Check the arguments of a partial upsert.

    Raises: InvalidConfigError if `schema` allows new columns; SchemaMismatchError for dicts with different keys.
    """
    if schema not in (None, "strict"):
        raise InvalidConfigError(
            f"partial upsert: it never changes the schema; expected schema='strict', not {schema!r}"
        )
    if isinstance(data, list) and len({frozenset(row) for row in data if isinstance(row, Mapping)}) > 1:
        raise SchemaMismatchError(
            "partial upsert: the dicts have different keys, so that it is not clear which values to keep; pass rows "
            "with other columns in another call"
        )
