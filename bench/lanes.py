"""The lanes of the benchmark: hoodie, JVM Hudi, delta-rs and plain Parquet.

All lanes read the same input files and write zstd.
"""

from __future__ import annotations

import os
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SESSION = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.ui.showConsoleProgress": "false",
}
JVM_SESSION = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
}
AGGREGATE = ("city", "count(*)", "sum(fare)", "avg(distance)")
Phases = Mapping[str, float]


class Lane(ABC):
    """A measured implementation: each method is one timed step on the table at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def drop(self) -> None:
        """Remove the table."""
        shutil.rmtree(self.path, ignore_errors=True)

    @abstractmethod
    def bulk_insert(self, base: Path) -> Phases | None:
        """Write a new table; return the seconds of the phases, or None if the lane does not measure them."""

    def upsert(self, changes: Path) -> Phases | None:
        """Merge changes into the table; return the seconds of the phases as `bulk_insert`."""
        raise NotImplementedError

    @abstractmethod
    def aggregate(self) -> list[Any]:
        """Read the whole table: count, sum and average by partition."""

    def incremental(self) -> int:
        """Count the rows changed by the latest commit."""
        raise NotImplementedError

    def read_keys(self, keys: list[str]) -> int:
        """Read the rows with these keys, and count them."""
        raise NotImplementedError

    def compact(self) -> None:
        """Plan a compaction of all log files, and execute it."""
        raise NotImplementedError


class SparkLane(Lane):
    """Base class of the lanes that use Spark."""

    master = "local[2]"

    def __init__(self, path: Path, confs: dict[str, str] | None = None) -> None:
        super().__init__(path)
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(self.master).appName("bench")
        for key, value in {**SESSION, **(confs or {})}.items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("ERROR")

    def load(self, folder: Path) -> Any:
        """Return an input as a DataFrame."""
        return self.spark.read.parquet(str(folder))

    def summed(self, frame: Any) -> list[Any]:
        """Compute the aggregate of a DataFrame."""
        frame.createOrReplaceTempView("bench")
        return list(
            self.spark.sql("select city, count(*), sum(fare), avg(distance) from bench group by city").collect()
        )


class HoodieLane(SparkLane):
    """This project with PySpark and the simple index, which reads the base files of the partitions."""

    index = "simple"
    type = "copy_on_write"
    properties: Mapping[str, str] = {}

    def bulk_insert(self, base: Path) -> Phases:
        import hoodie

        frame = self.load(base)
        table = hoodie.create(
            self.path,
            frame,
            record_key="key",
            partition_by="city",
            ordering="ts",
            index=self.index,
            type=self.type,
            properties=self.properties,
            spark=self.spark,
        )
        return table.bulk_insert(frame).seconds

    def upsert(self, changes: Path) -> Phases:
        import hoodie

        result = hoodie.open(self.path, spark=self.spark).upsert(self.load(changes))
        print(result, file=sys.stderr)
        return result.seconds

    def aggregate(self) -> list[Any]:
        import hoodie

        return self.summed(hoodie.open(self.path, spark=self.spark).read())

    def incremental(self) -> int:
        import hoodie

        table = hoodie.open(self.path, spark=self.spark)
        commits = table.timeline.completed().instants
        return int(table.changes(since=commits[-2].requested_time).count())


class HoodieRecordLane(HoodieLane):
    """This project with the record index; rows by key are read without Spark."""

    index = "record"

    def read_keys(self, keys: list[str]) -> int:
        import hoodie

        return int(hoodie.open(self.path, spark=False).read_keys(keys).num_rows)


class HoodieMergeOnReadLane(HoodieRecordLane):
    """This project's merge-on-read tables, with the record index."""

    type = "merge_on_read"

    def compact(self) -> None:
        import hoodie

        table = hoodie.open(self.path, spark=self.spark)
        assert table.schedule_compaction(strategy="unbounded") is not None
        print(table.compact(), file=sys.stderr)


class HoodieWorkersLane(HoodieRecordLane):
    """This project without its way for small work: every step runs on Spark's workers."""

    properties: Mapping[str, str] = {"hoodie.python.local.bytes.max": "0"}


class HoodieWorkersMergeOnReadLane(HoodieMergeOnReadLane):
    """The same with merge-on-read tables."""

    properties: Mapping[str, str] = HoodieWorkersLane.properties


class HoodieClusterLane(HoodieWorkersLane):
    """The same with two executors that are processes of their own."""

    master = "local-cluster[2,1,2048]"


class HoodieArrowLane(Lane):
    """This project in process, with Arrow data and the record index."""

    type = "copy_on_write"
    upsert_properties: Mapping[str, str] = {}

    def bulk_insert(self, base: Path) -> Phases:
        import pyarrow.parquet as pq

        import hoodie

        rows = pq.read_table(base)
        table = hoodie.create(
            self.path, rows, record_key="key", partition_by="city", ordering="ts", type=self.type, spark=False
        )
        return table.bulk_insert(rows).seconds

    def upsert(self, changes: Path) -> Phases:
        import pyarrow.parquet as pq

        import hoodie

        result = hoodie.open(self.path, spark=False).upsert(pq.read_table(changes), properties=self.upsert_properties)
        print(result, file=sys.stderr)
        return result.seconds

    def aggregate(self) -> list[Any]:
        import hoodie

        rows = hoodie.open(self.path, spark=False).to_arrow()
        return list(rows.group_by("city").aggregate([("fare", "sum"), ("distance", "mean")]).to_pylist())


class HoodieArrowNewFilesLane(HoodieArrowLane):
    """The same, with upserts that put their inserts into new files, as delta-rs does, and do not fill small files."""

    upsert_properties: Mapping[str, str] = {"hoodie.parquet.small.file.limit": "0"}


class HoodieArrowMergeOnReadLane(HoodieArrowLane):
    """The same with merge-on-read tables."""

    type = "merge_on_read"


class HudiJvmLane(SparkLane):
    """JVM Hudi 1.2.0 on PySpark 3.5, with its default index."""

    options: Mapping[str, str] = {}
    commits = "*.commit"

    def __init__(self, path: Path) -> None:
        super().__init__(path, {**JVM_SESSION, "spark.jars": os.environ["HOODIE_JVM_BUNDLE"]})

    def _write(self, folder: Path, operation: str, mode: str) -> None:
        options = {
            "hoodie.table.name": "bench",
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.recordkey.field": "key",
            "hoodie.datasource.write.partitionpath.field": "city",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.parquet.compression.codec": "zstd",
            **self.options,
        }
        self.load(folder).write.format("hudi").options(**options).mode(mode).save(str(self.path))

    def bulk_insert(self, base: Path) -> None:
        self._write(base, "bulk_insert", "overwrite")

    def upsert(self, changes: Path) -> None:
        self._write(changes, "upsert", "append")

    def aggregate(self) -> list[Any]:
        return self.summed(self.spark.read.format("hudi").load(str(self.path)))

    def incremental(self) -> int:
        names = sorted(p.name for p in (self.path / ".hoodie/timeline").glob(self.commits))
        begin = names[-2].split("_")[1].partition(".")[0]
        options = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": begin}
        return int(self.spark.read.format("hudi").options(**options).load(str(self.path)).count())


class HudiJvmRecordLane(HudiJvmLane):
    """JVM Hudi with its record index."""

    options: Mapping[str, str] = {
        "hoodie.index.type": "RECORD_INDEX",
        "hoodie.metadata.record.index.enable": "true",
    }

    def read_keys(self, keys: list[str]) -> int:
        reader = self.spark.read.format("hudi").options(**self.options)
        reader = reader.option("hoodie.metadata.enable", "true").option("hoodie.enable.data.skipping", "true")
        frame = reader.load(str(self.path))
        return len(frame.where(frame["key"].isin(keys)).collect())


class HudiJvmMergeOnReadLane(HudiJvmLane):
    """JVM Hudi's merge-on-read tables, with its default index."""

    options: Mapping[str, str] = {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.compact.inline": "false",
        "hoodie.datasource.compaction.async.enable": "true",
    }
    commits = "*.deltacommit"

    def compact(self) -> None:
        due = "hoodie.compact.inline.max.delta.commits=1,hoodie.parquet.compression.codec=zstd"
        for step in ("schedule", "run"):
            self.spark.sql(f"call run_compaction(op => '{step}', path => '{self.path}', options => '{due}')").collect()


class ParquetLane(SparkLane):
    """The lower bound: plain Parquet written by Spark, without updates and without incremental reads."""

    def bulk_insert(self, base: Path) -> None:
        self.load(base).write.mode("overwrite").parquet(str(self.path))

    def aggregate(self) -> list[Any]:
        return self.summed(self.spark.read.parquet(str(self.path)))


class PartitionedParquetLane(ParquetLane):
    """The lower bound with one folder for each partition."""

    def bulk_insert(self, base: Path) -> None:
        self.load(base).write.mode("overwrite").partitionBy("city").parquet(str(self.path))


class DeltaLane(Lane):
    """delta-rs: an implementation of another table format, in process, on its own threads."""

    def bulk_insert(self, base: Path) -> None:
        import pyarrow.parquet as pq
        from deltalake import WriterProperties, write_deltalake

        properties = WriterProperties(compression="ZSTD")
        rows = pq.read_table(base)
        write_deltalake(str(self.path), rows, partition_by=["city"], mode="overwrite", writer_properties=properties)

    def upsert(self, changes: Path) -> None:
        import pyarrow.parquet as pq
        from deltalake import DeltaTable, WriterProperties

        merge = DeltaTable(str(self.path)).merge(
            pq.read_table(changes),
            "t.key = s.key and t.city = s.city",
            source_alias="s",
            target_alias="t",
            writer_properties=WriterProperties(compression="ZSTD"),
        )
        merge.when_matched_update_all("s.ts >= t.ts").when_not_matched_insert_all().execute()

    def aggregate(self) -> list[Any]:
        from deltalake import DeltaTable

        rows = DeltaTable(str(self.path)).to_pyarrow_table()
        return list(rows.group_by("city").aggregate([("fare", "sum"), ("distance", "mean")]).to_pylist())


LANES = {
    "hoodie": HoodieLane,
    "hoodie-record": HoodieRecordLane,
    "hoodie-mor": HoodieMergeOnReadLane,
    "hoodie-workers": HoodieWorkersLane,
    "hoodie-workers-mor": HoodieWorkersMergeOnReadLane,
    "hoodie-cluster": HoodieClusterLane,
    "hoodie-arrow": HoodieArrowLane,
    "hoodie-arrow-new-files": HoodieArrowNewFilesLane,
    "hoodie-arrow-mor": HoodieArrowMergeOnReadLane,
    "hudi-jvm": HudiJvmLane,
    "hudi-jvm-mor": HudiJvmMergeOnReadLane,
    "hudi-jvm-record": HudiJvmRecordLane,
    "parquet": ParquetLane,
    "parquet-partitioned": PartitionedParquetLane,
    "delta-rs": DeltaLane,
}
