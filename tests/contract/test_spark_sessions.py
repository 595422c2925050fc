"""The session that the other contract tests rely on: its kind, its options, and Arrow through Python workers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.connect, pytest.mark.surface]


def test_the_session_is_of_the_kind_this_lane_asks_for(spark: SparkSession) -> None:
    kind = "connect" if "connect" in type(spark).__module__ else "classic"
    assert kind == os.environ.get("HOODIE_TEST_SPARK", "classic")


def test_the_session_is_small_and_in_utc(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_arrow_batches_pass_through_workers_that_have_hoodie(spark: SparkSession) -> None:
    def double(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow.compute as pc

        import hoodie.errors

        assert hoodie.errors.HoodieError.__name__ == "HoodieError"
        for batch in batches:
            yield pa.record_batch({"id": pc.multiply(batch["id"], 2)})

    rows = spark.range(5).mapInArrow(double, "id long").collect()
    assert sorted(row["id"] for row in rows) == [0, 2, 4, 6, 8]
