"""Announce the data source `hudi` to PySpark 4, as `pyspark_hoodie` announces `hoodie`: scripts for JVM Hudi run as is.

Spark prefers a JAR: with JVM Hudi on the class path, `format("hudi")` is JVM Hudi.
"""

from __future__ import annotations

import pyspark_hoodie

if hasattr(pyspark_hoodie, "DefaultSource"):
    __all__ = ["DefaultSource"]

    class DefaultSource(pyspark_hoodie.DefaultSource):
        """The data source `hudi`; `hoodie.spark.datasource.HudiSource` does the work."""

        @classmethod
        def name(cls) -> str:
            """Return the name of the format."""
            return "hudi"
