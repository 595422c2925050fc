"""The reference session of golden recipes: Hudi 1.2.0 on PySpark 3.5, the bundle from Maven Central."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

BUNDLE = Path(
    os.environ.get(
        "HOODIE_JVM_BUNDLE",
        str(
            Path.home()
            / ".m2/repository/org/apache/hudi/hudi-spark3.5-bundle_2.12/1.2.0/hudi-spark3.5-bundle_2.12-1.2.0.jar"
        ),
    )
)


def open_session(**confs: str) -> Any:
    """Start a small local Spark session with the JVM reference on its class path."""
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", str(BUNDLE))
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.extraJavaOptions", "-Duser.timezone=UTC")
        .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
        .config("spark.kryo.registrator", "org.apache.spark.HoodieSparkKryoRegistrar")
        .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.hudi.catalog.HoodieCatalog")
        .config("spark.sql.parquet.datetimeRebaseModeInWrite", "CORRECTED")
        .config("spark.sql.parquet.datetimeRebaseModeInRead", "CORRECTED")
    )
    for key, value in confs.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


SMALL = {
    "hoodie.metadata.enable": "false",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.bulkinsert.shuffle.parallelism": "1",
    "hoodie.index.bloom.num_entries": "10",
    "hoodie.bloom.index.filter.dynamic.max.entries": "10",
    "hoodie.parquet.compression.codec": "zstd",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
"""Writer options that keep golden tables quick to make and a few kilobytes large."""


def first_cause(error: BaseException) -> str:
    """Return the deepest JVM message of an error, cut to one line of 300 characters."""
    java = getattr(error, "java_exception", None)
    text = str(error)
    while java is not None:
        text = f"{java.getClass().getSimpleName()}: {java.getMessage()}"
        java = java.getCause()
    return text.splitlines()[0][:300] if text else type(error).__name__
