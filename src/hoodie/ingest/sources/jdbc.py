"""The source `jdbc`: tables and queries of databases, read by Spark with the JDBC driver of the database."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeVar

from hoodie.config.secrets import masked, secrets_of
from hoodie.errors import HoodieError, InvalidConfigError, UnsupportedError
from hoodie.ingest.options import require
from hoodie.ingest.source import Batch, Request
from hoodie.ingest.sources.dialects import POSTGRESQL, Dialect, Kind, PostgresColumn, dialect_of, postgres_list
from hoodie.ingest.sources.incremental import Selection, plan_batch
from hoodie.ingest.sources.secrets import unreadable

_T = TypeVar("_T")
_DRIVERS: Final = {
    "postgresql": "org.postgresql.Driver",
    "mysql": "com.mysql.cj.jdbc.Driver",
    "mariadb": "org.mariadb.jdbc.Driver",
}
_OWN_OPTIONS: Final = frozenset(
    {"url", "dbtable", "query", "user", "password", "driver", "partitioncolumn", "lowerbound", "upperbound"}
    | {"numpartitions", "fetchsize", "prefertimestampntz", "sessioninitstatement", "customschema"}
)
_KINDS: Final = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), Kind.INTEGER),
    **dict.fromkeys(("float", "double"), Kind.FLOAT),
    "date": Kind.DATE,
    "timestamp_ntz": Kind.TIMESTAMP,
    "timestamp": Kind.INSTANT,
    "string": Kind.TEXT,
}
_NAMES_WITHOUT_CLIENT_TYPE: Final = {
    **{"smallint": "int2", "integer": "int4", "bigint": "int8", "real": "float4", "double precision": "float8"},
    **{"character varying": "varchar", "character": "bpchar", "boolean": "bool"},
    **{"timestamp without time zone": "timestamp", "timestamp with time zone": "timestamptz"},
}


@dataclass(frozen=True, kw_only=True)
class Jdbc(Selection):
    """Rows of a table or query of a database, read by Spark: in full, or by an incremental column.

    The place is the greatest value of `column` as text, as in JVM Hudi. docs/ingest/databases.md: the keys.

    Types of PostgreSQL that Spark lacks, and numeric without digits, become text. Other databases have Spark's types.
    """

    url: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    driver: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    partition_column: str | None = None
    partitions: int = 1
    fetch_size: int = 10_000

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.url.startswith("jdbc:") or self.url.count(":") < 2:
            raise InvalidConfigError(
                f"url: expected jdbc:<database>:…, such as jdbc:postgresql://host/database, found {masked(self.url)!r}"
            )
        own = sorted(key for key in self.options if key.lower() in _OWN_OPTIONS)
        if own:
            raise InvalidConfigError(
                f"options: expected options of the driver, found {', '.join(own)}, which jdbc sets"
            )
        if self.partitions < 1 or (self.partitions > 1) != (self.partition_column is not None):
            raise InvalidConfigError(
                "partitions: expected a number above 1 together with partition_column, or neither, found "
                f"{self.partitions} and {self.partition_column!r}"
            )
        require(self.fetch_size >= 0, "fetch_size", "a number of rows from 0", self.fetch_size)

    def __repr__(self) -> str:
        """Return the URL, without passwords, and what is read."""
        return f"Jdbc({masked(self.url, self._secrets)}, {self.name})"

    def plan(self, request: Request) -> Batch | None:
        if request.spark is None:
            raise UnsupportedError(
                'jdbc: expected a Spark session, found none; the source "adbc" reads PostgreSQL without Spark'
            )
        database = _JdbcDatabase(self, request.spark, dialect_of(self.url))
        return plan_batch(database, self, request, database.rows)

    @property
    def _secrets(self) -> tuple[str, ...]:
        return (*secrets_of(self.url, self.options), *([self.password] if self.password else []))


@dataclass
class _JdbcDatabase:
    """The database as Spark reads it. Types of columns are read once, at the first use."""

    source: Jdbc
    session: Any
    dialect: Dialect

    def columns(self) -> Sequence[str]:
        return [found.name for found in self._fields]

    def kind(self, column: str) -> Kind:
        if self.dialect is POSTGRESQL:
            return next(found.kind for found in self._postgres if found.name == column)
        return _kind_of(next(found.dataType for found in self._fields if found.name == column))

    def value(self, sql: str) -> str | None:
        frame = self._load(f"({sql}) hoodie_query")
        name = frame.columns[0]
        found: str | None = self._answer(lambda: frame.selectExpr(f"CAST(`{name}` AS STRING)").collect()[0][0])
        return found

    def rows(self, where: str | None) -> Any:
        """Return a DataFrame of the rows of a condition; it reads them when it is used."""
        columns = self._postgres if self.dialect is POSTGRESQL else []
        batch = self.source.rows(postgres_list(columns), where)
        return self._load(f"({batch}) hoodie_rows", **self._partitioning(where), **self._instants(columns))

    def _instants(self, columns: list[PostgresColumn]) -> dict[str, str]:
        """Return the option that reads timestamps with time zone as instants; older Spark takes them for local ones."""
        found = {one.name: one.dataType.simpleString() for one in self._fields}
        wrong = [one.name for one in columns if one.kind is Kind.INSTANT and found[one.name] != "timestamp"]
        return {"customSchema": ", ".join(f"`{name}` TIMESTAMP" for name in wrong)} if wrong else {}

    def _partitioning(self, where: str | None) -> dict[str, str]:
        source = self.source
        if source.partition_column is None:
            return {}
        name = self.dialect.quoted(source.partition_column)
        bounds = source.rows(f"MIN({name}) AS least, MAX({name}) AS greatest", where)
        frame = self._load(f"({bounds}) hoodie_bounds")
        least, greatest = frame.columns
        kind = _kind_of(frame.schema[0].dataType)
        if kind in (Kind.TEXT, Kind.OTHER):
            raise InvalidConfigError(f"partition_column: expected a number, date or timestamp, found {kind}: {name}")
        is_number = kind in (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)
        texts = (f"CAST(FLOOR(`{least}`) AS BIGINT)", f"CAST(CEIL(`{greatest}`) AS BIGINT)")
        low, high = texts if is_number else (f"`{least}`", f"`{greatest}`")
        row = self._answer(
            lambda: frame.selectExpr(f"CAST({low} AS STRING) AS low", f"CAST({high} AS STRING) AS high").collect()[0]
        )
        if row[0] is None:
            return {}
        bound = {"partitionColumn": source.partition_column, "lowerBound": row[0], "upperBound": row[1]}
        return {**bound, "numPartitions": str(source.partitions)}

    @cached_property
    def _fields(self) -> Sequence[Any]:
        frame = self._load(f"({self.source.rows('*', None)}) hoodie_columns")
        return self._answer(lambda: list(frame.schema.fields))

    @cached_property
    def _postgres(self) -> list[PostgresColumn]:
        types = [found.metadata.get("jdbcClientType") for found in self._fields]
        if None in types:
            types = self._types_of_values()
        return [_postgres_column(found, name) for found, name in zip(self._fields, types, strict=True)]

    def _types_of_values(self) -> list[str]:
        """Return the types of the columns by PostgreSQL's own function: older Spark does not pass them on."""
        names = [self.dialect.quoted(found.name) for found in self._fields]
        listed = ", ".join(f"CAST(pg_typeof(hoodie_none.{name}) AS text) AS c{i}" for i, name in enumerate(names))
        none = f"(SELECT * FROM {self.source.relation} LIMIT 0) hoodie_none"
        frame = self._load(f"(SELECT {listed} FROM (SELECT 1) hoodie_one LEFT JOIN {none} ON true) hoodie_types")
        found = self._answer(lambda: frame.collect()[0])
        items = [(name.removesuffix("[]"), "_" if name.endswith("[]") else "") for name in found]
        return [f"{list_mark}{_NAMES_WITHOUT_CLIENT_TYPE.get(name, name)}" for name, list_mark in items]

    def _load(self, relation: str, **more: str) -> Any:
        source = self.source
        options = {
            **source.options,
            "url": source.url,
            "dbtable": relation,
            "fetchsize": str(source.fetch_size),
            "preferTimestampNTZ": "true",
            **more,
        }
        driver = source.driver or _DRIVERS.get(source.url.split(":")[1].lower())
        given = {"user": source.user, "password": source.password, "driver": driver}
        options |= {key: value for key, value in given.items() if value is not None}
        if self.dialect.session is not None:
            options["sessionInitStatement"] = self.dialect.session
        return self._answer(lambda: self.session.read.format("jdbc").options(**options).load())

    def _answer(self, read: Callable[[], _T]) -> _T:
        try:
            return read()
        except HoodieError:
            raise
        except Exception as error:
            remedy = "put the driver's jar on Spark's class path (spark.jars.packages)"
            # The chained error would repeat what the message masks.
            raise unreadable(
                error, self.source.name, self.source.url, self.source._secrets, {"ClassNotFound": remedy}
            ) from None


def _kind_of(data_type: Any) -> Kind:
    name = data_type.simpleString()
    return Kind.DECIMAL if name.startswith("decimal") else _KINDS.get(name, Kind.OTHER)


def _postgres_column(found: Any, name: str) -> PostgresColumn:
    digits = None
    if name == "numeric":
        kind, scale = found.dataType, int(found.metadata.get("scale", 0))
        # Spark gives 18 digits behind the point to numeric without declared digits; the driver's scale is 0 there.
        is_declared = scale == kind.scale
        digits = (int(kind.precision), scale) if is_declared else None
    return PostgresColumn(found.name, name, digits)
