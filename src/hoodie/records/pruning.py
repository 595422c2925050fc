"""What a condition says about partitions and keys before any file is opened: conditions and values in, masks out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from hoodie.errors import SchemaMismatchError
from hoodie.records.sql.columns import column_refs, is_column, resolve, resolve_name
from hoodie.records.sql.compare import literal_in
from hoodie.records.sql.parse import operands, parse_expression, weaken, without_parens
from hoodie.records.sql.translate import Translator
from hoodie.records.sql.values import Value, evaluate

PartitionPredicate = Callable[[pa.Table], pa.BooleanArray]


def partition_predicate(where: str, schema: pa.Schema, partition_fields: Collection[str]) -> PartitionPredicate | None:
    """Reduce a condition to the part that partition values decide; None when there is no such part.

    The predicate takes a table with one row per partition and one column per partition field (typed as in `schema`; a
    nested field's column has the dotted name), and is true where the partition may hold matching rows, else false.

    Raises: as `to_filter`; SchemaMismatchError too, on the call, for values of another type than the schema's.
    """
    flat = _partition_schema(partition_fields, schema)
    told = [condition for _, condition in _told(where, schema, flat)]
    if not told:
        return None

    def may_match(values: pa.Table) -> pa.BooleanArray:
        _check_types(values, flat)
        return reduce(pc.and_, [_definitely(condition, values) for condition in told])

    return may_match


def prune_partitions(
    where: str, schema: pa.Schema, values: pa.Table, *, unknown: Mapping[str, pa.BooleanArray] | None = None
) -> pa.BooleanArray:
    """Mark the partitions that may hold rows matching `where`: one flag per row of `values`, in order.

    `values` as for `partition_predicate`; its columns are the partition fields. `unknown` marks, per column, the rows
    whose value could not be read from the path: a conjunct that refers to such a value keeps the partition. A null in
    `values` is not unknown: it is SQL's NULL.

    Raises: as `partition_predicate`.
    """
    flat = _partition_schema(values.column_names, schema)
    _check_types(values, flat)
    masks = unknown or {}
    kept = pa.repeat(True, values.num_rows)
    for part, condition in _told(where, schema, flat):
        unclear = [masks[column.name] for column in column_refs(part, schema) if column.name in masks]
        kept = pc.and_(kept, reduce(pc.or_, unclear, _definitely(condition, values)))
    return kept


def equality_values(where: str, column: str, schema: pa.Schema) -> list[object] | None:
    """List the values of `column` that matching rows can have, as Python values of its type; None for no limit.

    Understands `column = x`, `column IN (...)`, `<=>`, and OR between such; several of them are intersected. An empty
    list means that no row matches. In order of first appearance, without duplicates. Text compared with
    numbers, and float columns, give None: there, equal values have several spellings.

    Raises: as `to_filter`.
    """
    wanted = resolve_name(column, schema).path
    found: list[object] | None = None
    for part in _conjuncts(where, schema):
        values = _values_of_all(operands(part, exp.Or), wanted, Translator(schema))
        if values is not None:
            found = values if found is None else [one for one in found if one in values]
    return found


def _conjuncts(where: str, schema: pa.Schema) -> list[exp.Expression]:
    tree = parse_expression(where)
    # All of it is checked even where a part is used: a misspelt column must not widen the result silently.
    Translator(schema).condition(tree)
    return operands(tree, exp.And)


def _told(where: str, schema: pa.Schema, flat: pa.Schema) -> list[tuple[exp.Expression, pc.Expression]]:
    """List the conjuncts that say something about partitions, each with what it says."""
    translator = Translator(flat, flat=True)

    def leaf(node: exp.Expression) -> pc.Expression | None:
        decided = all(column.name in flat.names for column in column_refs(node, schema))
        return translator.condition(node) if decided else None

    parts = [(part, weaken(part, leaf)) for part in _conjuncts(where, schema)]
    return [(part, condition) for part, condition in parts if condition is not None]


def _definitely(condition: pc.Expression, values: pa.Table) -> pa.BooleanArray:
    found = evaluate(condition, values).combine_chunks()
    return pc.fill_null(found, False)


def _partition_schema(names: Collection[str], schema: pa.Schema) -> pa.Schema:
    columns = [resolve_name(name, schema) for name in names]
    return pa.schema([(column.name, column.type) for column in columns])


def _check_types(values: pa.Table, expected: pa.Schema) -> None:
    for field in expected:
        found = values.schema.field(field.name).type
        if found != field.type:
            raise SchemaMismatchError(f"partition values of {field.name!r}: expected {field.type}, found {found}")


def _values_of_all(parts: list[exp.Expression], wanted: tuple[str, ...], translator: Translator) -> list[object] | None:
    found: dict[object, None] = {}
    for part in parts:
        values = _values_of(part, wanted, translator)
        if values is None:
            return None
        found.update(dict.fromkeys(values))
    return list(found)


def _values_of(part: exp.Expression, wanted: tuple[str, ...], translator: Translator) -> list[object] | None:
    if isinstance(part, (exp.EQ, exp.NullSafeEQ)):
        sides = [(part.this, part.expression), (part.expression, part.this)]
    elif isinstance(part, exp.In) and part.expressions:
        sides = [(part.this, one) for one in part.expressions]
    else:
        return None
    named = [(left, right) for left, right in sides if _names(left, wanted, translator)]
    if not named:
        return None
    found: list[object] = []
    for left, right in named:
        option, column = translator.value(right), translator.value(left)
        if option.is_null_literal and not isinstance(part, exp.NullSafeEQ):
            continue
        values = _literal_values(option, column)
        if values is None:
            return None
        found += values
    return found


def _names(node: exp.Expression, wanted: tuple[str, ...], translator: Translator) -> bool:
    node = without_parens(node)
    return is_column(node) and resolve(node, translator.schema).path == wanted


def _literal_values(option: Value, column: Value) -> list[object] | None:
    if not option.is_literal or column.family in ("float", "nested"):
        return None
    return [None] if option.is_null_literal else literal_in(option, column)
