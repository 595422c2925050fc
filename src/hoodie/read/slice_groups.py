"""Group file slices into tasks: several small slices share a task, a large slice has its own task."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from hoodie.files.slices import FileSlice


def balanced(slices: Sequence[FileSlice], group_bytes: int) -> list[tuple[FileSlice, ...]]:
    """Divide the slices into groups of similar size, each of about `group_bytes` of files.

    The slices are added in order of size, the largest first. Each slice is added to the smallest group so far.
    """
    count = -(-sum(found.size_bytes for found in slices) // group_bytes)
    groups: list[list[FileSlice]] = [[] for _ in range(min(max(count, 1), len(slices)))]
    sizes = [(0, number) for number in range(len(groups))]
    for found in sorted(slices, key=lambda one: -one.size_bytes):
        size_bytes, number = sizes[0]
        groups[number].append(found)
        heapq.heapreplace(sizes, (size_bytes + found.size_bytes, number))
    return [tuple(group) for group in groups]
