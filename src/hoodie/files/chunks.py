"""Group files of any size into tasks of about the same size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar


class Sized(Protocol):
    """An item with a size on storage."""

    @property
    def size_bytes(self) -> int:
        """Bytes on storage."""
        ...


T = TypeVar("T", bound=Sized)


def chunks(items: Iterable[T], limit_bytes: int) -> Iterator[tuple[T, ...]]:
    """Yield the items in order, in groups of at most `limit_bytes`; a larger item is a group of its own."""
    group: list[T] = []
    size_bytes = 0
    for item in items:
        if group and size_bytes + item.size_bytes > limit_bytes:
            yield tuple(group)
            group, size_bytes = [], 0
        group.append(item)
        size_bytes += item.size_bytes
    if group:
        yield tuple(group)
