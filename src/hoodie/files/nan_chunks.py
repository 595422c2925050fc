"""Find the column chunks of a base file that have NaN, and write a footer whose bounds say so."""

from __future__ import annotations

from collections.abc import Iterator, Set

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.format.parquet_footer import with_nan_bounds

_MAGIC = b"PAR1"
_TRAILER_BYTES = 8


def nan_leaves(rows: pa.Table) -> set[int]:
    """Return the numbers of the Parquet leaf columns that have NaN, also in structs, lists and maps."""
    found: set[int] = set()
    first = 0
    for column in rows.columns:
        count = _leaf_count(column.type)
        if _has_floats(column.type):
            for chunk in column.chunks:
                found |= {first + number for number, leaf in enumerate(_leaves(chunk)) if _has_nan(leaf)}
        first += count
    return found


def footer_with_nan(metadata: pq.FileMetaData, chunks: Set[tuple[int, int]]) -> bytes:
    """Return the end of a Parquet file: the footer, in which the greatest value of the chunks is NaN, and the trailer.

    `chunks` are pairs of the numbers of a row group and a leaf column. Readers look for the footer from the end of the
    file, so it may follow an earlier one.
    """
    sink = pa.BufferOutputStream()
    metadata.write_metadata_file(sink)
    written: bytes = sink.getvalue().to_pybytes()
    footer, trailer = written[len(_MAGIC) : -_TRAILER_BYTES], written[-_TRAILER_BYTES:]
    return with_nan_bounds(footer, chunks) + trailer


def _has_nan(leaf: pa.Array) -> bool:
    return pa.types.is_floating(leaf.type) and bool(pc.any(pc.is_nan(leaf)).as_py())


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    """Yield the leaves of a column in the order of Parquet. Values below a null are among them."""
    if pa.types.is_struct(array.type):
        for number in range(array.type.num_fields):
            yield from _leaves(array.field(number))
    elif pa.types.is_map(array.type):
        yield from _leaves(array.keys)
        yield from _leaves(array.items)
    elif pa.types.is_nested(array.type):
        yield from _leaves(array.flatten())
    else:
        yield array


def _children(data_type: pa.DataType) -> list[pa.DataType]:
    return [data_type.field(number).type for number in range(data_type.num_fields)]


def _leaf_count(data_type: pa.DataType) -> int:
    return sum(map(_leaf_count, _children(data_type))) if pa.types.is_nested(data_type) else 1


def _has_floats(data_type: pa.DataType) -> bool:
    if pa.types.is_nested(data_type):
        return any(map(_has_floats, _children(data_type)))
    return bool(pa.types.is_floating(data_type))
