"""Look up records by key: read the rows of given keys, and find the given rows whose keys are new."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.index import partition_follows_columns
from hoodie.read.key_holders import locate
from hoodie.read.local import KeySet, read_table
from hoodie.read.plan import ScanPlan, plan_keys
from hoodie.read.readable import check_readable
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.records.keys.key_columns import KeyColumns
from hoodie.view.rules import table_key_generator
from hoodie.view.table_view import TableView


def key_columns(view: TableView) -> KeyColumns:
    """Return the rules by which record keys and partition paths are made from the columns of this table.

    Raises: UnsupportedError for a key generator that only the JVM has.
    """
    return KeyColumns(table_key_generator(view.config), view.schema().arrow)


def key_table(columns: KeyColumns, rows: pa.Table | pa.RecordBatch) -> pa.Table:
    """Return the record keys of rows, and the partition paths if the columns determine them; rows stay in order.

    The rows must have the table's key columns, in types that can be converted to the table's types, or
    `_hoodie_record_key` (and `_hoodie_partition_path`). Other columns are ignored.

    Raises: SchemaMismatchError if the rows have neither, or types cannot be converted; RecordKeyError for null keys.
    """
    naming = rows.select(columns.needed(rows.schema.names))
    if isinstance(naming, pa.Table):
        arrays = [column.combine_chunks() for column in naming.columns]
        naming = pa.RecordBatch.from_arrays(arrays, schema=naming.schema)
    made = {RECORD_KEY: columns.record_keys(naming)}
    paths = columns.partition_paths(naming)
    return pa.table(made if paths is None else {**made, PARTITION_PATH: paths})


def plan_lookup(view: TableView, keys: pa.Table) -> ScanPlan:
    """Plan the read of the rows with these keys; file groups and partitions that hold none of them are not read.

    Raises: as `key_table` and `check_readable`.
    """
    check_readable(view, by_meta_columns=True)
    wanted = key_table(key_columns(view), keys)
    if PARTITION_PATH in wanted.column_names and not partition_follows_columns(view.config):
        # In such a table rows stay in their first partition, and their partition columns can name another partition.
        wanted = wanted.select([RECORD_KEY])
    return plan_keys(view, wanted)


def filter_exists(view: TableView, rows: pa.Table, *, is_global: bool) -> pa.Table:
    """Return the rows whose key the table does not hold, in order. Callers de-duplicate rows by this before an insert.

    If `is_global`, a key is looked up in the whole table, otherwise in its own partition only. With a record index and
    `is_global` no data file is read. Memory: the rows, and those of their keys that the table holds.

    Raises: as `key_table` and `check_readable`.
    """
    check_readable(view, by_meta_columns=True)
    wanted = key_table(key_columns(view), rows)
    if is_global and PARTITION_PATH in wanted.column_names:
        wanted = wanted.select([RECORD_KEY])
    found = locate(view, wanted[RECORD_KEY].combine_chunks()) if is_global else None
    if found is not None:
        is_new = pa.array(found.codes < 0)
    else:
        scan = dataclasses.replace(plan_lookup(view, wanted), columns=tuple(wanted.column_names))
        is_new = pc.invert(KeySet.of(read_table(scan)).holds(wanted))
    return rows.filter(is_new)
