"""The workers of Spark ask HBase."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import hoodie

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "id string, city string, x long"


def test_tasks_of_spark_read_and_write_hbase(options: dict[str, str], spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(40_000).selectExpr("concat('k', id) id", "if(id % 2 = 0, 'sf', 'la') city", "id x")
    table = hoodie.create(
        tmp_path / "table", rows, record_key="id", partition_by="city", index="hbase", properties=options
    )
    on_workers = {"hoodie.python.local.bytes.max": "0"}
    assert table.upsert(rows, properties=on_workers).inserted == 40_000
    moved = rows.where("x < 30000").selectExpr("id", "if(x < 10, 'nyc', city) city", "x + 1 x")
    done = table.upsert(moved, properties=on_workers)
    assert (done.inserted, done.updated) == (0, 30_000)
    found = table.read()
    assert found.count() == found.select("id").distinct().count() == 40_000
    assert found.where("city = 'nyc'").count() == 10
    assert table.index.verify().ok
