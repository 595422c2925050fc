"""INSERT INTO and INSERT OVERWRITE: rows of a query, by position or by the names of a column list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlglot import TokenType, exp

from hoodie.config.translation import translated
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.format.schema.table_schema import META_FIELDS
from hoodie.records.sql.parse import closing, other_clauses, to_sql, tokens_of
from hoodie.records.sql.quoting import quoted
from hoodie.statements.named_partition import NamedPartition
from hoodie.statements.names import Names
from hoodie.statements.select import run_query
from hoodie.statements.settings import INTO_OPERATION, OVERWRITE_MODE
from hoodie.table import Table
from hoodie.table.context import Text
from hoodie.table.save import Save
from hoodie.table.sessions import spark_room
from hoodie.view.slices import list_slices
from hoodie.write.create_by_options import TableOptions
from hoodie.write.result import WriteResult

_OPERATION_KEYS: Final = (INTO_OPERATION, "hoodie.datasource.write.operation")
_MODES: Final = (OVERWRITE_MODE, "spark.sql.sources.partitionOverwriteMode")
_OPERATIONS: Final = ("insert", "upsert", "bulk_insert")
_BEGIN_QUERY: Final = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "(")


def run_insert(text: str, tree: exp.Insert, names: Names, properties: Text | None) -> WriteResult | None:
    """Write the rows of the query into the table, by an insert if no option chooses another operation.

    Without a column list and BY NAME the query has the table's columns, without those whose values PARTITION gives. As
    in JVM Hudi they match by name if the query has exactly these names; else by their order, in which the columns of
    the partition path are last. Columns that are not named become null.

    INSERT OVERWRITE empties the partition that PARTITION names, even if the query has no rows. With IF NOT EXISTS
    nothing is written, and None is returned, if the table has that partition.

    Raises: UnsupportedError for other clauses, and without a session; InvalidConfigError for another number of columns;
        as the write.
    """
    named = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    more = other_clauses(tree, ("this", "expression", "source", "by_name", "overwrite", "is_function"))
    if more or not isinstance(named, exp.Table):
        raise UnsupportedError(f"INSERT: expected INTO or OVERWRITE, a table and a query, found {more or named}")
    _ = names.catalog  # without a session nothing is read
    table, _ = names.target(exp.Table(**{**named.args, "partition": None}))
    view, overwrites = table.view(), bool(tree.args.get("overwrite"))
    partition = NamedPartition.of(named.args.get("partition"), view.config)
    given = dict(properties or {})
    operation = _operation(partition, given, names, overwrites=overwrites)
    known = translated({key: str(value) for key, value in (names.settings(operation, table) | given).items()})
    chosen = names.with_services(table, known.properties)
    replaced = partition.paths(view, names, chosen) if overwrites else ()
    if partition.if_not_exists and list_slices(view, set(replaced)):
        return None
    listed = [column.name for column in tree.this.expressions] if isinstance(tree.this, exp.Schema) else []
    rows = run_query(_query(text, named), names)
    listed = rows.columns if tree.args.get("by_name") else listed
    frame = _with_columns(table, rows, listed, partition.values)
    options = TableOptions(idle=known.idle)
    save = Save(table=options, operation=operation, overwrites=False, properties=chosen, partitions=replaced or None)
    return names.save(view.store, frame, save)


def _operation(partition: NamedPartition, given: dict[str, Any], names: Names, *, overwrites: bool) -> str:
    """Return the operation of the statement; its options are taken out of those of the call.

    Raises: InvalidConfigError for another value of an option; UnsupportedError for IF NOT EXISTS in INSERT INTO; as
    `NamedPartition.overwrite`.
    """
    key, operation = _taken(given, names, _OPERATION_KEYS)
    mode = _taken(given, names, _MODES)
    if overwrites:
        return partition.overwrite(*mode)
    if partition.if_not_exists:  # as in Spark
        raise UnsupportedError("INSERT INTO … IF NOT EXISTS: expected INSERT OVERWRITE, or no IF NOT EXISTS")
    if operation and operation not in _OPERATIONS:
        raise InvalidConfigError(f"{key}={operation!r}: expected one of {', '.join(_OPERATIONS)}")
    return operation or "insert"


def _taken(given: dict[str, Any], names: Names, keys: tuple[str, ...]) -> tuple[str, str]:
    """Take options out of those of the call; return the first that the call or the session has, in lower case."""
    found = [(key, str(given.pop(key, "") or names.setting(key)).lower()) for key in keys]
    return next((option for option in found if option[1]), (keys[0], ""))


def columns_of(table: Table) -> list[str]:
    """Return the columns in the order of SQL: those of the partition path are last."""
    last = [name.partition(".")[0] for name in table.view().config.partition_fields]
    names = table.schema.names
    return [name for name in names if name not in last] + [name for name in last if name in names]


def _query(text: str, named: exp.Table) -> str:
    """Return the text of the query: what is behind the name, PARTITION (…) and the column list."""
    last = named.parts[-1].meta["end"]
    tokens = [token for token in tokens_of(text) if token.start > last]
    place = 0
    if tokens[place].token_type is TokenType.PARTITION:
        place = closing(tokens, place + 1) + 1
    if tokens[place].text.upper() == "IF":  # IF NOT EXISTS
        place += 3
    if tokens[place].text.upper() == "BY":  # BY NAME
        place += 2
    if tokens[place].token_type is TokenType.L_PAREN and tokens[place + 1].text.upper() not in _BEGIN_QUERY:
        place = closing(tokens, place) + 1
    if tokens[place].token_type is TokenType.TABLE:
        return text[tokens[place].start :].rstrip().rstrip(";").replace("TABLE", "SELECT * FROM", 1)
    return text[tokens[place].start :].rstrip().rstrip(";")


def _with_columns(table: Table, rows: Any, listed: list[str], fixed: Mapping[str, exp.Expression]) -> Any:
    """Return the rows with all columns of the table, in its types. Raises: InvalidConfigError."""
    every = columns_of(table)
    rows = rows.drop(*META_FIELDS)  # of a SELECT * FROM a table
    by_lower = {name.lower(): name for name in every}
    constant = {by_lower.get(name.lower(), name): to_sql(value) for name, value in fixed.items()}
    wanted = [by_lower.get(name.lower(), name) for name in listed] or [name for name in every if name not in constant]
    if unknown := [name for name in (*wanted, *constant) if name not in every]:
        raise InvalidConfigError(f"INSERT: the table has no columns {unknown}; it has {', '.join(every)}")
    if twice := [name for place, name in enumerate(wanted) if name in constant or name in wanted[:place]]:
        raise InvalidConfigError(f"INSERT: expected one value of each column, found two of {', '.join(twice)}")
    if len(rows.columns) != len(wanted):
        raise InvalidConfigError(
            f"INSERT: expected {len(wanted)} columns ({', '.join(wanted)}), found {len(rows.columns)} in the query "
            f"({', '.join(rows.columns)})"
        )
    if not listed and {name.lower() for name in rows.columns} == {name.lower() for name in wanted}:
        wanted = [by_lower[name.lower()] for name in rows.columns]  # JVM Hudi matches by name where it can
    renamed = rows.toDF(*wanted)
    texts = {name: quoted(name) for name in wanted} | constant
    in_order = {name: texts.get(name, "NULL") for name in every}
    return spark_room().in_types(renamed, in_order, table.schema, "INSERT", constant)
