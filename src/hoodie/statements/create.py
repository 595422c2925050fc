"""CREATE TABLE … USING hudi: create the table at its location, and its entry in Spark's catalog."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
from sqlglot import TokenType, exp

from hoodie.config.indexes import INDEX_TYPE_KEY
from hoodie.config.translation import translated
from hoodie.errors import (
    HoodieError,
    HoodieWarning,
    InvalidConfigError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedError,
)
from hoodie.files.table_properties import table_exists
from hoodie.format.schema.table_schema import without_meta_fields
from hoodie.format.table import table_keys as keys
from hoodie.format.table.call_options import is_table_property
from hoodie.records.sql.parse import closing, other_clauses, to_sql, tokens_of
from hoodie.records.sql.quoting import quoted
from hoodie.statements.names import PROVIDERS, Names, name_of, path_of
from hoodie.statements.select import run_query
from hoodie.statements.settings import INTO_OPERATION
from hoodie.storage import Store, open_store
from hoodie.table import Table
from hoodie.table.context import Text
from hoodie.table.save import Save
from hoodie.table.sessions import arrow_schema
from hoodie.view.table_state import TableState
from hoodie.write.alter import OF_INDEXES
from hoodie.write.create_by_options import TableOptions
from hoodie.write.drop_table import remove_unused_table

_OPTIONS: Final = {
    "primarykey": "record_key",
    "precombinefield": "ordering",
    "orderingfields": "ordering",
    "type": "type",
}
"""Table properties of JVM Hudi's SQL, in lower case, and our options."""
_KNOWN: Final = (
    exp.FileFormatProperty,
    exp.PartitionedByProperty,
    exp.Property,
    exp.LocationProperty,
    exp.LikeProperty,
    exp.OptionsProperty,
    exp.SchemaCommentProperty,
)


@dataclass(frozen=True, slots=True)
class _Create:
    """The parts of a statement. `name` is a text of SQL; `columns` and `query` are texts, empty if there are none."""

    name: str
    exists: bool
    replaces: bool
    columns: str
    query: str
    like: exp.Table | None
    partition_by: tuple[str, ...]
    options: Mapping[str, str]
    location: str | None


def is_ours(tree: exp.Create, names: Names) -> bool:
    """Return whether the statement creates a table with one of our formats, or like a table of ours."""
    properties = tree.args.get("properties")
    if tree.args.get("kind") != "TABLE" or properties is None:
        return False
    formats = [to_sql(node.this).lower() for node in properties.find_all(exp.FileFormatProperty)]
    if formats:
        return formats[0] in PROVIDERS
    return any(names.known(node.this) is not None for node in properties.find_all(exp.LikeProperty))


def run_create(text: str, tree: exp.Create, names: Names, properties: Text | None = None) -> Table | None:
    """Create the table, and return it; None if it exists and the statement has IF NOT EXISTS.

    Rows of a query are written by one bulk insert, as in JVM Hudi; `properties` are its options. An entry of the
    catalog without columns takes the table that is at its location.

    Raises: TableExistsError; TableNotFoundError for no columns and no table; as `hoodie.create`; UnsupportedError for
        clauses that are not known, and without a session; InvalidConfigError for `properties` without a write.
    """
    wanted = _parsed(text, tree)
    if properties and not (wanted.query or wanted.replaces):
        raise InvalidConfigError(
            f"CREATE TABLE writes no rows, and takes no properties=, found {', '.join(sorted(properties))}: "
            "TBLPROPERTIES has the options of the table"
        )
    catalog = names.catalog
    catalog.check_has_tables()
    entry = catalog.find(wanted.name)
    if catalog.exists(wanted.name) and (entry is None or not wanted.replaces):
        if wanted.exists:
            return None
        raise TableExistsError(f"the catalog has {wanted.name} already: drop it, or use IF NOT EXISTS")
    uri = wanted.location or (entry.uri if entry else catalog.default_uri(wanted.name))
    is_managed = entry.is_managed if entry and not wanted.location else not wanted.location
    store = open_store(uri, names.storage_options)
    is_there = table_exists(store)
    if is_there and is_managed and entry is None:
        raise TableExistsError(
            f"{store.uri('')} has a table without an entry in the catalog: give its path as LOCATION to add it, or "
            "choose another name"
        )
    rows = run_query(wanted.query, names) if wanted.query else None
    schema = _schema(wanted, rows, names)
    if rows is not None and is_there and not wanted.replaces:
        raise TableExistsError(f"{store.uri('')} has a table already: INSERT INTO it, or use CREATE OR REPLACE TABLE")
    if schema is None and not is_there:
        raise TableNotFoundError(f"{store.uri('')} has no table, and {wanted.name} no columns: expected one of both")
    options = _options(wanted, names, compares=is_there and not wanted.replaces)
    if schema is not None and (rows is not None or wanted.replaces):
        frame = names.rows(schema.empty_table()) if rows is None else rows.select(*map(quoted, schema.names))
        is_new = not is_there and options.ensure(store, schema, {}, may_create=True, compares=not wanted.replaces)
        with _removed_after_error(store, is_new=is_new):
            # A table that this call has created has the options.
            given = replace(options, arguments={}) if is_new else options
            chosen = _of_write(Table(store, spark=False), names, properties or {})
            overwrites = wanted.replaces and not is_new
            save = Save(table=given, operation="bulk_insert", overwrites=overwrites, properties=chosen)
            names.save(store, frame, save)
    else:
        options.ensure(store, Table(store, spark=False).schema if schema is None else schema, {}, may_create=True)
    if entry is not None:
        catalog.remove(wanted.name)
    table = Table(store, spark=names.session)
    catalog.add(wanted.name, store.uri(""), table.schema, is_managed=is_managed)
    return table


@contextlib.contextmanager
def _removed_after_error(store: Store, *, is_new: bool) -> Iterator[None]:
    """Remove the new table if the body fails before a write is in it, so that the statement can be repeated."""
    try:
        yield
    except BaseException:
        if is_new:
            with contextlib.suppress(HoodieError, OSError):  # the caller needs the first error
                remove_unused_table(TableState(store))
        raise


def _of_write(table: Table, names: Names, properties: Text) -> Mapping[str, str]:
    """Return the options of the bulk insert: those of the session that define no table, and those of the call."""
    session = names.settings("bulk_insert", table)
    session.pop(INTO_OPERATION, None)
    found = translated(session).properties
    given = {key: text for key, text in found.items() if not is_table_property(key) and key not in OF_INDEXES}
    return {**given, **translated({key: str(value) for key, value in properties.items()}).properties}


def _schema(wanted: _Create, rows: Any, names: Names) -> pa.Schema | None:
    """Return the columns of the new table, those of the partition path last as in JVM Hudi; None without columns."""
    if wanted.like is not None:
        alike = names.known(wanted.like)
        schema = arrow_schema(names.data(wanted.like)) if alike is None else alike.schema
    elif rows is not None:
        schema = arrow_schema(rows)
    elif wanted.columns:
        schema = names.catalog.columns(wanted.columns)
    else:
        return None
    schema = without_meta_fields(schema)
    last = [name.lower() for name in wanted.partition_by]
    order = sorted(schema, key=lambda field: last.index(field.name.lower()) if field.name.lower() in last else -1)
    return pa.schema(order)


def _options(wanted: _Create, names: Names, *, compares: bool) -> TableOptions:
    """Return what the table is to be. Warns: HoodieWarning for options without effect. Raises: InvalidConfigError."""
    *database, name = [part.strip("`") for part in wanted.name.split(".")]
    given = {} if compares else {"name": name, keys.DATABASE: database[-1] if database else "default"}
    if wanted.like is not None and (alike := names.known(wanted.like)) is not None:
        config = alike.view().config
        lists = {"record_key": config.record_key_fields, "ordering": config.ordering_fields}
        lists["partition_by"] = config.partition_fields
        given |= {name: ",".join(fields) for name, fields in lists.items() if fields}
        given["type"] = config.table_type.value
    if wanted.partition_by:
        given["partition_by"] = ",".join(wanted.partition_by)
    found, rest = TableOptions.split({**given, **wanted.options})
    if found.idle:
        warnings.warn(
            f"CREATE TABLE: without effect here: {', '.join(sorted(found.idle))}", HoodieWarning, stacklevel=4
        )
    rest.pop("operation", None)
    if unknown := sorted(name for name in rest if not name.startswith("hoodie.")):
        raise InvalidConfigError(f"TBLPROPERTIES {unknown}: expected {', '.join(_OPTIONS.values())}, or hoodie.<name>")
    index = {"index": rest.pop(INDEX_TYPE_KEY)} if INDEX_TYPE_KEY in rest else {}
    return replace(found, arguments={**index, **found.arguments}, properties={**found.properties, **rest})


def _parsed(text: str, tree: exp.Create) -> _Create:
    """Return the parts of the statement. Raises: UnsupportedError for clauses that would be ignored."""
    named = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    properties = [] if tree.args.get("properties") is None else list(tree.args["properties"].expressions)
    more = [to_sql(found) for found in properties if not isinstance(found, _KNOWN)]
    more += other_clauses(tree, ("this", "kind", "exists", "replace", "properties", "expression"))
    if more or not isinstance(named, exp.Table) or path_of(named) is not None:
        raise UnsupportedError(f"CREATE TABLE: expected a name, columns and known clauses, found {more or named}")
    like = next((found.this for found in properties if isinstance(found, exp.LikeProperty)), None)
    location = next((found.this.name for found in properties if isinstance(found, exp.LocationProperty)), None)
    paths = [found.this for found in properties if isinstance(found, exp.PartitionedByProperty)]
    options = dict(_properties(properties))
    columns, query = _texts(text, named, has_query=tree.args.get("expression") is not None)
    return _Create(
        name=name_of(named),
        exists=bool(tree.args.get("exists")),
        replaces=bool(tree.args.get("replace")),
        columns=columns,
        query=query,
        like=like,
        partition_by=tuple(column.name for path in paths for column in path.expressions),
        options={key: value for key, value in options.items() if key != "path"},
        location=location or options.get("path"),
    )


def _properties(found: list[exp.Expression]) -> Iterator[tuple[str, str]]:
    for node in found:
        if isinstance(node, exp.OptionsProperty):
            yield from _properties(list(node.expressions))
        elif type(node) is exp.Property:
            key = node.this.name if isinstance(node.this, exp.Literal) else to_sql(node.this)
            yield _OPTIONS.get(key.lower(), key), _text_of(node.args["value"])


def _text_of(value: exp.Expression) -> str:
    """Return the value of a property, as text. Raises: InvalidConfigError for an expression, and for NULL."""
    if isinstance(value, exp.Boolean):
        return str(value.this).lower()
    if isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal):
        return f"-{value.this.name}"
    if not value.name:
        if isinstance(value, exp.Literal):
            return ""
        raise InvalidConfigError(f"TBLPROPERTIES: expected a text, a number, true or false, found {to_sql(value)}")
    return str(value.name)


def _texts(text: str, named: exp.Table, *, has_query: bool) -> tuple[str, str]:
    """Return the texts of the columns and of the query; empty without them."""
    last = named.parts[-1].meta["end"]
    tokens = [token for token in tokens_of(text) if token.start > last]
    columns = ""
    if tokens and tokens[0].token_type is TokenType.L_PAREN:
        close = closing(tokens, 0)
        columns = text[tokens[0].end + 1 : tokens[close].start]
        tokens = tokens[close + 1 :]
    if not has_query:
        return columns, ""
    depth = 0
    for token in tokens:
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth == 0 and token.token_type is TokenType.ALIAS:
            return columns, text[token.end + 1 :].rstrip().rstrip(";")
    raise UnsupportedError("CREATE TABLE: expected AS before the query")
