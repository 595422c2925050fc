"""Compute rows from the rows of a DataFrame by a function over Arrow tables, in Python workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from hoodie.spark.tasks import in_workers
from hoodie.spark.types import spark_schema_of


def mapped(frame: Any, work: Callable[[pa.Table], pa.Table], schema: pa.Schema) -> Any:
    """Return the rows that `work` makes of each batch of a DataFrame, as a DataFrame of the Arrow schema.

    `work` is pickled; its tables must have the schema. Memory of a worker: a batch and what `work` makes of it.
    """

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from work(pa.Table.from_batches([batch])).to_batches()

    return in_workers(frame, decode, spark_schema_of(schema))
