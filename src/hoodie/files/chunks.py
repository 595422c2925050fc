"""Tasks of about the same size from files of any size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar


class Sized(Protocol):
    """Whatever takes so many bytes on storage."""

    @property
    def size_bytes(self) -> int:
        """Bytes."""
        ...


T = TypeVar("T", bound=Sized)


def chunks(items: Iterable[T], limit_bytes: int) -> Iterator[tuple[T, ...]]:
    """The items in their order, in groups of about so many bytes, at least one in each."""
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
