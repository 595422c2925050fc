"""Expressions in Spark SQL whose values are assigned to columns, translated to `pyarrow.compute` expressions.

The results are those of Spark 4: NULL logic, coercion of literals, NaN equal to itself and above all numbers, names
without regard to case, `'it''s'` as an escaped quote. Timestamps without a zone are UTC. Where Spark's ANSI mode and
its older mode differ, division by zero and text that CAST cannot read give NULL (older mode). An integer or decimal
that overflows raises an error (ANSI mode), and so does a literal that is not a value of the other operand's type. Where
neither mode of Spark raises an error, the rows are the same: a part that Spark evaluates only for some rows, such as a
branch of CASE or what stands behind AND, fails for these rows only. The same rules apply to conditions
(`records.condition`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import SchemaMismatchError
from hoodie.records.sql.cast import cast
from hoodie.records.sql.columns import Columns, column_refs
from hoodie.records.sql.parse import parse_expression
from hoodie.records.sql.translate import HeldRows, Translator
from hoodie.records.sql.values import evaluate, evaluate_all, family_of

_SHOWN_MAX: Final = 200
_COLUMNS_SHOWN_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class RowExpression:
    """An expression over rows of a schema, translated once; `as_type` is the type of its values. Picklable."""

    text: str
    schema: pa.Schema
    as_type: pa.DataType
    expression: pc.Expression
    joined: int = 1
    """As in `columns.resolve`."""

    @classmethod
    def parse(
        cls,
        text: str,
        schema: pa.Schema,
        *,
        as_type: pa.DataType | None = None,
        translator: Translator | None = None,
    ) -> RowExpression:
        """Translate a scalar expression.

        The values have the type that Spark gives them, or are cast to `as_type` as an assignment to a column does.

        Raises: InvalidConfigError for text that is not an expression; UnsupportedError that names the part without an
        Arrow form; SchemaMismatchError for an unknown column (with the nearest names), or types that do not match.
        """
        translator = translator or Translator(schema)
        value = translator.value(parse_expression(text))
        value = value if as_type is None else cast(value, as_type)
        return cls(text, schema, value.type, value.expression, translator.joined)

    def values(self, rows: pa.Table) -> pa.ChunkedArray:
        """Return the value for each row, in order. `rows` has the columns of the schema that the expression names.

        Memory: the result; as much as the named columns again if parts must be evaluated for some rows only.

        Raises: SchemaMismatchError with a row for which a value does not fit its type; UnsupportedError for types that
        Arrow does not compute with.
        """
        try:
            return evaluate(self.expression, rows)
        except SchemaMismatchError:
            refs = column_refs(parse_expression(self.text), self.schema, joined=self.joined)
            needed = rows.select(sorted({column.path[0] for column in refs}) or rows.column_names[:1])
        try:
            return self._lazily(needed)
        except SchemaMismatchError as error:
            row = self._first_failing(needed)
            named = [f"{name} = {_shown(row[name])}" for name in row.column_names[:_COLUMNS_SHOWN_MAX]]
            text = self.text if len(self.text) <= _SHOWN_MAX else f"{self.text[:_SHOWN_MAX]}…"
            raise SchemaMismatchError(
                f"{text}: {error}; found in the row with {', '.join(named) or 'any values'}. CAST to a wider type "
                "before it is computed, or leave such rows out by a condition before it (AND, CASE, IF)"
            ) from error

    def matching(self, rows: pa.Table) -> pa.Table:
        """Return the rows for which the expression is true. Raises: as `values`."""
        return rows.filter(self.values(rows))

    def _lazily(self, rows: pa.Table) -> pa.ChunkedArray:
        """Compute each part only for the rows for which Spark computes it. Memory: several times the rows."""
        held = HeldRows(rows)
        value = Translator(self.schema, self.joined, rows=held).value(parse_expression(self.text))
        return evaluate(cast(value, self.as_type).expression, held.table)

    def _first_failing(self, rows: pa.Table) -> pa.Table:
        """Return the first row for which the evaluation fails, found by halving."""
        while rows.num_rows > 1:
            half = rows.slice(0, rows.num_rows // 2)
            try:
                self._lazily(half)
                rows = rows.slice(half.num_rows)
            except SchemaMismatchError:
                rows = half
        return rows


def _shown(column: pa.ChunkedArray) -> str:
    """Return the text of the only value of a column; Python does not hold all dates and times."""
    text = column.chunk(0).to_string(indent=0, skip_new_lines=True)[1:-1] if len(column) else "null"
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"


def assigned_values(
    expressions: Mapping[str, str], translator: Translator, types: Mapping[str, pa.DataType], rows: pa.Table
) -> pa.Table:
    """Compute the expressions that are assigned to columns of these types, in one pass over the rows if no part fails.

    Raises: as `RowExpression.parse` and `RowExpression.values`; SchemaMismatchError for a text that is assigned to a
    column of another type and is no value of it (CAST gives null for such a text).
    """
    parsed = {
        name: RowExpression.parse(text, translator.schema, as_type=types[name], translator=translator)
        for name, text in expressions.items()
    }
    try:
        values = evaluate_all({name: one.expression for name, one in parsed.items()}, rows)
    except SchemaMismatchError:
        values = pa.table({name: one.values(rows) for name, one in parsed.items()})
    for name, one in parsed.items():
        given = RowExpression.parse(one.text, translator.schema, translator=translator)
        is_parsed = family_of(given.as_type) == "string" and family_of(one.as_type) != "string"
        if is_parsed and values[name].null_count:
            _check_no_text_is_lost(name, given, values[name], rows)
    return values


def _check_no_text_is_lost(name: str, given: RowExpression, values: pa.ChunkedArray, rows: pa.Table) -> None:
    texts = given.values(rows)
    lost = texts.filter(pc.and_(pc.is_null(values), pc.is_valid(texts)))
    if len(lost):
        raise SchemaMismatchError(
            f"{name} = {given.text}: {len(lost):,} texts are no values of type {values.type}, the first is "
            f"{_shown(lost.slice(0, 1))}; CAST gives null for such texts"
        )


def columns_of(expression: str, schema: pa.Schema | Columns) -> frozenset[str]:
    """List the top-level columns that an expression reads, spelled as in the schema.

    Raises: InvalidConfigError for text that is not an expression; SchemaMismatchError for an unknown column.
    """
    return frozenset(column.path[0] for column in column_refs(parse_expression(expression), schema))
