"""The folder of the metadata table: its timeline, its files, and the steps of an instant."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from hoodie.errors import CorruptFileError, MetadataTableMissingError, UnsupportedError
from hoodie.format.filenames import METADATA_INIT_WRITE_TOKEN, BaseFileName, LogFileName, instant_of_data_file, name_of
from hoodie.format.instants.commit_metadata import SCHEMA_KEY, CommitMetadata, WriteOperation, WriteStat
from hoodie.format.instants.write_stat import by_partition
from hoodie.format.log.log_block import BlockType, parse_log_blocks
from hoodie.format.metadata_table.metadata_record import commit_schema
from hoodie.format.table.properties import parse_properties
from hoodie.format.table.table_config import BaseFileFormat, TableConfig
from hoodie.format.table.table_keys import VERSION
from hoodie.metadata.memory import Files, FolderMemory
from hoodie.metadata.paths import (
    METADATA_ARCHIVED,
    METADATA_FOLDER,
    METADATA_HISTORY_PATH,
    METADATA_HOODIE_FOLDER,
    METADATA_PROPERTIES,
    REBUILD_ADVICE,
    metadata_layout,
    partition_folder,
)
from hoodie.storage import FileInfo, Store
from hoodie.timeline import (
    Action,
    ArchiveLogs,
    CreateFile,
    Instant,
    InstantClock,
    Layout,
    State,
    Timeline,
    TimelineArchive,
    archive_of,
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
    memory: FolderMemory | None = field(default=None, compare=False, repr=False)
    """What the handle of the table remembers; None: every call lists the folder."""

    @property
    def layout(self) -> Layout:
        """Timeline layout of the data table's version."""
        return metadata_layout(self.config)

    def timeline(self) -> Timeline:
        """Load the active timeline of the metadata table."""
        if self.memory is not None:
            return self.memory.timeline()
        return load_timeline(self.store, self.layout)

    def existing_timeline(self) -> Timeline:
        """Load the active timeline of a metadata table that the table's properties name. It takes one listing.

        Raises: MetadataTableMissingError if no instant is completed: every metadata table begins with such an instant.
        """
        timeline = self.timeline()
        if not any(instant.is_completed for instant in timeline):
            raise MetadataTableMissingError(
                f"{self._what_is_missing()}; the next write builds it anew, and t.index.rebuild() does so now",
                path=self.store.uri(METADATA_FOLDER),
            )
        return timeline

    def files(self, partition: str) -> Files:
        """Return the files of a partition, by path: those of all slices, visible or not."""
        if self.memory is not None:
            return self.memory.files(partition)
        return Files(self.store.list(partition_folder(partition)))

    def _what_is_missing(self) -> str:
        """Say that there is no metadata table, or that another writer changed its version and so its timeline."""
        version = self.config.version.value
        try:
            path = METADATA_PROPERTIES
            found = parse_properties(self.store.read(path), path=self.store.uri(path)).get(VERSION)
        except (FileNotFoundError, CorruptFileError):
            found = None
        if found not in (None, str(version)):
            return (
                f"the metadata table has version {found}, the data table has version {version}: another writer changed "
                "the version of the metadata table alone, so this release does not read it"
            )
        named = ", ".join(self.config.metadata_partitions)
        return (
            f"the metadata table is missing: hoodie.properties names its partitions {named}, but its timeline has no "
            "completed instant"
        )

    def archive(self) -> TimelineArchive | ArchiveLogs:
        """Return the archived timeline of the metadata table."""
        ranges = self.config.archive_names_are_ranges
        return archive_of(self.store, self.layout, name=self.archive_name, names_are_ranges=ranges)

    @property
    def archive_name(self) -> str:
        """The folder of the archive, as for `archive_instants`."""
        return METADATA_ARCHIVED if self.names_base_instants else METADATA_HISTORY_PATH

    @property
    def names_base_instants(self) -> bool:
        """Whether log files have the base instant of their file slice in their names: version 6."""
        return self.config.version.log_name_has_base_instant

    def order_time(self, instant: Instant) -> str:
        """Return the time by which instants are ordered: as `TableView.order_time`."""
        return instant.requested_time if self.names_base_instants else instant.completion_time or ""

    def request(self, requested_time: str, action: Action, content: bytes = b"") -> None:
        """Create the requested file."""
        create_requested(self.store, self.layout, requested_time, action, content)

    def begin(self, requested_time: str, action: Action, content: bytes = b"") -> None:
        """Create the inflight file."""
        create_inflight(self.store, self.layout, requested_time, action, content)

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
            create=create_last,
        )

    def forget(self, requested_time: str, action: Action, *states: State) -> None:
        """Delete the instant's files of these states."""
        delete_instant_files(self.store, self.layout, requested_time, action, *states)

    def partitions(self) -> list[str]:
        """Return the names of the partitions that have a folder, whether or not readers use them."""
        names = (name_of(path) for path in self.store.folders(METADATA_FOLDER))
        return [name for name in names if name != _HOODIE_NAME]

    def files_of(self, requested_time: str) -> Iterator[tuple[str, FileInfo]]:
        """Yield the partition and the file of every base and log file of the instant: those with it in their names.

        In version 6 the blocks of log files are read.

        Raises: UnsupportedError if a file has blocks of other instants too, as writers on HDFS leave it.
        """
        for partition in self.partitions():
            for info in self.store.list(partition_folder(partition)):
                if self._is_of(info, requested_time):
                    yield partition, info

    def _is_of(self, info: FileInfo, requested_time: str) -> bool:
        log = LogFileName.parse(info.name) if self.names_base_instants else None
        if log is None:
            return instant_of_data_file(info.path) == requested_time
        if log.instant_time > requested_time:
            return False
        where = self.store.uri(info.path)
        blocks = parse_log_blocks(self.store.read(info.path), path=where)
        instants = {block.instant_time for block in blocks if block.block_type is not BlockType.CORRUPT}
        if requested_time in instants and len(instants) > 1:
            raise UnsupportedError(f"{where} has blocks of {requested_time} and of other instants: {REBUILD_ADVICE}")
        return requested_time in instants

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


def log_name(file_id: str, requested_time: str, version: int = 1) -> LogFileName:
    """Return the name of the log file that a delta commit adds to a file group; `version` orders several log files."""
    return LogFileName(file_id, requested_time, version, WRITE_TOKEN)


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
