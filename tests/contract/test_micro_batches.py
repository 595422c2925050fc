"""Micro-batches of a Spark stream are appended to a table with automatic keys; one that comes again is skipped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
KEY = "_hoodie_record_key"


def newest_batch(table: hoodie.Table) -> int:
    """The batch of the newest commit that has one, as docs/automatic-keys.md shows; -1 for none."""
    view = table.view()
    for instant in reversed(view.completed_writes()):
        entries = view.commit_metadata(instant).extra_metadata or {}
        if "batch" in entries:
            return int(entries["batch"])
    return -1


def test_micro_batches_are_appended_once_each(spark: SparkSession, tmp_path: Path) -> None:
    source, checkpoint = tmp_path / "source", tmp_path / "checkpoint"
    source.mkdir()
    for number in range(3):
        pq.write_table(pa.table({"n": range(number * 10, number * 10 + 10)}), source / f"{number}.parquet")
    table = hoodie.create(tmp_path / "table", pa.schema([("n", pa.int64())]), spark=spark)
    delivered: list[int] = []

    def append(rows: Any, number: int) -> None:
        delivered.append(number)
        if number > newest_batch(table):
            table.insert(rows, extra_metadata={"batch": str(number)})

    def run() -> None:
        files = spark.readStream.schema("n long").option("maxFilesPerTrigger", 1).parquet(str(source))
        writer = files.writeStream.foreachBatch(append).option("checkpointLocation", str(checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()

    run()
    rows = table.to_arrow([KEY, "n", "_hoodie_commit_time"]).to_pylist()
    assert sorted(row["n"] for row in rows) == list(range(30))
    assert len({row[KEY] for row in rows}) == 30
    assert all(row[KEY].startswith(f"{row['_hoodie_commit_time']}_") for row in rows)
    assert len({row["_hoodie_commit_time"] for row in rows}) == 3
    # The stream died before it noted the last batch, which the table has already.
    for name in ("2", ".2.crc"):
        (checkpoint / "commits" / name).unlink()
    table.cluster(properties={"hoodie.clustering.plan.strategy.small.file.limit": "100000000"})
    run()
    assert delivered == [0, 1, 2, 2]
    assert table.to_arrow([KEY, "n"]).sort_by("n").to_pylist() == [
        {KEY: row[KEY], "n": row["n"]} for row in sorted(rows, key=lambda row: row["n"])
    ]
