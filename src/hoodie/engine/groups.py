"""Divide pieces of work into groups of similar size."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def balanced_groups(sizes: Sequence[int], count: int) -> list[tuple[int, ...]]:
    """Divide the positions of `sizes` into `count` groups of similar size; positions ascend in each group.

    The positions are added in order of size, the largest first. Each is added to the smallest group so far. With fewer
    sizes than `count`, each is a group of its own.

    >>> balanced_groups([5, 1, 1, 4, 1], 2)
    [(0, 2), (1, 3, 4)]
    """
    groups: list[list[int]] = [[] for _ in range(min(max(count, 1), len(sizes)))]
    filled = [(0, 0, number) for number in range(len(groups))]
    for position in sorted(range(len(sizes)), key=lambda one: -sizes[one]):
        size, members, number = filled[0]
        groups[number].append(position)
        heapq.heapreplace(filled, (size + sizes[position], members + 1, number))
    return [tuple(sorted(group)) for group in groups]
