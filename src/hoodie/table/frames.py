"""The reads of a table handle for other libraries: streams of batches, pandas, Polars, DuckDB, datasets."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hoodie.arguments import check_methods, shown
from hoodie.errors import InvalidConfigError
from hoodie.table.context import TableContext, Where

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from hoodie.read.dataset import Snapshot, TableDataset
    from hoodie.read.times import When


@check_methods
class TableFrames:
    """The methods of `Table` that return rows as objects of other libraries, read in this process.

    `columns`, `where`, `as_of` and `view` are as for `to_arrow`.
    """

    _context: TableContext

    def to_batches(
        self,
        columns: str | Sequence[str] | None = None,
        where: Where | None = None,
        as_of: When | None = None,
        view: str = "snapshot",
        batch_rows: int | None = None,
    ) -> pa.RecordBatchReader:
        """Read rows as a stream of record batches, in no defined order. Threads read ahead of the consumer.

        `batch_rows`: the most rows of a batch; default as the files have them.

        Memory: a few batches, and what the threads read: the columns of a row group each, or the rows of the log files
        of a file slice. Raises: as `to_arrow`; errors of files come while the stream is read.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "x": [1, 2]})
        >>> t = hoodie.create("memory://doc-to-batches", rows, record_key="id")
        >>> written = t.upsert(rows)
        >>> sum(batch.num_rows for batch in t.to_batches("x", where="x > 1"))
        1
        >>> pa.table(t).num_rows
        2
        """
        from hoodie.read.local import read_batches

        return read_batches(self._context.scan(columns, where, as_of, view), batch_rows)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return all rows, with the columns of `schema`, as an Arrow C stream; libraries that take one call it.

        The rows have no `_hoodie_*` columns. Memory and errors: as `to_batches`.
        """
        from hoodie.read.local import read_batches
        from hoodie.read.plan import plan_scan

        view = self._context.view()
        names = view.schema().arrow.names
        plan = self._context.planned(lambda now: plan_scan(now, columns=names), view)
        return read_batches(plan).__arrow_c_stream__(requested_schema)

    def to_pandas(
        self,
        columns: str | Sequence[str] | None = None,
        where: Where | None = None,
        as_of: When | None = None,
        view: str = "snapshot",
    ) -> pd.DataFrame:
        """Read rows as a pandas DataFrame. Integers and booleans with nulls keep their values, as `Int64`, `boolean`.

        In lists, structs and maps they are Python objects, and times with a zone are `datetime`. Memory: the rows, as
        Arrow and as pandas data. Raises: as `to_arrow`; InvalidConfigError without pandas; UnsupportedError for a
        time after the year 9999 in a struct or map.

        >>> import hoodie, pyarrow as pa
        >>> t = hoodie.create("memory://doc-to-pandas", pa.table({"id": ["a"], "x": [1]}), record_key="id")
        >>> written = t.upsert([{"id": "a", "x": 1}, {"id": "b", "x": None}])
        >>> t.to_pandas("x")["x"].dtype
        Int64Dtype()
        """
        _check_installed("pandas")
        from hoodie.read.local import read_table
        from hoodie.read.to_pandas import to_pandas

        return to_pandas(read_table(self._context.scan(columns, where, as_of, view)))

    def to_dataset(self, as_of: When | None = None, view: str = "snapshot") -> TableDataset:
        """Return a snapshot as a `pyarrow.dataset.Dataset`, to which libraries hand columns and filters.

        Later commits do not change it. It opens files when it is scanned: after the cleaner removed them, scans fail.

        Raises: as `to_arrow`.

        >>> import hoodie, pyarrow as pa, pyarrow.compute as pc
        >>> rows = pa.table({"id": ["a", "b"], "x": [1, 2]})
        >>> t = hoodie.create("memory://doc-to-dataset", rows, record_key="id")
        >>> written = t.upsert(rows)
        >>> t.to_dataset().to_table(["x"], filter=pc.field("id") == "b").to_pylist()
        [{'x': 2}]
        """
        from hoodie.read.dataset import TableDataset

        return TableDataset(self._snapshot(as_of, view))

    def to_polars(self, as_of: When | None = None, view: str = "snapshot") -> Any:
        """Return a snapshot as a `polars.LazyFrame`; only the columns, rows and files that a query needs are read.

        Raises: as `to_arrow`; InvalidConfigError without Polars.

        >>> import hoodie, polars as pl
        >>> t = hoodie.create("memory://doc-to-polars", {"id": ["a"], "x": [1]}, record_key="id")
        >>> written = t.upsert({"id": ["a", "b"], "x": [1, 2]})
        >>> t.to_polars().filter(pl.col("id") == "b").select("x").collect().to_dicts()
        [{'x': 2}]
        """
        _check_installed("polars")
        from hoodie.read.to_polars import lazy_frame

        return lazy_frame(self._snapshot(as_of, view))

    def to_duckdb(self, con: Any = None, as_of: When | None = None, view: str = "snapshot") -> Any:
        """Return a snapshot as a `duckdb.DuckDBPyRelation`; only the columns and files that a query needs are read.

        `con`: a connection of DuckDB; default is its own one.

        Raises: as `to_arrow`; InvalidConfigError without DuckDB, and for another `con`.

        >>> import hoodie
        >>> t = hoodie.create("memory://doc-to-duckdb", {"id": ["a"], "x": [1]}, record_key="id")
        >>> written = t.upsert({"id": ["a", "b"], "x": [1, 2]})
        >>> t.to_duckdb().filter("id = 'b'").project("x").fetchall()
        [(2,)]
        """
        _check_installed("duckdb")
        import duckdb

        if con is not None and con is not duckdb and not hasattr(type(con), "from_arrow"):
            raise InvalidConfigError(f"con={shown(con)}: expected a connection of DuckDB, as duckdb.connect() returns")
        from hoodie.read.to_duckdb import relation

        snapshot = self._snapshot(as_of, view)
        try:
            return relation(duckdb if con is None else con, snapshot)
        except duckdb.ConnectionException as error:
            raise InvalidConfigError(f"con: expected an open connection of DuckDB ({error})") from error

    def _snapshot(self, as_of: When | None, view: str) -> Snapshot:
        from hoodie.read.dataset import Snapshot

        return self._context.planned(lambda now: Snapshot.of(now, as_of, view))


def _check_installed(library: str) -> None:
    """Raises: InvalidConfigError if a library is not there."""
    if find_spec(library) is None:
        raise InvalidConfigError(f"this call needs {library}: pip install {library}")
