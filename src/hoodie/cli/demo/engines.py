"""Where the demo reads files and tables: in Spark, or in this process if Spark does not start."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

import hoodie
from hoodie.table.sessions import is_spark, spark_room

SPARK_ADDS = (
    "With Spark, the same calls take and return DataFrames (t.upsert(frame), t.read()), work on a cluster runs on its "
    "executors, and SQL queries tables through spark.read.format('hoodie'). Spark needs a JDK 17 or 21 on PATH or in "
    "JAVA_HOME, and: pip install 'hoodie[spark]'"
)
_SUMS = ("dep_delay", "distance")


@dataclass(frozen=True, slots=True)
class DemoEngine:
    """What the story needs of the place where it runs.

    `session`: the argument `spark=` of the table; False: this process, on Arrow tables, for this `reason`.
    """

    session: Any = False
    reason: str = ""

    @property
    def name(self) -> str:
        """The place in words."""
        return "in process" if self.session is False else "in Spark"

    @property
    def has_streams(self) -> bool:
        """Whether a table can be read as a stream: PySpark 4.0 and newer have data sources in Python."""
        return hasattr(self.session, "dataSource")

    def load(self, path: Path) -> Any:
        """Return the rows of a Parquet file or folder, as data for a write."""
        return ds.dataset(path).to_table() if self.session is False else self.session.read.parquet(str(path))

    def read(self, table: hoodie.Table, **arguments: str) -> Any:
        """Read rows of the table, as a value for `rows`, `count` and `sums_by_month`."""
        return table.to_arrow(**arguments) if self.session is False else table.read(**arguments)

    def rows(self, found: Any) -> pa.Table:
        """Return all rows of a read."""
        return spark_room().to_arrow(found) if is_spark(found) else found

    def count(self, found: Any) -> int:
        """Count the rows of a read."""
        return int(found.count() if is_spark(found) else found.num_rows)

    def sums_by_month(self, found: Any) -> dict[int, tuple[int, int]]:
        """Return the sums of delays and distances for each month."""
        if is_spark(found):
            sums = found.groupBy("month").agg(dict.fromkeys(_SUMS, "sum")).collect()
            return {row["month"]: (row[f"sum({_SUMS[0]})"], row[f"sum({_SUMS[1]})"]) for row in sums}
        sums = found.group_by("month").aggregate([(name, "sum") for name in _SUMS])
        return {row["month"]: (row[f"{_SUMS[0]}_sum"], row[f"{_SUMS[1]}_sum"]) for row in sums.to_pylist()}
