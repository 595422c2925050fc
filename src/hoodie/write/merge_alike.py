"""Tell whether this process computes a merge exactly as every Spark session does."""

from __future__ import annotations

import pyarrow as pa

from hoodie.records.sql.alike import is_alike
from hoodie.records.sql.translate import Translator
from hoodie.write.merge_plan import Group, MergePlan


def compares_alike(plan: MergePlan, source: pa.Schema) -> bool:
    """Return whether the source rows meet the stored rows by their record keys, as values of the same types.

    Floats are left out: 0.0 equals -0.0, but their record keys differ.
    """
    if plan.join:
        return False
    pairs = [(plan.schema.field(name).type, source.field(column).type) for name, column in plan.source_of.items()]
    return all(
        (stored == given and not pa.types.is_floating(stored) and not pa.types.is_nested(stored))
        or (pa.types.is_integer(stored) and pa.types.is_integer(given))
        for stored, given in pairs
    )


def computes_alike(plan: MergePlan, source: pa.Schema) -> bool:
    """Return whether the conditions and the values of all clauses are the same in every Spark session."""
    sides = {plan.merge.target: plan.schema, plan.merge.source: source}
    for clause in plan.merge.clauses:
        known = {plan.merge.source: source} if clause.group is Group.NOT_MATCHED else sides
        rows = Translator(pa.schema([pa.field(name, pa.struct(list(side))) for name, side in known.items()]))
        if clause.condition is not None and not is_alike(clause.condition, rows, pa.bool_()):
            return False
        for field, text in zip(plan.schema, plan.projection(clause).values(), strict=True):
            if text is not None and not is_alike(text, rows, field.type):
                return False
    return True
