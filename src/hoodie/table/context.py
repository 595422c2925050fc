"""What the methods of a table handle share: its state, its engines, and the plans that they make."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from hoodie.arguments import is_polars_expression

if TYPE_CHECKING:
    from hoodie.commit.call import Call
    from hoodie.engine import Engine
    from hoodie.merge_into.by_condition import UpdatePlan
    from hoodie.merge_into.run import ComputedWrite
    from hoodie.read.plan import ScanPlan
    from hoodie.read.times import When
    from hoodie.records.condition import Condition
    from hoodie.records.sql.clock import Clock
    from hoodie.storage import Store, StoreSpec
    from hoodie.view.table_view import TableView

_T = TypeVar("_T")
Text = Mapping[str, Any]
"""Options or metadata: text by name; numbers and truth values are written as text."""
Assignments = Mapping[str, Any]
"""Spark SQL expressions by column; numbers, truth values and None stand for literals."""
Where = str | Any
"""A condition in Spark SQL, or an expression of pyarrow or Polars."""
Partitions = Collection[str | Mapping[str, Any]]
"""Partition paths, or values by partition column."""
Session = Any
"""A Spark session, classic or Connect. None: the active session; False: no session."""
Spark = Any
"""A Spark session, classic or Connect."""


class TableContext:
    """The state of one table in this process, and the Spark session that its handle was given. Thread-safe."""

    def __init__(self, store: Store, spark: Any = None, lock: Text | None = None) -> None:
        """Open nothing. `spark`: a session; None: the active session; False: work runs in this process.

        Raises: InvalidConfigError if `lock` has something else than options of the lock.
        """
        from hoodie.view.table_state import TableState

        if lock:
            from hoodie.timeline.locks.provider import check_lock_options

            check_lock_options(lock)
        self.state = TableState(store, lock_options=dict(lock or {}))
        self._spark = spark

    def place(self) -> tuple[StoreSpec, bool | None, Text]:
        """Return what another process needs to open the table. Raises: UnsupportedError if only this one can."""
        from hoodie.errors import UnsupportedError

        spec = self.state.store.spec
        if spec.is_private:
            raise UnsupportedError(f"{spec.uri} is in this process, and no other can open it: pickle its rows instead")
        return spec, False if self._spark is False else None, dict(self.state.lock_options)

    def view(self) -> TableView:
        """Load a view of the table as of the newest completed instant."""
        from hoodie.view.table_view import TableView

        return TableView.load(self.state)

    def session(self) -> Any:
        """Return the Spark session for reads and large work; None without one, and for stores of this process only."""
        from hoodie.table.sessions import active_session

        if self._spark is False or (self._spark is None and self.state.store.spec.is_private):
            return None
        return self._spark if self._spark is not None else active_session()

    def needed_session(self) -> Any:
        """Return the Spark session. Raises: InvalidConfigError if there is none."""
        from hoodie.errors import InvalidConfigError

        session = self.session()
        if session is None:
            advice = "pass spark= to hoodie.open, or read with to_arrow()"
            if importlib.util.find_spec("pyspark") is None:
                advice = "install the extra `hoodie[spark]` and start one, or read with to_arrow()"
            raise InvalidConfigError(f"no Spark session: {advice}")
        return session

    def engine(self) -> Engine:
        """Return the engine for large work without data of the caller: the Spark session, otherwise this process."""
        from hoodie.engine import LocalEngine
        from hoodie.table.sessions import spark_room

        session = self.session()
        if session is None:
            return LocalEngine()
        return spark_room().engine_of(session)

    def scan(
        self,
        columns: str | Sequence[str] | None,
        where: Where | None,
        as_of: When | None,
        kind: str = "snapshot",
        session: Any = None,
    ) -> ScanPlan:
        """Plan a read, as `planned`. `session`: as of `condition`. Raises: as `plan_scan`."""
        return self.planned(self.scan_of(columns, where, as_of, kind, session))

    def scan_of(
        self,
        columns: str | Sequence[str] | None,
        where: Where | None,
        as_of: When | None,
        kind: str,
        session: Any = None,
    ) -> Callable[[TableView], ScanPlan]:
        """Return the function that plans a read of a view, with the errors of `plan_scan`."""
        from hoodie.read.plan import plan_scan

        condition = self.condition_of(where, session)
        return lambda view: plan_scan(view, columns=columns, where=condition(view), as_of=as_of, kind=kind)

    def condition_of(self, where: Where | None, session: Any) -> Callable[[TableView], Condition | None]:
        """Return the function that makes a condition for a view. Raises: as `condition`."""
        # A text is parsed before anything is read; an expression needs the types of the columns.
        known = self.condition(where, session=session) if isinstance(where, str) else None
        return lambda view: known or self.condition(where, view, session=session)

    def condition(
        self,
        where: Where | None,
        view: TableView | None = None,
        *,
        session: Any = None,
        clock: Clock | None = None,
    ) -> Condition | None:
        """Return a condition that is a text of SQL or an expression of pyarrow or Polars; None for None.

        `view`: of the table whose columns an expression has, if the caller has loaded it. `session`: the Spark session
        that evaluates the condition, if this process does not. `clock`: of the call, if other expressions need it.

        Raises: InvalidConfigError for a text that is no SQL, or with literals that the session evaluates otherwise;
            UnsupportedError for an expression without a form in SQL.
        """
        if where is None:
            return None
        # Loaded only for a condition: the parser takes as long to load as a small read takes.
        from hoodie.records.condition import Condition

        if isinstance(where, str):
            clock = clock or self.clock(session)
            return Condition.of_call(where, lambda: (view or self.view()).schema().arrow.names, clock)
        from hoodie.format.schema.table_schema import with_meta_fields
        from hoodie.table.sessions import spark_room

        schema = with_meta_fields((view or self.view()).schema().arrow)
        if is_polars_expression(where):
            from hoodie.read.polars_filter import sql_of_polars

            text = sql_of_polars(where, schema)
        else:
            from hoodie.read.arrow_filter import sql_of

            text = sql_of(where, schema)
        if session is not None:
            spark_room().check_literals(session, text)
        return Condition.parse(text)

    def clock(self, session: Any) -> Clock:
        """Return the clock of a call whose expressions the session evaluates; None: this process, in UTC."""
        from hoodie.records.sql.clock import Clock
        from hoodie.table.sessions import spark_room

        if session is None:
            return Clock()
        room = spark_room()
        return Clock(lambda: room.now(session), lambda text: room.check_literals(session, text))

    def partition_paths(self, partitions: Partitions, properties: Text | None) -> Collection[str]:
        """Return partition paths, also of dicts of partition columns. Raises: as `partitions_of`."""
        rows = [found for found in partitions if not isinstance(found, str)]
        if not rows:
            return [found for found in partitions if isinstance(found, str)]
        from hoodie.engine import ArrowDataset
        from hoodie.engine.inputs import table_in_memory
        from hoodie.write.delete_partitions import partitions_of

        return partitions_of(self.view(), ArrowDataset(table_in_memory(rows)), properties)

    def planned(self, plan: Callable[[TableView], _T], view: TableView | None = None) -> _T:
        """Return `plan(view)`; it is called again with a new view if a clean took files of the first one.

        `view`: the first one, if the caller has loaded it.

        Raises: ViewOvertakenError if cleans took files of several views in a row.
        """
        from hoodie.storage import asking_ahead
        from hoodie.view.ahead import ask_for_files
        from hoodie.view.still_there import planned_again

        loaded = [] if view is None else [view]
        with asking_ahead():
            if view is None:
                ask_for_files(self.state)
            return planned_again(lambda: loaded.pop() if loaded else self.view(), plan)

    def result(self, plan: ScanPlan) -> Any:
        """Execute a read: a DataFrame if there is a Spark session, otherwise a pyarrow Table."""
        from hoodie.read.local import read_table
        from hoodie.table.sessions import spark_room

        session = self.session()
        return read_table(plan) if session is None else spark_room().read_scan(session, plan)

    def assigned(self, plan: UpdatePlan) -> Any:
        """Return the rows that an update writes: a DataFrame if there is a Spark session, otherwise a dataset."""
        from hoodie.merge_into.by_condition import assigned
        from hoodie.table.sessions import spark_room

        session = self.session()
        return assigned(plan) if session is None else spark_room().assigned(session, plan, plan.assignments)

    def keys(self, keys: Any, view: TableView | None = None) -> Any:
        """Convert keys to data with key columns; return data with columns unchanged. Loads a view if `view` is None.

        Raises: InvalidConfigError for a text alone that is a condition; otherwise as `key_array` and `table_of`.
        """
        from hoodie.engine.inputs import key_array
        from hoodie.read.lookup import key_columns
        from hoodie.table.sessions import is_spark

        values = None if is_spark(keys) else key_array(keys)
        if values is None:
            return keys
        view = view or self.view()
        if isinstance(keys, str):
            _refuse_condition(keys, view)
        return key_columns(view).table_of(values)

    def write_call(
        self, data: Any, extra_metadata: Text | None, properties: Text | None, schema: str | None = None
    ) -> tuple[Call, Any]:
        """Return the call of a write and the caller's data as a dataset of the engine that processes it.

        `schema`: which changes of the schema are allowed, for the option of that name.

        Raises: InvalidConfigError for another `schema`; UnsupportedError for a DataFrame if Spark's workers cannot
            reach the table, and for other data types.
        """
        from hoodie.commit.call import Call
        from hoodie.errors import UnsupportedError
        from hoodie.table.sessions import engine_and_dataset, is_spark

        properties = with_schema(properties or {}, schema)
        state = self.state.for_call(properties)
        if is_spark(data) and state.store.spec.is_private:
            raise UnsupportedError(
                f"{state.store.uri('')} is in this process, and Spark workers cannot read it: pass Arrow data"
            )
        engine, dataset = engine_and_dataset(data)
        call = Call(state=state, engine=engine, extra_metadata=extra_metadata or {}, properties=properties)
        return call, dataset

    def computed_write(self, extra_metadata: Text | None, properties: Text | None) -> ComputedWrite:
        """Return the call of a write that computes its rows from rows of the table."""
        from hoodie.merge_into.run import ComputedWrite

        return ComputedWrite(
            load=self.view,
            call_of=lambda rows: self.write_call(rows, extra_metadata, properties),
            properties=properties or {},
        )

    def service(self, properties: Text | None = None) -> Call:
        """Return the call of a table service."""
        from hoodie.commit.call import Call
        from hoodie.write.replace import remove_by_service

        properties = properties or {}
        return Call(
            state=self.state.for_call(properties),
            engine=self.engine(),
            properties=properties,
            remove_partitions=remove_by_service,
        )


def _refuse_condition(text: str, view: TableView) -> None:
    """Refuse a text alone that compares columns of the table: as a key it would be unknown, and change nothing."""
    if not any(mark in text for mark in "=<> "):
        return
    from hoodie.errors import HoodieError, InvalidConfigError
    from hoodie.records.condition import Condition

    try:
        compares = Condition.parse(text).compares(view.schema().arrow)
    except HoodieError:
        return
    if compares:
        raise InvalidConfigError(
            f"keys: expected record keys, found the condition {text[:300]!r}; pass it to delete_where, or as where= to "
            "a read; a record key of this text is passed in a list"
        )


def with_schema(properties: Text, schema: str | None) -> Text:
    """Return the options of a call with its `schema` argument, if it has one. Raises: InvalidConfigError."""
    from hoodie.config.writes import SCHEMA_EVOLUTION
    from hoodie.errors import InvalidConfigError

    if schema is None:
        return properties
    values = {"strict": "never", "typed": "typed", "add_columns": "always"}
    if schema not in values:
        raise InvalidConfigError(f"schema={schema!r}: expected one of {list(values)}")
    if properties.get(SCHEMA_EVOLUTION.key, values[schema]) != values[schema]:
        raise InvalidConfigError(
            f"schema={schema!r} contradicts {SCHEMA_EVOLUTION.key}={properties[SCHEMA_EVOLUTION.key]}: give one of them"
        )
    return {**properties, SCHEMA_EVOLUTION.key: values[schema]}
