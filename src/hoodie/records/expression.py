"""Expressions in Spark SQL whose values are assigned to columns, translated to `pyarrow.compute` expressions.

The results are those of Spark 4: NULL logic, coercion of literals, NaN equal to itself and above all numbers, names
without regard to case, `'it''s'` as an escaped quote. Timestamps without a zone are UTC. Where Spark's ANSI mode and
its older mode differ, division by zero and text that CAST cannot read give NULL (older mode). An integer or decimal
that overflows raises an error (ANSI mode), and so does a literal that is not a value of the other operand's type. Where
neither mode of Spark raises an error, the rows are the same. The same rules apply to conditions (`records.condition`).
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.records.sql.cast import cast
from hoodie.records.sql.columns import Columns, column_refs
from hoodie.records.sql.parse import parse_expression
from hoodie.records.sql.translate import Translator
from hoodie.records.sql.values import evaluate, evaluate_all

__all__ = ["columns_of", "evaluate", "evaluate_all", "to_projection", "to_projections"]


def to_projection(
    expression: str, schema: pa.Schema, *, as_type: pa.DataType | None = None, joined: int = 1
) -> pc.Expression:
    """Translate a scalar expression.

    The result has the type that Spark gives it, or is cast to `as_type` as an assignment to a column does. `joined` as
    in `columns.resolve`.

    Raises: InvalidConfigError for text that is not an expression; UnsupportedError that names the part without an Arrow
    form; SchemaMismatchError for an unknown column (with the nearest names), or types that do not match.
    """
    value = Translator(schema, joined).value(parse_expression(expression))
    return (value if as_type is None else cast(value, as_type)).expression


def to_projections(
    expressions: Mapping[str, str], translator: Translator, types: Mapping[str, pa.DataType]
) -> dict[str, pc.Expression]:
    """Translate the expressions that are assigned to columns of these types. Raises: as `to_projection`."""
    return {
        name: cast(translator.value(parse_expression(text)), types[name]).expression
        for name, text in expressions.items()
    }


def columns_of(expression: str, schema: pa.Schema | Columns) -> frozenset[str]:
    """List the top-level columns that an expression reads, spelled as in the schema.

    Raises: InvalidConfigError for text that is not an expression; SchemaMismatchError for an unknown column.
    """
    return frozenset(column.path[0] for column in column_refs(parse_expression(expression), schema))
