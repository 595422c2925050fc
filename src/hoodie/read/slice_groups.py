"""Group file slices into tasks: several small slices share a task, a large slice has its own task."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar


class HasBytes(Protocol):
    """What is read: a file slice, or the slices around a commit."""

    @property
    def size_bytes(self) -> int:
        """Bytes of its files."""
        ...


_Found = TypeVar("_Found", bound=HasBytes)


def file_bytes(found: HasBytes) -> int:
    """Return the bytes of all files of a slice."""
    return found.size_bytes


def balanced(
    slices: Sequence[_Found], group_bytes: int, size_of: Callable[[_Found], int] = file_bytes
) -> list[tuple[_Found, ...]]:
    """Divide the slices into groups of similar size, each of about `group_bytes`; `size_of` measures a slice.

    The slices are added in order of size, the largest first. Each slice is added to the smallest group so far.
    """
    count = -(-sum(map(size_of, slices)) // group_bytes)
    groups: list[list[_Found]] = [[] for _ in range(min(max(count, 1), len(slices)))]
    sizes = [(0, number) for number in range(len(groups))]
    for found in sorted(slices, key=lambda one: -size_of(one)):
        size_bytes, number = sizes[0]
        groups[number].append(found)
        heapq.heapreplace(sizes, (size_bytes + size_of(found), number))
    return [tuple(group) for group in groups]
