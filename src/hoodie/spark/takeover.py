"""Take over `format("hoodie")` and `format("hudi")` of one session: reads and writes run as those of `Table` do.

`register` opts a session in, `unregister` undoes it. PySpark's `session.read` and `frame.write` then return PySpark's
own objects with a few methods of this module above their own. For every other format, and in every other session,
these call PySpark. A read is what `Table.read` returns: Spark's own scan. Without a registered session the data source
serves the formats (`datasource.py`). docs/data-source.md.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakSet

import pyarrow as pa

from hoodie.engine import ArrowDataset, TaskContext
from hoodie.errors import HoodieWarning, InvalidConfigError, TableExistsError
from hoodie.files.staging.row_files import RowFiles, new_row_folder, write_row_file
from hoodie.files.table_properties import table_exists
from hoodie.records.sql.parse import behind_comments
from hoodie.records.sql.quoting import quoted
from hoodie.spark.answers import answer
from hoodie.spark.catalog import Catalog, CatalogEntry
from hoodie.spark.datasource import OF_WRITES, SOURCES, register_source
from hoodie.spark.datasource_writer import warn_notes
from hoodie.spark.engine import SparkDataset, SparkEngine
from hoodie.spark.merged import read_cdc
from hoodie.spark.read_options import ReadOptions, check_schema, read_options, store_and_options
from hoodie.spark.scan import read_scan
from hoodie.spark.small_tables import to_arrow
from hoodie.spark.types import arrow_schema_of, in_schema
from hoodie.spark.workers import own_python
from hoodie.statements.names import Names
from hoodie.statements.parameters import bound
from hoodie.statements.run import concerns, run
from hoodie.storage import Store, StoreSpec, open_store
from hoodie.table import Table
from hoodie.table.context import TableContext
from hoodie.table.save import Save
from hoodie.write.result import WriteResult

_JVM_CLASS: Final = "org.apache.hudi.DefaultSource"
_JVM_JARS: Final = ("spark.jars", "spark.jars.packages")
_ROWS: Final = "hoodie_rows"
"""The name of the rows in the statement that `insertInto` runs."""
_NAMES: Final = ("hoodie.table.name", "name")
"""Options that name a table."""
_MODES: Final = {"errorifexists": "error", "default": "error"}
_sessions: WeakSet[Any] = WeakSet()
_with_jar: WeakSet[Any] = WeakSet()
"""Registered sessions in which `hudi` is JVM Hudi."""
_classes: dict[tuple[type[Any], type[Any]], type[Any]] = {}
_patched: dict[tuple[type, str], property] = {}
"""PySpark's own properties, by class and name."""


def register(session: Any) -> None:
    """Serve the formats of this session, and register their data sources. A second call does nothing.

    Warns: `HoodieWarning` if the session has a JAR of JVM Hudi, which then serves `hudi`.
    """
    if session in _sessions:
        return
    has_jar = _has_jar(session)
    if has_jar:
        _with_jar.add(session)
        text = 'the session has a JAR of JVM Hudi, which serves format("hudi"); format("hoodie") is served here'
        warnings.warn(text, HoodieWarning, stacklevel=4)
    if hasattr(session, "dataSource"):
        with own_python(session):
            register_source(session, "hoodie")
            if not has_jar:
                register_source(session, "hudi")
    _patch(type(session), "read", _reader)
    _patch(type(session.range(0)), "write", _writer)
    _patch(type(session.range(0)), "writeStream", _stream_writer)
    _serve(session)


def _serve(session: Any) -> None:
    session.sql = functools.partial(_sql, session)
    session.table = lambda tableName: session.read.table(tableName)
    _sessions.add(session)


def _leave(session: Any) -> None:
    if session in _sessions:
        del session.sql, session.table
    _sessions.discard(session)
    _with_jar.discard(session)


def unregister(session: Any) -> None:
    """Undo what `register` changed in PySpark, which is as it was when no session is registered any more."""
    _leave(session)
    if not _sessions:
        for (owner, name), original in _patched.items():
            setattr(owner, name, original)
        _patched.clear()


def _has_jar(session: Any) -> bool:
    if hasattr(session, "_jvm"):
        try:
            loader = session._jvm.Thread.currentThread().getContextClassLoader()
            session._jvm.java.lang.Class.forName(_JVM_CLASS, False, loader)
        except Exception as error:
            if "ClassNotFoundException" not in str(error):
                raise
            return False
        return True
    return any("hudi-spark" in (session.conf.get(name, "") or "") for name in _JVM_JARS)


def _patch(used: type, name: str, wrap: Any) -> None:
    """Wrap a property in the class that defines it."""
    owner = next(found for found in used.__mro__ if name in vars(found))
    if (owner, name) in _patched:
        return
    original = vars(owner)[name]
    _patched[owner, name] = original
    setattr(owner, name, property(lambda self: wrap(self, original.fget(self)), doc=original.__doc__))


def _sql(session: Any, sqlQuery: str, args: Any = None, **kwargs: Any) -> Any:
    """Run a statement about a table of ours by `hoodie.sql`, and every other one by PySpark.

    The result is a DataFrame as PySpark's; of a write, its counts.
    """
    statement = None if session in _with_jar else bound(behind_comments(sqlQuery), args, kwargs)
    names = Names(session=session, tables=statement[1] if statement else {}, storage_options=None)
    if statement is None or not concerns(statement[0], names):
        return type(session).sql(session, sqlQuery, args, **kwargs)
    return answer(session, run(statement[0], names))


def _entry(session: Any, name: str) -> CatalogEntry | None:
    return None if session in _with_jar else Catalog(session).find(name)


def _reader(session: Any, reader: Any) -> Any:
    return _recording(reader, _Reader, session, session) if session in _sessions else reader


def _writer(frame: Any, writer: Any) -> Any:
    session = frame.sparkSession
    return _recording(writer, _Writer, session, frame) if session in _sessions else writer


def _stream_writer(frame: Any, writer: Any) -> Any:
    session = frame.sparkSession
    # On Spark Connect the function runs in a process of the server, where nothing is registered.
    is_served = session in _sessions and session not in _with_jar and hasattr(session, "_jvm")
    return _recording(writer, _StreamWriter, session, frame) if is_served else writer


def _recording(found: Any, mixin: type[Any], session: Any, source: Any) -> Any:
    """Give an object of PySpark the methods of a mixin, and the values that they need."""
    base = type(found)
    if (mixin, base) not in _classes:
        _classes[mixin, base] = type(base.__name__, (mixin, base), {})
    found.__class__ = _classes[mixin, base]
    found._given = _Given(session, source)
    return found


@dataclass
class _Given:
    """Options and schema that a caller gave a reader or a writer; `source` is the session, or the DataFrame."""

    session: Any
    source: Any
    format: str = ""
    options: dict[str, str] = field(default_factory=dict)
    mode: str | None = None
    partition_by: tuple[str, ...] = ()
    schema: Any = None

    def is_ours(self) -> bool:
        """Whether this module serves the format."""
        return self.format in SOURCES and not (self.format == "hudi" and self.session in _with_jar)

    def with_path(self, path: Any) -> dict[str, str]:
        """Return the options with the path. Raises: InvalidConfigError for several paths."""
        if path is None:
            return self.options
        if not isinstance(path, str):
            raise InvalidConfigError(f"path={path!r}: expected the path of one table")
        return {**self.options, "path": path}


class _Recorder:
    """Records what PySpark's method gets, and calls it."""

    _given: _Given

    def format(self, source: str) -> Any:
        self._given.format = source.lower()
        return super().format(source)  # type: ignore[misc]

    def option(self, key: str, value: Any) -> Any:
        self._record({key: value})
        return super().option(key, value)  # type: ignore[misc]

    def options(self, **options: Any) -> Any:
        self._record(options)
        return super().options(**options)  # type: ignore[misc]

    def _record(self, options: Mapping[str, Any]) -> None:
        texts = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()}
        self._given.options |= {key: texts[key] for key, value in options.items() if value is not None}


class _Reader(_Recorder):
    """Above PySpark's DataFrameReader."""

    def schema(self, schema: Any) -> Any:
        self._given.schema = schema
        return super().schema(schema)  # type: ignore[misc]

    def load(self, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> Any:
        if format is not None:
            self.format(format)
        if schema is not None:
            self.schema(schema)
        self.options(**options)
        given = self._given
        if not given.is_ours():
            return super().load(path)  # type: ignore[misc]
        return _load(given, given.with_path(path))

    def table(self, tableName: str) -> Any:
        entry = _entry(self._given.session, tableName)
        if entry is None:
            return super().table(tableName)  # type: ignore[misc]
        return _load(self._given, self._given.with_path(entry.uri))


class _StreamWriter:
    """Above PySpark's DataStreamWriter."""

    def foreachBatch(self, func: Any) -> Any:
        """Register the session of each batch while its function runs: Spark clones the session for the query."""

        def in_served_session(batch: Any, number: int) -> None:
            session = batch.sparkSession
            if session in _sessions:
                func(batch, number)
                return
            _serve(session)
            try:
                func(batch, number)
            finally:
                _leave(session)

        return super().foreachBatch(in_served_session)  # type: ignore[misc]


def load(session: Any, store: StoreSpec, options: Mapping[str, str]) -> Any:
    """Return the rows that options of a read select, as a native DataFrame. Raises: as the reads of `Table`."""
    return _native(session, ReadOptions.of(store, read_options({**options, "path": store.uri})[1], session))


def _load(given: _Given, options: Mapping[str, str]) -> Any:
    frame = _native(given.session, ReadOptions.of(*read_options(options), given.session))
    if given.schema is None:
        return frame
    wanted = given.session.createDataFrame([], given.schema).schema
    check_schema(arrow_schema_of(frame.schema), arrow_schema_of(wanted))
    return in_schema(frame, wanted)


def _native(session: Any, found: ReadOptions) -> Any:
    changes = found.changes
    if changes is not None and changes.cdc:
        plan = changes.plan_cdc(TableContext(open_store(found.store), spark=session))
        return read_cdc(session, plan, flat=changes.flat, as_json=changes.is_jvm)
    return read_scan(session, found.plan())


class _Writer(_Recorder):
    """Above PySpark's DataFrameWriter."""

    def mode(self, saveMode: str | None) -> Any:
        self._given.mode = saveMode
        return super().mode(saveMode)  # type: ignore[misc]

    def partitionBy(self, *cols: Any) -> Any:
        names = cols[0] if len(cols) == 1 and isinstance(cols[0], (list, tuple)) else cols
        self._given.partition_by = tuple(names)
        return super().partitionBy(*cols)  # type: ignore[misc]

    def save(
        self, path: Any = None, format: Any = None, mode: Any = None, partitionBy: Any = None, **options: Any
    ) -> None:
        if format is not None:
            self.format(format)
        if mode is not None:
            self.mode(mode)
        if partitionBy is not None:
            self.partitionBy(partitionBy)
        self.options(**options)
        given = self._given
        if not given.is_ours():
            super().save(path)  # type: ignore[misc]
            return
        _save(given, given.with_path(path))

    def saveAsTable(
        self, name: str, format: Any = None, mode: Any = None, partitionBy: Any = None, **options: Any
    ) -> None:
        if format is not None:
            self.format(format)
        if not self._given.is_ours():
            super().saveAsTable(name, mode=mode, partitionBy=partitionBy, **options)  # type: ignore[misc]
            return
        catalog = Catalog(self._given.session)
        catalog.check_has_tables()
        entry = catalog.find(name)
        if entry is None and catalog.exists(name):
            raise TableExistsError(f"the catalog has a table or view {name} of another format: choose another name")
        self.options(**options)
        given = self._given.options
        uri = entry.uri if entry else given.get("path", catalog.default_uri(name))
        # A name defines a table: mode overwrite would replace an existing table with history by a new one.
        options = {key: text for key, text in options.items() if key not in _NAMES}
        for key in _NAMES:
            given.pop(key, None)
        if not table_exists(open_store(store_and_options(self._given.with_path(uri), OF_WRITES)[0])):
            options = {**options, "hoodie.table.name": name.split(".")[-1].strip("`")}
        self.save(uri, mode=mode, partitionBy=partitionBy, **options)
        if entry is None:
            schema = Table(open_store(uri), spark=False).schema
            catalog.add(name, open_store(uri).uri(""), schema, is_managed="path" not in given)

    def insertInto(self, tableName: str, overwrite: bool | None = None) -> None:
        given = self._given
        if _entry(given.session, tableName) is None:
            super().insertInto(tableName, overwrite)  # type: ignore[misc]
            return
        overwrites = (given.mode or "").lower() == "overwrite" if overwrite is None else overwrite
        names = Names(session=given.session, tables={_ROWS: given.source}, storage_options=None)
        words = f"INSERT {'OVERWRITE' if overwrites else 'INTO'} {tableName} SELECT * FROM {_ROWS}"
        result = run(words, names, given.options)
        if result is not None:
            warn_notes(result)


def _save(given: _Given, options: Mapping[str, str]) -> None:
    """Write the DataFrame. Warns: `HoodieWarning` for each note of the result. Raises: as `Save`, TableExistsError."""
    store, found = store_and_options(options, OF_WRITES)
    if given.partition_by:
        found.setdefault("partition_by", ",".join(given.partition_by))
    asked = (given.mode or "error").lower()
    mode = _MODES.get(asked, asked)
    if mode not in ("append", "overwrite", "error", "ignore"):
        raise InvalidConfigError(f"mode={given.mode!r}: expected append, overwrite, error or ignore")
    opened = open_store(store)
    if mode in ("error", "ignore") and table_exists(opened):
        if mode == "ignore":
            return
        raise TableExistsError(f"{opened.uri('')} already exists: use mode('append') or mode('overwrite')")
    save_options = Save.of(found, overwrites=mode == "overwrite", defaults=SOURCES[given.format].defaults)
    result = save(given.session, opened, given.source, save_options)
    if result is not None:
        warn_notes(result)


def save(session: Any, store: Store, frame: Any, wanted: Save) -> WriteResult | None:
    """Write a DataFrame, natively. Raises: as `Save.checked` and `Save.run`."""
    schema = arrow_schema_of(frame.schema)
    checked = wanted.checked(store, schema, RowFiles(store.spec, schema, ()))
    if checked.is_new:
        # The rows can be those of the table that is replaced, so they are read before it is deleted.
        folder = new_row_folder()
        try:
            rows = _staged(session, store.spec, frame, schema, folder)
            return checked.run(Table(store, spark=False), rows, staged=folder)
        finally:
            store.delete_folder(folder)
    table = Table(store, spark=session)
    if checked.operation == "delete_partition":
        names = {field.partition(".")[0] for field in table.view().config.partition_fields}
        paths = frame.select(*(quoted(name) for name in frame.columns if name in names)).distinct()
        return checked.run(table, ArrowDataset(to_arrow(paths)))
    return checked.run(table, frame)


def _staged(session: Any, store: StoreSpec, frame: Any, schema: pa.Schema, folder: str) -> RowFiles:
    """Write the rows to files of the tasks."""

    def write(batches: Iterator[pa.RecordBatch], _context: TaskContext) -> list[str | None]:
        return [write_row_file(open_store(store), folder, schema, batches)]

    paths = SparkEngine(session).process(SparkDataset(frame), lambda batches, _: batches, schema, write)
    return RowFiles(store, schema, tuple(path for path in paths if path is not None))
