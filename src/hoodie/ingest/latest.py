"""The last row of each key, in this process and on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import SchemaMismatchError
from hoodie.format.schema.table_schema import spelled
from hoodie.records.sql.quoting import quoted
from hoodie.table.sessions import arrow_schema, is_spark

_ROW: Final = "_hoodie_row"
_NO_KEY: Final = "_hoodie_no_key"


def latest(rows: Any, keys: Sequence[str], order: Sequence[str]) -> Any:
    """Return the last row of each key by the columns `order`.

    `rows`: an Arrow table or reader, or a Spark DataFrame; Arrow rows come back as a table in their first order.
    `keys`: columns, or fields of structs as `a.b`. Rows with a null in a key are all kept: the write refuses and counts
    them. Null and NaN in `order` come first. In process the last one of equal rows is kept, on Spark any.

    Memory: all rows. Raises: SchemaMismatchError for columns that the rows lack.
    """
    if is_spark(rows):
        return _on_spark(rows, keys, order)
    table = rows.read_all() if isinstance(rows, pa.RecordBatchReader) else rows
    key_columns = [_plain(_column(table, name)) for name in keys]
    has_no_key = np.zeros(table.num_rows, np.bool_)
    for column in key_columns:
        has_no_key |= np.asarray(pc.is_null(column))
    order_columns = [_without_nan(_column(table, name)) for name in order]
    return table.take(
        pa.array(np.sort(np.concatenate([_last(key_columns, order_columns), np.flatnonzero(has_no_key)])))
    )


def _last(keys: Sequence[pa.ChunkedArray], order: Sequence[pa.ChunkedArray]) -> np.ndarray[Any, Any]:
    """Return the places of the last row of each key; keys with a null are left out."""
    names = [f"k{number}" for number in range(len(keys))]
    by_order = pa.table({f"o{number}": column for number, column in enumerate(order)})
    # Null comes first. Equal rows keep their order, as the sort is stable.
    sort_keys = [(name, "ascending", "at_start") for name in by_order.column_names]
    places = np.asarray(pc.sort_indices(by_order, sort_keys=sort_keys)) if order else np.arange(len(keys[0]))
    ranks = np.empty(len(places), np.int64)
    ranks[places] = np.arange(len(places))
    ranked = pa.table({**dict(zip(names, keys, strict=True)), _ROW: pa.array(ranks)})
    best = ranked.drop_null().group_by(names, use_threads=False).aggregate([(_ROW, "max")])
    found: np.ndarray[Any, Any] = places[np.asarray(best[f"{_ROW}_max"])].astype(np.int64)
    return found


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a key column in a type that can be grouped."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _without_nan(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)


def _column(table: pa.Table, name: str) -> pa.ChunkedArray:
    first, *fields = path_of(name, table.schema)
    column = table[first]
    return pc.struct_field(column, fields) if fields else column


def path_of(name: str, schema: pa.Schema) -> list[str]:
    """Return the path of a column, or of a field of a struct, as the schema spells it; the case may differ.

    Raises: SchemaMismatchError if there is none.
    """
    (column,) = spelled([name], schema)
    if column is not None:
        return [column]
    path: list[str] = []
    level: Any = schema
    for part in name.split("."):
        found = None if level is None else spelled([part], pa.schema(list(level)))[0]
        if found is None:
            raise SchemaMismatchError(f"column {name!r}: the rows have no such column; they have {schema.names}")
        path.append(found)
        kind = level.field(found).type
        level = kind if pa.types.is_struct(kind) else None
    return path


def _on_spark(frame: Any, keys: Sequence[str], order: Sequence[str]) -> Any:
    schema = arrow_schema(frame)
    key_texts = [".".join(map(quoted, path_of(name, schema))) for name in keys]
    no_key = " OR ".join(f"{text} IS NULL" for text in key_texts)
    # A number of its own for each row without a key: Spark then still cuts each task's rows before the shuffle.
    numbered = frame.selectExpr("*", f"CASE WHEN {no_key} THEN monotonically_increasing_id() END AS {_NO_KEY}")
    by = ", ".join(f"{_order_text(name, schema)} DESC NULLS LAST" for name in order)
    window = f"PARTITION BY {', '.join(key_texts)}, {_NO_KEY} ORDER BY {by}"
    ranked = numbered.selectExpr("*", f"row_number() OVER ({window}) AS {_ROW}")
    return ranked.where(f"{_ROW} = 1").drop(_ROW, _NO_KEY)


def _order_text(name: str, schema: pa.Schema) -> str:
    path = path_of(name, schema)
    text = ".".join(map(quoted, path))
    kind: Any = schema.field(path[0]).type
    for part in path[1:]:
        kind = kind.field(part).type
    return f"CASE WHEN NOT isnan({text}) THEN {text} END" if pa.types.is_floating(kind) else text
