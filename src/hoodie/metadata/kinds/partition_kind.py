"""The protocol of a metadata partition kind: its name, its file groups, its first content, its rows, its merge rule.

Each kind is a separate module; `kinds/registry.py` lists the kinds that this release maintains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from hoodie.engine import EngineFor
from hoodie.format.table.table_config import TableConfig
from hoodie.metadata.changes import MetadataChanges
from hoodie.metadata.delta_commit import FileGroupDelta
from hoodie.metadata.slice_content import SliceContent
from hoodie.storage import Store
from hoodie.timeline import Timeline

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
    """Lists the committed files. Expensive: call it once, and only if the files are needed."""
    engine_for: EngineFor


@dataclass(frozen=True, slots=True)
class InitialRows:
    """The first rows of one file group; `keys` ascend strictly by their UTF-8 bytes."""

    file_id: str
    keys: pa.Array
    values: pa.Array


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFacts:
    """The state of the metadata table when it makes the rows of a commit."""

    store: Store
    timeline: Timeline
    """The visible instants of the metadata table."""


class PartitionKind(Protocol):
    """One kind of metadata partition, for the partition `name` of one table. Picklable, as tasks contain it."""

    @property
    def name(self) -> str:
        """Name of the partition and of its folder. A kind with several partitions in a table gets it as argument."""
        ...

    @property
    def file_id_prefix(self) -> str:
        """Prefix of the file ids of its file groups."""
        ...

    @property
    def logs_before_commit(self) -> bool:
        """Whether writing tasks write its log files themselves, before the delta commit is requested.

        Such log files are passed in `MetadataChanges.written_logs`. Other kinds need `rows_of` only.
        """
        ...

    @property
    def definition(self) -> Mapping[str, Any] | None:
        """The index definition of a new partition (docs/format/metadata.md §3.11); None if it has no definition."""
        ...

    def file_groups(self, properties: Mapping[str, str]) -> int:
        """Return the number of file groups of a new partition, in a table with these properties."""
        ...

    def initialise(self, content: TableContent, file_ids: Sequence[str]) -> Sequence[InitialRows]:
        """Make the first rows of a new partition with these file groups. File groups without rows are omitted."""
        ...

    def rows_of(self, changes: MetadataChanges, facts: CommitFacts) -> Iterable[FileGroupDelta]:
        """Make the rows that one instant adds to the partition, except rows in `changes.written_logs`.

        Rows of all kinds are made from `changes`; `facts` are read only where a kind needs them. A kind with large rows
        returns an iterator, and several deltas for a file group: each of them becomes a log file.
        """
        ...

    def compact(self, content: SliceContent, *, file_name: str) -> tuple[pa.Array, pa.Array]:
        """Merge a file slice into the keys (ascending by UTF-8 bytes) and values of its next base file."""
        ...
