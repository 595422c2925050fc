"""The table handle of the public API: one method for each operation on a table."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from hoodie.engine import ArrowDataset, Engine, LocalEngine
from hoodie.engine.selection import (
    active_session,
    arrow_schema,
    engine_and_dataset,
    is_spark,
    key_array,
    spark_room,
    table_in_memory,
)
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.files.table_properties import read_table_config, table_exists
from hoodie.index import index_of_view
from hoodie.index_facade import TableIndex
from hoodie.read.changes import plan_changes
from hoodie.read.history import history
from hoodie.read.inspect import Inspection
from hoodie.read.local import read_table
from hoodie.read.locations import record_locations
from hoodie.read.lookup import filter_exists, key_columns, plan_lookup
from hoodie.read.plan import SNAPSHOT, ScanPlan, When, plan_scan
from hoodie.read.stream import count_rows, first_rows
from hoodie.records.change import RECORD_KEY
from hoodie.records.condition import Condition
from hoodie.services.compaction.compactor import Compactor
from hoodie.services.compaction.coordination import Coordinator, coordinator_of
from hoodie.services.compaction.log_compaction import schedule_log_compaction
from hoodie.services.compaction.pending import PendingCompactions, pending_compactions
from hoodie.services.compaction.run import CompactionCall, compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.services.engine_choice import engine_by_size
from hoodie.services.recovery.pending_rollback import roll_back_pending
from hoodie.services.result import ServiceResult
from hoodie.storage import Store, open_store
from hoodie.timeline import Timeline
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView
from hoodie.write.bulk_insert import bulk_insert, insert_overwrite
from hoodie.write.conditional import assigned, plan_matching_keys, plan_update
from hoodie.write.create import CreateOptions, check_same_table, create_table
from hoodie.write.delete_partitions import delete_partitions
from hoodie.write.indexed import delete, insert, update, upsert
from hoodie.write.result import WriteResult
from hoodie.write.setup import WriteCall

Text = Mapping[str, str]


def create(
    path: str | os.PathLike[str],
    schema: Any,
    *,
    record_key: str | Sequence[str] | None = None,
    partition_by: str | Sequence[str] = (),
    ordering: str | Sequence[str] | None = None,
    type: str = "copy_on_write",
    index: str = "record",
    name: str | None = None,
    table_version: int = 9,
    merge_mode: Any = None,
    key_generator: str | None = None,
    properties: Text | None = None,
    storage_options: Text | None = None,
    spark: Any = None,
    exist_ok: bool = False,
) -> Table:
    """Create a table and return its handle.

    Args:
        path: folder or URI (`s3://…`, `gs://…`, `az://…`, `memory://…`) of the table.
        schema: a pyarrow Schema, a Spark StructType, or an object with a schema: a DataFrame, a pyarrow Table.
        record_key: column or columns whose values identify a record; a dot selects a field of a struct.
        partition_by: column or columns that form the partition path; `column:timestamp` with `key_generator="custom"`.
        ordering: column or columns; a greater value marks a newer version. Without them a later commit is newer.
        type: `copy_on_write` (a write creates new versions of the files that it changes), or `merge_on_read` (a write
            appends changes to log files; reads and compactions merge the log files with the base files).
        index: `record` (every key's location is in the metadata table; keys are unique in the table), `simple` (keys
            are unique in a partition) or `global_simple` (keys are unique in the table); later releases add others.
        name: name of the table; default is the last folder of the path.
        merge_mode: `event_time` (default with `ordering`), `commit_time`, or a function over Arrow tables.
        key_generator: `simple`, `complex`, `non_partition`, `timestamp`, `custom`; the default depends on the columns.
        properties: further `hoodie.*` options, as strings.
        storage_options: settings of the object store.
        spark: Spark session for reads. Default is the active session; with False reads run in this process.
        exist_ok: open an existing table instead of raising an error, unless it contradicts the options given here.

    Raises:
        TableExistsError, InvalidConfigError, SchemaMismatchError, UnsupportedError: before anything is created.

    >>> import hoodie, pyarrow as pa
    >>> trips = pa.schema([("id", pa.string()), ("fare", pa.float64()), ("city", pa.string())])
    >>> t = hoodie.create("memory://doc-create", trips, record_key="id", partition_by="city")
    >>> t.upsert(pa.table({"id": ["a", "b"], "fare": [1.0, 2.0], "city": ["sf", "nyc"]})).inserted
    2
    """
    store = open_store(path, storage_options)
    wanted = CreateOptions(
        record_key=record_key,
        partition_by=partition_by,
        ordering=ordering,
        type=type,
        index=index,
        name=name,
        table_version=table_version,
        merge_mode=merge_mode,
        key_generator=key_generator,
        properties=properties or {},
    )
    if exist_ok and table_exists(store):
        check_same_table(read_table_config(store), wanted)
    else:
        create_table(store, arrow_schema(schema), wanted)
    return Table(store, spark=spark)


def open(path: str | os.PathLike[str], *, storage_options: Text | None = None, spark: Any = None) -> Table:
    """Open a table of any writer; table versions 6, 8 and 9 can be read, version 9 can be written.

    Raises: TableNotFoundError, CorruptFileError, UnsupportedError.
    """
    table = Table(open_store(path, storage_options), spark=spark)
    table.view()
    return table


def exists(path: str | os.PathLike[str], *, storage_options: Text | None = None) -> bool:
    """Check whether the path holds a Hudi table."""
    return table_exists(open_store(path, storage_options))


def register(spark: Any) -> None:
    """Register `spark.read.format("hoodie").load(path)` in a Spark session; requires PySpark 4.

    Options: `as_of`, `where`, `view`, `columns` (separated by commas), `storage.<option>`. Raises: UnsupportedError.
    """
    spark_room().register(spark)


class Table:
    """A handle of one Hudi table: cheap to create, safe to share between threads. Calls use the newest commit."""

    def __init__(self, store: Store, *, spark: Any = None) -> None:
        self._state = TableState(store)
        self._spark = spark

    def __repr__(self) -> str:
        return f"hoodie.open({self._state.store.uri('')!r})"

    @property
    def path(self) -> str:
        """URI of the table."""
        return self._state.store.uri("")

    def view(self) -> TableView:
        """Load a view of the table as of the newest completed instant."""
        return TableView.load(self._state)

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the table as of the newest commit, without the meta columns."""
        return self.view().schema().arrow

    @property
    def timeline(self) -> Timeline:
        """The active timeline, newest instant last; `.completed()`, `.pending()`, `.latest()`."""
        return self.view().timeline

    def history(self, limit: int | None = None) -> pa.Table:
        """Return the instants of the active timeline, newest first, at most `limit`; columns as `HISTORY_SCHEMA`.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"]})
        >>> t = hoodie.create("memory://doc-history", rows.schema, record_key="id")
        >>> written = t.upsert(rows)
        >>> t.history().select(["operation", "state", "inserted"]).to_pylist()
        [{'operation': 'upsert', 'state': 'completed', 'inserted': 2}]
        """
        return history(self.view(), limit)

    @property
    def inspect(self) -> Inspection:
        """Contents of the table as pyarrow Tables: `.files()`, `.slices()`, `.partitions()`, `.statistics()`."""
        return Inspection(self.view())

    @property
    def index(self) -> TableIndex:
        """The table's indexes: `.build("record")`, `.drop("record")`, `.verify()`, `.compare("record", "simple")`."""
        return TableIndex(self._state, self._engine)

    # --- writes ----------------------------------------------------------------------------------------------------

    def upsert(self, data: Any, *, extra_metadata: Text | None = None, properties: Text | None = None) -> WriteResult:
        """Insert rows with new keys and merge rows with known ones; see `hoodie.write.indexed.upsert`."""
        call, dataset = self._call(data, extra_metadata, properties)
        return upsert(call, dataset)

    def insert(self, data: Any, *, extra_metadata: Text | None = None, properties: Text | None = None) -> WriteResult:
        """Add rows without looking up their keys; small file groups are filled first."""
        call, dataset = self._call(data, extra_metadata, properties)
        return insert(call, dataset)

    def bulk_insert(
        self,
        data: Any,
        sort: str | Sequence[str] | None = None,
        *,
        extra_metadata: Text | None = None,
        properties: Text | None = None,
    ) -> WriteResult:
        """Write all rows to new files in one pass; `sort`: `none`, `partition`, `global`, or the columns to sort by."""
        call, dataset = self._call(data, extra_metadata, properties)
        return bulk_insert(call, dataset, sort)

    def delete(
        self, data_or_keys: Any, *, extra_metadata: Text | None = None, properties: Text | None = None
    ) -> WriteResult:
        """Delete the records with these keys; unknown keys change nothing.

        Accepts keys in the same forms as `read_keys`. For a partitioned table the data must also have the partition
        columns, unless the index is global.
        """
        call, dataset = self._call(self._keys(data_or_keys), extra_metadata, properties)
        return delete(call, dataset)

    def delete_where(
        self, where: str, *, extra_metadata: Text | None = None, properties: Text | None = None
    ) -> WriteResult:
        """Delete the records that match a Spark SQL condition.

        The matching keys are held in memory, unless Spark reads them. Inserts can store several rows with one key. If
        one of these rows matches, all of them are deleted.
        """
        plan = plan_matching_keys(self.view(), Condition.parse(where))
        call, dataset = self._call(self._result(plan), extra_metadata, properties)
        return delete(dataclasses.replace(call, baseline=plan.view), dataset)

    def delete_partitions(
        self, partitions: Sequence[str], *, extra_metadata: Text | None = None, properties: Text | None = None
    ) -> WriteResult:
        """Remove whole partitions from the table, by partition path (`["city=sf"]`)."""
        call = WriteCall(
            state=self._state, engine=LocalEngine(), extra_metadata=extra_metadata or {}, properties=properties or {}
        )
        return delete_partitions(call, partitions)

    def insert_overwrite(
        self, data: Any, *, extra_metadata: Text | None = None, properties: Text | None = None
    ) -> WriteResult:
        """Replace every partition that has rows in the data; the data becomes its content."""
        call, dataset = self._call(data, extra_metadata, properties)
        return insert_overwrite(call, dataset)

    def insert_overwrite_table(
        self, data: Any, *, extra_metadata: Text | None = None, properties: Text | None = None
    ) -> WriteResult:
        """Replace the whole table with the data."""
        call, dataset = self._call(data, extra_metadata, properties)
        return insert_overwrite(call, dataset, whole_table=True)

    def update(
        self,
        assignments: Text,
        where: str | None = None,
        *,
        extra_metadata: Text | None = None,
        properties: Text | None = None,
    ) -> WriteResult:
        """Set columns to Spark SQL expressions in the records that match a condition.

        Without a condition all records are updated. Without Spark the matching rows are held in memory. Inserts can
        store several rows with one key. If one of these rows matches, all of them are updated. A merge-on-read table
        that merges by commit time and has no record index logs the changed columns only.
        """
        plan = plan_update(self.view(), assignments, Condition.parse_optional(where), properties or {})
        session = self._session()
        changed = assigned(plan, assignments) if session is None else spark_room().assigned(session, plan, assignments)
        call, dataset = self._call(changed, extra_metadata, properties)
        call = dataclasses.replace(call, baseline=plan.scan.view)
        return upsert(call, dataset) if plan.changed is None else update(call, dataset, plan.changed)

    # --- services --------------------------------------------------------------------------------------------------

    def schedule_compaction(
        self, strategy: str | None = None, extra_metadata: Text | None = None, *, properties: Text | None = None
    ) -> str | None:
        """Plan a compaction now, even if none is due; return its instant, or None if there is nothing to compact.

        `strategy`: `log_file_size` (default: most bytes of log files first), `log_file_num`, `bounded_io`, `day_based`,
        `unbounded`, or the name of Hudi's strategy class. See `hoodie.services.compaction.schedule`.
        """
        return schedule_compaction(self._state, strategy=strategy, extra_metadata=extra_metadata, properties=properties)

    def schedule_log_compaction(self, blocks_min: int | None = None) -> str | None:
        """Plan to fold many small log blocks into one; see `services.compaction.log_compaction`."""
        return schedule_log_compaction(self._state, blocks_min=blocks_min)

    def compact(self, instant: str | None = None, *, properties: Text | None = None) -> ServiceResult:
        """Execute a pending (log) compaction; default: the oldest that does not run. See `services.compaction.run`."""
        return compact(self._compaction(None, properties), instant)

    def pending_compactions(self) -> PendingCompactions:
        """Return the pending compactions: their instants, file slices and bytes, and the process that executes each."""
        return pending_compactions(self._state)

    def rollback(self, instant: str) -> ServiceResult:
        """Roll back a pending write, or a pending compaction and its plan; see `services.recovery.pending_rollback`."""
        return roll_back_pending(self._state, instant)

    def compactor(
        self,
        *,
        interval: float = 60.0,
        schedule: bool = True,
        coordinator: str | Coordinator | None = None,
        properties: Text | None = None,
        report: Callable[[ServiceResult], None] | None = None,
        on_error: Callable[[Exception], None] | None = None,
    ) -> Compactor:
        """Create a thread that compacts while writers run: `with t.compactor(interval=10): …`.

        Every `interval` seconds the thread schedules a compaction if one is due (unless `schedule` is false), and
        executes pending compactions. `coordinator`: `zookeeper://host:port/path`, if several machines share the work.
        `report` gets each result, and `on_error` gets the error of a failed round; the next round tries again.
        """
        call = self._compaction(coordinator, properties)
        return Compactor(call, interval_seconds=interval, schedule=schedule, report=report, on_error=on_error)

    # --- reads -----------------------------------------------------------------------------------------------------

    def read(
        self,
        columns: str | Sequence[str] | None = None,
        where: str | None = None,
        as_of: When | None = None,
        view: str = SNAPSHOT,
    ) -> Any:
        """Read rows as a Spark DataFrame; see `to_arrow` for the arguments.

        Raises: InvalidConfigError if there is no Spark session.
        """
        plan = self._scan(columns, where, as_of, view)
        return spark_room().read_scan(self._needed_session(), plan)

    def to_arrow(
        self,
        columns: str | Sequence[str] | None = None,
        where: str | None = None,
        as_of: When | None = None,
        view: str = SNAPSHOT,
    ) -> pa.Table:
        """Read rows in this process, as a pyarrow Table. Memory: all rows that match.

        Args:
            columns: the columns to return, in order; default is the five `_hoodie_*` columns, then the table's columns.
            where: condition in Spark SQL; partitions and row groups that cannot match are not read.
            as_of: read the table as of this instant (inclusive), datetime or ISO date.
            view: query type: `snapshot`, or `read_optimized`, which skips log files.
        """
        return read_table(self._scan(columns, where, as_of, view))

    def head(
        self,
        limit: int = 10,
        *,
        columns: str | Sequence[str] | None = None,
        where: str | None = None,
        as_of: When | None = None,
    ) -> pa.Table:
        """Read at most `limit` rows, in no defined order; the read stops when it has enough rows. See `to_arrow`."""
        return first_rows(self._scan(columns, where, as_of), limit)

    def count(self, where: str | None = None, *, as_of: When | None = None) -> int:
        """Count the rows, or the rows that match a condition, in this process.

        Without a condition the counts come from Parquet footers; of file slices with log files the keys are read too.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "x": [1, 2]})
        >>> t = hoodie.create("memory://doc-count", rows.schema, record_key="id")
        >>> written = t.upsert(rows)
        >>> t.count(), t.count("x > 1")
        (2, 1)
        """
        return count_rows(self._scan(RECORD_KEY, where, as_of))

    def changes(self, since: When | None = None, until: When | None = None, mode: str = "latest") -> Any:
        """Read rows changed by commits completed in `(since, until]`; a Spark DataFrame, or Arrow without Spark."""
        return self._result(plan_changes(self.view(), since, until, mode=mode))

    def read_keys(self, keys: Any) -> Any:
        """Read the rows with these record keys, as a Spark DataFrame, or as a pyarrow Table without Spark.

        `keys` is data with the key columns (or `_hoodie_record_key`), one value of the key column, or a list, set,
        array or Series of such values. In a table with several key columns a value is a string like `a:1,b:2`. The
        type of the values can differ from the column's type, but must be convertible to it. The keys are held in the
        driver, also the keys of a Spark DataFrame.

        Raises: SchemaMismatchError for keys that cannot be converted; RecordKeyError for null keys.
        """
        view = self.view()
        found = self._keys(keys, view)
        return self._result(
            plan_lookup(view, spark_room().to_arrow(found) if is_spark(found) else table_in_memory(found))
        )

    def filter_exists(self, data: Any) -> Any:
        """Return the rows of `data` whose key the table does not hold.

        Returns a DataFrame for a DataFrame, otherwise a pyarrow Table. Arrow data is held in memory, together with
        those of its keys that the table holds. A DataFrame is filtered by Spark.
        """
        view = self.view()
        is_global = index_of_view(view).is_global
        if is_spark(data):
            return spark_room().filter_exists(view, data, is_global=is_global)
        return filter_exists(view, table_in_memory(data), is_global=is_global)

    def record_locations(self, keys: Any, as_of: When | None = None) -> Any:
        """Return the locations of record keys: `_hoodie_record_key`, `partition_path`, `file_id`, `instant`.

        Accepts keys in the same forms as `read_keys`. Returns a pyarrow Table with a row for each key, in the order of
        the keys, or a DataFrame for a DataFrame. The location of an unknown key is null. `as_of` (inclusive) as for
        `to_arrow`. See `hoodie.read.locations`.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "city": ["sf", "nyc"]})
        >>> t = hoodie.create("memory://doc-locations", rows.schema, record_key="id", partition_by="city")
        >>> written = t.upsert(rows)
        >>> t.record_locations(["b", "c"])["partition_path"].to_pylist()
        ['city=nyc', None]
        """
        view = self.view()
        found = self._keys(keys, view)
        if is_spark(found):
            return spark_room().record_locations(view, found, as_of=as_of)
        return record_locations(view, table_in_memory(found), as_of=as_of)

    # --- engines and plans -----------------------------------------------------------------------------------------

    def _session(self) -> Any:
        if self._spark is False or (self._spark is None and self._state.store.spec.is_private):
            return None
        return self._spark if self._spark is not None else active_session()

    def _engine(self) -> Engine:
        """Return the engine for large work without data of the caller: the Spark session, otherwise this process."""
        session = self._session()
        if session is None:
            return LocalEngine()
        engine: Engine = spark_room().SparkEngine(session)
        return engine

    def _compaction(self, coordinator: str | Coordinator | None, properties: Text | None) -> CompactionCall:
        return CompactionCall(
            state=self._state,
            engine_for=engine_by_size(self._state, self._engine, properties),
            properties=properties or {},
            coordinator=coordinator_of(coordinator),
        )

    def _needed_session(self) -> Any:
        session = self._session()
        if session is None:
            raise InvalidConfigError("no Spark session: pass spark= to hoodie.open, or read with to_arrow()")
        return session

    def _result(self, plan: ScanPlan) -> Any:
        session = self._session()
        return read_table(plan) if session is None else spark_room().read_scan(session, plan)

    def _scan(
        self, columns: str | Sequence[str] | None, where: str | None, as_of: When | None, kind: str = SNAPSHOT
    ) -> ScanPlan:
        condition = Condition.parse_optional(where)
        return plan_scan(self.view(), columns=columns, where=condition, as_of=as_of, kind=kind)

    def _keys(self, keys: Any, view: TableView | None = None) -> Any:
        """Convert keys to data with key columns; return data with columns unchanged. Loads a view if `view` is None."""
        values = None if is_spark(keys) else key_array(keys)
        return keys if values is None else key_columns(view or self.view()).table_of(values)

    def _call(self, data: Any, extra_metadata: Text | None, properties: Text | None) -> tuple[WriteCall, Any]:
        if is_spark(data) and self._state.store.spec.is_private:
            raise UnsupportedError(f"{self.path} is in this process, and Spark workers cannot read it: pass Arrow data")
        engine, dataset = (LocalEngine(), data) if isinstance(data, ArrowDataset) else engine_and_dataset(data)
        call = WriteCall(
            state=self._state, engine=engine, extra_metadata=extra_metadata or {}, properties=properties or {}
        )
        return call, dataset
