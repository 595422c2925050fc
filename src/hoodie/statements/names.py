"""The names in a statement: which table a name means, and columns with the name of their table before them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from sqlglot import exp

from hoodie.config.translation import translated
from hoodie.engine.inputs import table_in_memory
from hoodie.errors import InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.format.schema.table_schema import conform, normalise
from hoodie.records.expression import assigned_values
from hoodie.records.sql.parse import other_clauses, parse_statement, to_sql
from hoodie.records.sql.quoting import quoted
from hoodie.records.sql.translate import Translator
from hoodie.statements.settings import INTO_OPERATION, is_option, options_of
from hoodie.table import Table
from hoodie.table import open as open_table
from hoodie.table.context import Text
from hoodie.table.save import ASYNC_COMPACTION, inline_services
from hoodie.table.sessions import spark_room

if TYPE_CHECKING:
    from hoodie.storage import Store
    from hoodie.table.save import Save
    from hoodie.write.result import WriteResult

PROVIDERS: Final = ("hoodie", "hudi")
"""The words before a path, and the providers of a table in Spark's catalog."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What the names of a statement mean. `session` is None in process; `tables` are tables, paths or data by name."""

    session: Any
    tables: Mapping[str, Any]
    storage_options: Text | None
    _in_catalog: dict[str, str | None] = field(default_factory=dict)
    """Paths of names that were looked up in the catalog: each name once in a statement."""

    def target(self, node: exp.Expression) -> tuple[Table, str]:
        """Return the table that a statement changes, and the name by which its expressions call it.

        Raises: InvalidConfigError for a name that is not known; UnsupportedError for anything but a table's name.
        """
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise UnsupportedError(f"expected a table, found {to_sql(node)!r}")
        refuse_more(node)
        alias = node.alias or ("t" if path_of(node) is not None else node.name)
        return self.table(node), alias

    def table(self, node: exp.Table) -> Table:
        """Return the table of a name. Raises: as `target`."""
        path = path_of(node)
        return self.at(path) if path is not None else self.named(plain_name(node))

    def at(self, path: str) -> Table:
        """Open the table at a path."""
        spark = False if self.session is None else self.session
        return open_table(path, storage_options=self.storage_options, spark=spark)

    def named(self, name: str) -> Table:
        """Return the table that `tables`, or else Spark's catalog, has by this name. Raises: InvalidConfigError."""
        known = self.tables.get(name)
        if isinstance(known, Table):
            return known
        path = known if isinstance(known, str) else None if known is not None else self._catalog_path(name)
        if path is None:
            place = name if "/" in name else f"/data/{name}"
            raise InvalidConfigError(
                f"no table {name!r}: expected a path, hoodie.`{place}`, or path => '{place}' in CALL; a name of "
                f"tables={{…}}, which has {sorted(self.tables)}; or, in a session, a table of its catalog that was "
                "created USING hoodie (Spark gives no path for a temporary view)"
            )
        return self.at(path)

    @property
    def catalog(self) -> Any:
        """The catalog of the session (`hoodie.spark.catalog.Catalog`). Raises: UnsupportedError without a session."""
        if self.session is None:
            raise UnsupportedError("this statement needs a Spark session: hoodie.sql(spark, …)")
        return spark_room().Catalog(self.session)

    def known(self, node: exp.Table) -> Table | None:
        """Return the table of a name; None for a name that is not one of ours. Raises: as `at`."""
        given = self._place(node)
        return self.at(given) if isinstance(given, str) else given

    def is_known(self, node: exp.Table) -> bool:
        """Return whether a name is one of ours; its table may be missing."""
        return self._place(node) is not None

    def _place(self, node: exp.Table) -> Table | str | None:
        path, name = path_of(node), plain_name(node)
        if path is not None:
            return path
        given = self.tables.get(name)
        if given is None:
            return self._catalog_path(name)
        return given if isinstance(given, Table | str) else None

    def given(self, node: exp.Table) -> Any:
        """Return the data of `tables` of this name; None if it has none."""
        name = plain_name(node)
        return self.rows_of(self.tables[name]) if name in self.tables else None

    def named_or_at(self, text: str) -> Table:
        """Return the table of a path or a name. Raises: as `named`."""
        return self.at(text) if "/" in text else self.named(text)

    def refresh(self, node: exp.Table, table: Table) -> None:
        """Give the entry of a table in Spark's catalog the columns that the table has now."""
        if self.session is not None and path_of(node) is None and name_of(node) not in self.tables:
            self.catalog.refresh(name_of(node), table.schema)

    def load(self, table: Table, options: Mapping[str, str]) -> Any:
        """Return what the data source reads with these options, as a DataFrame of a native read."""
        return spark_room().load(self.session, table.view().store.spec, options)

    def setting(self, key: str) -> str:
        """Return an option of the session; empty if it is not set."""
        return str(self.session.conf.get(key, None) or "")

    def settings(self, operation: str, table: Table) -> dict[str, str]:
        """Return the options of the session that have an effect on an operation, as JVM Hudi's SQL takes them.

        The texts are read one by one, because SET shows none of an option with `url` or `token` in its name.
        """
        if self.session is None:
            return {}
        keys = [row[0] for row in self.catalog.query("SET").collect() if is_option(row[0])]
        found = {key: self.setting(key) for key in keys}
        return options_of(operation, found, table.view().config.raw) if found else {}

    def changes(self, operation: str, table: Table, properties: Text | None) -> Text | None:
        """Return the options of a statement that changes rows: those of the session, and services as in JVM Hudi."""
        if self.session is None:
            return properties
        given = {**self.settings(operation, table), **(properties or {})}
        given.pop(INTO_OPERATION, None)
        known = translated({key: str(value) for key, value in given.items()})
        return self.with_services(table, known.properties)

    def with_services(self, table: Table, properties: Mapping[str, str]) -> dict[str, str]:
        """Return the options and the services that JVM Hudi's SQL turns on."""
        asynchronous = {ASYNC_COMPACTION: self.setting(ASYNC_COMPACTION)}
        return {**properties, **inline_services(table.view().config, {**asynchronous, **properties})}

    def constants(self, schema: pa.Schema, texts: Mapping[str, str]) -> pa.Table:
        """Return one row with the values of SQL literals, in the types of their columns.

        Raises: in process as `assigned_values`; in a session what an INSERT of the values raises.
        """
        if self.session is None:
            types = {name: schema.field(name).type for name in texts}
            one = pa.table({"_": pa.array([0], pa.int32())})
            return assigned_values(texts, Translator(one.schema), types, one)
        row = spark_room().in_types(self.rows(pa.table({"_": [0]})), texts, schema, "PARTITION", texts)
        return spark_room().to_arrow(row)

    def save(self, store: Store, frame: Any, save: Save) -> WriteResult | None:
        """Write a DataFrame; see `Save`."""
        result: WriteResult | None = spark_room().save(self.session, store, frame, save)
        return result

    def data(self, node: exp.Table) -> Any:
        """Return the rows of a name: of a table, of data in `tables`, or of a view of the session.

        Raises: UnsupportedError for a name with more than an alias behind it, such as TABLESAMPLE or VERSION AS OF.
        """
        refuse_more(node)
        name = plain_name(node)
        if path_of(node) is not None or isinstance(self.tables.get(name), Table | str):
            table = self.table(node)
            return table.to_arrow() if self.session is None else table.read()
        if name in self.tables:
            return self.rows_of(self.tables[name])
        if self.session is None:
            raise InvalidConfigError(f"no source {name!r} in tables={{…}}, which has {sorted(self.tables)}")
        return self.session.table(to_sql(exp.Table(**{**node.args, "alias": None})))

    def rows_of(self, data: Any) -> Any:
        """Return data of `tables`; in a session Arrow tables become DataFrames, so that Spark joins them.

        Raises: SchemaMismatchError: a text is not valid UTF-8, or Spark has no type for a value that a table can store.
        """
        if self.session is None or not isinstance(data, pa.Table):
            return data
        rows = table_in_memory(data)
        return self.rows(conform(rows, pa.schema([_stored_field(child) for child in rows.schema])))

    def rows(self, table: pa.Table) -> Any:
        """Return a small result as a DataFrame of the session, or as it is in process."""
        return table if self.session is None else spark_room().from_arrow(self.session, table)

    def _catalog_path(self, name: str) -> str | None:
        """Return the path of a table in Spark's catalog; None if there is none, or if it is not a Hudi table."""
        if self.session is None:
            return None
        if name not in self._in_catalog:
            found = self.catalog.find(".".join(quoted(part) for part in name.split(".")))
            self._in_catalog[name] = None if found is None else str(found.uri)
        return self._in_catalog[name]


def _stored_field(child: pa.Field) -> pa.Field:
    try:
        return normalise(pa.schema([child])).field(0)
    except SchemaMismatchError:
        return child  # No table can store it; Spark may have a type for it.


def parsed_name(text: str) -> exp.TruncateTable:
    """Return a statement about the one table that a text names; PARTITION (…) may follow the name.

    Raises: InvalidConfigError for other text.
    """
    try:
        tree = parse_statement(f"TRUNCATE TABLE {text}")
    except InvalidConfigError:
        tree = None
    if isinstance(tree, exp.TruncateTable) and not other_clauses(tree, ("expressions", "partition")):
        kinds = [type(node) for node in tree.expressions]
        if kinds == [exp.Table]:
            return tree
    raise InvalidConfigError(f"expected the name of one table, found {text.strip()!r}")


def named_table(text: str) -> exp.Table:
    """Return the one table that a text names. Raises: InvalidConfigError for other text."""
    (node,) = parsed_name(text).expressions
    assert isinstance(node, exp.Table)
    return node


def refuse_more(node: exp.Expression) -> None:
    """Refuse what would be ignored behind a name or a query. Raises: UnsupportedError."""
    more = other_clauses(node, ("this", "db", "catalog", "alias"))
    alias = node.args.get("alias")
    if isinstance(alias, exp.TableAlias) and alias.args.get("columns"):
        more.append("names of columns")
    if more:
        raise UnsupportedError(
            f"{to_sql(node)!r}: expected a name and an alias only, found also {', '.join(more)}; read these rows "
            "first, and pass them in tables={…}"
        )


def plain_name(node: exp.Table) -> str:
    """Return the name without quotes: as `tables` has it."""
    return ".".join(part.name for part in node.parts)


def name_of(node: exp.Table) -> str:
    """Return the name as a text of SQL."""
    return ".".join(quoted(part.name) for part in node.parts)


def path_of(node: exp.Table) -> str | None:
    """Return the path of hoodie.`path`; None for other names."""
    parts = node.parts
    is_path = len(parts) == 2 and parts[0].name.lower() in PROVIDERS and parts[1].args.get("quoted")
    return parts[1].name if is_path else None


def without_qualifier(node: exp.Expression, alias: str) -> exp.Expression:
    """Return the expression without the table's name before its columns."""

    def plain(part: exp.Expression) -> exp.Expression:
        if isinstance(part, exp.Column) and len(part.parts) > 1 and part.parts[0].name.lower() == alias.lower():
            words = dict(zip(("this", "table", "db"), reversed(part.parts[1:]), strict=False))
            return exp.Column(**{place: name.copy() for place, name in words.items()})
        return part

    return node.transform(plain)


def assignments(pairs: Iterable[tuple[exp.Expression, str]], alias: str) -> dict[str, str]:
    """Return the expression of each column that a statement sets.

    `pairs`: a column and its expression. Raises: InvalidConfigError for a column that is set twice;
    UnsupportedError for a field of a struct.
    """
    found: dict[str, str] = {}
    for column, text in pairs:
        plain = without_qualifier(column, alias)
        if not isinstance(plain, exp.Column) or len(plain.parts) != 1:
            raise UnsupportedError(f"expected a column to set, found {to_sql(column)!r}; a struct is set as a whole")
        name = str(plain.name)
        if name.lower() in (known.lower() for known in found):
            raise InvalidConfigError(
                f"column {name!r} is set twice, to {list(found.values())[-1]!r} and {text!r}; keep one"
            )
        found[name] = text
    return found
