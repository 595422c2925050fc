"""Change data as a DataFrame: Python workers compare the file slices before and after each commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hoodie.engine.packing import file_bytes
from hoodie.format.schema.conform import conform
from hoodie.read.cdc import cdc_schema, change_batches
from hoodie.read.cdc_plan import CdcPlan, GroupChange
from hoodie.spark.merged import by_groups, pieces
from hoodie.spark.tasks import Batches
from hoodie.spark.types import arrow_schema_of, spark_schema_of
from hoodie.storage import StoreSpec, open_store


@dataclass(frozen=True, slots=True)
class ChangeReader:
    """The reader of change data in workers. Picklable.

    `rows` is a schema of `cdc_schema`; `schema` has the types that Spark expects, and may leave out columns.
    """

    store: StoreSpec
    rows: pa.Schema
    schema: pa.Schema

    def batches(self, changes: tuple[GroupChange, ...]) -> Batches:
        """Read the changes in batches of bounded size. Memory: as `change_batches` of one file group and commit."""
        store = open_store(self.store)
        for change in changes:
            for batch in change_batches(store, change, self.rows):
                yield from pieces(conform(batch, self.schema, stored=True))


def read_cdc(session: Any, plan: CdcPlan, *, flat: bool = False) -> Any:
    """Return the changes of the plan as a DataFrame. Memory of a task: as `change_batches`."""
    schema = cdc_schema(plan.schema, flat=flat)
    spark_schema = spark_schema_of(schema)
    if not plan.changes:
        return session.createDataFrame([], spark_schema)
    reader = ChangeReader(plan.view.store.spec, schema, arrow_schema_of(spark_schema))

    def changed_rows(group: tuple[GroupChange, ...]) -> Batches:
        yield from reader.batches(group)

    return by_groups(session, plan.changes, file_bytes, changed_rows, spark_schema)
