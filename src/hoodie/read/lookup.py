"""Look up records by key: the rows of given keys, and which of given rows are new."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import SchemaMismatchError
from hoodie.metadata.rules import table_key_generator
from hoodie.metadata.view import TableView
from hoodie.read.local import has_keys, read_table
from hoodie.read.plan import ScanPlan, plan_scan
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.records.key_generator import KeyGenerator


def tells_paths(generator: KeyGenerator, names: Sequence[str]) -> bool:
    """Whether columns of these names tell the partition path of a row."""
    return PARTITION_PATH in names or all(name.split(".")[0] in names for name in generator.partition_fields)


def key_table(generator: KeyGenerator, rows: pa.Table) -> pa.Table:
    """Record keys of rows, and partition paths where the columns tell; rows stay in order.

    Takes the table's key columns, or `_hoodie_record_key` (and `_hoodie_partition_path`).

    Raises: SchemaMismatchError if neither is there; RecordKeyError for null keys.
    """
    names = rows.schema.names
    batch = pa.RecordBatch.from_arrays([column.combine_chunks() for column in rows.columns], schema=rows.schema)
    missing = [name for name in generator.record_key_fields if name.split(".")[0] not in names]
    if RECORD_KEY not in names and missing:
        raise SchemaMismatchError(
            f"a look-up needs the record key columns {list(generator.record_key_fields)} or {RECORD_KEY}, found {names}"
        )
    has_column = RECORD_KEY in names
    columns = {RECORD_KEY: batch.column(RECORD_KEY).cast(pa.string()) if has_column else generator.record_keys(batch)}
    if PARTITION_PATH in names:
        columns[PARTITION_PATH] = batch.column(PARTITION_PATH).cast(pa.string())
    elif tells_paths(generator, names):
        columns[PARTITION_PATH] = generator.partition_paths(batch)
    return pa.table(columns)


def plan_lookup(view: TableView, keys: pa.Table) -> ScanPlan:
    """Settle the read of the rows with these keys; partitions that hold none of them are not read.

    Raises: as `key_table`.
    """
    wanted = key_table(table_key_generator(view.config), keys)
    scan = plan_scan(view)
    files = scan.files
    if PARTITION_PATH in wanted.column_names:
        paths = set(pc.unique(wanted[PARTITION_PATH]).to_pylist())
        files = tuple(file for file in files if file.partition_path in paths)
    return dataclasses.replace(scan, files=files, keys=wanted)


def filter_exists(view: TableView, rows: pa.Table, *, is_global: bool) -> pa.Table:
    """The rows whose key the table does not hold yet, in order: for de-duplication before an insert.

    A key counts as held in its own partition, or anywhere if `is_global`. Raises: as `key_table`.
    """
    wanted = key_table(table_key_generator(view.config), rows)
    if is_global and PARTITION_PATH in wanted.column_names:
        wanted = wanted.select([RECORD_KEY])
    scan = dataclasses.replace(plan_lookup(view, wanted), columns=tuple(wanted.column_names))
    held = has_keys(wanted, read_table(scan))
    return rows.filter(pa.array(~np.asarray(held.combine_chunks())))
