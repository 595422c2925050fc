"""Group file slices into tasks: several small slices share a task, a large slice has its own task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from hoodie.engine.groups import balanced_groups


class HasBytes(Protocol):
    """What is read: a file slice, or the slices around a commit."""

    @property
    def size_bytes(self) -> int:
        """Bytes of its files."""
        ...


Found = TypeVar("Found", bound=HasBytes)


def file_bytes(found: HasBytes) -> int:
    """Return the bytes of all files of a slice."""
    return found.size_bytes


def balanced(
    slices: Sequence[Found], group_bytes: int, size_of: Callable[[Found], int] = file_bytes
) -> list[tuple[Found, ...]]:
    """Divide the slices into groups of similar size, each of about `group_bytes`; `size_of` measures a slice."""
    sizes = [size_of(found) for found in slices]
    groups = balanced_groups(sizes, -(-sum(sizes) // group_bytes))
    return [tuple(slices[position] for position in group) for group in groups]
