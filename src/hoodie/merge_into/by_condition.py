"""Plan the read of the rows that a delete or update by condition changes.

The write finds the rows by their keys. If several rows have the same key and one of them matches, the write deletes or
updates all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from hoodie.config import writes
from hoodie.engine import ArrowDataset, Dataset
from hoodie.errors import InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.format.schema.table_schema import spelled, without_meta_fields
from hoodie.format.table.call_options import config_of_call
from hoodie.format.table.merge_config import MergeMode
from hoodie.format.table.table_config import TableConfig, TableType
from hoodie.metadata.kinds.record_index import RecordIndexKind
from hoodie.read.local import read_table
from hoodie.read.plan import ScanPlan, plan_scan
from hoodie.records.change import IS_DELETED, PARTITION_PATH, RECORD_KEY
from hoodie.records.condition import Condition
from hoodie.records.expression import assigned_values, columns_of
from hoodie.records.merging.merge import table_merger
from hoodie.records.sql.columns import Columns
from hoodie.records.sql.translate import Translator
from hoodie.view.table_view import TableView
from hoodie.write.options import check_sets_nulls


def plan_matching_keys(view: TableView, where: Condition) -> ScanPlan:
    """Plan the read of the keys of all rows that match a condition; of their columns if the files store no keys."""
    config = view.config
    names = [RECORD_KEY, PARTITION_PATH]
    if not config.populates_meta_fields:
        fields = (*config.record_key_fields, *config.partition_fields)
        names = list(dict.fromkeys(field.partition(".")[0] for field in fields))
    return plan_scan(view, columns=names, where=where)


@dataclass(frozen=True, slots=True)
class UpdatePlan:
    """The read of the rows that an update changes, and the columns that it writes, in their order.

    `assignments`: the expression of each column that the update sets, by the table's spelling of its name. `changed`:
    the columns that the update sets, if the rows have only these columns and the key and ordering columns; None for
    whole rows.
    """

    scan: ScanPlan
    columns: tuple[str, ...]
    assignments: Mapping[str, str]
    changed: tuple[str, ...] | None


def plan_update(
    view: TableView, assignments: Mapping[str, str], where: Condition | None, properties: Mapping[str, str]
) -> UpdatePlan:
    """Plan an update; `properties` are the options of the call. The case of names does not matter, as in conditions.

    Raises: SchemaMismatchError for unknown columns; InvalidConfigError for record key and partition columns, and for a
    column that is set twice; UnsupportedError as `check_sets_nulls`.
    """
    config, schema = view.config, view.schema().arrow
    check_sets_nulls(config, properties, "update")
    spelling = dict(zip(assignments, spelled(assignments, schema), strict=True))
    if None in spelling.values() or not assignments:
        raise SchemaMismatchError(f"update sets {list(assignments)}: expected columns of the table, {schema.names}")
    if len(set(spelling.values())) < len(spelling):
        raise InvalidConfigError(f"update sets {list(assignments)}: a column is set twice; keep one of its names")
    assignments = {str(spelling[name]): text for name, text in assignments.items()}
    naming = {name.split(".")[0] for name in (*config.record_key_fields, *config.partition_fields)}
    if naming & set(assignments):
        raise InvalidConfigError(
            f"update sets {sorted(naming & set(assignments))}, but columns of the record key or the partition path "
            "cannot be updated; delete the rows and insert them again"
        )
    # Without key columns, the stored key names the record.
    stored_key = () if config.record_key_fields else (RECORD_KEY,)
    names = (*stored_key, *without_meta_fields(schema).names)
    of_call = config_of_call(config, properties)
    if not _writes_parts(of_call, schema, assignments, properties):
        return UpdatePlan(plan_scan(view, columns=names, where=where), names, assignments, None)
    changed = tuple(name for name in names if name in assignments)
    needed = {*stored_key, *naming, *table_merger(of_call).ordering_fields, *changed}
    written = tuple(name for name in names if name in needed)
    read = _columns_read(written, assignments, schema)
    scan = plan_scan(view, columns=[name for name in names if name in read], where=where)
    return UpdatePlan(scan, written, assignments, changed)


def _writes_parts(
    config: TableConfig, schema: pa.Schema, assignments: Mapping[str, str], properties: Mapping[str, str]
) -> bool:
    """Return whether rows with only the columns that change can be written. A merge or a delete requires whole rows."""
    asked = writes.PARTIAL_UPDATES.get(properties, config.raw)
    is_plain = config.merge_rule.mode is not MergeMode.CUSTOM and config.partial_update_mode is None
    deletes = {IS_DELETED, config.merge_rule.delete_field} & set(assignments)
    if not is_plain or deletes or asked == "never":
        return False
    if config.table_type is TableType.MERGE_ON_READ:
        return _logs_parts(config, schema, asked)
    return config.populates_meta_fields and not config.is_cdc_enabled


def _logs_parts(config: TableConfig, schema: pa.Schema, asked: str) -> bool:
    """Return whether a merge-on-read table logs only the columns that change.

    The JVM cannot read partial rows in a table with the column `_hoodie_is_deleted`. In a table with a record index,
    it cannot delete from a file slice that has partial rows. If ordering values decide, an outdated logged row fills
    the columns that a partial row lacks, so that outdated values return. `asked`: value of `config.PARTIAL_UPDATES`.
    """
    if not config.version.has_log_compaction:
        return False
    hinders_jvm = IS_DELETED in schema.names or RecordIndexKind().is_in(config)
    by_order = config.merge_rule.mode is MergeMode.EVENT_TIME_ORDERING and bool(config.ordering_fields)
    return asked == "always" or not (hinders_jvm or by_order)


def _columns_read(written: tuple[str, ...], assignments: Mapping[str, str], schema: pa.Schema) -> frozenset[str]:
    """Return the written columns and the columns in the expressions; all columns if only Spark can evaluate one."""
    columns = Columns(schema)
    try:
        return frozenset(written).union(*(columns_of(expression, columns) for expression in assignments.values()))
    except (InvalidConfigError, UnsupportedError):
        return frozenset(schema.names)


def assigned(plan: UpdatePlan) -> Dataset:
    """Return the rows to write, with the assignments evaluated in this process.

    Memory: all rows, with the changed columns twice.
    """
    rows = read_table(plan.scan)
    types = {child.name: child.type for child in rows.schema}
    changed = assigned_values(plan.assignments, Translator(rows.schema), types, rows)
    columns = [changed[name] if name in plan.assignments else rows[name] for name in plan.columns]
    schema = rows.select(list(plan.columns)).schema
    return ArrowDataset(pa.Table.from_arrays(columns, schema=schema), is_computed=True)
