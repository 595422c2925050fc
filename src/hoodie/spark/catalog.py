"""Tables in Spark's catalog: an entry records the path of its table in the comment of its first column.

Spark hides properties and location of a table with a Python data source, from its `DESCRIBE` and from the source. The
comment of a column is in the schema, which the source gets, and which classic and Connect sessions return.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import types as T

from hoodie.errors import UnsupportedError
from hoodie.format.schema.table_schema import with_meta_fields
from hoodie.records.sql.quoting import literal_of, quoted
from hoodie.spark.types import arrow_schema_of, spark_schema_of

_EXTERNAL: Final = "hoodie table "
_MANAGED: Final = "managed hoodie table "
_SESSION_CATALOG: Final = "spark_catalog"
_PROVIDERS: Final = ("hoodie", "hudi")


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A table of the catalog. `is_managed`: DROP TABLE deletes its files."""

    uri: str
    is_managed: bool = False


def uri_of_schema(schema: T.StructType) -> CatalogEntry | None:
    """Return the entry that the schema of a catalog's table contains; None for other schemas."""
    comment = str(schema.fields[0].metadata.get("comment", "")) if schema.fields else ""
    for prefix in (_MANAGED, _EXTERNAL):
        if comment.startswith(prefix):
            return CatalogEntry(comment.removeprefix(prefix), prefix == _MANAGED)
    return None


class Catalog:
    """The catalog of a session. Names are texts of SQL, quoted where necessary."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def find(self, name: str) -> CatalogEntry | None:
        """Return the entry of a table of ours; None for other names, and for views."""
        try:
            # First: Spark 4 prints an error of several kB for a query of an unknown table, although it is caught.
            if not self.exists(name):
                return None
            schema = self.query(f"SELECT * FROM {name}").schema
        except AnalysisException:
            return None
        return uri_of_schema(schema) or self._of_others(name)

    def exists(self, name: str) -> bool:
        """Return whether the catalog has a table or view of this name."""
        return bool(self._session.catalog.tableExists(name))

    def default_uri(self, name: str) -> str:
        """Return where the catalog puts a new table."""
        *database, table = [part.strip("`") for part in name.split(".")]
        found = database[-1] if database else self._session.catalog.currentDatabase()
        return f"{_path(self._session.catalog.getDatabase(found).locationUri)}/{table}"

    def check_has_tables(self) -> None:
        """Raises: UnsupportedError on PySpark 3.5, whose catalog cannot have tables of ours."""
        if not hasattr(self._session, "dataSource"):
            raise UnsupportedError(
                "PySpark 3.5 has no data sources in Python, so its catalog cannot have such a table: name tables by "
                "their paths, as hoodie.`/data/trips`"
            )

    def add(self, name: str, uri: str, schema: pa.Schema, *, is_managed: bool) -> None:
        """Add a table with the columns of a schema. Raises: as `check_has_tables`."""
        self.check_has_tables()
        comment = (_MANAGED if is_managed else _EXTERNAL) + uri
        fields = spark_schema_of(with_meta_fields(schema)).fields
        columns = [f"{quoted(field.name)} {_type(field.dataType)}" for field in fields]
        columns[0] += f" COMMENT {literal_of(comment)}"
        create = f"CREATE TABLE {name} ({', '.join(columns)}) USING hoodie LOCATION {literal_of(uri)}"
        self.query(create)

    def remove(self, name: str) -> None:
        """Remove a table; its files stay."""
        self.query(f"DROP TABLE {name}")

    def refresh(self, name: str, schema: pa.Schema) -> None:
        """Give the entry of a table the columns of a schema; entries that were not added here stay as they are."""
        entry = uri_of_schema(self.query(f"SELECT * FROM {name}").schema)
        if entry is not None:
            self.remove(name)
            self.add(name, entry.uri, schema, is_managed=entry.is_managed)

    def columns(self, text: str) -> pa.Schema:
        """Return the schema of a list of columns in SQL."""
        return arrow_schema_of(self._session.createDataFrame([], text).schema)

    def type_text(self, kind: pa.DataType) -> str:
        """Return a type in Spark's words."""
        return str(spark_schema_of(pa.schema([pa.field("x", kind)])).fields[0].dataType.simpleString())

    def query(self, text: str, frames: Mapping[str, Any] | None = None) -> Any:
        """Run a statement by PySpark's own `sql`, also in a registered session.

        The names of DataFrames are in braces; without any, the text is as the caller wrote it.
        """
        return type(self._session).sql(self._session, text, **(frames or {}))

    def _of_others(self, name: str) -> CatalogEntry | None:
        """Return the location of a table that was created with one of our providers, for example by JVM Hudi.

        A classic session reads in Spark's catalog what DESCRIBE of Spark 4 leaves out; Spark Connect cannot.
        """
        try:
            described = self.query(f"DESCRIBE TABLE EXTENDED {name}").collect()
        except PySparkException:
            return None  # a table of another catalog, which Spark describes in no such way
        facts = {row[0]: row[1] or "" for row in described}
        provider, location = facts.get("Provider", ""), facts.get("Location", "")
        is_of_session = "Database" in facts and facts.get("Catalog", _SESSION_CATALOG) == _SESSION_CATALOG
        if not provider and is_of_session and hasattr(self._session, "_jsparkSession"):
            state = self._session._jsparkSession.sessionState()
            known = state.catalog().getTableMetadata(state.sqlParser().parseTableIdentifier(name))
            provider = str(known.provider().get()) if known.provider().isDefined() else ""
            uri = known.storage().locationUri()
            location = str(uri.get()) if uri.isDefined() else ""
        return CatalogEntry(_path(location)) if provider.lower() in _PROVIDERS and location else None


def _type(kind: T.DataType) -> str:
    """Return a type in SQL; names of nested fields are quoted."""
    if isinstance(kind, T.StructType):
        return f"STRUCT<{', '.join(f'{quoted(field.name)}: {_type(field.dataType)}' for field in kind.fields)}>"
    if isinstance(kind, T.ArrayType):
        return f"ARRAY<{_type(kind.elementType)}>"
    if isinstance(kind, T.MapType):
        return f"MAP<{_type(kind.keyType)}, {_type(kind.valueType)}>"
    return kind.simpleString()


def _path(location: str) -> str:
    """Return the path of a file URI, and other URIs as they are."""
    return unquote(location.removeprefix("file:").removeprefix("//")) if location.startswith("file:") else location
