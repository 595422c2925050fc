"""Find the partitions that can hold rows matching a condition, by partition field values; no file is opened."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from hoodie.errors import SchemaMismatchError, UnsupportedError
from hoodie.records.sql.columns import ALL_NAMES, column_refs, resolve_name
from hoodie.records.sql.parse import operands, weaken
from hoodie.records.sql.translate import Translator
from hoodie.records.sql.values import evaluate
from hoodie.records.sql.zones import depends_on_zone


def partitions_to_read(
    condition: exp.Expression,
    schema: pa.Schema,
    values: pa.Table,
    *,
    unknown: Mapping[str, pa.BooleanArray] | None = None,
) -> pa.BooleanArray:
    """Mark the partitions that can hold rows matching the condition: one flag per row of `values`, in order.

    `values` has one row per partition and one column per partition field, typed as in `schema`; a nested field's column
    has the dotted name. `unknown` marks, per column, the rows whose value could not be read from the path: a conjunct
    that refers to such a value keeps the partition. A null in `values` is not unknown: it is SQL's NULL.

    Raises: as `Condition.row_filter`; SchemaMismatchError also for values whose type differs from the schema's.
    """
    flat = _partition_schema(values.column_names, schema)
    _check_types(values, flat)
    masks = unknown or {}
    kept = pa.repeat(True, values.num_rows)
    for part, on_partitions in _conjuncts_on_partitions(condition, schema, flat):
        unclear = [masks[column.name] for column in column_refs(part, schema) if column.name in masks]
        kept = pc.and_(kept, reduce(pc.or_, unclear, _is_true(on_partitions, values)))
    return kept


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


def _partition_schema(names: Collection[str], schema: pa.Schema) -> pa.Schema:
    columns = [resolve_name(name, schema) for name in names]
    return pa.schema([(column.name, column.type) for column in columns])


def _check_types(values: pa.Table, expected: pa.Schema) -> None:
    for field in expected:
        found = values.schema.field(field.name).type
        if found != field.type:
            raise SchemaMismatchError(f"partition values of {field.name!r}: expected {field.type}, found {found}")
