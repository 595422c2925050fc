"""What a kind of metadata partition defines: its name, its file groups, its first content, its rows, its merge rule.

Each kind has a module of its own; `kinds/registry.py` lists the kinds that this release maintains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from hoodie.engine import Engine
from hoodie.format.table.table_config import TableConfig
from hoodie.metadata.changes import MetadataChanges
from hoodie.metadata.delta_commit import FileGroupDelta
from hoodie.metadata.slice_content import SliceContent
from hoodie.storage import Store

FilesByPartition = Mapping[str, Mapping[str, int]]
"""Partition path of the data table -> file name -> size in bytes."""
ListFiles = Callable[[], FilesByPartition]
"""Lists the committed files of the data table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableContent:
    """The data table from which a new partition gets its first content."""

    store: Store
    config: TableConfig
    list_files: ListFiles
    """Costly: call it once, and only if the files are needed."""
    engine_for: Callable[[int], Engine]
    """The engine for work on so many bytes."""


@dataclass(frozen=True, slots=True)
class InitialRows:
    """The first rows of one file group; `keys` ascend strictly by their UTF-8 bytes."""

    file_id: str
    keys: pa.Array
    values: pa.Array


class PartitionKind(Protocol):
    """One kind of metadata partition, for the partition `name` of one table. Picklable, as tasks carry it."""

    @property
    def name(self) -> str:
        """Name of the partition, which is its folder. A kind of which a table may have several gets it as argument."""
        ...

    @property
    def file_id_prefix(self) -> str:
        """What the file ids of its file groups begin with."""
        ...

    @property
    def logs_before_commit(self) -> bool:
        """Whether writing tasks write its log files themselves, before the delta commit is requested.

        Such log files are handed in as `MetadataChanges.written_logs`. Other kinds need `rows_of` only.
        """
        ...

    @property
    def definition(self) -> Mapping[str, Any] | None:
        """The index definition that a new partition gets (docs/format/metadata.md §3.11); None: it gets none."""
        ...

    def file_groups(self, properties: Mapping[str, str]) -> int:
        """How many file groups a new partition gets, in a table with these properties."""
        ...

    def initialise(self, content: TableContent, file_ids: Sequence[str]) -> Sequence[InitialRows]:
        """Make the first rows of a new partition with these file groups. File groups without rows are omitted."""
        ...

    def rows_of(self, changes: MetadataChanges) -> Sequence[FileGroupDelta]:
        """Make the rows that one instant adds to the partition, but for those in `changes.written_logs`."""
        ...

    def compact(self, content: SliceContent, *, file_name: str) -> tuple[pa.Array, pa.Array]:
        """Merge a file slice into the keys (ascending by UTF-8 bytes) and values of its next base file."""
        ...
