"""DataFrames of updates and of existence checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

from hoodie.read.lookup import key_columns
from hoodie.read.plan import check_readable, plan_scan
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.records.sql.quoting import quoted
from hoodie.spark.assignment import Assignment, types_of
from hoodie.spark.engine import session_of
from hoodie.spark.locations import WANTED_KEY, WANTED_PATH, FileGroupLookUp, with_wanted_keys
from hoodie.spark.scan import read_scan
from hoodie.spark.tasks import guarded
from hoodie.spark.types import arrow_schema_of
from hoodie.view.table_view import TableView
from hoodie.write.conditional import UpdatePlan


def assigned(session: Any, plan: UpdatePlan, assignments: Mapping[str, str]) -> Any:
    """Return the rows that an update writes; Spark evaluates the assignments.

    Raises: as `Assignment.of`.
    """
    frame = read_scan(session, plan.scan)
    wanted = {field.name: field.dataType for field in frame.schema}
    columns = {name: F.col(quoted(name)) for name in plan.columns}
    for name, given in types_of(frame, assignments).items():
        columns[name] = Assignment("update", name, given, wanted[name]).of(F.expr(assignments[name])).alias(name)
    return frame.select(*columns.values())


def filter_exists(view: TableView, frame: Any, *, is_global: bool) -> Any:
    """Return the rows of a DataFrame whose key the table does not hold.

    With a record index the rows are shuffled by index file group, and each worker reads the index file groups of its
    rows. Otherwise the rows are joined with the table's key columns by an anti join.
    """
    check_readable(view, by_meta_columns=True)
    columns = key_columns(view)
    names = frame.columns
    by_path = not is_global and columns.tells_paths(arrow_schema_of(frame.schema))
    keyed = with_wanted_keys(columns, frame, by_path=by_path, keep=True)
    index = FileGroupLookUp.of(view) if is_global else None
    if index is not None:
        return index.by_bucket(keyed).mapInArrow(
            guarded(frame.sparkSession, _new_rows(index, len(names))), frame.schema
        )
    wanted = {RECORD_KEY: WANTED_KEY} | ({PARTITION_PATH: WANTED_PATH} if by_path else {})
    held = read_scan(session_of(frame), plan_scan(view, columns=list(wanted)))
    held = held.select(*(F.col(name).alias(alias) for name, alias in wanted.items()))
    return keyed.join(held, list(wanted.values()), "left_anti").select(*(F.col(quoted(name)) for name in names))


def _new_rows(index: FileGroupLookUp, width: int) -> Any:
    """Return a function that keeps the rows whose key the index does not contain, with their first `width` columns."""

    def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            is_new = pa.array(index.locate(batch.column(WANTED_KEY)).codes < 0)
            rows = pa.RecordBatch.from_arrays(batch.columns[:width], schema=pa.schema(list(batch.schema)[:width]))
            yield rows.filter(is_new)

    return keep
