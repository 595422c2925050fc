"""A condition in Spark SQL, parsed once, and its forms for reads: filters, wanted keys and partitions to read.

**Filters.** Evaluate `Condition.row_filter` on tables. Do not pass its Arrow expression to a dataset scanner when
columns are float or double: Parquet statistics ignore NaN, and Arrow treats a row group whose minimum equals its
maximum as constant, so it drops or keeps NaN rows wrongly. Pass `Condition.row_group_filter` to the scanner, which
prunes row groups safely, then filter its batches exactly:

    scan, exact = condition.row_group_filter(schema, in_utc=True), condition.row_filter(schema)
    for batch in fragment.scanner(schema=schema, filter=scan).to_batches():
        yield exact.matching(pa.Table.from_batches([batch]))

Literals are cast to the column's type wherever that is exact, so that most conditions compare bare columns. A condition
that must cast a column prunes nothing and is not part of the row-group filter: Arrow would cast the statistics too,
and raises an error when, for example, a long in the statistics has no equal double. The same is true for arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from hoodie.records.expression import RowExpression
from hoodie.records.keys.key_condition import KeysOf, WantedKeys, wanted_keys
from hoodie.records.pruning import partitions_to_read
from hoodie.records.sql.columns import column_refs, is_column
from hoodie.records.sql.parse import parse_expression, weaken, without_parens
from hoodie.records.sql.translate import Translator
from hoodie.records.sql.zones import depends_on_zone

_FALLIBLE_CALLS = ("cast(", "_checked(", "divide(", "round(")


@dataclass(frozen=True, slots=True)
class Condition:
    """A parsed condition. Picklable: the text is pickled, and the process that loads it parses it again.

    `text` is the Spark SQL. `tree` is its syntax tree; it is never changed.
    """

    text: str
    tree: exp.Expression = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Parse one Spark SQL condition.

        Raises: InvalidConfigError for text that is not an expression.
        """
        return cls(text, parse_expression(text))

    @classmethod
    def parse_optional(cls, text: str | None) -> Condition | None:
        """Parse a condition as `parse` does; return None for None."""
        return None if text is None else cls.parse(text)

    def __reduce__(self) -> tuple[Callable[[str], Condition], tuple[str]]:
        return Condition.parse, (self.text,)

    def columns(self, schema: pa.Schema) -> frozenset[str]:
        """Return the top-level columns that the condition reads, spelled as in the schema.

        Raises: SchemaMismatchError for an unknown column; UnsupportedError for a name without an Arrow form.
        """
        return frozenset(column.path[0] for column in column_refs(self.tree, schema))

    def compares(self, schema: pa.Schema) -> bool:
        """Return whether the condition compares columns: it is no bare name, literal or computation. Raises: as
        `columns`.
        """
        is_comparison = isinstance(without_parens(self.tree), exp.Predicate | exp.Connector | exp.Not)
        return is_comparison and bool(self.columns(schema))

    def row_filter(self, schema: pa.Schema) -> RowExpression:
        """Return the exact condition: true, false or null for each row; only rows with true match.

        Raises: UnsupportedError that names the part without an Arrow form; SchemaMismatchError for an unknown column
        (with the nearest names), or types that do not match.
        """
        return RowExpression(self.text, schema, pa.bool_(), Translator(schema).condition(self.tree))

    def row_group_filter(self, schema: pa.Schema, *, in_utc: bool) -> pc.Expression | None:
        """Return a filter for a dataset scanner: it prunes row groups, and keeps at least the rows that match.

        `in_utc`: the condition is evaluated with UTC as the session's time zone; otherwise parts whose result depends
        on the time zone are left out. None if no part of the condition can be used. The module's docstring shows how to
        apply the exact filter afterwards.

        Raises: as `row_filter`.
        """
        translator = Translator(schema)
        translator.condition(self.tree)

        def usable(leaf: exp.Expression) -> pc.Expression | None:
            is_fixed = in_utc or not depends_on_zone(leaf, translator)
            return _row_group_leaf(leaf, translator) if is_fixed else None

        return weaken(self.tree, usable)

    def wanted_keys(self, schema: pa.Schema, columns: Mapping[str, KeysOf]) -> WantedKeys | None:
        """Return the record keys that matching rows can have; see `records.keys.key_condition`."""
        return wanted_keys(self.tree, schema, columns)

    def partitions_to_read(
        self, schema: pa.Schema, values: pa.Table, *, unknown: Mapping[str, pa.BooleanArray] | None = None
    ) -> pa.BooleanArray:
        """Mark the partitions that can hold matching rows; see `records.pruning`."""
        return partitions_to_read(self.tree, schema, values, unknown=unknown)


def _row_group_leaf(leaf: exp.Expression, translator: Translator) -> pc.Expression | None:
    floats = [column for column in column_refs(leaf, translator.schema) if pa.types.is_floating(column.type)]
    if not floats:
        return _if_it_cannot_fail(translator.condition(leaf))
    for node_type, left, right in _upper_bounds(leaf):
        bound = translator.value(right)
        is_number = (
            bound.is_literal and bound.family in ("integer", "decimal", "float") and bound.literal == bound.literal
        )
        if is_number and is_column(without_parens(left)):
            return _if_it_cannot_fail(translator.condition(node_type(this=left.copy(), expression=right.copy())))
    return None


def _if_it_cannot_fail(expression: pc.Expression) -> pc.Expression | None:
    """Return the expression if no value of a column makes its evaluation fail, else None.

    Arrow computes it for statistics and for rows that do not match too, and a failure would end the read. Arrow shows
    its expressions only as text. If text only looks like such a call, row groups are not pruned, but no row is lost.
    """
    return None if any(call in str(expression) for call in _FALLIBLE_CALLS) else expression


def _upper_bounds(leaf: exp.Expression) -> list[tuple[type[exp.Expression], exp.Expression, exp.Expression]]:
    """List comparisons that follow from the leaf and are false for NaN: statistics without NaN are correct for them."""
    if isinstance(leaf, exp.EQ):
        return [(exp.EQ, leaf.this, leaf.expression), (exp.EQ, leaf.expression, leaf.this)]
    if isinstance(leaf, (exp.LT, exp.LTE)):
        return [(type(leaf), leaf.this, leaf.expression)]
    if isinstance(leaf, (exp.GT, exp.GTE)):
        return [(exp.LT if isinstance(leaf, exp.GT) else exp.LTE, leaf.expression, leaf.this)]
    if isinstance(leaf, exp.Between):
        return [(exp.LTE, leaf.this, leaf.args["high"])]
    return []
