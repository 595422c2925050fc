"""Change data as a DataFrame: Python workers compare the file slices before and after each commit."""

from __future__ import annotations

from typing import Any

from hoodie.format.schema.conform import conform
from hoodie.read.cdc import cdc_schema, change_batches
from hoodie.read.cdc_plan import CdcPlan, GroupChange
from hoodie.read.slice_groups import file_bytes
from hoodie.spark.merged import by_groups, pieces
from hoodie.spark.tasks import Batches
from hoodie.spark.types import arrow_schema_of, spark_schema_of
from hoodie.storage import open_store


def read_cdc(session: Any, plan: CdcPlan, *, flat: bool = False) -> Any:
    """Return the changes of the plan as a DataFrame. Memory of a task: as `change_batches`."""
    schema = cdc_schema(plan.schema, flat=flat)
    spark_schema = spark_schema_of(schema)
    if not plan.changes:
        return session.createDataFrame([], spark_schema)
    spec, sent = plan.view.store.spec, arrow_schema_of(spark_schema)

    def changed_rows(group: tuple[GroupChange, ...]) -> Batches:
        store = open_store(spec)
        for change in group:
            for batch in change_batches(store, change, schema):
                yield from pieces(conform(batch, sent, stored=True))

    return by_groups(session, plan.changes, file_bytes, changed_rows, spark_schema)
