"""Compare the log files of metadata partitions with the log files that the delta commits recorded.

A file of the metadata table that is missing is in no listing: only the commits tell that it existed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from hoodie.errors import InstantNotFoundError
from hoodie.files.damage import check_length
from hoodie.files.slices import FileSlice
from hoodie.format.filenames import LogFileName, name_of
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.metadata.archived_logs import with_archived_fills
from hoodie.metadata.build_instants import fills_a_partition
from hoodie.metadata.damage import expected_metadata_file
from hoodie.metadata.places import METADATA_COMMITS, partition_folder
from hoodie.storage import Store
from hoodie.timeline import Action, Instant, Timeline, read_instant


def check_recorded_logs(
    store: Store,
    slices: Mapping[str, Sequence[FileSlice]],
    timeline: Timeline,
    *,
    times: Collection[str] | None = None,
) -> None:
    """Check that each log file that a delta commit recorded exists and has its length.

    `slices` are the newest slices of metadata partitions, by partition. `times` limits the check to delta commits with
    these requested times. One read for each delta commit since the last compaction; if the instant that filled a
    partition is archived, three requests more, once for each process.

    Raises:
        MissingFileError: a log file does not exist.
        CorruptFileError: a log file has another length, or a commit does not parse.
    """
    timeline = with_archived_fills(store, timeline, [found for group in slices.values() for found in group])
    for instant in timeline:
        if not _is_delta(instant) or (times is not None and instant.requested_time not in times):
            continue
        if not any(_belongs(instant, found, timeline) for group in slices.values() for found in group):
            continue
        try:
            content = read_instant(store, METADATA_COMMITS.layout, instant, folder=METADATA_COMMITS.folder)
        except InstantNotFoundError:
            # Archived since the timeline was loaded: a compaction has its rows.
            continue
        recorded = CommitMetadata.parse(content, path=str(instant)).partition_to_write_stats
        for partition, group in slices.items():
            stats = {stat.path or "": stat.file_size_bytes for stat in recorded.get(partition, ())}
            current = [found for found in group if _belongs(instant, found, timeline)]
            _check_partition(store, partition, current, stats)


def unlogged_instants(timeline: Timeline, found: FileSlice) -> Iterator[str]:
    """Yield the requested times of delta commits that should have a log file in the slice and have none.

    `timeline` has the completion time of the instant that filled the partition: see `with_archived_fills`.
    """
    logged = {log.name.instant_time for log in found.log_files}
    for instant in timeline:
        time = instant.requested_time
        if (
            _is_delta(instant)
            and time not in logged
            and not fills_a_partition(time)
            and _belongs(instant, found, timeline)
        ):
            yield time


def _check_partition(store: Store, partition: str, group: Sequence[FileSlice], recorded: Mapping[str, int]) -> None:
    by_id = {found.file_id: found for found in group}
    for path, size_bytes in recorded.items():
        name = LogFileName.parse(name_of(path))
        found = None if name is None else by_id.get(name.file_id)
        if name is None or found is None:
            continue
        stored = {log.name.name: log.size_bytes for log in found.log_files}
        full = f"{partition_folder(partition)}/{name.name}"
        with expected_metadata_file(store, full):
            if name.name not in stored:
                raise FileNotFoundError(full)
            check_length(store, full, listed_bytes=size_bytes, found_bytes=stored[name.name])


def _is_delta(instant: Instant) -> bool:
    return instant.is_completed and instant.action is Action.DELTA_COMMIT


def _belongs(instant: Instant, found: FileSlice, timeline: Timeline) -> bool:
    """Return whether log files of a delta commit belong to the slice.

    Commits before the first log file of a slice without a base file may have written to a partition that was dropped.
    A build that fills a partition deletes the log files of all commits that completed before it, and has their entries.
    If it is not known when the build completed, only the commits whose log files are in the slice belong to it.
    """
    base_time = found.base_instant_time
    if fills_a_partition(base_time) and instant.requested_time != base_time:
        filled_at = timeline.completion_time_of(base_time)
        if filled_at is not None:
            return (instant.completion_time or instant.requested_time) > filled_at
        if timeline.get(base_time) is None:
            return any(log.name.instant_time == instant.requested_time for log in found.log_files)
    if found.base_file is None:
        return instant.requested_time >= base_time
    return (instant.completion_time or instant.requested_time) >= base_time
