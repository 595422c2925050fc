"""JVM Hudi's streaming sink and `t.stream` go on from one checkpoint in turns; each skips the other's last batch."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.errors import HoodieWarning
from hoodie.format.instants.sink_checkpoint import CHECKPOINT_KEY
from tests.interop.judges import HIVE, QUICK_OPTIONS, Jvm
from tests.interop.shared_trips import SCHEMA, TYPES, trips
from tests.support.rows import assert_same_rows
from tests.support.streams import forget_batch

NOW = {"availableNow": True}


@pytest.mark.parametrize("table_type", TYPES)
def test_both_sinks_go_on_from_one_checkpoint(jvm: Jvm, tmp_path: Path, table_type: str) -> None:
    source, checkpoint, path = tmp_path / "source", tmp_path / "checkpoint", str(tmp_path / "table")
    source.mkdir()
    options = {
        **QUICK_OPTIONS,
        **HIVE,
        "hoodie.table.name": "stream",
        "hoodie.datasource.write.operation": "insert",  # a batch that is written twice would double its rows
        "hoodie.datasource.write.table.type": table_type.upper(),
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.compaction.async.enable": "false",
    }

    def put(number: int) -> Any:
        pq.write_table(trips(range(10 * number, 10 * number + 5), number), source / f"{number}.parquet")
        schema = "id string, ts long, fare double, city string"
        return jvm.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source))

    def by_jvm(frame: Any, folder: Path = checkpoint) -> None:
        writer = frame.writeStream.format("hudi").options(**options).option("checkpointLocation", str(folder))
        writer.outputMode("append").trigger(**NOW).start(path).awaitTermination()

    def by_us(frame: Any, folder: Path = checkpoint) -> None:
        table = hoodie.open(path, spark=jvm.spark)
        table.stream(frame, "insert", checkpoint=str(folder), trigger=NOW).awaitTermination()

    put(0)
    by_jvm(put(1))
    forget_batch(checkpoint, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HoodieWarning)
        by_us(put(2))  # batch 1 is the JVM's: left out
    forget_batch(checkpoint, 2)
    by_jvm(put(3))  # batch 2 is ours: the JVM leaves it out
    by_us(put(4))
    view = hoodie.open(path, spark=False).view()
    found = [view.commit_facts(instant).sink[CHECKPOINT_KEY] for instant in view.completed_writes()]
    assert found == [f'{{"default_single_writer":"{number}"}}' for number in range(5)]
    expected = [row for number in range(5) for row in trips(range(10 * number, 10 * number + 5), number).to_pylist()]
    for rows in (jvm.read(path, SCHEMA.names), hoodie.open(path, spark=False).to_arrow(SCHEMA.names)):
        assert sorted(rows.to_pylist(), key=lambda row: row["id"]) == expected
    # A new checkpoint: the JVM skips all batches without a word, and we refuse the first.
    with pytest.raises(Exception, match="numbers its batches anew"):
        by_us(put(5), tmp_path / "new")
    by_jvm(put(5), tmp_path / "other")
    assert jvm.read(path).num_rows == 25 + 5  # of six batches of files that it had not read, it wrote the last one
    assert_same_rows(jvm.read(path, ["id"]), hoodie.open(path, spark=False).to_arrow(["id"]), key=["id"])
