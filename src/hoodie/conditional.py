"""Delete and update by condition: a read whose rows a write changes.

Both name the rows by their keys. In a table where several rows have one key, all of them are deleted or updated as soon
as one of them matches.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from hoodie.engine import ArrowDataset, Dataset
from hoodie.errors import InvalidConfigError, SchemaMismatchError
from hoodie.format.table_schema import without_meta_fields
from hoodie.metadata.view import TableView
from hoodie.read.local import read_table
from hoodie.read.plan import ScanPlan, plan_scan
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.records.expression import evaluate, to_projection


def plan_matching_keys(view: TableView, where: str) -> ScanPlan:
    """Settle the read of the keys of all rows that match a condition."""
    return plan_scan(view, columns=[RECORD_KEY, PARTITION_PATH], where=where)


def plan_matching_rows(view: TableView, assignments: Mapping[str, str], where: str | None) -> ScanPlan:
    """Settle the read of the rows an update changes.

    Raises: SchemaMismatchError for unknown columns; InvalidConfigError for columns that make the key or the partition.
    """
    schema = view.schema().arrow
    unknown = [name for name in assignments if name not in schema.names]
    if unknown or not assignments:
        raise SchemaMismatchError(f"update sets {list(assignments)}: expected columns of the table, {schema.names}")
    fixed = {name.split(".")[0] for name in (*view.config.record_key_fields, *view.config.partition_fields)}
    if fixed & set(assignments):
        raise InvalidConfigError(
            f"update sets {sorted(fixed & set(assignments))}, of which keys or partition paths are made; delete "
            "the rows and insert them anew"
        )
    return plan_scan(view, columns=without_meta_fields(schema).names, where=where)


def assigned(plan: ScanPlan, assignments: Mapping[str, str]) -> Dataset:
    """The rows of the plan with the assignments made, in this process. Memory: all of them, twice where they change."""
    rows = read_table(plan)
    changed = {
        name: evaluate(to_projection(expression, rows.schema, as_type=rows.schema.field(name).type), rows)
        for name, expression in assignments.items()
    }
    columns = [changed.get(name, rows[name]) for name in rows.column_names]
    return ArrowDataset(pa.Table.from_arrays(columns, schema=rows.schema))
