"""The JVM's side of bench/indexes.py: tag keys with the indexes of JVM Hudi in a PySpark 3.5 session.

`python -m bench.tag_jvm TABLE KEYS ROUNDS BUCKETS INDEX…`; `KEYS` is a Parquet file with the columns key and path.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.child import print_figures
from bench.lanes import JVM_SESSION, SparkLane
from bench.settings import BENCH

OPTIONS = {
    "hoodie.datasource.write.recordkey.field": "key",
    "hoodie.metadata.enable": "true",
    "hoodie.bloom.index.parallelism": "4",
    "hoodie.simple.index.parallelism": "4",
    "hoodie.global.simple.index.parallelism": "4",
    "hoodie.bloom.index.update.partition.path": "false",
    "hoodie.simple.index.update.partition.path": "false",
    "hoodie.record.index.update.partition.path": "false",
    "hoodie.write.auto.upgrade": "false",
}
TYPES = {
    "record": {"hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.record.index.enable": "true"},
    "bloom": {"hoodie.index.type": "BLOOM"},
    "global_bloom": {"hoodie.index.type": "GLOBAL_BLOOM"},
    "simple": {"hoodie.index.type": "SIMPLE"},
    "global_simple": {"hoodie.index.type": "GLOBAL_SIMPLE"},
    "bucket": {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "SIMPLE"},
}


class _Session(SparkLane):
    """A session with the classes of bench/java."""

    def __init__(self, classes: Path) -> None:
        bundle = os.environ["HOODIE_JVM_BUNDLE"]
        compile_java(classes, bundle)
        confs = {"spark.jars": bundle, "spark.driver.extraClassPath": f"{bundle}{os.pathsep}{classes}"}
        super().__init__(classes, {**JVM_SESSION, **confs})

    def bulk_insert(self, base: Path) -> None:
        raise NotImplementedError

    def aggregate(self) -> list[Any]:
        raise NotImplementedError


def compile_java(classes: Path, bundle: str) -> None:
    """Compile bench/java/TagBench.java against Hudi and Spark."""
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars" / "*"
    source = BENCH / "java" / "TagBench.java"
    subprocess.run(
        ["javac", "-nowarn", "-cp", f"{bundle}{os.pathsep}{jars}", "-d", str(classes), str(source)], check=True
    )


def main() -> None:
    """Tag with each index; print the seconds of each round, and the number of keys that were found."""
    table, keys, rounds, buckets, *names = sys.argv[1:]
    with tempfile.TemporaryDirectory() as classes:
        spark = _Session(Path(classes)).spark
        figures = {}
        for name in names:
            options = OPTIONS | TYPES[name] | {"hoodie.bucket.index.num.buckets": buckets}
            java_options = spark._jvm.java.util.HashMap()
            for key, value in options.items():
                java_options.put(key, value)
            *seconds, found = spark._jvm.TagBench.tag(spark._jsparkSession, table, keys, java_options, int(rounds))
            figures[name] = {"seconds": list(seconds), "found": int(found)}
    print_figures(figures)


if __name__ == "__main__":
    main()
