"""Conditions and expressions in Spark SQL, as users write them, translated to `pyarrow.compute` expressions.

The results are those of Spark 4: NULL logic, coercion of literals, NaN equal to itself and above all numbers, names
without regard to case, `'it''s'` as an escaped quote. Timestamps without a zone are UTC. Where Spark's ANSI mode and
its older mode differ: division by zero and text that CAST cannot read give NULL (older mode); an integer or decimal
that overflows, and a literal that is no value of the other side's type, raise (ANSI mode). Where neither mode raises,
the rows are the same.

**Scanning.** Evaluate `to_filter` on batches or tables (`batch.filter(expression)`). Do not hand it to a dataset
scanner when columns are float or double: Parquet statistics leave NaN out, and Arrow takes a row group whose minimum
equals its maximum for constant, so it drops or keeps NaN rows wrongly. Hand the scanner `to_scan_filter`, which prunes
row groups safely, then filter its batches exactly:

    scan, exact = to_scan_filter(where, schema), to_filter(where, schema)
    for batch in fragment.scanner(schema=schema, filter=scan).to_batches():
        yield batch.filter(exact)

Literals are brought to the column's type wherever that is exact, so that most conditions compare bare columns. A
condition that has to cast a column prunes nothing and stays out of the scan filter: Arrow would cast the statistics
too, and raises when, say, a long among them has no equal double.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from hoodie.records.sql.cast import cast
from hoodie.records.sql.columns import column_refs, is_column
from hoodie.records.sql.parse import parse_expression, weaken, without_parens
from hoodie.records.sql.translate import Translator
from hoodie.records.sql.values import evaluate

__all__ = ["columns_of", "evaluate", "to_filter", "to_projection", "to_scan_filter"]


def to_filter(where: str, schema: pa.Schema) -> pc.Expression:
    """Translate a condition; it evaluates to true, false or null per row, and only true keeps the row.

    Raises: InvalidConfigError for text that is no expression; UnsupportedError naming the piece that has no Arrow form;
    SchemaMismatchError for an unknown column (with the nearest names), or types that do not fit.
    """
    return Translator(schema).condition(parse_expression(where))


def to_projection(expression: str, schema: pa.Schema, *, as_type: pa.DataType | None = None) -> pc.Expression:
    """Translate a scalar expression, of the type Spark gives it or cast to `as_type` as an assignment to a column does.

    Raises: as `to_filter`.
    """
    value = Translator(schema).value(parse_expression(expression))
    return (value if as_type is None else cast(value, as_type)).expression


def to_scan_filter(where: str, schema: pa.Schema) -> pc.Expression | None:
    """Translate a condition for a dataset scanner: it prunes row groups and keeps at least the rows that `where` keeps.

    Returns None when nothing of the condition can be said that way. The module's text shows the exact filter to follow.

    Raises: as `to_filter`.
    """
    translator = Translator(schema)
    tree = parse_expression(where)
    translator.condition(tree)
    return weaken(tree, lambda leaf: _scan_leaf(leaf, translator))


def columns_of(where: str, schema: pa.Schema) -> frozenset[str]:
    """List the top-level columns an expression reads, spelled as in the schema.

    Raises: InvalidConfigError for text that is no expression; SchemaMismatchError for an unknown column.
    """
    return frozenset(column.path[0] for column in column_refs(parse_expression(where), schema))


def _scan_leaf(leaf: exp.Expression, translator: Translator) -> pc.Expression | None:
    floats = [column for column in column_refs(leaf, translator.schema) if pa.types.is_floating(column.type)]
    if not floats:
        return _without_casts(translator.condition(leaf))
    for node_type, left, right in _upper_bounds(leaf):
        bound = translator.value(right)
        is_number = (
            bound.is_literal and bound.family in ("integer", "decimal", "float") and bound.literal == bound.literal
        )
        if is_number and is_column(without_parens(left)):
            return _without_casts(translator.condition(node_type(this=left.copy(), expression=right.copy())))
    return None


def _without_casts(expression: pc.Expression) -> pc.Expression | None:
    """Pass an expression on only if it casts nothing: Arrow takes statistics through a cast with checks, which raise.

    Arrow shows its expressions as text only; text that merely looks like a cast costs a pruning, never a row.
    """
    return None if "cast(" in str(expression) else expression


def _upper_bounds(leaf: exp.Expression) -> list[tuple[type[exp.Expression], exp.Expression, exp.Expression]]:
    """List comparisons that follow from the leaf and that no NaN meets: statistics without NaN decide them rightly."""
    if isinstance(leaf, exp.EQ):
        return [(exp.EQ, leaf.this, leaf.expression), (exp.EQ, leaf.expression, leaf.this)]
    if isinstance(leaf, (exp.LT, exp.LTE)):
        return [(type(leaf), leaf.this, leaf.expression)]
    if isinstance(leaf, (exp.GT, exp.GTE)):
        return [(exp.LT if isinstance(leaf, exp.GT) else exp.LTE, leaf.expression, leaf.this)]
    if isinstance(leaf, exp.Between):
        return [(exp.LTE, leaf.this, leaf.args["high"])]
    return []
