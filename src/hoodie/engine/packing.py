"""Divide pieces of work, such as files and file slices, into tasks of about the same size."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar


class Sized(Protocol):
    """An item with a size on storage."""

    @property
    def size_bytes(self) -> int:
        """Bytes on storage."""
        ...


T = TypeVar("T")
Item = TypeVar("Item", bound=Sized)


def file_bytes(item: Sized) -> int:
    """Return the bytes on storage of an item."""
    return item.size_bytes


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


def cuts(sizes: Sequence[int], count: int) -> list[tuple[int, int]]:
    """Divide a sequence into at most `count` parts of about the same size, each with a start and an exclusive end.

    >>> cuts([4, 1, 1, 1, 1], 2)
    [(0, 1), (1, 5)]
    >>> cuts([1, 1], 5)
    [(0, 1), (1, 2)]
    """
    total, before = max(sum(sizes), 1), 0
    parts = []
    for size in sizes:
        parts.append(min((2 * before + size) * count // (2 * total), count - 1))  # of the middle of the item
        before += size
    starts = [place for place in range(len(parts)) if place == 0 or parts[place] != parts[place - 1]]
    return list(itertools.pairwise((*starts, len(parts))))


def chunks(items: Iterable[Item], limit_bytes: int) -> Iterator[tuple[Item, ...]]:
    """Yield the items in order, in groups of at most `limit_bytes`; a larger item is a group of its own."""
    return measured_chunks(items, limit_bytes, file_bytes)


def measured_chunks(items: Iterable[T], limit_bytes: int, size_of: Callable[[T], int]) -> Iterator[tuple[T, ...]]:
    """Yield the items as `chunks` does; `size_of` measures an item."""
    group: list[T] = []
    group_bytes = 0
    for item in items:
        size_bytes = size_of(item)
        if group and group_bytes + size_bytes > limit_bytes:
            yield tuple(group)
            group, group_bytes = [], 0
        group.append(item)
        group_bytes += size_bytes
    if group:
        yield tuple(group)


def balanced(
    items: Sequence[Item], group_bytes: int, size_of: Callable[[Item], int] = file_bytes
) -> list[tuple[Item, ...]]:
    """Divide the items into groups of similar size, each of about `group_bytes`; `size_of` measures an item."""
    sizes = [size_of(item) for item in items]
    groups = balanced_groups(sizes, -(-sum(sizes) // group_bytes))
    return [tuple(items[position] for position in group) for group in groups]
