"""Builds the metadata table from a listing, and deletes partitions of it (docs/format/metadata.md §3.4)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime

from hoodie.errors import UnsupportedError
from hoodie.format.filenames import PARTITION_METADATA_NAME
from hoodie.format.instants.commit_metadata import RuntimeStats, WriteOperation, WriteStat
from hoodie.format.table.partition_metadata import PartitionMetadata
from hoodie.format.table.table_config import TableConfig
from hoodie.format.table.table_creation import new_metadata_table_config
from hoodie.metadata.definitions import define_record_index, drop_definitions
from hoodie.metadata.delta_log import base_file_to_bytes, initial_log_to_bytes
from hoodie.metadata.folder import MetadataFolder, base_name, commit_metadata, log_name, time_after
from hoodie.metadata.kinds.files_partition import FILE_ID_PREFIX, PARTITION, rows_of_listing, rows_to_columns
from hoodie.metadata.places import (
    METADATA_FOLDER,
    METADATA_PROPERTIES,
    file_id_of,
    partition_folder,
)
from hoodie.metadata.record_index import partition as record_index
from hoodie.metadata.record_index.build_instants import build_time
from hoodie.storage import Store
from hoodie.timeline import Action, InstantClock, Timeline

_FIRST_INITIAL_TIME = 0
_INSTANT_DIGITS = 17
_INITIAL_PREFIX = "0" * 14


def initialise(
    store: Store,
    config: TableConfig,
    listing: Mapping[str, Mapping[str, int]],
    *,
    clock: InstantClock,
    data_timeline: Timeline,
) -> None:
    """Create the metadata table with its partition `files`; whatever lies in its folder is deleted first.

    `listing` holds committed files only (`list_from_storage`) and is empty for a fresh table. Call it under the
    table's lock. Readers ignore the result until the caller has added `files` to
    `hoodie.table.metadata.partitions`; if this process dies before that, a second call starts anew.

    Raises:
        UnsupportedError: table version 6, whose metadata table this release does not write.
    """
    if not config.version.has_known_metadata_table:
        raise UnsupportedError("a metadata table of table version 6 cannot be built: upgrade the table to 8 or 9")
    store.delete_folder(METADATA_FOLDER)
    now = datetime.now(UTC)
    store.create(METADATA_PROPERTIES, new_metadata_table_config(config).to_bytes(now))
    folder = MetadataFolder(store, config)
    requested_time = next_initial_time(folder.timeline())
    file_id = file_id_of(FILE_ID_PREFIX, 0)
    create_file_groups(folder, PARTITION, [file_id], requested_time, now=now)
    folder.request(requested_time, Action.DELTA_COMMIT)
    folder.begin(requested_time, Action.DELTA_COMMIT)
    keys, values = rows_to_columns(rows_of_listing(listing))
    data = base_file_to_bytes(keys, values)
    name = base_name(file_id, requested_time)
    store.create(f"{partition_folder(PARTITION)}/{name}", data)
    stat = WriteStat(
        file_id=file_id,
        path=f"{PARTITION}/{name}",
        num_writes=len(keys),
        num_inserts=len(keys),
        total_write_bytes=len(data),
        file_size_bytes=len(data),
        partition_path=PARTITION,
        runtime_stats=RuntimeStats(),
    )
    folder.complete(
        requested_time,
        Action.DELTA_COMMIT,
        commit_metadata(WriteOperation.BULK_INSERT_PREPPED, [stat]).to_bytes(config.version),
        completion_time=time_after(clock, data_timeline),
    )


def initialise_record_index(
    folder: MetadataFolder,
    *,
    buckets: int,
    is_partitioned: bool = False,
    clock: InstantClock,
    data_timeline: Timeline,
) -> None:
    """Create an empty record index of so many buckets; whatever lies in its folder is deleted first.

    For a table without rows; call it under the table's lock. Readers ignore the result until the caller has added
    `record_index` to `hoodie.table.metadata.partitions`; if this process dies before that, a second call starts anew.
    """
    folder.store.delete_folder(partition_folder(record_index.PARTITION))
    timeline = folder.timeline()
    requested_time = initial_time(timeline, clock=clock, data_timeline=data_timeline)
    file_ids = [file_id_of(record_index.FILE_ID_PREFIX, number) for number in range(buckets)]
    create_file_groups(folder, record_index.PARTITION, file_ids, requested_time, now=datetime.now(UTC))
    folder.request(requested_time, Action.DELTA_COMMIT)
    folder.begin(requested_time, Action.DELTA_COMMIT)
    folder.complete(
        requested_time,
        Action.DELTA_COMMIT,
        commit_metadata(WriteOperation.BULK_INSERT_PREPPED, []).to_bytes(folder.config.version),
        completion_time=time_after(clock, data_timeline, timeline),
    )
    define_record_index(folder.store, is_partitioned=is_partitioned)


def initial_time(metadata_timeline: Timeline, *, clock: InstantClock, data_timeline: Timeline) -> str:
    """The instant that fills a new partition of a metadata table that may be old: the counter's next, or one of now.

    Once instants were archived the counter must not be used: the active timeline would begin at zero again, and files
    of archived instants would count as files of instants that never completed.
    """
    start = metadata_timeline.start
    if start is None or start.startswith(_INITIAL_PREFIX):
        return next_initial_time(metadata_timeline)
    return build_time(time_after(clock, data_timeline, metadata_timeline))


def next_initial_time(metadata_timeline: Timeline) -> str:
    """The instant that fills a new partition: a counter of 17 digits, the first one that is free."""
    counter = _FIRST_INITIAL_TIME
    while metadata_timeline.get(text := f"{counter:0{_INSTANT_DIGITS}d}") is not None:
        counter += 1
    return text


def create_file_groups(
    folder: MetadataFolder, partition: str, file_ids: Collection[str], requested_time: str, *, now: datetime
) -> None:
    """Create a partition's folder with one file for each file group: their number is stored nowhere else."""
    metadata = PartitionMetadata(commit_time=requested_time, partition_depth=1)
    folder.store.create(f"{partition_folder(partition)}/{PARTITION_METADATA_NAME}", metadata.to_bytes(now))
    content = initial_log_to_bytes(requested_time)
    for file_id in file_ids:
        folder.store.create(f"{partition_folder(partition)}/{log_name(file_id, requested_time)}", content)


def drop_partitions(store: Store, names: Collection[str]) -> None:
    """Delete metadata partitions and their index definitions; all of the metadata table if `files` is among them.

    Take the names out of `hoodie.table.metadata.partitions` first: readers believe that property. Other files of the
    metadata table stay, its timeline too.
    """
    for name in sorted(names):
        store.delete_folder(partition_folder(name))
    if PARTITION in names:
        store.delete_folder(METADATA_FOLDER)
    drop_definitions(store, names)
