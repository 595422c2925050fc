"""The source `adbc`: tables and queries of PostgreSQL and SQLite, read by this process as Arrow."""

from __future__ import annotations

import itertools
import re
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa

from hoodie.config.secrets import masked, secrets_of
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.format.schema.plain_types import plain_array
from hoodie.ingest.code import library
from hoodie.ingest.source import Batch, Request
from hoodie.ingest.sources.dialects import POSTGRESQL, SQLITE, Dialect, Kind, PostgresColumn, dialect_of, postgres_list
from hoodie.ingest.sources.incremental import Selection, plan_batch
from hoodie.ingest.sources.secrets import unreadable
from hoodie.table.sessions import spark_room

_TYPE: Final = b"POSTGRESQL:type"
_TYPMOD: Final = b"POSTGRESQL:typmod"
_ROWS_OF_SQLITE: Final = 65_536
"""Rows of a batch of SQLite's driver, which infers the types of columns from the first batch."""
_SQLITE_KINDS: Final = {"integer": Kind.INTEGER, "real": Kind.FLOAT, "text": Kind.TEXT}


@dataclass(frozen=True, kw_only=True)
class Adbc(Selection):
    """Rows of a table or query of PostgreSQL or SQLite, read by this process: in full, or by an incremental column.

    docs/ingest/databases.md: the keys.

    Rows stream: memory has one batch of the driver, of about 16 MB, or 65,536 rows of SQLite. On Spark, however, the
    whole batch of a flow passes through this process.

    PostgreSQL's columns have the same types as those of `Jdbc`. SQLite has integers, doubles, texts and bytes; the
    first 65,536 rows decide, and declared types if these are null. Columns of declared decimals are doubles.
    """

    uri: str
    _driver: _Driver = field(default_factory=lambda: _Driver(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.uri.strip() or self.uri.startswith("jdbc:") or self._dialect not in (POSTGRESQL, SQLITE):
            raise InvalidConfigError(
                "uri: expected postgresql://user@host/database or the path of an SQLite file, found "
                f"{masked(self.uri)!r}; other databases are read by jdbc, with Spark"
            )

    def __repr__(self) -> str:
        """Return the URI, without passwords, and what is read."""
        return f"Adbc({masked(self.uri, secrets_of(self.uri))}, {self.name})"

    def plan(self, request: Request) -> Batch | None:
        with self._connected() as connection:
            database = _AdbcDatabase(self, connection, self._dialect)
            selected = database.select_list()

            def read(where: str | None) -> Any:
                batches = self._batches(self.rows(selected, where), request.schema)
                # The first element is the schema; from then on the generator closes the connection when it is dropped.
                reader = pa.RecordBatchReader.from_batches(next(batches), batches)
                return reader if request.spark is None else spark_room().from_arrow(request.spark, reader.read_all())

            return plan_batch(database, self, request, read)

    def _batches(self, sql: str, given: pa.Schema | None) -> Iterator[Any]:
        """Yield the schema, then the batches. The type is a generator's of both."""
        limits = {"adbc.sqlite.query.batch_rows": _ROWS_OF_SQLITE} if self._dialect is SQLITE else {}
        with self._connected() as connection, connection.cursor(adbc_stmt_kwargs=limits) as cursor:
            database = _AdbcDatabase(self, connection, self._dialect)
            cursor.execute(sql)
            with cursor.fetch_record_batch() as reader:
                first = next(reader, None)
                schema = database.schema(reader.schema, first, given)
                yield schema
                for batch in itertools.chain([] if first is None else [first], reader):
                    # Types that Arrow lacks have a type of their own in the driver.
                    columns = [
                        plain_array(one).cast(kind) for one, kind in zip(batch.columns, schema.types, strict=True)
                    ]
                    yield pa.RecordBatch.from_arrays(columns, schema=schema)

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """Yield a connection. Errors of the driver become SourceError without passwords."""
        name = f"adbc_driver_{self._dialect.name}"
        driver = library(f"{name}.dbapi", f"adbc: {name} is not installed: pip install 'hoodie[databases]'")
        uri = self.uri if self._dialect is POSTGRESQL else _sqlite_uri(self.uri)
        try:
            with self._driver.connection(driver, uri) as connection:
                if self._dialect.session is not None:
                    with connection.cursor() as cursor:
                        cursor.execute(self._dialect.session)
                        cursor.fetchall()
                yield connection
        except (driver.Error, pa.ArrowException, OSError) as error:
            remedies = {"failed to open": "SQLite's file must exist"}
            # The chained error would repeat what the message masks.
            raise unreadable(error, self.name, self.uri, secrets_of(self.uri), remedies) from None

    @property
    def _dialect(self) -> Dialect:
        has_scheme = re.match(r"[a-z][a-z0-9+.]+://", self.uri) is not None
        return dialect_of(self.uri) if has_scheme else SQLITE


@dataclass(eq=False)
class _Driver:
    """The driver's state of a database without a connection: PostgreSQL's types, whose reading is slow."""

    template: Any = None

    def connection(self, module: Any, uri: str) -> Any:
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
        return list(self._found.names)

    def kind(self, column: str) -> Kind | None:
        if self.dialect is SQLITE:
            return self._kind_of_values(column)
        return next(found.kind for found in map(_postgres_column, self._found) if found.name == column)

    def value(self, sql: str) -> str | None:
        ((found,),) = self._rows(sql)
        return None if found is None else found if isinstance(found, str) else repr(found)

    def select_list(self) -> str:
        """Return the select list of batches: casts of types that Arrow lacks, or that vary between rows."""
        if self.dialect is POSTGRESQL:
            return postgres_list([_postgres_column(found) for found in self._found])
        decimals = {name for name, declared in self._declared().items() if re.match("(?!.*INT)(DEC|NUM)", declared)}
        if not decimals:
            return "*"
        # A cast of texts would make zeros of them.
        case = "CASE typeof({0}) WHEN 'integer' THEN CAST({0} AS REAL) ELSE {0} END AS {0}"
        return ", ".join((case if name in decimals else "{0}").format(SQLITE.quoted(name)) for name in self.columns())

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

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    @cached_property
    def _found(self) -> pa.Schema:
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {self.source.relation} LIMIT 0")
            with cursor.fetch_record_batch() as reader:
                return reader.schema

    def _kind_of_values(self, column: str) -> Kind | None:
        """Return the kind of SQLite's values, which may differ from row to row: texts are above all numbers."""
        name, relation = self.dialect.quoted(column), self.source.relation
        ((least, greatest),) = self._rows(
            f"SELECT (SELECT typeof(MIN({name})) FROM {relation}), (SELECT typeof(MAX({name})) FROM {relation})"
        )
        if least == greatest == "null":
            return None
        kinds = {_SQLITE_KINDS.get(least), _SQLITE_KINDS.get(greatest)}
        if None in kinds or (len(kinds) > 1 and Kind.TEXT in kinds):
            raise UnsupportedError(
                f"{self.source.name}, column {column}: expected numbers or texts, found {least} and "
                f"{greatest}; cast it in query"
            )
        return Kind.FLOAT if Kind.FLOAT in kinds else kinds.pop()

    def _declared(self) -> dict[str, str]:
        """Return the declared types of SQLite's table; none for a query."""
        table = self.source.table
        if table is None:
            return {}
        schema, _, name = re.sub(r'["`\[\]]', "", table).rpartition(".")
        arguments = ", ".join(map(SQLITE.literals[Kind.TEXT], (name, schema or "main")))
        found = self._rows(f"SELECT name, type FROM pragma_table_info({arguments})")
        return {name: (declared or "").upper() for name, declared in found}


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


def _declared_type(declared: str | None, found: pa.DataType) -> pa.DataType:
    """Return the type of a column of SQLite without values by the rules of its affinity."""
    if declared is None or "INT" in declared or "BOOL" in declared:
        return found
    if re.search("CHAR|CLOB|TEXT|DATE|TIME", declared):
        return pa.string()
    if re.search("REAL|FLOA|DOUB|DEC|NUM", declared):
        return pa.float64()
    return pa.binary() if "BLOB" in declared else found
