"""Rows of DataFrames that no Arrow data of a caller has, or that Spark moves between its workers."""

from __future__ import annotations

import datetime as dt

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
    """For a global index without the record index, and for a global sort; other writers make such columns."""
    lane, moment = spark_lane, dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    kinds = [("id", pa.string()), ("h", pa.binary(4)), ("at", pa.int64()), ("ms", pa.timestamp("us", "UTC"))]
    nulls = {"hoodie.write.set.null.for.missing.columns": "true"}
    lane.create(pa.schema(kinds), index="global_simple", properties=nulls)
    properties = lane.path / ".hoodie/hoodie.properties"
    text = properties.read_text().replace("timestamp-micros", "timestamp-millis")
    properties.write_text(text.replace('"long"]', '{"type":"long","logicalType":"time-micros"}]'))
    table = lane.open()
    assert [str(field.type) for field in table.schema][2:] == ["time64[us]", "timestamp[ms, tz=UTC]"]
    ids = lane.session.range(0, 6, 1, 2).selectExpr("CAST(id AS STRING) AS id", "CAST(id + 1000 AS STRING) AS text")
    frame = ids.selectExpr("id", "CAST(text AS BINARY) AS h", "TIMESTAMP '2026-01-01 00:00:00Z' AS ms")
    assert table.upsert(frame.where("id < '4'")).inserted == 4
    assert table.upsert(frame.where("id = '0'")).updated == 1
    table.bulk_insert(frame.where("id >= '4'"), sort="global")
    found = table.to_arrow(columns=["id", "h", "at", "ms"]).sort_by("id")
    assert found.to_pylist() == [{"id": f"{n}", "h": b"%d" % (n + 1000), "at": None, "ms": moment} for n in range(6)]
