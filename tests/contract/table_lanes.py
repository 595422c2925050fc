"""One way to create, write and read a table, whichever engine does the work."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import hoodie
from tests.support.tables import new_table, table_of

TRIPS = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("fare", pa.float64()), ("city", pa.string())])
ON_WORKERS = {"hoodie.python.local.bytes.max": "0"}
"""Write option: even the smallest work goes to Spark's workers."""
ANSI = "spark.sql.ansi.enabled"
TIME_ZONE = "spark.sql.session.timeZone"


def trips(*rows: tuple[str | None, int | None, float | None, str | None]) -> pa.Table:
    """Rows of the table of most tests: id, ts, fare, city."""
    return table_of(TRIPS, *rows)


@dataclass(frozen=True, slots=True)
class Lane:
    """An engine under test; `session` is None in process."""

    session: Any
    folder: Path
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def path(self) -> Path:
        """Where the test's table lies; its name is as awkward as a path may be."""
        return self.folder / "our table, 100% {new} [1]* é"

    def create(self, schema: pa.Schema = TRIPS, **options: Any) -> hoodie.Table:
        """Create the test's table; the options are those of `hoodie.create`, default key `id`."""
        chosen = {"record_key": "id", "name": "contract", **options}
        return hoodie.create(self.path, schema, spark=self.session or False, **chosen)

    def table(self, *writes: pa.Table, schema: pa.Schema = TRIPS, **options: Any) -> hoodie.Table:
        """The test's table with the data of `writes` upserted by this process: a copy of one that was made once."""
        new_table(schema, *writes, path=self.path, **{"name": "contract", **options})
        return self.open()

    def open(self) -> hoodie.Table:
        """A new handle on the test's table."""
        return hoodie.open(self.path, spark=self.session or False)

    def data(self, rows: pa.Table) -> Any:
        """The rows as this engine's users hold them: an Arrow table, or a DataFrame in one Spark partition."""
        if self.session is None:
            return rows
        from hoodie.spark.types import spark_schema_of

        path = self.folder / f"input-{next(self._numbers)}.parquet"
        pq.write_table(rows, path)
        reader = self.session.read.schema(spark_schema_of(rows.schema))
        return reader.option("datetimeRebaseMode", "CORRECTED").parquet(str(path))

    def arrow(self, result: Any) -> pa.Table:
        """What a read returned, as an Arrow table; fails unless it is of this engine's kind."""
        if self.session is None:
            assert isinstance(result, pa.Table)
            return result
        from hoodie.spark import to_arrow

        assert type(result).__module__.startswith("pyspark.sql")
        return to_arrow(result)

    def read(self, table: hoodie.Table, **how: Any) -> pa.Table:
        """Read by `to_arrow` in process, by `read` on Spark; default is the table's own columns."""
        options: Mapping[str, Any] = {"columns": table.schema.names, **how}
        return table.to_arrow(**options) if self.session is None else self.arrow(table.read(**options))

    def read_each(self, table: hoodie.Table, *hows: Mapping[str, Any]) -> list[pa.Table]:
        """What `read` returns for each of `hows`, which ask for the same columns. Spark reads for all in one job."""
        if self.session is None:
            return [self.read(table, **how) for how in hows]
        chosen = [{"columns": table.schema.names, **how} for how in hows]
        frames = [table.read(**how).selectExpr(f"{number} AS _read", "*") for number, how in enumerate(chosen)]
        rows = self.arrow(reduce(lambda left, right: left.union(right), frames))
        return [rows.filter(pc.equal(rows["_read"], number)).drop_columns(["_read"]) for number in range(len(hows))]


@contextmanager
def session_with(session: Any, confs: Mapping[str, str]) -> Iterator[None]:
    """Set options of a Spark session for the block; without a session nothing."""
    before = {name: session.conf.get(name, None) for name in confs} if session is not None else {}
    try:
        for name in before:
            session.conf.set(name, confs[name])
        yield
    finally:
        for name, value in before.items():
            if value is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, value)
