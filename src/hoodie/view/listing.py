"""The files of a view by partition: from the metadata table, else from the folders. docs/format/table.md §2.6, §5.1."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from hoodie.errors import MetadataTableMissingError
from hoodie.format.filenames import PARTITION_METADATA_NAME, BaseFileName, LogFileName
from hoodie.format.table.table_config import BaseFileFormat, TableConfig
from hoodie.metadata.kinds.files import WantedPartitions
from hoodie.metadata.table import MetadataTable
from hoodie.storage import FileInfo, Store
from hoodie.timeline import HOODIE_FOLDER, ArchivedTimeline, Timeline
from hoodie.view.table_view import TableView

_EXTENSIONS = frozenset(kind.extension for kind in BaseFileFormat)


def list_files(view: TableView, partitions: WantedPartitions | None = None) -> Mapping[str, Mapping[str, int]]:
    """Return the files by partition path: from the metadata table if the table has one, else from storage.

    `partitions` are paths, or a function that chooses them among the paths of all partitions.

    A missing metadata table causes a warning, not an error, as it holds derived data.

    Raises: CorruptFileError if the metadata table is damaged.
    """
    if view.config.has_metadata_table:
        with view.state.lock:
            if view.state.metadata_table is None:
                view.state.metadata_table = MetadataTable.open(view.store, view.config)
            if view.state.metadata_table is not None:
                try:
                    return view.state.metadata_table.listing(view.whole_timeline(), partitions)
                except MetadataTableMissingError as error:
                    view.state.warn(f"files are listed from storage, which is slower: {error}")
    listing = list_from_storage(view.store, view.config, view.whole_timeline(), view.archive())
    if partitions is None:
        return listing
    return {path: listing.get(path, {}) for path in (partitions(listing) if callable(partitions) else partitions)}


def partition_paths(view: TableView) -> list[str]:
    """Return the paths of all partitions, in no defined order; no list of files is read of a metadata table."""
    found: list[str] = []

    def none_of(paths: Collection[str]) -> Collection[str]:
        found.extend(paths)
        return ()

    list_files(view, none_of)
    return found


def note_unknown(view: TableView, selected: Collection[str], option: str) -> tuple[str, ...]:
    """Return a note of partitions that an option selects and the table does not have; none if it has all."""
    if not selected:
        return ()
    unknown = ", ".join(sorted(set(selected).difference(partition_paths(view))))
    return (f"the table has no partition {unknown}, which {option} selects",) if unknown else ()


def list_from_storage(
    store: Store, config: TableConfig, timeline: Timeline, archive: ArchivedTimeline
) -> dict[str, dict[str, int]]:
    """List the committed base and log files from storage: partition path -> file name -> size in bytes.

    A folder is a partition if it holds `.hoodie_partition_metadata`; partitions do not nest. Files of instants that are
    neither completed in `timeline` nor archived are left out. All log files of table version 6 are listed: their names
    have the base instant only, and readers check their blocks. Each folder of the table costs one or two listings. The
    archive is read if there are files of instants that are not on the timeline (`committed_times`).

    Raises: CorruptFileError if the archive is damaged.
    """
    found: dict[str, list[tuple[FileInfo, str | None]]] = {}
    folders = [""]
    while folders:
        folder = folders.pop()
        infos = store.list(folder)
        if any(_is_partition_metadata(info.name) for info in infos):
            found[folder] = list(_data_files(config, infos))
        else:
            folders += [below for below in store.folders(folder) if below != HOODIE_FOLDER]
    times = {time for infos_of in found.values() for _, time in infos_of if time is not None}
    committed = committed_times(timeline, archive, times)
    return {
        folder: {info.name: info.size_bytes for info, time in found[folder] if time is None or time in committed}
        for folder in sorted(found)
    }


def _is_partition_metadata(name: str) -> bool:
    return name == PARTITION_METADATA_NAME or (
        name.startswith(f"{PARTITION_METADATA_NAME}.") and name.rpartition(".")[2] in _EXTENSIONS
    )


def _data_files(config: TableConfig, infos: Iterable[FileInfo]) -> Iterator[tuple[FileInfo, str | None]]:
    """Yield base files and log files with the instant that must be committed; None: the file counts in any case."""
    for info in infos:
        base = BaseFileName.parse(info.name)
        if base is not None:
            if base.extension in _EXTENSIONS:
                yield info, base.instant_time
            continue
        log = LogFileName.parse(info.name)
        if log is not None:
            yield info, None if config.version.log_name_has_base_instant else log.instant_time


def committed_times(timeline: Timeline, archive: ArchivedTimeline, times: Collection[str]) -> set[str]:
    """Return those of the times, of instants in names of files, whose files are committed.

    The archive is searched for the instants that are not on the timeline and older than its newest one. A copied table
    may lack its archive or a part of it; instants before both the first archived one and the timeline's start count as
    committed.

    Raises: CorruptFileError if the archive is damaged.
    """
    committed = set(filter(timeline.contains_or_before_start, times))
    old = {time for time in committed if timeline.get(time) is None and time not in timeline.archived}
    unknown = old | missing_between(timeline, timeline, times)
    if not unknown:
        return committed
    oldest = archive.oldest_time()
    if not oldest:
        return committed
    archived = {instant.requested_time for instant in archive.find(unknown)}
    return (committed - unknown) | archived | {time for time in old if time < oldest}


def missing_between(timeline: Timeline, whole: Timeline, times: Collection[str]) -> set[str]:
    """Return the times that miss between others; `whole` has the instants that completed later too.

    Instants after the newest one are new: their writers began after the timeline was loaded.
    """
    newest = whole.latest()
    return set() if newest is None else {t for t in filter(timeline.is_missing, times) if t < newest.requested_time}


def with_archived_between(view: TableView, timeline: Timeline, times: Collection[str]) -> Timeline:
    """Return the timeline with those of the times that are archived, of the instants that miss between others.

    The archive is read if there is such an instant. JVM Hudi leaves them if it deletes a savepoint whose later commits
    are archived.

    Raises: CorruptFileError if the archive is damaged.
    """
    known, missing = view.state.archived_times, missing_between(timeline, view.whole_timeline(), times)
    unknown = {time for time in missing if not known.get(time)}
    if unknown:
        # What is not found is looked up again by the next view: it may complete and be archived until then.
        found = (instant for instant in view.archive().find(unknown) if instant.action.writes_data)
        known.update({instant.requested_time: instant.completion_time or instant.requested_time for instant in found})
    archived = {time: known[time] for time in missing if known.get(time)}
    return replace(timeline, archived={**timeline.archived, **archived}) if archived else timeline
