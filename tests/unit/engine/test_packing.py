"""Slices in groups for tasks: none is lost, and none of the groups is much larger than the others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hoodie.engine.packing import balanced
from hoodie.files.slices import BaseFile, FileSlice


def sized(number: int, size_bytes: int) -> FileSlice:
    """A slice of one base file."""
    file_id = f"{number}-0"
    return FileSlice("p", file_id, "1", BaseFile("p", f"{file_id}_0-0-0_1.parquet", file_id, "1", size_bytes))


@given(st.lists(st.integers(1, 50), max_size=60), st.integers(1, 100))
def test_groups_are_about_as_large_as_each_other(sizes: list[int], group_bytes: int) -> None:
    slices = [sized(number, size_bytes) for number, size_bytes in enumerate(sizes)]
    groups = balanced(slices, group_bytes)
    assert sorted(found.file_id for group in groups for found in group) == sorted(found.file_id for found in slices)
    assert all(groups)
    weights = [sum(found.size_bytes for found in group) for group in groups]
    assert len(groups) <= -(-sum(sizes) // group_bytes)
    assert not groups or max(weights) - min(weights) <= max(sizes)


def test_no_slices_make_no_groups() -> None:
    assert balanced([], 10) == []
