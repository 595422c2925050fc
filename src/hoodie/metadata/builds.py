"""Builds of a partition while writers run: the files of a build become the partition, in one instant.

docs/format/metadata.md §3.4. A service of the data table (`services/indexing/`) first writes the files under the
build's instant; readers do not see them. This module has the steps on the metadata table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from hoodie.errors import CommitConflictError
from hoodie.format.filenames import PARTITION_METADATA_NAME, BaseFileName, LogFileName
from hoodie.format.instants.commit_metadata import WriteStat
from hoodie.metadata.definitions import write_definition
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.metadata.locked_table import LockedTable
from hoodie.metadata.new_partition import complete_filling, create_partition_file
from hoodie.metadata.places import partition_folder
from hoodie.timeline import Action, State

_ALL_STATES = (State.COMPLETED, State.INFLIGHT, State.REQUESTED)
_SERVICES = frozenset({Action.COMPACTION, Action.LOG_COMPACTION, Action.CLEAN})


def check_no_service_pending(folder: MetadataFolder) -> None:
    """Refuse to exchange a partition while a service of the metadata table is pending: it reads its file groups.

    Raises: CommitConflictError.
    """
    for instant in folder.timeline().pending():
        if instant.action in _SERVICES:
            raise CommitConflictError(
                f"the metadata table of {folder.store.uri('')} has a pending {instant}, which works on the file groups "
                "that the build replaces; write to the table to finish it, then run the build again"
            )


def commit_build(
    folder: MetadataFolder, kind: PartitionKind, built_at: str, stats: Sequence[WriteStat], table: LockedTable
) -> None:
    """Make the files of a build the partition; files of other instants are deleted. Safe to repeat after a crash.

    `stats` are the write statistics of the build's files.
    """
    table.ensure_held()
    for path, instant_time in _files(folder, kind):
        # Files that running writers prepared for the replaced file groups are deleted too.
        if instant_time != built_at:
            folder.store.delete(path)
    # The file is created here and not earlier: the JVM compacts every folder that has this file.
    if folder.store.head(f"{partition_folder(kind.name)}/{PARTITION_METADATA_NAME}") is None:
        create_partition_file(folder.store, kind.name, built_at, now=datetime.now(UTC))
    if kind.definition is not None:
        write_definition(folder.store, kind.name, kind.definition)
    # Another process may have taken the build over and completed it: its instant must stay.
    table.ensure_held()
    timeline = folder.timeline()
    if timeline.get(built_at) is not None:
        folder.forget(built_at, Action.DELTA_COMMIT, *_ALL_STATES)
    folder.request(built_at, Action.DELTA_COMMIT)
    folder.begin(built_at, Action.DELTA_COMMIT)
    complete_filling(folder, built_at, stats, timeline, table)


def has_build(folder: MetadataFolder, built_at: str) -> bool:
    """Return whether the instant of a build is completed."""
    found = folder.timeline().get(built_at, Action.DELTA_COMMIT)
    return found is not None and found.is_completed


def undo_build(folder: MetadataFolder, kind: PartitionKind, built_at: str, *, is_in_use: bool) -> None:
    """Delete the instant and the files of a build; delete the whole folder unless an older partition `is_in_use`."""
    folder.forget(built_at, Action.DELTA_COMMIT, *_ALL_STATES)
    if not is_in_use:
        folder.store.delete_folder(partition_folder(kind.name))
        return
    for path, instant_time in list(_files(folder, kind)):
        if instant_time == built_at:
            folder.store.delete(path)


def _files(folder: MetadataFolder, kind: PartitionKind) -> Iterator[tuple[str, str]]:
    """Yield the path and the instant of each base and log file of a partition."""
    for info in list(folder.store.list(partition_folder(kind.name))):
        parsed = BaseFileName.parse(info.name) or LogFileName.parse(info.name)
        if parsed is not None:
            yield info.path, parsed.instant_time
