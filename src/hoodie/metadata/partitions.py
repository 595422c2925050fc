"""The life of a metadata partition: created, filled, built while writers run, and dropped.

docs/format/metadata.md §3.4. A service of the data table (`services/indexing/`) first writes the files of a build under
the build's instant. Readers do not see them, until the files become the partition in one instant.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import count

from hoodie.format.filenames import PARTITION_METADATA_NAME, BaseFileName, LogFileName
from hoodie.format.instants.commit_metadata import WriteOperation, WriteStat
from hoodie.format.table.properties import PartitionMetadata
from hoodie.format.table.table_config import TableConfig
from hoodie.format.table.table_creation import new_metadata_table_config
from hoodie.metadata.data_table import DataTable
from hoodie.metadata.definitions import write_definitions
from hoodie.metadata.delta_commit import base_to_write, initial_log_to_bytes
from hoodie.metadata.folder import MetadataFolder, commit_metadata, log_name, time_after
from hoodie.metadata.instants import FIRST_FILL_CODE, build_time
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.metadata.paths import (
    INDEX_DEFINITIONS,
    METADATA_FOLDER,
    METADATA_PROPERTIES,
    file_id_of,
    partition_folder,
)
from hoodie.storage import Store, ask, together
from hoodie.timeline import Action, Instant, InstantClock, State, Timeline

_INSTANT_DIGITS = 17
_INITIAL_PREFIX = "0" * 14


def clear_metadata_table(table: DataTable) -> None:
    """Delete all files in the folder of the metadata table, which no process uses.

    In an object store, answers to requests sent ahead may show that the lock is held and that there are no files.
    """
    if table.store.spec.is_remote:
        table.ensure_held()
        if not table.store.list(METADATA_FOLDER, recursive=True):
            return
    table.ensure_held()
    table.store.delete_folder(METADATA_FOLDER)


def create_metadata_properties(store: Store, config: TableConfig) -> None:
    """Create the properties of the metadata table. `config` is of the data table."""
    store.create(METADATA_PROPERTIES, new_metadata_table_config(config).to_bytes(datetime.now(UTC)))


def fill_partitions(
    folder: MetadataFolder,
    kinds: Sequence[PartitionKind],
    table: DataTable,
    timeline: Timeline,
    *first: Callable[[], None],
) -> None:
    """Create partitions with their file groups and their first rows, each in a separate instant.

    The partitions have no folder yet. `timeline` is the metadata table's timeline. `first` are calls that none of the
    files needs: they run with them.
    """
    # Readers do not look at the partitions yet, so the files appear in any order.
    store, times = folder.store, _fill_times(folder, len(kinds), table, timeline)
    fillings = [_Filling.of(folder, kind, table, time) for kind, time in zip(kinds, times, strict=True)]
    definitions = {kind.name: kind.definition for kind in kinds if kind.definition is not None}
    define: list[Callable[[], None]] = []
    if definitions:
        define.append(partial(write_definitions, store, definitions))
        ask(store, ("read", INDEX_DEFINITIONS))
    for filling in fillings:
        table.prepare(filling.content)
    together(store, *first, *(create for filling in fillings for create in filling.first))
    for filling in fillings:
        table.ask_if_held(filling.content)
    together(store, *define, *(create for filling in fillings for create in filling.then))
    for filling in fillings:
        complete_filling(folder, filling.requested_time, filling.content, timeline, table)


@dataclass(frozen=True, slots=True)
class _Filling:
    """The instant that fills a new partition: two groups of calls that create files, and its completed content."""

    requested_time: str
    first: Sequence[Callable[[], None]]
    then: Sequence[Callable[[], None]]
    content: bytes

    @classmethod
    def of(cls, folder: MetadataFolder, kind: PartitionKind, table: DataTable, requested_time: str) -> _Filling:
        file_ids = [file_id_of(kind.file_id_prefix, number) for number in range(kind.file_groups(table.config.raw))]
        create_folder, *logs = file_group_files(folder, kind.name, file_ids, requested_time, now=datetime.now(UTC))
        bases = [
            base_to_write(folder.store, kind.name, rows.file_id, rows.keys, rows.values, requested_time)
            for rows in kind.initialise(table, file_ids)
        ]
        request = partial(folder.request, requested_time, Action.DELTA_COMMIT)
        begin = partial(folder.begin, requested_time, Action.DELTA_COMMIT)
        first: list[Callable[[], None]] = [create_folder, request, *(create for _, create in bases)]
        return cls(requested_time, first, [begin, *logs], _filled(folder, [stat for stat, _ in bases]))


def _fill_times(folder: MetadataFolder, wanted: int, table: DataTable, timeline: Timeline) -> list[str]:
    """Return the instants that fill new partitions."""
    times: list[str] = []
    known = timeline
    while len(times) < wanted:
        if folder.names_base_instants:
            times.append(initial_time_by_code(known, table.timeline))
        else:
            times.append(initial_time(known, clock=table.clock, data_timeline=table.timeline))
        pending = Instant(requested_time=times[-1], action=Action.DELTA_COMMIT, state=State.REQUESTED)
        known = Timeline.of((*known, pending))
    return times


def initial_time(metadata_timeline: Timeline, *, clock: InstantClock, data_timeline: Timeline) -> str:
    """Return the instant that fills a new partition: an unused counter of 17 digits, or a time after all instants.

    The counter must not be used after instants were archived: the active timeline would begin at zero again, and files
    of archived instants would count as files of instants that never completed.
    """
    start = metadata_timeline.start
    if start is None or start.startswith(_INITIAL_PREFIX):
        counters = (f"{counter:0{_INSTANT_DIGITS}d}" for counter in count())
        return next(found for found in counters if metadata_timeline.get(found) is None)
    return build_time(time_after(clock, data_timeline, metadata_timeline))


def initial_time_by_code(metadata_timeline: Timeline, data_timeline: Timeline) -> str:
    """Return the instant that fills a new partition in version 6: the newest data instant, and a code from 010 on."""
    newest = data_timeline.completed().latest()
    time = _INITIAL_PREFIX if newest is None else newest.requested_time
    codes = (f"{time}{code:03}" for code in range(FIRST_FILL_CODE, 1000))
    return next(found for found in codes if metadata_timeline.get(found) is None)


def file_group_files(
    folder: MetadataFolder, partition: str, file_ids: Collection[str], requested_time: str, *, now: datetime
) -> Iterator[Callable[[], None]]:
    """Yield calls that create a partition's folder with one log file for each file group; none needs another.

    Only these log files store the number of file groups.
    """
    yield partial(create_partition_file, folder.store, partition, requested_time, now=now)
    content = initial_log_to_bytes(requested_time)
    for file_id in file_ids:
        path = f"{partition_folder(partition)}/{log_name(file_id, requested_time)}"
        yield partial(folder.store.create, path, content)


def create_partition_file(store: Store, partition: str, requested_time: str, *, now: datetime) -> None:
    """Create the partition metadata file, which marks a folder as a partition."""
    metadata = PartitionMetadata(commit_time=requested_time, partition_depth=1)
    store.create(f"{partition_folder(partition)}/{PARTITION_METADATA_NAME}", metadata.to_bytes(now))


def _filled(folder: MetadataFolder, stats: Sequence[WriteStat]) -> bytes:
    """Return the content of the completed instant that fills a partition with the base files of `stats`."""
    return commit_metadata(WriteOperation.BULK_INSERT_PREPPED, stats).to_bytes(folder.config.version)


def complete_filling(
    folder: MetadataFolder, requested_time: str, content: bytes, timeline: Timeline, table: DataTable
) -> None:
    """Complete the instant that fills a partition; `timeline`: the metadata table's."""
    folder.complete(
        requested_time,
        Action.DELTA_COMMIT,
        content,
        completion_time=time_after(table.clock, table.timeline, timeline),
        create_last=table.create_last,
    )


_ALL_STATES = (State.COMPLETED, State.INFLIGHT, State.REQUESTED)


def commit_build(
    folder: MetadataFolder, kind: PartitionKind, built_at: str, stats: Sequence[WriteStat], table: DataTable
) -> None:
    """Make the files of a build the partition: see `MetadataTable.commit_build`."""
    table.ensure_held()
    for path, instant_time in _files(folder, kind):
        # Files that running writers prepared for the replaced file groups are deleted too.
        if instant_time != built_at:
            folder.store.delete(path)
    # The file is created here and not earlier: the JVM compacts every folder that has this file.
    if folder.store.head(f"{partition_folder(kind.name)}/{PARTITION_METADATA_NAME}") is None:
        create_partition_file(folder.store, kind.name, built_at, now=datetime.now(UTC))
    if kind.definition is not None:
        write_definitions(folder.store, {kind.name: kind.definition})
    # Another process may have taken the build over and completed it: its instant must stay.
    table.ensure_held()
    timeline = folder.timeline()
    if timeline.get(built_at) is not None:
        folder.forget(built_at, Action.DELTA_COMMIT, *_ALL_STATES)
    folder.request(built_at, Action.DELTA_COMMIT)
    folder.begin(built_at, Action.DELTA_COMMIT)
    complete_filling(folder, built_at, _filled(folder, stats), timeline, table)


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
