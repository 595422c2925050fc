"""The writes of a table handle."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hoodie.table.context import TableContext, Text

if TYPE_CHECKING:
    from hoodie.write.result import WriteResult


class TableWrites:
    """The methods of `Table` that change rows."""

    _context: TableContext

    def upsert(self, data: Any, *, extra_metadata: Text | None = None, properties: Text | None = None) -> WriteResult:
        """Insert rows with new keys and merge rows with known ones; see `hoodie.write.indexed.upsert`."""
        from hoodie.write.indexed import upsert

        call, dataset = self._context.write_call(data, extra_metadata, properties)
        return upsert(call, dataset)

    def insert(self, data: Any, *, extra_metadata: Text | None = None, properties: Text | None = None) -> WriteResult:
        """Add rows without looking up their keys; small file groups are filled first."""
        from hoodie.write.indexed import insert

        call, dataset = self._context.write_call(data, extra_metadata, properties)
        return insert(call, dataset)

    def bulk_insert(
        self,
        data: Any,
        sort: str | Sequence[str] | None = None,
        *,
        extra_metadata: Text | None = None,
        properties: Text | None = None,
    ) -> WriteResult:
        """Write all rows to new files in one pass; `sort`: `none`, `partition`, `global`, or the columns to sort by."""
        from hoodie.write.bulk_insert import bulk_insert

        call, dataset = self._context.write_call(data, extra_metadata, properties)
        return bulk_insert(call, dataset, sort)

    def delete(
        self, data_or_keys: Any, *, extra_metadata: Text | None = None, properties: Text | None = None
    ) -> WriteResult:
        """Delete the records with these keys; unknown keys change nothing.

        Accepts keys in the same forms as `read_keys`. For a partitioned table the data must also have the partition
        columns, unless the index is global.
        """
        from hoodie.engine.selection import with_types
        from hoodie.write.indexed import delete

        call, dataset = self._context.write_call(self._context.keys(data_or_keys), extra_metadata, properties)
        return delete(call, with_types(dataset))

    def delete_where(
        self, where: str, *, extra_metadata: Text | None = None, properties: Text | None = None
    ) -> WriteResult:
        """Delete the records that match a Spark SQL condition.

        The matching keys are held in memory, unless Spark reads them. Inserts can store several rows with one key. If
        one of these rows matches, all of them are deleted.
        """
        from hoodie.records.condition import Condition
        from hoodie.write.conditional import plan_matching_keys
        from hoodie.write.indexed import delete

        plan = plan_matching_keys(self._context.view(), Condition.parse(where))
        call, dataset = self._context.write_call(self._context.result(plan), extra_metadata, properties)
        return delete(dataclasses.replace(call, baseline=plan.view), dataset)

    def delete_partitions(
        self, partitions: Sequence[str], *, extra_metadata: Text | None = None, properties: Text | None = None
    ) -> WriteResult:
        """Remove whole partitions from the table, by partition path (`["city=sf"]`)."""
        from hoodie.engine import LocalEngine
        from hoodie.write.delete_partitions import delete_partitions
        from hoodie.write.setup import WriteCall

        state = self._context.state
        call = WriteCall(
            state=state, engine=LocalEngine(), extra_metadata=extra_metadata or {}, properties=properties or {}
        )
        return delete_partitions(call, partitions)

    def insert_overwrite(
        self, data: Any, *, extra_metadata: Text | None = None, properties: Text | None = None
    ) -> WriteResult:
        """Replace every partition that has rows in the data; the data becomes its content."""
        from hoodie.write.bulk_insert import insert_overwrite

        call, dataset = self._context.write_call(data, extra_metadata, properties)
        return insert_overwrite(call, dataset)

    def insert_overwrite_table(
        self, data: Any, *, extra_metadata: Text | None = None, properties: Text | None = None
    ) -> WriteResult:
        """Replace the whole table with the data."""
        from hoodie.write.bulk_insert import insert_overwrite

        call, dataset = self._context.write_call(data, extra_metadata, properties)
        return insert_overwrite(call, dataset, whole_table=True)

    def update(
        self,
        assignments: Text,
        where: str | None = None,
        *,
        extra_metadata: Text | None = None,
        properties: Text | None = None,
    ) -> WriteResult:
        """Set columns to Spark SQL expressions in the records that match a condition.

        Without a condition all records are updated. Without Spark the matching rows are held in memory. Inserts can
        store several rows with one key. If one of these rows matches, all of them are updated. A merge-on-read table
        that merges by commit time and has no record index logs the changed columns only.
        """
        from hoodie.engine.selection import spark_room
        from hoodie.records.condition import Condition
        from hoodie.write.conditional import assigned, plan_update
        from hoodie.write.indexed import update, upsert

        plan = plan_update(self._context.view(), assignments, Condition.parse_optional(where), properties or {})
        session = self._context.session()
        changed = assigned(plan, assignments) if session is None else spark_room().assigned(session, plan, assignments)
        call, dataset = self._context.write_call(changed, extra_metadata, properties)
        call = dataclasses.replace(call, baseline=plan.scan.view)
        return upsert(call, dataset) if plan.changed is None else update(call, dataset, plan.changed)
