"""The reads of a table handle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from hoodie.arguments import check_methods
from hoodie.table.context import TableContext, Where

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from hoodie.read.changes import ChangedRows
    from hoodie.read.plan import ReadExplained
    from hoodie.read.times import When


@check_methods
class TableReads:
    """The methods of `Table` that return rows.

    The type of `changes` and `read_keys` is Any: the session decides whether they return a DataFrame or a pyarrow
    Table, and a union of both would make every caller test the type.
    """

    _context: TableContext

    def read(
        self,
        columns: str | Sequence[str] | None = None,
        where: Where | None = None,
        as_of: When | None = None,
        view: str = "snapshot",
    ) -> DataFrame:
        """Read rows as a Spark DataFrame; see `to_arrow` for the arguments.

        The DataFrame is lazy, but small log files are merged now, in this process, and kept for later reads; see
        docs/merge-on-read/README.md.

        Raises: as `to_arrow`; InvalidConfigError without a Spark session too.

        For example `t.read(["id", "fare"], where="fare > 6").show()`.
        """
        from hoodie.table.sessions import spark_room

        room = spark_room()  # first: without PySpark its error names what to install
        session = self._context.needed_session()
        plan = self._context.scan(columns, where, as_of, view, session)
        frame: DataFrame = room.read_scan(session, plan)
        return frame

    def to_arrow(
        self,
        columns: str | Sequence[str] | None = None,
        where: Where | None = None,
        as_of: When | None = None,
        view: str = "snapshot",
    ) -> pa.Table:
        """Read rows in this process, as a pyarrow Table. Memory: all rows that match.

        Args:
            columns: the columns to return, in order; default is the five `_hoodie_*` columns, then the table's columns.
                The case of a name does not matter. `st.a` is the field `a` of the struct `st`, returned as `a`.
            where: condition in Spark SQL, or an expression of pyarrow or Polars that SQL can say; partitions and row
                groups that cannot match are not read.
            as_of: read the table as of this instant (inclusive), datetime or ISO date; without a zone it is local time.
                Commits that completed later do not count; with `requested:` before a text, commits that were requested
                later (Hudi's rule).
            view: query type: `snapshot`, or `read_optimized`, which skips log files.

        Warns: `HoodieWarning` if a part of the table is missing and the read is slower, if `as_of` is a date without a
        time and leaves out commits of that day, or if it is before the first commit.

        Raises: all are `HoodieError`.
            InvalidConfigError: a condition that is no SQL, a text that is no time, or another unknown argument.
            SchemaMismatchError: columns that the table does not have, or a condition that does not fit them.
            UnsupportedError: a table or condition that this process cannot read, or files that the cleaner removed.
            CorruptFileError, MissingFileError: a file of the table is damaged or missing.
            StorageError: the storage refused a call.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "x": [1, 2]})
        >>> t = hoodie.create("memory://doc-to-arrow", rows, record_key="id")
        >>> first = t.upsert(rows).instant
        >>> t.delete(["a"]).deleted
        1
        >>> t.to_arrow(columns="x").to_pylist(), t.to_arrow(columns="x", where="id = 'a'", as_of=first).to_pylist()
        ([{'x': 2}], [{'x': 1}])
        """
        from hoodie.read.local import read_table

        return read_table(self._context.scan(columns, where, as_of, view))

    def explain(
        self, where: Where | None = None, *, as_of: When | None = None, view: str = "snapshot"
    ) -> ReadExplained:
        """Return how many file slices a read with this condition opens, and what leaves out the others.

        Raises: as `to_arrow`.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "p": ["x", "y"]})
        >>> t = hoodie.create("memory://doc-explain", rows.schema, record_key="id", partition_by="p")
        >>> written = t.upsert(rows)
        >>> t.explain("p = 'x'").to_dict()["file_slices"]
        1
        """
        from hoodie.read.plan import explain

        plan = self._context.scan_of(None, where, as_of, view)
        return self._context.planned(lambda now: explain(plan(now)))

    def head(
        self,
        limit: int = 10,
        *,
        columns: str | Sequence[str] | None = None,
        where: Where | None = None,
        as_of: When | None = None,
        meta: bool = False,
    ) -> pa.Table:
        """Read at most `limit` rows, in no defined order; the read stops when it has enough rows. See `to_arrow`.

        Without `columns` the meta columns are left out; `meta=True` keeps them.

        Raises: as `to_arrow`.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a"], "x": [1]})
        >>> t = hoodie.create("memory://doc-head", rows.schema, record_key="id")
        >>> written = t.upsert(rows)
        >>> t.head().column_names
        ['id', 'x']
        """
        from hoodie.format.schema.table_schema import without_meta_fields
        from hoodie.read.local import first_rows

        found = first_rows(self._context.scan(columns, where, as_of), limit)
        return found if meta or columns is not None else found.select(without_meta_fields(found.schema).names)

    def count(self, where: Where | None = None, *, as_of: When | None = None) -> int:
        """Count the rows, or the rows that match a condition, in this process.

        Without a condition the counts come from Parquet footers; of file slices with log files the keys are read too.

        Raises: as `to_arrow`.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "x": [1, 2]})
        >>> t = hoodie.create("memory://doc-count", rows.schema, record_key="id")
        >>> written = t.upsert(rows)
        >>> t.count(), t.count("x > 1")
        (2, 1)
        """
        from hoodie.read.local import count_rows
        from hoodie.records.change import RECORD_KEY

        return count_rows(self._context.scan(RECORD_KEY, where, as_of))

    def changes(
        self,
        since: When | None = None,
        until: When | None = None,
        mode: str = "latest",
        *,
        flat: bool = False,
        columns: str | Sequence[str] | None = None,
        where: Where | None = None,
    ) -> Any:
        """Read what the commits changed that completed in `(since, until]`.

        With mode `latest`, each changed row is returned once, as of `until`. With mode `cdc`, each change of each
        commit is returned: `op` (`i`, `u` or `d`), `ts_ms` (the commit's requested time, as in Hudi), `before` and
        `after` (docs/operations/change-data.md). `flat`: the images are columns `before_…` and `after_…`, not structs.

        `columns` and `where` are as for `to_arrow`. With mode `latest`, the condition is tested on the row as of
        `until`. With mode `cdc`, `columns` are those of the images, and a change is returned if the row before or
        after it matches.

        Returns a Spark DataFrame, or a pyarrow Table without Spark. `since` and `until` are instants, datetimes or ISO
        dates; the `instant` of a `WriteResult` stands for its completion.

        Raises: as `to_arrow`; HistoryLostError if files that `until` needs, or for mode `cdc` the state before or after
        one of the commits, were cleaned, or a restore or a rollback after `since` took back a commit up to it;
        InvalidConfigError for another mode.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "x": [1, 2]})
        >>> t = hoodie.create("memory://doc-changes", rows, record_key="id")
        >>> first = t.upsert(rows).instant
        >>> t.upsert([{"id": "b", "x": 3}]).updated
        1
        >>> t.changes(since=first, columns=["id", "x"], where="x > 2").to_pylist()
        [{'id': 'b', 'x': 3}]
        >>> t.changes(since=first, mode="cdc").select(["op", "before", "after"]).to_pylist()
        [{'op': 'u', 'before': {'id': 'b', 'x': 2}, 'after': {'id': 'b', 'x': 3}}]
        """
        from hoodie.errors import InvalidConfigError
        from hoodie.table.sessions import spark_room

        context, session = self._context, self._context.session()
        condition = context.condition_of(where, session)
        if mode == "latest" and not flat:
            from hoodie.read.changes import plan_batch

            return context.result(
                context.planned(
                    lambda view: plan_batch(view, since, until, columns=columns, where=condition(view)).scan
                )
            )
        if mode != "cdc":
            raise InvalidConfigError(
                f"mode={mode!r}, flat={flat}: expected mode 'latest', or 'cdc' with or without flat"
            )
        from hoodie.read.cdc import read_cdc
        from hoodie.read.cdc_plan import plan_cdc

        plan = context.planned(lambda view: plan_cdc(view, since, until, columns=columns, where=condition(view)))
        return read_cdc(plan, flat=flat) if session is None else spark_room().read_cdc(session, plan, flat=flat)

    def changes_since(
        self,
        since: When | None = None,
        until: When | None = None,
        *,
        fallback: str = "error",
        columns: str | Sequence[str] | None = None,
        where: Where | None = None,
    ) -> ChangedRows:
        """Read as `changes`, and return the place from which the consumer goes on: `until`, the next `since`.

        Without `since` the rows are the whole table (`is_snapshot`). `fallback="snapshot"` returns the whole table too,
        with a warning, if the changes are no longer known. `columns` and `where` as for `changes`.

        Raises: as `changes`.

        >>> import hoodie, pyarrow as pa
        >>> t = hoodie.create("memory://doc-changes-since", pa.table({"id": ["a"], "x": [1]}), record_key="id")
        >>> place = t.changes_since().until
        >>> written = t.upsert([{"id": "b", "x": 3}])
        >>> found = t.changes_since(place)
        >>> found.rows["id"].to_pylist(), found.is_snapshot, t.changes_since(found.until).rows.num_rows
        (['b'], False, 0)
        """
        from hoodie.read.changes import plan_batch

        condition = self._context.condition_of(where, self._context.session())
        plan = self._context.planned(
            lambda view: plan_batch(view, since, until, columns=columns, where=condition(view), fallback=fallback)
        )
        return plan.with_rows(self._context.result(plan.scan))

    def read_keys(self, keys: Any, columns: str | Sequence[str] | None = None) -> Any:
        """Read the rows with these record keys, as a Spark DataFrame, or as a pyarrow Table without Spark.

        `keys` is data with the key columns (or `_hoodie_record_key`), one value of the key column, or a list, set,
        array or Series of such values. In a table with several key columns a value is a string like `a:1,b:2`. The
        type of the values can differ from the column's type, but must be convertible to it. The keys are held in the
        driver, also the keys of a Spark DataFrame. `columns` as for `to_arrow`.

        Raises: SchemaMismatchError for keys that cannot be converted; RecordKeyError for null keys; others as
        `to_arrow`.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "x": [1, 2]})
        >>> t = hoodie.create("memory://doc-read-keys", rows, record_key="id")
        >>> written = t.upsert(rows)
        >>> t.read_keys(["b", "c"], columns=["id", "x"]).to_pylist()
        [{'id': 'b', 'x': 2}]
        """
        from hoodie.engine.inputs import table_in_memory
        from hoodie.read.lookup import plan_lookup
        from hoodie.table.sessions import is_spark, spark_room

        view = self._context.view()
        found = self._context.keys(keys, view)
        wanted = spark_room().to_arrow(found) if is_spark(found) else table_in_memory(found)
        plan = self._context.planned(lambda view: plan_lookup(view, wanted).with_columns(columns), view)
        return self._context.result(plan)

    @overload
    def filter_exists(self, data: DataFrame) -> DataFrame: ...

    @overload
    def filter_exists(self, data: Any) -> pa.Table: ...

    def filter_exists(self, data: Any) -> Any:
        """Return the rows of `data` whose key the table does not hold.

        Returns a DataFrame for a DataFrame, otherwise a pyarrow Table of plain types: strings for views of strings and
        for dictionaries of strings. Arrow data is held in memory, together with those of its keys that the table holds.
        A DataFrame is filtered by Spark.

        Raises: UnsupportedError for data of another type; others as `read_keys`.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "x": [1, 2]})
        >>> t = hoodie.create("memory://doc-filter-exists", rows, record_key="id")
        >>> written = t.upsert(rows.slice(1))
        >>> t.filter_exists(rows)["id"].to_pylist()
        ['a']
        """
        from hoodie.engine.inputs import table_in_memory
        from hoodie.index import index_of_view
        from hoodie.read.lookup import filter_exists
        from hoodie.table.sessions import is_spark, spark_room

        find = spark_room().filter_exists if is_spark(data) else filter_exists
        rows = data if is_spark(data) else table_in_memory(data)
        return self._context.planned(lambda view: find(view, rows, is_global=index_of_view(view).is_global))

    @overload
    def record_locations(self, keys: DataFrame, as_of: When | None = None) -> DataFrame: ...

    @overload
    def record_locations(self, keys: Any, as_of: When | None = None) -> pa.Table: ...

    def record_locations(self, keys: Any, as_of: When | None = None) -> Any:
        """Return the locations of record keys: `_hoodie_record_key`, `partition_path`, `file_id`, `instant`.

        Accepts keys in the same forms as `read_keys`. Returns a pyarrow Table with a row for each key, in the order of
        the keys, or a DataFrame for a DataFrame. The location of an unknown key is null. `as_of` (inclusive) as for
        `to_arrow`. See `hoodie.read.lookup`.

        Raises: as `read_keys`; UnsupportedError too if the record index lacks the locations as of that time.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "city": ["sf", "nyc"]})
        >>> t = hoodie.create("memory://doc-locations", rows.schema, record_key="id", partition_by="city")
        >>> written = t.upsert(rows)
        >>> t.record_locations(["b", "c"])["partition_path"].to_pylist()
        ['city=nyc', None]
        """
        from hoodie.engine.inputs import table_in_memory
        from hoodie.read.lookup import record_locations
        from hoodie.table.sessions import is_spark, spark_room

        view = self._context.view()
        found = self._context.keys(keys, view)
        find = spark_room().record_locations if is_spark(found) else record_locations
        rows = found if is_spark(found) else table_in_memory(found)
        return self._context.planned(lambda view: find(view, rows, as_of=as_of), view)
