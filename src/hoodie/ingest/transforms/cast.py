"""The transform `cast`: columns in other types; a value that does not fit is an error, never null."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.arguments import shown
from hoodie.errors import InvalidConfigError, SchemaMismatchError
from hoodie.ingest.transforms.transform import (
    Context,
    arrow_rows,
    checked_mapping,
    each_batch,
    found_names,
    names_of,
)
from hoodie.records.sql.quoting import literal_of, quoted
from hoodie.table.sessions import arrow_schema, is_spark

_NAMES: Final = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
}
"""Spark's names of types."""
_SHOWN_MAX: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """Converts columns to types of Spark SQL, with Spark's `CAST` in ANSI mode.

    `columns`: types by column, such as `{price = "decimal(10, 2)"}`. `to_table`: all columns that the table of the flow
    has get its types; before the table exists they stay as they are. Columns of structs, lists and maps are left to the
    write, which converts them if no value changes. Fractions are cut off in integers, as Spark does.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    to_table: bool = False

    def __post_init__(self) -> None:
        from hoodie.records.sql.types import type_named

        types = checked_mapping(self.columns, "transform cast, columns", '{price = "double"}')
        if not isinstance(self.to_table, bool):
            raise InvalidConfigError(f"transform cast, to_table: expected true or false, found {shown(self.to_table)}")
        if bool(types) == self.to_table:
            raise InvalidConfigError("transform cast: expected one of columns and to_table = true")
        nested = [name for name, text in types.items() if pa.types.is_nested(type_named(text))]
        if nested:
            raise InvalidConfigError(f"transform cast, columns {nested}: expected types without fields or elements")

    def __call__(self, rows: Any, context: Context) -> Any:
        """Return the rows with the new types.

        Raises: SchemaMismatchError, which names column and value, of Spark's rows when they are read; UnsupportedError
        in process for types that cannot be cast there; InvalidConfigError for unknown columns.
        """
        rows = rows if is_spark(rows) else arrow_rows(rows)
        wanted = self._wanted(names_of(rows), context.schema)
        if is_spark(rows):
            return _on_spark(rows, wanted)
        return each_batch(rows, lambda table: _in_process(table, wanted))

    def _wanted(self, known: list[str], schema: pa.Schema | None) -> dict[str, pa.DataType]:
        """Return the new types by the names of columns."""
        from hoodie.records.sql.types import type_named

        if self.to_table:
            types = {} if schema is None else {child.name.lower(): child.type for child in schema}
            found = {name: types[name.lower()] for name in known if name.lower() in types}
            return {name: kind for name, kind in found.items() if not pa.types.is_nested(kind)}
        names = found_names([*self.columns], known, "cast")
        return {name: type_named(text) for name, text in zip(names, self.columns.values(), strict=True)}


def _on_spark(frame: Any, wanted: Mapping[str, pa.DataType]) -> Any:
    types = {child.name: child.type for child in arrow_schema(frame)}
    texts = []
    for name in frame.columns:
        kind = wanted.get(name, types[name])
        if kind == types[name] or pa.types.is_nested(types[name]):
            texts.append(quoted(name))
            continue
        column, sql_type = quoted(name), _spark_name(kind)
        cast = f"try_cast({column} AS {sql_type})"
        start = literal_of(f"hoodie.errors.SchemaMismatchError: transform cast: column {name!r}: the value ")
        end = literal_of(f" is no {sql_type}; nothing was committed")
        value = f"substring(CAST({column} AS STRING), 1, {_SHOWN_MAX})"
        refused = f"raise_error(concat({start}, {value}, {end}))"
        texts.append(f"CASE WHEN {column} IS NULL OR {cast} IS NOT NULL THEN {cast} ELSE {refused} END AS {column}")
    return _resolved(frame, texts)


def _resolved(frame: Any, texts: list[str]) -> Any:
    try:
        found = frame.selectExpr(*texts)
        found.columns  # noqa: B018 - a Connect session resolves the expressions here
    except Exception as error:
        if not is_spark(error):
            raise
        raise SchemaMismatchError(f"transform cast: Spark has no such cast: {error}") from error
    return found


def _spark_name(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    return _NAMES.get(kind, "binary")


def _in_process(table: pa.Table, wanted: Mapping[str, pa.DataType]) -> pa.Table:
    for place, child in enumerate(table.schema):
        kind = wanted.get(child.name, child.type)
        if kind != child.type and not pa.types.is_nested(child.type):
            column = _cast(table.column(place), child.name, kind)
            table = table.set_column(place, child.with_type(kind), column)
    return table


def _cast(column: pa.ChunkedArray, name: str, kind: pa.DataType) -> pa.ChunkedArray:
    """Return the values in another type. Raises: SchemaMismatchError for the first value that does not fit."""
    from hoodie.records.sql.cast import cast
    from hoodie.records.sql.values import Value, evaluate

    if pa.types.is_large_string(column.type):
        column = column.cast(pa.string())
    expression = cast(Value(pc.field("value"), column.type), kind).expression

    def converted(part: pa.ChunkedArray) -> pa.ChunkedArray:
        found = evaluate(expression, pa.table({"value": part}))
        lost = pc.and_(pc.is_valid(part), pc.is_null(found))
        if pa.types.is_string(part.type) and pa.types.is_integer(kind):
            lost = pc.or_kleene(lost, pc.match_substring(part, "."))  # an error of Spark in ANSI mode
        if pc.any(lost).as_py():
            raise SchemaMismatchError(_refusal(name, part.filter(lost)[0].as_py(), kind))
        return found

    try:
        return converted(column)
    except SchemaMismatchError as error:
        raise _of_first(column, name, kind, converted, error) from error


def _of_first(
    column: pa.ChunkedArray, name: str, kind: pa.DataType, converted: Any, error: SchemaMismatchError
) -> SchemaMismatchError:
    """Return the error of the first value that does not fit, which halving finds."""
    while len(column) > 1:
        half = len(column) // 2
        try:
            converted(column.slice(0, half))
        except SchemaMismatchError:
            column = column.slice(0, half)
        else:
            column = column.slice(half)
    return SchemaMismatchError(_refusal(name, column[0].as_py(), kind)) if len(column) else error


def _refusal(name: str, value: Any, kind: pa.DataType) -> str:
    shortened = str(value)[:_SHOWN_MAX]
    return f"transform cast: column {name!r}: the value {shortened} is no {_spark_name(kind)}; nothing was committed"
