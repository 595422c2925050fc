"""The source `adbc`: tables and queries of PostgreSQL and SQLite, read by this process as Arrow."""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa

from hoodie.errors import InvalidConfigError, SourceError, UnsupportedError
from hoodie.ingest.source import Batch, Request
from hoodie.ingest.sources.dialects import (
    POSTGRESQL,
    SQLITE,
    Dialect,
    Kind,
    PostgresColumn,
    dialect_of,
    postgres_list,
)
from hoodie.ingest.sources.incremental import NullNote, Selection, plan_batch
from hoodie.ingest.sources.secrets import cause, masked, secrets_of
from hoodie.table.sessions import spark_room

_TYPE: Final = b"POSTGRESQL:type"
_TYPMOD: Final = b"POSTGRESQL:typmod"
_ROWS_OF_SQLITE: Final = 65_536
"""Rows of a batch of SQLite's driver, which infers the types of columns from the first batch."""
_SQLITE_KINDS: Final = {"integer": Kind.INTEGER, "real": Kind.FLOAT, "text": Kind.TEXT}


@dataclass(frozen=True, kw_only=True)
class Adbc:
    """Rows of a table or query of PostgreSQL or SQLite, read by this process: in full, or by an incremental column.

    `uri`: `postgresql://user@host/database` (libpq's; a password is best left to PGPASSWORD or a password file), or
    an SQLite file: `a.db`, `sqlite:///absolute/a.db`, `file:a.db?mode=ro`. `table` is SQL (quote names that need it);
    or `query`. `column`, `lag_seconds`, `nulls` and `counts_lag` are as in `Jdbc`; in SQLite, `lag_seconds` requires a
    column of texts such as `2024-05-01 12:00:00` in UTC.

    Rows stream: memory has one batch of the driver, of about 16 MB, or 65,536 rows of SQLite. On Spark, however, the
    whole batch of a flow passes through this process.

    PostgreSQL's columns have the same types as those of `Jdbc`. SQLite has integers, doubles, texts and bytes; the
    first 65,536 rows decide, and declared types if these are null. Columns of declared decimals are doubles.
    """

    uri: str = field(repr=False)
    table: str | None = None
    query: str | None = None
    column: str | None = None
    lag_seconds: float | None = None
    nulls: str = "note"
    counts_lag: bool = False
    _noted: NullNote = field(default_factory=NullNote, init=False, repr=False, compare=False)
    _driver: _Driver = field(default_factory=lambda: _Driver(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the options. Raises: InvalidConfigError."""
        Selection.of(self)
        if not self.uri.strip() or self.uri.startswith("jdbc:") or self._dialect not in (POSTGRESQL, SQLITE):
            raise InvalidConfigError(
                "uri: expected postgresql://user@host/database or the path of an SQLite file, found "
                f"{masked(self.uri)!r}; other databases are read by jdbc, with Spark"
            )

    def __repr__(self) -> str:
        """Return the URI, without passwords, and what is read."""
        return f"Adbc({masked(self.uri, secrets_of(self.uri))}, {self._selection.name})"

    def plan(self, request: Request) -> Batch | None:
        """Return the next batch; None if there is nothing new.

        Raises: SourceError, UnsupportedError, InvalidConfigError.
        """
        with self._connected() as connection:
            database = _AdbcDatabase(self, connection, self._dialect)
            selected = database.select_list()

            def read(where: str | None) -> Any:
                return self._read(selected, where, request)

            return plan_batch(database, self._selection, request, read, self._noted)

    def _read(self, selected: str, where: str | None, request: Request) -> Any:
        condition = "" if where is None else f" WHERE {where}"
        sql = f"SELECT {selected} FROM {self._selection.relation}{condition}"
        batches = self._batches(sql, request.schema)
        # The first element is the schema; from then on the generator closes the connection when it is dropped.
        reader = pa.RecordBatchReader.from_batches(next(batches), batches)
        if request.spark is None:
            return reader
        return _frame(request.spark, reader.read_all())

    def _batches(self, sql: str, given: pa.Schema | None) -> Iterator[Any]:
        """Yield the schema, then the batches. The type is a generator's of both."""
        with self._connected() as connection:
            database = _AdbcDatabase(self, connection, self._dialect)
            with database.reading(sql) as reader:
                first = next(reader, None)
                schema = database.schema(reader.schema, first, given)
                yield schema
                while first is not None:
                    yield database.typed(first, schema)
                    first = next(reader, None)

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """Yield a connection. Errors of the driver become SourceError without passwords."""
        driver = _module(self._dialect)
        uri = self.uri if self._dialect is POSTGRESQL else _sqlite_uri(self.uri)
        try:
            with self._driver.connection(driver, uri) as connection:
                if self._dialect.session is not None:
                    with connection.cursor() as cursor:
                        cursor.execute(self._dialect.session)
                        cursor.fetchall()
                yield connection
        except (driver.Error, pa.ArrowException, OSError) as error:
            secrets = secrets_of(self.uri)
            where = f"{self._selection.name} of {masked(self.uri, secrets)}"
            # The chained error would repeat what the message masks.
            remedy = "; SQLite's file must exist" if "failed to open" in str(error) else ""
            raise SourceError(f"{where}: the database cannot be read: {cause(error, secrets)}{remedy}") from None

    @property
    def _dialect(self) -> Dialect:
        has_scheme = re.match(r"[a-z][a-z0-9+.]+://", self.uri) is not None
        return dialect_of(self.uri) if has_scheme else SQLITE

    @property
    def _selection(self) -> Selection:
        return Selection.of(self)


@dataclass(eq=False)
class _Driver:
    """The driver's state of a database without a connection: PostgreSQL's types, whose reading is slow."""

    template: Any = None

    def connection(self, module: Any, uri: str) -> Any:
        """Return a new connection."""
        if self.template is None:
            template = module.connect(uri)
            # Only the copies are used; a server has few connections.
            template.adbc_connection.close()
            weakref.finalize(self, template.close)
            self.template = template
        return self.template.adbc_clone()


@dataclass
class _AdbcDatabase:
    """One connection to the database of a source."""

    source: Adbc
    connection: Any
    dialect: Dialect

    def columns(self) -> Sequence[str]:
        return list(self._found().names)

    def kind(self, column: str) -> Kind | None:
        if self.dialect is SQLITE:
            return self._kind_of_values(column)
        kind = next(found.kind for found in map(_postgres_column, self._found()) if found.name == column)
        if kind is None:
            raise UnsupportedError(
                f"{self.source._selection.name}, column {column}: expected a number, date, timestamp or text; cast it "
                "in query"
            )
        return kind

    def value(self, sql: str) -> str | None:
        (found,) = self._row(sql)
        return None if found is None else found if isinstance(found, str) else repr(found)

    def select_list(self) -> str:
        """Return the select list of batches: casts of types that Arrow lacks, or that vary between rows."""
        if self.dialect is POSTGRESQL:
            return postgres_list([_postgres_column(found) for found in self._found()])
        decimals = {name for name, declared in self._declared().items() if _is_decimal(declared)}
        quoted = [(self.dialect.quoted(name), name in decimals) for name in self.columns()]
        if not decimals:
            return "*"
        # A cast of texts would make zeros of them.
        case = "CASE typeof({0}) WHEN 'integer' THEN CAST({0} AS REAL) ELSE {0} END AS {0}"
        return ", ".join(case.format(name) if is_decimal else name for name, is_decimal in quoted)

    def schema(self, found: pa.Schema, first: pa.RecordBatch | None, given: pa.Schema | None) -> pa.Schema:
        """Return the schema of the batches, where `first` is the first one as the driver has it."""
        if self.dialect is POSTGRESQL:
            return pa.schema([pa.field(one.name, _arrow_type(one)) for one in found])
        declared = self._declared()
        known = {} if given is None else dict(zip(given.names, given.types, strict=True))
        fields = []
        for place, one in enumerate(found):
            kind = one.type
            if first is None or first.column(place).null_count == first.num_rows:
                kind = known.get(one.name) or _declared_type(declared.get(one.name), kind)
            fields.append(pa.field(one.name, kind))
        return pa.schema(fields)

    def typed(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        """Return a batch of the driver with the types of the schema."""
        columns = []
        for found, wanted in zip(batch.columns, schema, strict=True):
            plain = found.storage if isinstance(found.type, pa.BaseExtensionType) else found
            columns.append(plain if plain.type == wanted.type else plain.cast(wanted.type))
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    @contextmanager
    def reading(self, sql: str) -> Iterator[Any]:
        """Yield a reader of record batches of a query."""
        limits = {"adbc.sqlite.query.batch_rows": _ROWS_OF_SQLITE} if self.dialect is SQLITE else {}
        with self.connection.cursor(adbc_stmt_kwargs=limits) as cursor:
            cursor.execute(sql)
            with cursor.fetch_record_batch() as reader:
                yield _Reader(reader)

    def _row(self, sql: str) -> tuple[Any, ...]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return tuple(cursor.fetchone())

    def _found(self) -> pa.Schema:
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {self.source._selection.relation} LIMIT 0")
            with cursor.fetch_record_batch() as reader:
                return reader.schema

    def _kind_of_values(self, column: str) -> Kind | None:
        """Return the kind of SQLite's values, which may differ from row to row: texts are above all numbers."""
        name, relation = self.dialect.quoted(column), self.source._selection.relation
        least, greatest = self._row(
            f"SELECT (SELECT typeof(MIN({name})) FROM {relation}), (SELECT typeof(MAX({name})) FROM {relation})"
        )
        if least == greatest == "null":
            return None
        kinds = {_SQLITE_KINDS.get(least), _SQLITE_KINDS.get(greatest)}
        if None in kinds or (len(kinds) > 1 and Kind.TEXT in kinds):
            raise UnsupportedError(
                f"{self.source._selection.name}, column {column}: expected numbers or texts, found {least} and "
                f"{greatest}; cast it in query"
            )
        return Kind.FLOAT if Kind.FLOAT in kinds else kinds.pop()

    def _declared(self) -> dict[str, str]:
        """Return the declared types of SQLite's table; none for a query."""
        table = self.source.table
        if table is None:
            return {}
        schema, _, name = re.sub(r'["`\[\]]', "", table).rpartition(".")
        arguments = ", ".join("'" + part.replace("'", "''") + "'" for part in (name, schema or "main"))
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT name, type FROM pragma_table_info({arguments})")
            return {name: (declared or "").upper() for name, declared in cursor.fetchall()}


@dataclass(frozen=True, slots=True)
class _Reader:
    """Batches of a driver's reader, one at a time."""

    reader: pa.RecordBatchReader

    @property
    def schema(self) -> pa.Schema:
        return self.reader.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        return self.reader.read_next_batch()


def _module(dialect: Dialect) -> Any:
    name = f"adbc_driver_{dialect.name}"
    try:
        return import_module(f"{name}.dbapi")
    except ModuleNotFoundError as error:
        raise UnsupportedError(f"adbc: {name} is not installed: pip install 'hoodie[databases]'") from error


def _frame(session: Any, table: pa.Table) -> Any:
    """Return a table as a DataFrame. Spark takes timestamps without time zone for instants, so they travel as texts."""
    names = []
    for place, one in enumerate(table.schema):
        name = f"`{one.name.replace('`', '``')}`"
        if pa.types.is_timestamp(one.type) and one.type.tz is None:
            table = table.set_column(place, one.name, table.column(place).cast(pa.string()))
            name = f"CAST({name} AS TIMESTAMP_NTZ) AS {name}"
        names.append(name)
    return spark_room().from_arrow(session, table).selectExpr(*names)


def _sqlite_uri(uri: str) -> str:
    """Return the URI of a file that must exist: SQLite would create an empty database."""
    if uri.startswith("file:"):
        return uri
    return f"file:{quote(re.sub('^sqlite://(?=/)', '', uri))}?mode=rw"


def _postgres_column(found: pa.Field) -> PostgresColumn:
    metadata = found.metadata or {}
    if _TYPE not in metadata:
        raise UnsupportedError(
            "adbc: expected the driver to pass on types of PostgreSQL, as adbc-driver-postgresql does from 1.13 on, "
            f"found none of column {found.name}: pip install -U 'hoodie[databases]'"
        )
    digits = None
    if (modifier := int(metadata.get(_TYPMOD, b"-1"))) >= 4:
        # `numeric_typmod` of PostgreSQL's numeric.c: the precision, and the scale in 11 bits with a sign.
        digits = (modifier - 4 >> 16 & 0xFFFF, ((modifier - 4 & 0x7FF) ^ 1024) - 1024)
    return PostgresColumn(found.name, metadata[_TYPE].decode(), digits)


def _arrow_type(found: pa.Field) -> pa.DataType:
    column = _postgres_column(found)
    if column.type == "numeric" and column.digits is not None:
        precision, scale = column.digits
        return pa.decimal128(min(precision, 38), scale)
    return found.type.storage_type if isinstance(found.type, pa.BaseExtensionType) else found.type


def _is_decimal(declared: str) -> bool:
    return "INT" not in declared and re.match("DEC|NUM", declared) is not None


def _declared_type(declared: str | None, found: pa.DataType) -> pa.DataType:
    """Return the type of a column of SQLite without values by the rules of its affinity."""
    if declared is None or "INT" in declared or "BOOL" in declared:
        return found
    if re.search("CHAR|CLOB|TEXT|DATE|TIME", declared):
        return pa.string()
    if re.search("REAL|FLOA|DOUB|DEC|NUM", declared):
        return pa.float64()
    return pa.binary() if "BLOB" in declared else found
