"""CREATE INDEX, DROP INDEX and SHOW INDEXES: indexes in the metadata table, by their names in JVM Hudi."""

from __future__ import annotations

import re
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.index import RECORD
from hoodie.records.sql.parse import tokens_of
from hoodie.statements.names import Names, named_table
from hoodie.table import Table
from hoodie.table.context import Text

_TABLE: Final = r"(?:table\s+)?(?P<table>(?:`[^`]*`|[^\s(`;])+)"
INDEX: Final = re.compile(
    rf"\s*(?:create\s+index\s+(?P<absent>if\s+not\s+exists\s+)?(?P<new>\S+)\s+on\s+{_TABLE}\s*"
    r"(?:using\s+(?P<kind>\w+)\s*)?\((?P<columns>[^)]*)\)(?P<more>.*?)"
    rf"|drop\s+index\s+(?P<there>if\s+exists\s+)?(?P<old>\S+)\s+on\s+{_TABLE.replace('<table>', '<of>')}"
    rf"|show\s+index(?:es)?\s+(?:from|in)\s+{_TABLE.replace('<table>', '<shown>')})\s*;?\s*\Z",
    re.IGNORECASE | re.DOTALL,
)
"""A statement about indexes; `table_named` returns its table."""
_RECORD_INDEX: Final = "record_index"
_SHOWN: Final = pa.schema([("index_name", pa.string()), ("index_type", pa.string()), ("col_name", pa.string())])


def table_named(found: re.Match[str]) -> exp.Table:
    """Return the table of a statement that `INDEX` matches. Raises: InvalidConfigError for text that is no name."""
    return named_table(found["table"] or found["of"] or found["shown"])


def run_index(found: re.Match[str], names: Names, properties: Text | None = None) -> Any:
    """Build or drop an index, or return the indexes of a table as rows.

    Raises: InvalidConfigError for an index that exists, or does not, for other columns than the record key, and for
        `properties` of a build; UnsupportedError for secondary and expression indexes, and for OPTIONS; as
        `Table.index.build` and `drop`.
    """
    table, _ = names.target(table_named(found))
    known = [
        {"index_name": partition, "index_type": partition, "col_name": ""}
        for partition in sorted(set(table.view().config.metadata_partitions) - {"files"})
    ]
    if found["shown"]:
        return names.rows(pa.Table.from_pylist(known, schema=_SHOWN))
    name = (found["new"] or found["old"]).strip("`").lower()
    is_there = name in [row["index_name"] for row in known]
    if found["old"]:
        if is_there:
            table.index.drop(RECORD.name if name == _RECORD_INDEX else name)
        elif not found["there"]:
            raise InvalidConfigError(f"DROP INDEX: {table.path} has no index {name!r}; {_list(known)}")
        return None
    _check_kind(found, name, table)
    _check_rest(found, table, properties)
    if is_there and not found["absent"]:
        raise InvalidConfigError(f"CREATE INDEX: {table.path} has the index {name!r} already; {_list(known)}")
    if not is_there:
        table.index.build(RECORD.name)
    return None


def _check_kind(found: re.Match[str], name: str, table: Table) -> None:
    """Raises: InvalidConfigError for unknown columns; UnsupportedError for all but the record index."""
    columns = _columns(found)
    names = dict.fromkeys(table.schema.names)
    if unknown := [column for column in columns if column.partition(".")[0] not in names]:
        raise InvalidConfigError(f"CREATE INDEX: the table has no columns {unknown}; it has {', '.join(names)}")
    kind = (found["kind"] or ("" if name == _RECORD_INDEX else "secondary index")).lower()
    if kind in ("", _RECORD_INDEX) and name == _RECORD_INDEX:
        return
    advice = {
        "column_stats": f't.index.build("column_stats", columns={columns}) stores the ranges of the columns',
        "bloom_filters": 't.index.build("bloom_filters") stores the filters of the record key',
    }
    raise UnsupportedError(
        f"CREATE INDEX {name} … {kind}: secondary and expression indexes are not built; CREATE INDEX {_RECORD_INDEX} is"
        f"; {advice.get(kind, 'sort the files by the column (CALL run_clustering) for conditions on it')}"
    )


def _check_rest(found: re.Match[str], table: Table, properties: Text | None) -> None:
    """Refuse what the build of a record index would ignore. Raises: InvalidConfigError, UnsupportedError."""
    more = found["more"].strip()
    if tokens_of(more):  # no comment
        raise UnsupportedError(f"CREATE INDEX {_RECORD_INDEX}: expected nothing behind the columns, found {more!r}")
    if properties:
        raise InvalidConfigError(
            f"CREATE INDEX takes no properties=, found {', '.join(sorted(properties))}: the properties of the table "
            "have the options of its indexes"
        )
    key = table.view().config.record_key_fields
    if key and {*_columns(found)} != {*key}:
        raise InvalidConfigError(
            f"CREATE INDEX {_RECORD_INDEX}: expected the columns of the record key, ({', '.join(key)}), found "
            f"({', '.join(_columns(found))}), which JVM Hudi refuses too"
        )


def _columns(found: re.Match[str]) -> list[str]:
    return [part.strip().strip("`") for part in found["columns"].split(",") if part.strip()]


def _list(known: list[dict[str, str]]) -> str:
    return f"it has {', '.join(row['index_name'] for row in known) or 'none'}"
