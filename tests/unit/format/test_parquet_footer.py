"""Footers of Parquet files: only the greatest values of the named chunks change; a broken footer says so."""

from __future__ import annotations

import io
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.format.parquet_footer import with_nan_bounds

WIDE = 20
"""Columns: more than 14, so that the head of the list has a length of its own."""


def parts(data: bytes) -> tuple[bytes, bytes]:
    """The bytes before the footer, and the footer."""
    end = len(data) - 8
    start = end - int.from_bytes(data[end : end + 4], "little")
    return data[:start], data[start:end]


def written(**options: object) -> bytes:
    columns: dict[str, pa.Array] = {f"c{number}": pa.array([1.5, None, 2.5, 4.0]) for number in range(WIDE)}
    columns |= {"n": pa.array([1, 2, 3, 4]), "f": pa.array([1.5, 2.5, None, 3.5], pa.float32())}
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, row_group_size=2, **options)
    return sink.getvalue()


def bounds(data: bytes) -> dict[tuple[int, int], tuple[object, ...]]:
    metadata = pq.ParquetFile(io.BytesIO(data)).metadata
    places = [(group, leaf) for group in range(metadata.num_row_groups) for leaf in range(metadata.num_columns)]
    found = {place: metadata.row_group(place[0]).column(place[1]).statistics for place in places}
    return {place: (one.min, one.max, one.null_count) for place, one in found.items() if one is not None}


@pytest.mark.parametrize("options", [{}, {"write_page_index": True, "sorting_columns": [pq.SortingColumn(0)]}])
def test_only_the_greatest_values_of_the_named_chunks_change(options: dict[str, object]) -> None:
    data = written(**options)
    rows, footer = parts(data)
    chunks = {(0, 3), (1, WIDE - 1), (1, WIDE + 1)}
    changed = with_nan_bounds(footer, chunks)
    after, before = bounds(rows + changed + data[len(rows + footer) :]), bounds(data)
    for place, found in after.items():
        least, greatest, nulls = before[place]
        assert (found[0], found[2]) == (least, nulls)
        assert math.isnan(found[1]) if place in chunks else found[1] == greatest, place  # type: ignore[arg-type]
    assert len(after) == len(before) == 2 * (WIDE + 2)


def test_a_footer_without_statistics_stays() -> None:
    _, footer = parts(written(write_statistics=False))
    assert with_nan_bounds(footer, {(0, 0), (1, 1)}) == footer


def test_a_broken_footer_is_refused() -> None:
    _, footer = parts(written())
    for end in range(0, len(footer) // 2, 97):
        with pytest.raises(ValueError, match=r"not the footer|ends inside a number"):
            with_nan_bounds(footer[:end], {(1, 0)})
    with pytest.raises(ValueError, match="not the footer"):
        with_nan_bounds(b"\x1f" + footer, {(0, 0)})
