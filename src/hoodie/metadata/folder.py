"""The folder of the metadata table: its timeline, its files, and the steps of an instant."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from hoodie.errors import MetadataTableMissingError
from hoodie.format.filenames import METADATA_INIT_WRITE_TOKEN, BaseFileName, LogFileName, instant_of_data_file, name_of
from hoodie.format.instants.commit_metadata import SCHEMA_KEY, CommitMetadata, WriteOperation, WriteStat
from hoodie.format.instants.write_stat import by_partition
from hoodie.format.metadata_table.metadata_record import commit_schema
from hoodie.format.table.table_config import BaseFileFormat, TableConfig
from hoodie.metadata.paths import (
    METADATA_FOLDER,
    METADATA_HISTORY,
    METADATA_HOODIE_FOLDER,
    metadata_layout,
    partition_folder,
)
from hoodie.storage import FileInfo, Store
from hoodie.timeline import (
    Action,
    CreateFile,
    InstantClock,
    Layout,
    State,
    Timeline,
    TimelineArchive,
    create_completed,
    create_inflight,
    create_requested,
    delete_instant_files,
    load_timeline,
)

# One writer at a time holds the table's lock, so the file names of two attempts at an instant never collide.
WRITE_TOKEN = METADATA_INIT_WRITE_TOKEN
_HOODIE_NAME = name_of(METADATA_HOODIE_FOLDER)


@dataclass(frozen=True, slots=True)
class MetadataFolder:
    """The metadata table of one data table. All paths are relative to the data table's base path."""

    store: Store
    config: TableConfig
    """Configuration of the data table."""

    @property
    def layout(self) -> Layout:
        """Timeline layout of the data table's version."""
        return metadata_layout(self.config)

    def timeline(self) -> Timeline:
        """Load the active timeline of the metadata table."""
        return load_timeline(self.store, self.layout, folder=METADATA_HOODIE_FOLDER)

    def existing_timeline(self) -> Timeline:
        """Load the active timeline of a metadata table that the table's properties name. It takes one listing.

        Raises: MetadataTableMissingError if no instant is completed: every metadata table begins with such an instant.
        """
        timeline = self.timeline()
        if not any(instant.is_completed for instant in timeline):
            named = ", ".join(self.config.metadata_partitions)
            raise MetadataTableMissingError(
                f"the metadata table is missing: hoodie.properties names its partitions {named}, but its timeline has "
                "no completed instant; the next write builds it anew, and t.index.rebuild() does so now",
                path=self.store.uri(METADATA_FOLDER),
            )
        return timeline

    def archive(self) -> TimelineArchive:
        """Return the archived timeline of the metadata table."""
        return TimelineArchive(self.store, METADATA_HISTORY)

    def request(self, requested_time: str, action: Action, content: bytes = b"") -> None:
        """Create the requested file."""
        create_requested(self.store, self.layout, requested_time, action, content, folder=METADATA_HOODIE_FOLDER)

    def begin(self, requested_time: str, action: Action, content: bytes = b"") -> None:
        """Create the inflight file."""
        create_inflight(self.store, self.layout, requested_time, action, content, folder=METADATA_HOODIE_FOLDER)

    def complete(
        self, requested_time: str, action: Action, content: bytes, *, completion_time: str, create_last: CreateFile
    ) -> None:
        """Create the completed file with `create_last`, which fails if the caller lost the table's lock."""
        create_completed(
            self.store,
            self.layout,
            requested_time,
            action,
            content,
            completion_time=completion_time,
            folder=METADATA_HOODIE_FOLDER,
            create=create_last,
        )

    def forget(self, requested_time: str, action: Action, *states: State) -> None:
        """Delete the instant's files of these states."""
        delete_instant_files(self.store, self.layout, requested_time, action, *states, folder=METADATA_HOODIE_FOLDER)

    def partitions(self) -> list[str]:
        """Return the names of the partitions that have a folder, whether or not readers use them."""
        names = (name_of(path) for path in self.store.folders(METADATA_FOLDER))
        return [name for name in names if name != _HOODIE_NAME]

    def files_of(self, requested_time: str) -> Iterator[tuple[str, FileInfo]]:
        """Yield the partition and the file of every base and log file with the instant in its name."""
        for partition in self.partitions():
            for info in self.store.list(partition_folder(partition)):
                if instant_of_data_file(info.path) == requested_time:
                    yield partition, info

    def undo(self, requested_time: str, action: Action, *, keep: Collection[str] = ()) -> None:
        """Delete the files of an earlier attempt at the instant. The completed file is deleted first.

        The order hides the instant from readers before its files are deleted. `keep` holds the paths (partition and
        name) of files of the current attempt; they are not deleted.
        """
        self.forget(requested_time, action, State.COMPLETED)
        for partition, info in list(self.files_of(requested_time)):
            if f"{partition}/{info.name}" not in keep:
                self.store.delete(info.path)
        self.forget(requested_time, action, State.INFLIGHT, State.REQUESTED)


def base_name(file_id: str, requested_time: str) -> str:
    """Return the name of the base file that an instant adds to a file group."""
    return BaseFileName(file_id, WRITE_TOKEN, requested_time, BaseFileFormat.HFILE.extension).name


def log_name(file_id: str, requested_time: str, version: int = 1) -> str:
    """Return the name of the log file that a delta commit adds to a file group; `version` orders several log files."""
    return LogFileName(file_id, requested_time, version, WRITE_TOKEN).name


def commit_metadata(
    operation: WriteOperation, stats: Iterable[WriteStat], *, compacted: bool = False
) -> CommitMetadata:
    """Return the content of a completed instant of the metadata table."""
    return CommitMetadata(
        partition_to_write_stats=by_partition(stats),
        compacted=compacted,
        extra_metadata={SCHEMA_KEY: commit_schema()},
        operation_type=operation.value,
    )


def time_after(clock: InstantClock, *timelines: Timeline) -> str:
    """Return a time that is later than every instant of `timelines`."""
    times = [clock.next_time(timeline) for timeline in timelines]
    return times[-1]
