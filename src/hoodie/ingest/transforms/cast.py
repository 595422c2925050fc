"""The transform `cast`: columns in other types; a value that does not fit is an error, never null."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidConfigError, SchemaMismatchError
from hoodie.format.schema.fit import first_misfit
from hoodie.ingest.options import check_types
from hoodie.ingest.run_sql import resolved
from hoodie.ingest.transforms.transform import Context, each_batch, found_names, names_of
from hoodie.records.sql.quoting import literal_of, quoted
from hoodie.table.sessions import arrow_schema, is_spark

SPARK_NAMES: Final = {
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

        check_types(self, "transform cast, ")
        if bool(self.columns) == self.to_table:
            raise InvalidConfigError("transform cast: expected one of columns and to_table = true")
        nested = [name for name, text in self.columns.items() if pa.types.is_nested(type_named(text))]
        if nested:
            raise InvalidConfigError(f"transform cast, columns {nested}: expected types without fields or elements")

    def __call__(self, rows: Any, context: Context) -> Any:
        """Return the rows with the new types.

        Raises: SchemaMismatchError, which names column and value, of Spark's rows when they are read; UnsupportedError
        in process for types that cannot be cast there; InvalidConfigError for unknown columns.
        """
        wanted = self._wanted(names_of(rows), context.schema)
        return _on_spark(rows, wanted) if is_spark(rows) else each_batch(rows, lambda table: _in_process(table, wanted))

    def _wanted(self, known: list[str], schema: pa.Schema | None) -> dict[str, pa.DataType]:
        """Return the new types by the names of columns."""
        from hoodie.records.sql.types import type_named

        if self.to_table:
            types = {child.name.lower(): child.type for child in schema or () if not pa.types.is_nested(child.type)}
            return {name: types[name.lower()] for name in known if name.lower() in types}
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
        start, end = (literal_of(text) for text in _refusal(name, kind))
        value = f"substring(CAST({column} AS STRING), 1, {_SHOWN_MAX})"
        refused = f"raise_error(concat('hoodie.errors.SchemaMismatchError: ', {start}, {value}, {end}))"
        texts.append(f"CASE WHEN {column} IS NULL OR {cast} IS NOT NULL THEN {cast} ELSE {refused} END AS {column}")
    return resolved(
        lambda: frame.selectExpr(*texts),
        lambda error: SchemaMismatchError(f"transform cast: Spark has no such cast: {error}"),
    )


def _spark_name(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    return SPARK_NAMES.get(kind, "binary")


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
        try:
            found = evaluate(expression, pa.table({"value": part}))
        except SchemaMismatchError as error:
            raise pa.ArrowInvalid(str(error)) from error
        lost = pc.and_(pc.is_valid(part), pc.is_null(found))
        if pa.types.is_string(part.type) and pa.types.is_integer(kind):
            lost = pc.or_kleene(lost, pc.match_substring(part, "."))  # an error of Spark in ANSI mode
        if pc.any(lost).as_py():
            raise pa.ArrowInvalid("a value does not fit")
        return found

    try:
        return converted(column)
    except pa.ArrowInvalid as error:
        value = str(column[first_misfit(column, converted)].as_py())[:_SHOWN_MAX]
        raise SchemaMismatchError(value.join(_refusal(name, kind))) from error


def _refusal(name: str, kind: pa.DataType) -> tuple[str, str]:
    """Return what the error of a value has before and after the value."""
    start = f"transform cast: column {name!r}: the value "
    return start, f" is no {_spark_name(kind)}; nothing was committed"
