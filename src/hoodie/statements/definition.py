"""Statements about a table of the catalog as a whole: DROP, TRUNCATE, DESCRIBE, SHOW PARTITIONS, ALTER."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.files.table_properties import table_exists, update_table_config
from hoodie.format.avro.schema import DOC
from hoodie.format.schema.table_schema import META_FIELDS, with_meta_fields
from hoodie.format.table import table_keys as keys
from hoodie.format.table.properties import table_checksum
from hoodie.format.table.table_config import TableType
from hoodie.records.sql.parse import to_sql
from hoodie.records.sql.quoting import quoted
from hoodie.statements.insert import columns_of
from hoodie.statements.named_partition import NamedPartition
from hoodie.statements.names import Names, name_of, parsed_name
from hoodie.storage import open_store
from hoodie.table import Table
from hoodie.table.context import Text
from hoodie.timeline import HOODIE_FOLDER
from hoodie.view.slices import list_slices
from hoodie.view.table_state import TableState
from hoodie.write.drop_table import drop_table
from hoodie.write.result import WriteResult

_PARTITIONS: Final = pa.schema([("partition", pa.string())])
_COLUMNS: Final = pa.schema([("col_name", pa.string()), ("data_type", pa.string()), ("comment", pa.string())])
_PROPERTIES: Final = pa.schema([("key", pa.string()), ("value", pa.string())])
SHOW: Final = re.compile(
    r"\s*show\s+(?P<what>partitions|tblproperties|create\s+table)\s+(?P<rest>.*?);?\s*\Z", re.IGNORECASE | re.DOTALL
)


_KEY: Final = re.compile(r"""\s*\(\s*(?:'([^']*)'|"([^"]*)"|([^\s'"()]+))\s*\)\s*\Z""")


def shown_table(found: re.Match[str]) -> tuple[exp.TruncateTable, str | None]:
    """Return the table of a statement that `SHOW` matches, and the only property to show; None for all.

    Raises: as `parsed_name`.
    """
    rest = found["rest"]
    key = _KEY.search(rest) if found["what"].lower() == "tblproperties" else None
    return parsed_name(rest if key is None else rest[: key.start()]), key and next(filter(None, key.groups()), "")


def run_drop(tree: exp.Drop, names: Names) -> None:
    """Remove a table from the catalog; its files too if the catalog chose their place, or with PURGE.

    Raises: InvalidConfigError for a name that the catalog does not have; as `drop_table`.
    """
    for node in tree.args.get("tables") or [tree.this]:
        entry = names.catalog.find(name_of(node))
        if entry is None and tree.args.get("exists"):
            continue
        if entry is None:
            raise InvalidConfigError(f"DROP TABLE: the catalog has no table {name_of(node)} of hoodie")
        store = open_store(entry.uri, names.storage_options)
        if (entry.is_managed or tree.args.get("purge")) and table_exists(store):
            drop_table(TableState(store))
            store.delete_folder(HOODIE_FOLDER)
        names.catalog.remove(name_of(node))


def run_truncate(tree: exp.TruncateTable, names: Names, properties: Text | None) -> WriteResult | None:
    """Delete all rows, or those of PARTITION (…), in one commit. Time travel still reads them."""
    node = _only(tree)
    partition = tree.args.get("partition")
    table, _ = names.target(exp.Table(**{**node.args, "partition": None}))
    if partition is not None:
        return _delete_partitions(table, [partition], names, properties)
    return table.insert_overwrite_table(table.schema.empty_table(), properties=properties)


def _only(tree: exp.TruncateTable) -> exp.Table:
    first, *others = tree.expressions
    if others or not isinstance(first, exp.Table):
        raise UnsupportedError(f"expected the name of one table, found {', '.join(map(to_sql, tree.expressions))}")
    return first


def run_describe(tree: exp.Describe, names: Names) -> Any:
    """Return the columns of a table, then those of its partition path, as JVM Hudi does."""
    table, _ = names.target(tree.this)
    view = table.view()
    types = {field.name: field for field in with_meta_fields(table.schema)}
    rows = [_described(types[name], names) for name in (*META_FIELDS, *columns_of(table))]
    if view.config.partition_fields:
        paths = [_described(types[name], names) for name in view.config.partition_fields if name in types]
        rows += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment"), *paths]
    if tree.args.get("style"):
        more = {"Provider": "hoodie", "Location": table.path, "Type": view.config.table_type.value}
        rows += [
            ("", "", ""),
            ("# Detailed Table Information", "", ""),
            *((key, text, "") for key, text in more.items()),
        ]
    return names.rows(pa.Table.from_pylist([dict(zip(_COLUMNS.names, row, strict=True)) for row in rows], _COLUMNS))


def _described(field: pa.Field, names: Names) -> tuple[str, str, str | None]:
    doc = (field.metadata or {}).get(DOC)
    return field.name, names.catalog.type_text(field.type), None if doc is None else doc.decode()


def run_show(found: re.Match[str], names: Names) -> Any:
    """Return the partitions or the properties of a table. Raises: as `shown_table` and `NamedPartition`."""
    target, key = shown_table(found)
    node = _only(target)
    table, _ = names.target(exp.Table(**{**node.args, "partition": None}))
    view = table.view()
    config = view.config
    if found["what"].lower().startswith("create"):
        return names.rows(pa.table({"createtab_stmt": [_statement(table, name_of(node), names)]}))
    if found["what"].lower() == "tblproperties":
        absent = f"Table {name_of(node)} does not have property: {key}"  # a value, as in Spark
        pairs = sorted(config.raw.items()) if key is None else [(key, config.raw.get(key, absent))]
        rows = [{"key": name, "value": text} for name, text in pairs]
        return names.rows(pa.Table.from_pylist(rows, schema=_PROPERTIES))
    paths = sorted({found.partition_path for found in list_slices(view)} - {""})
    if (partition := target.args.get("partition")) is not None:
        named = NamedPartition.without_exists(partition, config)
        if named.is_one:
            paths = sorted({*paths} & {*named.paths(view, names, {})})
        else:
            parts = named.parts(view, names)
            paths = [path for path in paths if parts.items() <= dict(enumerate(path.split("/"))).items()]
    return names.rows(pa.table({"partition": paths}, schema=_PARTITIONS))


def _statement(table: Table, name: str, names: Names) -> str:
    """Return a CREATE TABLE statement that adds the table to a catalog."""
    config = table.view().config
    text_of = names.catalog.type_text
    columns = [f"  {quoted(column)} {text_of(table.schema.field(column).type)}" for column in columns_of(table)]
    stored = {"type": "mor" if config.table_type is TableType.MERGE_ON_READ else "cow"}
    stored |= {"primaryKey": ",".join(config.record_key_fields), "orderingFields": ",".join(config.ordering_fields)}
    properties = ", ".join(f"{key} = '{text}'" for key, text in stored.items() if text)
    paths = ", ".join(quoted(field) for field in config.partition_fields)
    return "\n".join(
        (
            f"CREATE TABLE {name} (",
            ",\n".join(columns),
            ") USING hudi",
            *([f"PARTITIONED BY ({paths})"] if paths else []),
            f"LOCATION '{table.path}'",
            f"TBLPROPERTIES ({properties})",
        )
    )


def run_alter(text: str, tree: exp.Alter, names: Names, properties: Text | None) -> WriteResult | None:
    """Drop partitions, or rename the table in the catalog. Raises: UnsupportedError for other changes."""
    actions = tree.args.get("actions") or []
    node = tree.this
    if len(actions) == 1 and isinstance(actions[0], exp.DropPartition):
        table, _ = names.target(node)
        return _delete_partitions(table, actions[0].expressions, names, properties)
    if len(actions) == 1 and isinstance(actions[0], exp.AlterRename):
        names.catalog.query(text)
        # The properties of the table have the name too, as in JVM Hudi.
        state, name = TableState(names.table(actions[0].this).view().store), actions[0].this.name
        with state.table_lock():
            checksum = str(table_checksum(state.read_config().raw.get(keys.DATABASE), name))
            update_table_config(state.store, {keys.NAME: name, keys.CHECKSUM: checksum})
        return None
    raise UnsupportedError(
        f"ALTER TABLE {', '.join(to_sql(action) for action in actions)}: expected ADD, RENAME, DROP, ALTER or CHANGE "
        "COLUMN, SET or UNSET TBLPROPERTIES, RENAME TO or DROP PARTITION"
    )


def _delete_partitions(
    table: Table, named: Sequence[exp.Expression], names: Names, properties: Text | None
) -> WriteResult | None:
    """Delete the partitions that PARTITION (…) names, in one commit; None if the table has none, as in JVM Hudi."""
    view = table.view()
    paths: set[str] = set()
    for each in named:
        partition = NamedPartition.without_exists(each, view.config)
        if not partition.is_one:
            raise InvalidConfigError(
                f"PARTITION: expected a value of each of {', '.join(view.config.partition_fields)}"
            )
        paths.update(partition.paths(view, names, properties or {}))
    found = sorted({one.partition_path for one in list_slices(view, paths)})
    return table.delete_partitions(found, properties=properties) if found else None
