"""Join Arrow tables by equal columns, for merges that do not match rows by their record keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import SchemaMismatchError
from hoodie.write.merge_match import Equality

Places = np.ndarray[tuple[int], np.dtype[np.int64]]


def joined_places(target: pa.Table, source: pa.Table, pairs: Sequence[Equality]) -> tuple[Places, Places]:
    """Return the row numbers of both sides of every pair of rows that meet, in the order of the source.

    Values are equal as in Spark SQL: null equals null only if the pair says so, NaN equals NaN, and 0.0 equals -0.0.
    Memory: several integers for each row. Raises: SchemaMismatchError for types that cannot be compared without a cast.
    """
    codes = np.zeros(target.num_rows + source.num_rows, np.int64)
    for pair in pairs:
        column = _codes(target[pair.target], source[pair.source], pair)
        never = (codes < 0) | (column < 0)
        codes = np.unique(codes * (column.max(initial=0) + 1) + column, return_inverse=True)[1].astype(np.int64)
        codes[never] = -1
    of_target, of_source = codes[: target.num_rows], codes[target.num_rows :]
    order = np.argsort(of_target, kind="stable")
    ordered = of_target[order]
    first, last = np.searchsorted(ordered, of_source, "left"), np.searchsorted(ordered, of_source, "right")
    counts = np.where(of_source < 0, 0, last - first)
    source_places = np.repeat(np.arange(len(of_source)), counts)
    within = np.arange(len(source_places)) - np.repeat(np.cumsum(counts) - counts, counts)
    return order[np.repeat(first, counts) + within], source_places


def _codes(target: pa.ChunkedArray, source: pa.ChunkedArray, pair: Equality) -> Places:
    """Return one number for each value of the target, then of the source; equal values have equal numbers.

    A null that equals nothing has the number -1.
    """
    common = _common_type(target.type, source.type)
    if common is None:
        raise SchemaMismatchError(
            f"merge: `on` compares column {pair.target!r} of type {target.type} with source column {pair.source!r} of "
            f"type {source.type}; cast the source column"
        )
    values = pa.chunked_array([*target.cast(common).chunks, *source.cast(common).chunks], common)
    if pa.types.is_floating(common):
        # -0.0 becomes 0.0, and NaNs with other bits the same NaN.
        values = pc.if_else(pc.is_nan(values), float("nan"), pc.add(values, 0.0))
    encoded = values.combine_chunks().dictionary_encode(null_encoding="encode" if pair.null_safe else "mask")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    return np.asarray(pc.fill_null(encoded.indices, -1)).astype(np.int64)


def _common_type(target: pa.DataType, source: pa.DataType) -> pa.DataType | None:
    """Return the type in which values of both types are compared; None for types that have no such type."""
    for kind, common in (
        (_is_text, pa.large_string()),
        (pa.types.is_signed_integer, pa.int64()),
        (pa.types.is_floating, pa.float64()),
    ):
        if kind(target) and (kind(source) or pa.types.is_null(source)):
            return common
    if pa.types.is_nested(target) or (source != target and not pa.types.is_null(source)):
        return None
    return target


def _is_text(data_type: pa.DataType) -> bool:
    kind = data_type.value_type if pa.types.is_dictionary(data_type) else data_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
