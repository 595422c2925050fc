"""A kind of metadata partition and its life: enabled, added, filled by commits or by a build, checked, dropped.

Each kind is a separate module; `kinds/registry.py` lists the kinds that this release maintains. No other module names
a kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from hoodie.config import Option
from hoodie.errors import InvalidConfigError
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteStat
from hoodie.format.table.table_config import TableConfig
from hoodie.format.table.versions import TableVersion
from hoodie.metadata.changes import MetadataChanges
from hoodie.metadata.data_table import DataTable
from hoodie.metadata.delta_commit import FileGroupDelta
from hoodie.metadata.slice_content import SliceContent, compact_newest
from hoodie.timeline import Timeline


@dataclass(frozen=True, slots=True)
class InitialRows:
    """The first rows of one file group; `keys` ascend strictly by their UTF-8 bytes."""

    file_id: str
    keys: pa.Array
    values: pa.Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A row of a metadata partition that differs from the data files; `kind` names the difference in a short text."""

    kind: str
    key: str
    expected: str
    found: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What a check of a metadata partition compared: counts, the kinds of differences it looks for, and those found."""

    checked: Mapping[str, int]
    kinds: tuple[str, ...]
    differences: Sequence[Difference]


class PartitionBuild(Protocol):
    """What a build has read of the data files, for a kind and its followers (`services/indexing/file_builds`)."""

    @property
    def counts(self) -> Mapping[str, int]:
        """What was read, for the result of the build."""

    def catch_up(self, table: DataTable) -> int:
        """Read the files that are new since the last call, and forget those that left; return how many were read."""

    def prepare(self, table: DataTable, built_at: str) -> None:
        """Do before the lock is taken what makes `write` short."""

    def write(self, table: DataTable, kind: PartitionKind, *, built_at: str) -> list[WriteStat]:
        """Write the base files of one partition; a retry writes the same files. Readers do not see them yet."""


class PartitionKind:
    """One kind of metadata partition, for the partition `name` of one table. Picklable, as tasks contain it.

    This class is the base of the kinds: a kind without a build, without settings, whose rows tasks write.
    """

    name: str
    """Name of the partition and of its folder."""
    file_id_prefix: str
    """Prefix of the file ids of its file groups."""
    groups_option: Option[int]
    """The option with the number of its file groups, for `file_groups`."""
    content_field: str = ""
    """The field of a metadata record that holds the content of its rows, for `compact`."""
    subject: str = ""
    """What a build makes, in messages."""
    switch: Option[bool] | None = None
    """The option that enables the partition: of a new table, and in its properties for the writers of the JVM."""
    leader: str | None = None
    """The partition with which this one is built, lost and dropped; its own switch only enables it."""
    has_typed_rows: bool = False
    """Whether its rows have another form in versions with typed statistics (`TableVersion.has_typed_statistics`)."""
    repeats_rows: bool = True
    """Whether a row that equals an older one of its key repeats it; else both are joined."""
    logs_before_commit: bool = False
    """Whether tasks write its log files before the delta commit is requested (`MetadataChanges.written_logs`)."""
    readers_need_definition: bool = False
    """Whether the table's properties name the file of index definitions as soon as the partition is there."""
    lost_note: str = ""
    """The note of a write if the table's properties ask for the partition and the table lacks it."""
    differs: str = "index-differs"
    """Name of the finding of `t.verify()` if it differs from the data files (`services/check/kinds`)."""
    ignored_note: str = ""
    """The note of a write whose options ask for the partition, which only a build adds to a table with rows."""

    @property
    def definition(self) -> Mapping[str, Any] | None:
        """The index definition of a new partition (docs/format/metadata.md §3.11); None if it has no definition."""
        return None

    def is_in(self, config: TableConfig) -> bool:
        """Return whether readers of a table with these properties use the partition."""
        return self.name in config.metadata_partitions

    def file_groups(self, properties: Mapping[str, str]) -> int:
        """Return the number of file groups of a new partition, in a table with these properties."""
        return self.groups_option.get(properties)

    def is_written_in(self, version: TableVersion) -> bool:
        """Return whether tables of this version have the partition."""
        return True

    def can_be_in(self, table: DataTable, version: TableVersion) -> bool:
        """Return whether the partition, as the table has it, exists in tables of another version."""
        return self.is_written_in(version)

    def wanted(self, table: DataTable, options: Mapping[str, str]) -> PartitionKind | None:
        """Return the kind, with its settings, if `options` ask for it and the table has no instant that it lacks.

        `options` are those of the call, over those of the table. Nothing is added to a table that has rows: a build
        adds the partition.
        """
        if self.switch is None or not self.is_written_in(table.config.version):
            return None
        if not self.switch.get(options) or self.name in table.config.metadata_partitions or table.has_writes:
            return None
        return self

    def fits(self, table: DataTable) -> bool:
        """Return whether the table can have the partition, of a kind that follows a leader."""
        return True

    def is_lost(self, table: DataTable) -> bool:
        """Return whether the table's properties ask for the partition, and another writer dropped it."""
        return self._is_asked_and_missing(table, table.config.raw)

    def is_ignored(self, table: DataTable, options: Mapping[str, str]) -> bool:
        """Return whether the options of a call ask for the partition, which a table with rows gets by a build only."""
        return self._is_asked_and_missing(table, options)

    def is_outdated(self, table: DataTable) -> bool:
        """Return whether writes do not keep the partition up to date, and must drop it."""
        return False

    def collect_ahead(self, table: DataTable, commit: CommitMetadata, held: ExitStack) -> Any:
        """Read what the rows of a commit need, before the table's lock is taken; `held` closes it after the commit."""
        return None

    def collect(self, table: DataTable, commit: CommitMetadata, ahead: Any) -> Any:
        """Return what the rows of a commit need, under the lock: `MetadataChanges.collected` gets it.

        `ahead` is what `collect_ahead` returned. A commit that is tried again calls it again.
        """
        return None

    def initialise(self, table: DataTable, file_ids: Sequence[str]) -> Sequence[InitialRows]:
        """Make the first rows of a new partition with these file groups. File groups without rows are omitted."""
        return ()

    def rows_of(self, changes: MetadataChanges, table: DataTable, visible: Timeline) -> Iterable[FileGroupDelta]:
        """Make the rows that one instant adds to the partition, except rows in `changes.written_logs`.

        `visible` are the instants of the metadata table that readers see. A kind with large rows returns an iterator,
        and several deltas for a file group: each of them becomes a log file.
        """
        return ()

    def compact(self, content: SliceContent, *, file_name: str) -> tuple[pa.Array, pa.Array]:
        """Merge a file slice into the keys (ascending by UTF-8 bytes) and values of its next base file.

        The newest row of each key, without deletions.
        """
        return compact_newest(content, self.content_field)

    def settings(self, table: DataTable) -> Sequence[str] | None:
        """Return the columns that an earlier build was given; None if they are the default, or if it has none."""
        return None

    def with_columns(self, table: DataTable, columns: Sequence[str] | None) -> PartitionKind:
        """Return the kind that a build makes; `columns` as in `t.index.build`.

        Raises: InvalidConfigError if columns are given, and the kind has none to choose.
        """
        if columns is not None:
            raise InvalidConfigError(f"columns={list(columns)}: the {self.subject} have no columns to choose: omit it")
        return self

    def build(self, followers: Sequence[PartitionKind], held: ExitStack, table: DataTable) -> PartitionBuild:
        """Begin to read the files of a build of this kind and its followers; `held` closes what the build opens."""
        raise NotImplementedError

    def compare(self, followers: Sequence[PartitionKind], table: DataTable, visible: Timeline) -> Comparison:
        """Compare the partition, and those that follow it, with the data files.

        Raises: MetadataPartitionMissingError, CorruptFileError.
        """
        raise NotImplementedError

    def _is_asked_and_missing(self, table: DataTable, options: Mapping[str, str]) -> bool:
        switch = self.switch
        if switch is None or self.leader is not None or not self.is_written_in(table.config.version):
            return False
        if switch.key not in options or not switch.get(options) or self.name in table.named_partitions:
            return False
        return table.has_writes
