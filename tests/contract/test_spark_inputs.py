"""Rows of DataFrames that no Arrow data of a caller has, or that Spark moves between its workers."""

from __future__ import annotations

import pytest

import hoodie
from tests.contract.table_lanes import Lane

pytestmark = [pytest.mark.spark, pytest.mark.connect]


@pytest.mark.parametrize("index", ["record_index", "global_simple"])
def test_text_that_is_not_utf8_is_refused_as_in_process(spark_lane: Lane, index: str) -> None:
    """Spark makes text of any bytes, as in `CAST(value AS STRING)` of Kafka's rows."""
    text = "CAST(IF(id = 3, X'FF', X'41') AS STRING) AS city"
    frame = spark_lane.session.range(0, 5, 1, 1).selectExpr("CAST(id AS STRING) AS id", "1L AS ts", "1D AS fare", text)
    table = spark_lane.create(type="merge_on_read", index=index)
    with pytest.raises(hoodie.SchemaMismatchError, match="column 'city', row 3: text with bytes that are not valid"):
        table.upsert(frame)
    assert (table.timeline.instants, table.upsert(frame.where("id <> '3'")).inserted) == ((), 4)
