"""DataFrames that go into a write or come out of a look-up, other than plain scans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

from hoodie.metadata.view import TableView
from hoodie.read.lookup import key_columns, key_table
from hoodie.read.plan import ScanPlan, plan_scan
from hoodie.read.readable import check_readable
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.spark.engine import guarded, session_of
from hoodie.spark.scan import read_scan
from hoodie.spark.types import arrow_schema_of, spark_schema_of


def assigned(session: Any, plan: ScanPlan, assignments: Mapping[str, str]) -> Any:
    """The rows of an update's plan with the assignments made by Spark."""
    frame = read_scan(session, plan)
    types = frame.schema
    return frame.select(
        *(
            F.expr(assignments[name]).cast(types[name].dataType).alias(name)
            if name in assignments
            else F.col(f"`{name}`")
            for name in frame.columns
        )
    )


def filter_exists(view: TableView, frame: Any, *, is_global: bool) -> Any:
    """The rows of a DataFrame whose key the table does not hold: an anti join with the table's key columns."""
    check_readable(view, by_meta_columns=True)
    columns = key_columns(view)
    names = frame.columns
    by_path = not is_global and columns.tells_paths(names)
    # Names of their own: rows that were read from a table have the meta columns already.
    wanted = {RECORD_KEY: "_hoodie_wanted_key"} | ({PARTITION_PATH: "_hoodie_wanted_path"} if by_path else {})

    def add_keys(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            keys = key_table(columns, batch)
            made = [keys[name].combine_chunks() for name in wanted]
            yield pa.RecordBatch.from_arrays([*batch.columns, *made], [*names, *wanted.values()])

    schema = arrow_schema_of(frame.schema)
    for name in wanted.values():
        schema = schema.append(pa.field(name, pa.string(), False))
    keyed = frame.mapInArrow(guarded(add_keys), spark_schema_of(schema))
    held = read_scan(session_of(frame), plan_scan(view, columns=list(wanted)))
    held = held.select(*(F.col(name).alias(alias) for name, alias in wanted.items()))
    return keyed.join(held, list(wanted.values()), "left_anti").select(*(F.col(f"`{name}`") for name in names))
