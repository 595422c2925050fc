"""The last row of each key, in this process and on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.records.sql.quoting import quoted
from hoodie.table.sessions import arrow_schema, is_spark

if TYPE_CHECKING:
    from hoodie.records.sql.columns import ColumnRef

_ROW: Final = "_hoodie_row"
_NO_KEY: Final = "_hoodie_no_key"


def latest(rows: Any, keys: Sequence[str], order: Sequence[str]) -> Any:
    """Return the last row of each key by the columns `order`.

    `rows`: an Arrow table or reader, or a Spark DataFrame; Arrow rows come back as a table in their first order.
    `keys`: columns, or fields of structs as `a.b`. Rows with a null in a key are all kept: the write refuses and counts
    them. Null and NaN in `order` come first. In process the last one of equal rows is kept, on Spark any.

    Memory: all rows. Raises: SchemaMismatchError for columns that the rows lack.
    """
    # Loads the parser of SQL.
    from hoodie.records.sql.columns import resolve_name

    schema = arrow_schema(rows) if is_spark(rows) else rows.schema
    key_refs, order_refs = ([resolve_name(name, schema) for name in names] for names in (keys, order))
    if is_spark(rows):
        return _on_spark(rows, key_refs, order_refs)
    table = rows.read_all() if isinstance(rows, pa.RecordBatchReader) else rows
    columns = {f"k{place}": _plain(column_at(table, ref.path)) for place, ref in enumerate(key_refs)}
    ordered = pa.table({f"o{place}": _without_nan(column_at(table, ref.path)) for place, ref in enumerate(order_refs)})
    # Null comes first. Equal rows keep their order, as the sort is stable.
    by = [(name, "ascending", "at_start") for name in ordered.column_names]
    places = np.asarray(pc.sort_indices(ordered, sort_keys=by)) if order else np.arange(table.num_rows)
    ranks = np.empty(len(places), np.int64)
    ranks[places] = np.arange(len(places))
    ranked = pa.table({**columns, _ROW: pa.array(ranks)})
    has_key = np.logical_and.reduce([np.asarray(column.is_valid()) for column in columns.values()])
    best = ranked.filter(pa.array(has_key)).group_by([*columns], use_threads=False).aggregate([(_ROW, "max")])
    last = places[np.asarray(best[f"{_ROW}_max"])].astype(np.int64)
    return table.take(pa.array(np.sort(np.concatenate([last, np.flatnonzero(~has_key)]))))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a key column in a type that can be grouped."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _without_nan(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)


def column_at(table: pa.Table, path: Sequence[str]) -> pa.ChunkedArray:
    """Return a column, or a field of structs in it; null where a struct is null."""
    first, *fields = path
    return pc.struct_field(table[first], fields) if fields else table[first]


def _on_spark(frame: Any, keys: Sequence[ColumnRef], order: Sequence[ColumnRef]) -> Any:
    key_texts = [".".join(map(quoted, ref.path)) for ref in keys]
    no_key = " OR ".join(f"{text} IS NULL" for text in key_texts)
    # A number of its own for each row without a key: Spark then still cuts each task's rows before the shuffle.
    numbered = frame.selectExpr("*", f"CASE WHEN {no_key} THEN monotonically_increasing_id() END AS {_NO_KEY}")
    by = ", ".join(f"{_order_text(ref)} DESC NULLS LAST" for ref in order)
    window = f"PARTITION BY {', '.join(key_texts)}, {_NO_KEY} ORDER BY {by}"
    ranked = numbered.selectExpr("*", f"row_number() OVER ({window}) AS {_ROW}")
    return ranked.where(f"{_ROW} = 1").drop(_ROW, _NO_KEY)


def _order_text(ref: ColumnRef) -> str:
    text = ".".join(map(quoted, ref.path))
    return f"CASE WHEN NOT isnan({text}) THEN {text} END" if pa.types.is_floating(ref.type) else text
