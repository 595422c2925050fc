"""Change data as a DataFrame: Python workers compare the file slices before and after each commit."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from hoodie.format.schema.conform import conform
from hoodie.read.cdc import cdc_schema, change_batches
from hoodie.read.cdc_plan import CdcPlan
from hoodie.read.slice_groups import balanced
from hoodie.spark.merged import pieces
from hoodie.spark.tasks import each_in_a_task, packed_tasks
from hoodie.spark.types import arrow_schema_of, spark_schema_of
from hoodie.storage import open_store

_TASK_BYTES = 16 * 1024 * 1024


def read_cdc(session: Any, plan: CdcPlan, *, flat: bool = False) -> Any:
    """Return the changes of the plan as a DataFrame; a task reads about 16 MiB of files. Memory: `change_batches`."""
    schema = cdc_schema(plan.schema, flat=flat)
    spark_schema = spark_schema_of(schema)
    if not plan.changes:
        return session.createDataFrame([], spark_schema)
    spec, sent = plan.view.store.spec, arrow_schema_of(spark_schema)

    def changed_rows(number: int, packed: bytes) -> Iterator[pa.RecordBatch]:
        store = open_store(spec)
        for change in pickle.loads(packed):
            for batch in change_batches(store, change, schema):
                yield from pieces(conform(batch, sent, stored=True))

    groups = balanced(plan.changes, _TASK_BYTES, lambda change: change.size_bytes)
    return each_in_a_task(session, packed_tasks(groups), changed_rows, spark_schema)
