"""What distinguishes one partition of the metadata table from another: its name, its keys, how its rows merge.

Each kind has a module of its own; `table.MAINTAINED` names those that this release writes. A partition that the JVM
made and that is not among them must be dropped before a write, or the JVM would believe stale rows.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

import pyarrow as pa

from hoodie.errors import UnsupportedError
from hoodie.metadata.slice_reader import SliceContent


class PartitionKind(Protocol):
    """One kind of metadata partition."""

    @property
    def name(self) -> str:
        """Name of the partition, which is its folder."""
        ...

    @property
    def file_id_prefix(self) -> str:
        """What file ids of its file groups begin with."""
        ...

    def compact(self, content: SliceContent, *, file_name: str) -> tuple[pa.Array, pa.Array]:
        """Merge a file slice into the keys (ascending by UTF-8 bytes) and values of its next base file."""
        ...


def check_maintained(partitions: Collection[str], maintained: Collection[str]) -> None:
    """Refuse to write beside metadata partitions that would go stale.

    Raises:
        UnsupportedError: names them, and says what to do.
    """
    unknown = sorted(set(partitions) - set(maintained))
    if unknown:
        raise UnsupportedError(
            f"the metadata table has partitions that this release cannot maintain: {', '.join(unknown)}. "
            "Take them out of hoodie.table.metadata.partitions and drop them first"
        )
