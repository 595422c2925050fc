"""DataFrames that go into a write or come out of a look-up, other than plain scans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

from hoodie.metadata.rules import table_key_generator
from hoodie.metadata.view import TableView
from hoodie.read.plan import ScanPlan, plan_scan
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
    session = session_of(frame)
    keys = [RECORD_KEY] if is_global else [RECORD_KEY, PARTITION_PATH]
    generator = table_key_generator(view.config)
    names = frame.columns

    def add_keys(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            made = [generator.record_keys(batch)]
            made += [] if is_global else [generator.partition_paths(batch)]
            yield pa.RecordBatch.from_arrays([*batch.columns, *made], [*names, *keys])

    schema = arrow_schema_of(frame.schema)
    for name in keys:
        schema = schema.append(pa.field(name, pa.string(), False))
    keyed = frame.mapInArrow(guarded(add_keys), spark_schema_of(schema))
    held = read_scan(session, plan_scan(view, columns=keys))
    return keyed.join(held, keys, "left_anti").select(*(F.col(f"`{name}`") for name in names))


def to_arrow(frame: Any) -> pa.Table:
    """A small DataFrame as an Arrow table in the driver, on every Spark version."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    schema = arrow_schema_of(frame.schema)
    collected = frame._collect_as_arrow()
    return pa.Table.from_batches(collected) if collected else schema.empty_table()
