"""Rows of DataFrames that no Arrow data of a caller has, or that Spark moves between its workers."""

from __future__ import annotations

import pyarrow as pa
import pytest

import hoodie
from tests.contract.table_lanes import Lane

pytestmark = [pytest.mark.spark, pytest.mark.connect]


@pytest.mark.parametrize("index", ["record", "global_simple"])
def test_text_that_is_not_utf8_is_refused_as_in_process(spark_lane: Lane, index: str) -> None:
    """Spark makes text of any bytes, as in `CAST(value AS STRING)` of Kafka's rows."""
    text = "CAST(IF(id = 3, X'FF', X'41') AS STRING) AS city"
    frame = spark_lane.session.range(0, 5, 1, 1).selectExpr("CAST(id AS STRING) AS id", "1L AS ts", "1D AS fare", text)
    table = spark_lane.create(type="merge_on_read", index=index)
    with pytest.raises(hoodie.SchemaMismatchError, match="column 'city', row 3: text with bytes that are not valid"):
        table.upsert(frame)
    assert (table.timeline.instants, table.upsert(frame.where("id <> '3'")).inserted) == ((), 4)


def test_types_that_spark_lacks_are_moved_between_workers(spark_lane: Lane) -> None:
    """For a global index without the record index, and for a global sort."""
    kinds = [("h", pa.binary(4)), ("at", pa.time64("us")), ("ms", pa.list_(pa.field("element", pa.time32("ms"))))]
    table = spark_lane.create(pa.schema([("id", pa.string()), *kinds]), index="global_simple")
    frame = spark_lane.session.range(0, 6, 1, 2).selectExpr(
        "CAST(id AS STRING) AS id", "CAST(id + 1000 AS STRING) AS t"
    )
    frame = frame.selectExpr("id", "CAST(t AS BINARY) AS h")
    assert table.upsert(frame.where("id < '4'")).inserted == 4
    assert table.upsert(frame.where("id = '0'")).updated == 1
    table.bulk_insert(frame.where("id >= '4'"), sort="global")
    found = hoodie.open(table.path, spark=False).to_arrow(columns=["id", "h", "at", "ms"]).sort_by("id")
    expected = [{"id": str(n), "h": b"%d" % (n + 1000), "at": None, "ms": None} for n in range(6)]
    assert found.to_pylist() == expected
