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

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from hoodie.errors import HoodieError, SchemaMismatchError, UnsupportedError
from hoodie.records.expression import RowExpression
from hoodie.records.sql.arrays import CONTAINS
from hoodie.records.sql.clock import Clock
from hoodie.records.sql.columns import ALL_NAMES, column_refs, is_column, resolve, resolve_name
from hoodie.records.sql.compare import equal_scalars
from hoodie.records.sql.parse import operands, parse_expression, weaken, without_parens
from hoodie.records.sql.translate import Translator, depends_on_zone
from hoodie.records.sql.values import Value, evaluate

_FALLIBLE_CALLS = ("cast(", "_checked(", "divide(", "round(", CONTAINS)

KeysOf = Callable[[pa.Array], pa.StringArray]
"""Returns the record keys of the values of a column, in order."""


@dataclass(frozen=True, slots=True)
class WantedKeys:
    """Record keys: a matching row has one of them. `is_certain`: no other key text represents the same value."""

    keys: frozenset[str]
    is_certain: bool


@dataclass(frozen=True, slots=True)
class Condition:
    """A parsed condition. Picklable: the text is pickled, and the process that loads it parses it again.

    `text` is the Spark SQL. `tree` is its syntax tree; it is never changed.
    """

    text: str
    tree: exp.Expression = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Parse one Spark SQL condition. Raises: InvalidConfigError for text that is not an expression."""
        return cls(text, parse_expression(text))

    @classmethod
    def of_call(cls, text: str, columns: Callable[[], Collection[str]], clock: Clock | None = None) -> Condition:
        """Parse the condition of one call, in which `current_date` and the like mean the time of its clock.

        `columns` as for `Clock.set_in`; `clock`: default is this process's, in UTC. Raises: as `parse`, and `set_in`.
        """
        return cls.parse((clock or Clock()).set_in(text, columns))

    def __reduce__(self) -> tuple[Callable[[str], Condition], tuple[str]]:
        return Condition.parse, (self.text,)

    def columns(self, schema: pa.Schema) -> frozenset[str]:
        """Return the top-level columns that the condition reads, spelled as in the schema.

        Raises: SchemaMismatchError for an unknown column; UnsupportedError for a name without an Arrow form.
        """
        return frozenset(column.path[0] for column in column_refs(self.tree, schema))

    def paths(self, schema: pa.Schema) -> frozenset[tuple[str, ...]]:
        """Return the columns and the fields of structs that the condition reads. Raises: as `columns`."""
        return frozenset(column.path for column in column_refs(self.tree, schema))

    def compares(self, schema: pa.Schema) -> bool:
        """Return whether the condition compares columns: it is no bare name, literal or computation. Raises: as
        `columns`.
        """
        is_comparison = isinstance(without_parens(self.tree), exp.Predicate | exp.Connector | exp.Not)
        return is_comparison and bool(self.columns(schema))

    def depends_on_zone(self, schema: pa.Schema) -> bool:
        """Return whether rows may match in one time zone of a session and not in another."""
        translator, pending = Translator(schema), [self.tree]
        while pending:
            node = without_parens(pending.pop())
            if isinstance(node, exp.Connector):
                pending += [node.this, node.expression]
            elif isinstance(node, exp.Not):
                pending.append(node.this)
            elif depends_on_zone(node, translator):
                return True
        return False

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
        """Return the record keys that matching rows can have; None if the condition does not limit the keys.

        `columns` maps each top-level column that determines the key on its own to the function that makes keys of its
        values. Only `=`, `<=>` and `IN` with literals are used, joined by AND and OR.
        """
        return _wanted_keys(self.tree, schema, columns)

    def partitions_to_read(
        self, schema: pa.Schema, values: pa.Table, *, unknown: Mapping[str, pa.BooleanArray] | None = None
    ) -> pa.BooleanArray:
        """Mark the partitions that can hold rows matching the condition: one flag per row of `values`, in order.

        `values` has one row per partition and one column per partition field, typed as in `schema`; a nested field's
        column has the dotted name. `unknown` marks, per column, the rows whose value could not be read from the path: a
        conjunct that refers to such a value keeps the partition. A null in `values` is not unknown: it is SQL's NULL.

        Raises: as `row_filter`; SchemaMismatchError also for values whose type differs from the schema's.
        """
        columns = [resolve_name(name, schema) for name in values.column_names]
        flat = pa.schema([(column.name, column.type) for column in columns])
        for column in columns:
            found = values.schema.field(column.name).type
            if found != column.type:
                raise SchemaMismatchError(f"partition values of {column.name!r}: expected {column.type}, found {found}")
        masks = unknown or {}
        kept = pa.repeat(True, values.num_rows)
        for part, on_partitions in _conjuncts_on_partitions(self.tree, schema, flat):
            unclear = [masks[column.name] for column in column_refs(part, schema) if column.name in masks]
            kept = pc.and_(kept, reduce(pc.or_, unclear, _is_true(on_partitions, values)))
        return kept


def _row_group_leaf(leaf: exp.Expression, translator: Translator) -> pc.Expression | None:
    floats = [column for column in column_refs(leaf, translator.schema) if pa.types.is_floating(column.type)]
    if not floats:
        return _if_it_cannot_fail(translator.condition(leaf))
    for node_type, left, right in _upper_bounds(leaf):
        if translator.value(right).is_number_literal and is_column(without_parens(left)):
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


def _conjuncts_on_partitions(
    condition: exp.Expression, schema: pa.Schema, flat: pa.Schema
) -> list[tuple[exp.Expression, pc.Expression]]:
    """List the conjuncts that limit the partitions, each with its Arrow form over the partition fields `flat`."""
    # The whole condition is checked even if only a part is used: a misspelt column must not widen the result silently.
    Translator(schema).condition(condition)
    translator = Translator(flat, joined=ALL_NAMES)

    def leaf(node: exp.Expression) -> pc.Expression | None:
        decided = all(flat.get_field_index(column.name) >= 0 for column in column_refs(node, schema))
        return translator.condition(node) if decided and not depends_on_zone(node, translator) else None

    parts = [(part, weaken(part, leaf)) for part in operands(condition, exp.And)]
    return [(part, limit) for part, limit in parts if limit is not None]


def _is_true(condition: pc.Expression, values: pa.Table) -> pa.BooleanArray:
    try:
        found = evaluate(condition, values).combine_chunks()
    except (SchemaMismatchError, UnsupportedError):
        # It fails for a partition that may have no row, or only rows that other parts of the condition leave out.
        return pa.repeat(True, values.num_rows)
    return pc.fill_null(found, False)


def _wanted_keys(node: exp.Expression, schema: pa.Schema, columns: Mapping[str, KeysOf]) -> WantedKeys | None:
    node = without_parens(node)
    if isinstance(node, exp.And | exp.Or):
        kind = exp.And if isinstance(node, exp.And) else exp.Or
        parts = [_wanted_keys(part, schema, columns) for part in operands(node, kind)]
        limits = [part for part in parts if part is not None]
        if not limits or (kind is exp.Or and len(limits) < len(parts)):
            return None
        certain = [part.keys for part in limits if part.is_certain]
        if kind is exp.Or:
            return WantedKeys(frozenset.union(*(part.keys for part in limits)), len(certain) == len(limits))
        if certain:
            return WantedKeys(frozenset.intersection(*certain), is_certain=True)
        # Two texts may represent one value, so the keys of a matching row need not be in all of the sets.
        return min(limits, key=lambda part: len(part.keys))
    try:
        return _keys_of_leaf(node, schema, columns)
    except HoodieError:
        # The engine that runs the condition refuses it, or supports types that are not compared here.
        return None


def _keys_of_leaf(node: exp.Expression, schema: pa.Schema, columns: Mapping[str, KeysOf]) -> WantedKeys | None:
    if isinstance(node, exp.EQ | exp.NullSafeEQ):
        sides = [without_parens(node.this), without_parens(node.expression)]
        tested, options = (sides[0], sides[1:]) if is_column(sides[0]) else (sides[1], sides[:1])
    elif isinstance(node, exp.In) and node.expressions:
        tested, options = without_parens(node.this), node.expressions
    else:
        return None
    column = resolve(tested, schema) if is_column(tested) else None
    if column is None or column.name not in columns or len(column.path) > 1:
        return None
    if pa.types.is_temporal(column.type) and depends_on_zone(node, Translator(schema)):
        return None
    values = _equal_values(Value(column.expression, column.type), [Translator(schema).value(one) for one in options])
    if values is None:
        return None
    keys = columns[column.name](values) if len(values) else values
    return WantedKeys(frozenset(keys.to_pylist()), _has_one_text(column.type))


def _equal_values(column: Value, options: list[Value]) -> pa.Array | None:
    """List the values of the column's type that equal one of the literals; empty text is skipped: it is never a key."""
    scalars: list[pa.Scalar] = []
    for option in options:
        if option.is_null_literal:
            continue
        found = equal_scalars(option, column) if option.is_literal else None
        if found is None:
            return None
        scalars += [one for one in found if one.as_py() != ""]
    return pa.array([one.as_py() for one in scalars], column.type)


def _has_one_text(data_type: pa.DataType) -> bool:
    """Return whether all writers write a value as the same text; JVM releases differ for times and decimals."""
    return bool(
        pa.types.is_string(data_type) or pa.types.is_large_string(data_type) or pa.types.is_signed_integer(data_type)
    )
