"""Delete and update by condition: plan the read of the rows that a write then changes.

The write finds the rows by their keys. If several rows have one key, all of them are deleted or updated as soon as one
of them matches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from hoodie import config as options
from hoodie.engine import ArrowDataset, Dataset
from hoodie.errors import InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.format.schema.table_schema import without_meta_fields
from hoodie.format.table.merge_config import MergeMode
from hoodie.format.table.table_config import TableConfig, TableType
from hoodie.read.local import read_table
from hoodie.read.plan import ScanPlan, plan_scan
from hoodie.records.change import IS_DELETED, PARTITION_PATH, RECORD_KEY
from hoodie.records.condition import Condition
from hoodie.records.expression import columns_of, evaluate, to_projection
from hoodie.view.table_view import TableView


def plan_matching_keys(view: TableView, where: Condition) -> ScanPlan:
    """Plan the read of the keys of all rows that match a condition."""
    return plan_scan(view, columns=[RECORD_KEY, PARTITION_PATH], where=where)


@dataclass(frozen=True, slots=True)
class UpdatePlan:
    """The read of the rows that an update changes, and the columns that it writes, in their order.

    `changed`: the columns that the update sets, if the write logs these and the key and ordering columns only; None if
    it writes whole rows.
    """

    scan: ScanPlan
    columns: tuple[str, ...]
    changed: tuple[str, ...] | None


def plan_update(
    view: TableView, assignments: Mapping[str, str], where: Condition | None, properties: Mapping[str, str]
) -> UpdatePlan:
    """Plan an update; `properties` are those of the call.

    Raises: SchemaMismatchError for unknown columns; InvalidConfigError for columns that make the key or the partition.
    """
    config, schema = view.config, view.schema().arrow
    unknown = [name for name in assignments if name not in schema.names]
    if unknown or not assignments:
        raise SchemaMismatchError(f"update sets {list(assignments)}: expected columns of the table, {schema.names}")
    naming = {name.split(".")[0] for name in (*config.record_key_fields, *config.partition_fields)}
    if naming & set(assignments):
        raise InvalidConfigError(
            f"update sets {sorted(naming & set(assignments))}, of which keys or partition paths are made; delete "
            "the rows and insert them anew"
        )
    names = tuple(without_meta_fields(schema).names)
    if not _logs_parts(config, schema, assignments, options.PARTIAL_UPDATES.get(properties, config.raw)):
        return UpdatePlan(plan_scan(view, columns=names, where=where), names, None)
    changed = tuple(name for name in names if name in assignments)
    ordering = config.ordering_fields if config.merge_rule.mode is MergeMode.EVENT_TIME_ORDERING else ()
    written = tuple(name for name in names if name in {*naming, *ordering, *changed})
    read = _columns_read(written, assignments, schema)
    return UpdatePlan(plan_scan(view, columns=[name for name in names if name in read], where=where), written, changed)


def _logs_parts(config: TableConfig, schema: pa.Schema, assignments: Mapping[str, str], asked: str) -> bool:
    """Whether the table logs only the columns that change: not if a merge function, or a delete, needs whole rows.

    The JVM cannot read parts of rows in a table with the column `_hoodie_is_deleted`. With a record index it cannot
    delete from a file slice that has some. If ordering values decide, an outdated logged row fills the fields that a
    part leaves out, so that outdated values come back. `asked`: `config.PARTIAL_UPDATES`.
    """
    is_plain = config.merge_rule.mode is not MergeMode.CUSTOM and config.partial_update_mode is None
    deletes = {IS_DELETED, config.merge_rule.delete_field} & set(assignments)
    if config.table_type is not TableType.MERGE_ON_READ or not is_plain or deletes or asked == "never":
        return False
    hinders_jvm = IS_DELETED in schema.names or RECORD_INDEX in config.metadata_partitions
    by_order = config.merge_rule.mode is MergeMode.EVENT_TIME_ORDERING and bool(config.ordering_fields)
    return asked == "always" or not (hinders_jvm or by_order)


def _columns_read(written: tuple[str, ...], assignments: Mapping[str, str], schema: pa.Schema) -> frozenset[str]:
    """The columns written and those in the expressions; all columns if only Spark can evaluate one of them."""
    try:
        return frozenset(written).union(*(columns_of(expression, schema) for expression in assignments.values()))
    except (InvalidConfigError, UnsupportedError):
        return frozenset(schema.names)


def assigned(plan: UpdatePlan, assignments: Mapping[str, str]) -> Dataset:
    """The rows to write, with the assignments evaluated in this process. Memory: all of them, changed columns twice."""
    rows = read_table(plan.scan)
    changed = {
        name: evaluate(to_projection(expression, rows.schema, as_type=rows.schema.field(name).type), rows)
        for name, expression in assignments.items()
    }
    columns = [changed.get(name, rows[name]) for name in plan.columns]
    return ArrowDataset(pa.Table.from_arrays(columns, schema=pa.schema([rows.schema.field(n) for n in plan.columns])))
