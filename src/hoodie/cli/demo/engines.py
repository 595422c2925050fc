"""The demo's two ways to read files and tables: in Spark, or in this process if Spark does not start."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pyarrow as pa
import pyarrow.dataset as ds

import hoodie
from hoodie.table.sessions import spark_room

SPARK_ADDS = (
    "With Spark, the same calls take and return DataFrames (t.upsert(frame), t.read()), work on a cluster runs on its "
    "executors, and SQL queries tables through spark.read.format('hoodie'). Spark needs a JDK 17 or 21 on PATH or in "
    "JAVA_HOME, and: pip install 'hoodie[spark]'"
)
SUMS = ("dep_delay", "distance")


class DemoEngine(Protocol):
    """What the story needs of the place where it runs. `session` is the argument `spark=` of the table."""

    name: ClassVar[str]

    @property
    def session(self) -> Any: ...

    @property
    def has_streams(self) -> bool:
        """Whether a table can be read as a stream."""

    def load(self, path: Path) -> Any:
        """Return the rows of a Parquet file or folder, as data for a write."""

    def read(self, table: hoodie.Table, **arguments: str) -> Any:
        """Read rows of the table, as a value for `rows`, `count` and `sums_by_month`."""

    def rows(self, found: Any) -> pa.Table:
        """Return all rows of a read."""

    def count(self, found: Any) -> int:
        """Count the rows of a read."""

    def sums_by_month(self, found: Any) -> dict[int, tuple[int, int]]:
        """Return the sums of the columns `SUMS` for each month."""


@dataclass(frozen=True, slots=True)
class InSpark:
    """The demo in a Spark session."""

    session: Any
    name: ClassVar[str] = "in Spark"

    @property
    def has_streams(self) -> bool:
        """Whether this PySpark has data sources in Python: 4.0 and newer do."""
        return hasattr(self.session, "dataSource")

    def load(self, path: Path) -> Any:
        return self.session.read.parquet(str(path))

    def read(self, table: hoodie.Table, **arguments: str) -> Any:
        return table.read(**arguments)

    def rows(self, found: Any) -> pa.Table:
        return spark_room().to_arrow(found)

    def count(self, found: Any) -> int:
        return int(found.count())

    def sums_by_month(self, found: Any) -> dict[int, tuple[int, int]]:
        sums = found.groupBy("month").agg(dict.fromkeys(SUMS, "sum")).collect()
        return {row["month"]: (row[f"sum({SUMS[0]})"], row[f"sum({SUMS[1]})"]) for row in sums}


@dataclass(frozen=True, slots=True)
class InProcess:
    """The demo in this process, on Arrow tables; `reason`: why it does not run in Spark."""

    reason: str
    session: ClassVar[bool] = False
    name: ClassVar[str] = "in process"
    has_streams: ClassVar[bool] = False

    def load(self, path: Path) -> Any:
        return ds.dataset(path).to_table()

    def read(self, table: hoodie.Table, **arguments: str) -> Any:
        return table.to_arrow(**arguments)

    def rows(self, found: Any) -> pa.Table:
        return found

    def count(self, found: Any) -> int:
        return int(found.num_rows)

    def sums_by_month(self, found: Any) -> dict[int, tuple[int, int]]:
        return arrow_sums_by_month(found)


def arrow_sums_by_month(rows: pa.Table) -> dict[int, tuple[int, int]]:
    """Return the sums of the columns `SUMS` of a pyarrow Table for each month."""
    sums = rows.group_by("month").aggregate([(name, "sum") for name in SUMS])
    return {row["month"]: (row[f"{SUMS[0]}_sum"], row[f"{SUMS[1]}_sum"]) for row in sums.to_pylist()}
