"""ARRAY_CONTAINS: Arrow has no such kernel, so this module registers one for each kind of elements.

The kernels are registered when the module is imported: an expression that a worker unpickles finds them there.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from hoodie.errors import SchemaMismatchError
from hoodie.records.sql.cast import cast
from hoodie.records.sql.parse import unsupported
from hoodie.records.sql.values import TIMESTAMP, TIMESTAMP_NTZ, Translate, Value, family_of

CONTAINS: Final = "hoodie_array_contains"
"""The first part of the kernels' names."""
_ELEMENTS: Final = (
    pa.bool_(),
    pa.int64(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    TIMESTAMP,
    TIMESTAMP_NTZ,
)


def array_contains(node: exp.ArrayContains, translate: Translate) -> Value:
    """Translate ARRAY_CONTAINS: NULL for a NULL array or value, and if the value is not found beside a NULL element."""
    array, wanted = translate(node.this), translate(node.expression)
    if not pa.types.is_list(array.type) and not pa.types.is_large_list(array.type):
        raise SchemaMismatchError(f"array_contains of {array.type}: expected an array")
    if wanted.is_null_literal:
        raise SchemaMismatchError("array_contains with NULL, which no array contains; use exists in Spark")
    element = _compared_as(array.type.value_type, wanted)
    if element is None:
        raise unsupported(node, f"of {array.type} and {wanted.type}; CAST the value to the type of the elements")
    lists = array.expression.cast(pa.list_(element))
    return Value(pc.field("")._call(_name(element), [lists, cast(wanted, element).expression]), pa.bool_())


def _compared_as(element: pa.DataType, wanted: Value) -> pa.DataType | None:
    """Return the type in which every Spark session compares; None if sessions differ, or the type is not known."""
    family, mine = family_of(element), wanted.family
    if family == "float" and mine in ("float", "decimal") and (mine == "float" or wanted.is_literal):
        return pa.float64()
    if family == "float" and mine == "integer":
        return pa.float64() if element == pa.float64() else None
    if family != mine:
        return None
    if family == "integer":
        return pa.int64() if pa.types.is_signed_integer(element) and pa.types.is_signed_integer(wanted.type) else None
    if family == "timestamp":
        zoned = element.tz is not None
        same = zoned == (wanted.type.tz is not None)
        return (TIMESTAMP if zoned else TIMESTAMP_NTZ) if same else None
    return {"boolean": pa.bool_(), "string": pa.string(), "binary": pa.binary(), "date": pa.date32()}.get(family)


def _name(element: pa.DataType) -> str:
    return f"{CONTAINS}({element})"


def _contains(_: Any, lists: pa.ListArray, wanted: pa.Scalar | pa.Array) -> pa.BooleanArray:
    """Return whether each array has the value."""
    is_column = isinstance(wanted, pa.Array)
    rows, kept = np.flatnonzero(pc.is_valid(lists)), lists.drop_null()
    row_of_value, values = rows[np.asarray(pc.list_parent_indices(kept))], kept.flatten()
    compared = wanted.take(pa.array(row_of_value)) if is_column else wanted
    same = pc.equal(values, compared)
    if pa.types.is_floating(values.type):
        same = pc.or_kleene(same, pc.and_(pc.is_nan(values), pc.is_nan(compared)))
    found, unclear = np.zeros(len(lists), np.bool_), np.asarray(pc.is_null(lists)).copy()
    found[row_of_value[np.asarray(pc.fill_null(same, False))]] = True
    unclear[row_of_value[np.asarray(pc.is_null(values))]] = True
    missing = np.asarray(pc.is_null(wanted)) if is_column else False
    return pa.array(found, mask=(unclear & ~found) | missing)


for _element in _ELEMENTS:
    pc.register_scalar_function(
        _contains,
        _name(_element),
        {"summary": "array_contains of Spark SQL", "description": "Whether an array has a value."},
        {"lists": pa.list_(_element), "wanted": _element},
        pa.bool_(),
    )
