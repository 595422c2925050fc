"""The changes that one instant of the data table makes in the metadata table, for all metadata partitions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from hoodie.errors import CommitConflictError
from hoodie.format.instants.commit_metadata import WriteStat


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataChanges:
    """The changes of one instant. Each partition kind makes its rows from them (`PartitionKind.rows_of`).

    Partition paths are paths of the data table; `""` if it has no partitions. A dropped partition loses all its files.
    A file that is both added and deleted counts as added.
    """

    files_added: Mapping[str, Mapping[str, int]] = field(default_factory=dict, hash=False)
    """Partition path -> file name -> size in bytes (greater than 0)."""
    files_deleted: Mapping[str, Collection[str]] = field(default_factory=dict, hash=False)
    """Partition path -> file names."""
    partitions_dropped: tuple[str, ...] = ()
    """Partition paths."""
    written_logs: tuple[WriteStat, ...] = ()
    """Log files of metadata partitions that tasks have written for this instant (`delta_commit.write_log`)."""
    collected: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Name of a partition kind -> what it collected from the commit (`PartitionKind.collect`)."""
    is_overlapped: bool = False
    """Whether an earlier instant is pending: its rows will come before these in the order of the log files."""

    def check_partitions(self, present: Collection[str]) -> None:
        """Refuse log files of metadata partitions that the table does not have.

        Raises: CommitConflictError.
        """
        missing = sorted({stat.partition_path or "" for stat in self.written_logs}.difference(present))
        if missing:
            raise CommitConflictError(
                f"the metadata table has no partition {', '.join(missing)}: it was dropped while this write ran; "
                "nothing was committed, try again"
            )
