"""The files of a view: its listing and its file slices, from the metadata table, else from the folders.

docs/format/table.md §2.6 to §2.8, §5.1. The archive is read only if the active timeline cannot answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from hoodie.engine import EngineFor, local_engine
from hoodie.errors import MetadataTableMissingError
from hoodie.files.logs.log_scan import logs_of_instant
from hoodie.files.slices import FileSlice, Listing, latest_slices, logs_in_doubt
from hoodie.format.filenames import PARTITION_METADATA_NAME, BaseFileName, LogFileName, instant_of_data_file
from hoodie.format.table.table_config import BaseFileFormat, TableConfig, TableType
from hoodie.metadata.data_table import DataTable
from hoodie.metadata.kinds.files import WantedPartitions
from hoodie.metadata.table import MetadataTable
from hoodie.storage import FileInfo, Store
from hoodie.timeline import HOODIE_FOLDER, ArchivedTimeline, Instant, Timeline
from hoodie.view.lost_instants import REPLACING, LostInstant, gone_instants, lost_and_recorded, recorded_by_last_listing
from hoodie.view.saved_slices import SavedSnapshot
from hoodie.view.table_view import TableView

_EXTENSIONS = frozenset(kind.extension for kind in BaseFileFormat)


def data_table(view: TableView, engine_for: EngineFor = local_engine) -> DataTable:
    """Return the table as the metadata table and its partition kinds see it; a change needs a view under the lock."""
    return DataTable(
        store=view.store,
        config=view.config,
        timeline=view.timeline,
        clock=view.clock,
        create_last=lambda path, content: view.held_lock.create_last(path, content),
        ensure_held=lambda: view.held_lock.ensure_held(),
        columns=lambda: view.schema().arrow,
        has_archived_instants=view.has_archived_instants,
        list_files=lambda: list_from_storage(view.store, view.config, view.timeline, view.archive()),
        slices=partial(list_slices, view),
        engine_for=engine_for,
    )


def list_slices(
    view: TableView, partitions: WantedPartitions | None = None, *, as_of: str | None = None
) -> list[FileSlice]:
    """Return the latest committed file slices of all or some partitions, now or as of a requested time (inclusive).

    `partitions` as in `list_files`. Behind a clean, the snapshots of commits with a savepoint are readable.

    Raises: HistoryLostError if the cleaner removed files that `as_of` needs; CorruptFileError.
    """
    saved = SavedSnapshot.needed_by(view, as_of)
    listing = list_files(view, partitions)
    slices = _slices_of(view, listing, as_of, partitions)
    if saved is not None:
        saved.check(slices, None if partitions is None else listing.keys())
    return slices


def list_existing_slices(view: TableView, partitions: Collection[str], *, as_of: str | None = None) -> list[FileSlice]:
    """Return the slices as `list_slices`, made of the files that exist: the caller checks that none was cleaned."""
    return _slices_of(view, list_files(view, partitions), as_of, partitions)


def _slices_of(
    view: TableView, listing: Mapping[str, Mapping[str, int]], as_of: str | None, partitions: WantedPartitions | None
) -> list[FileSlice]:
    version, timeline = view.config.version, with_archived_logs(view, listing)
    replaced, ignored = view.replaced_file_ids(as_of), set[str]()
    slices = latest_slices(listing, timeline, replaced, as_of=as_of, version=version, ignored=ignored)
    whole = with_archived_between(view, timeline, ignored)
    if whole is not timeline:
        slices = latest_slices(listing, whole, replaced, as_of=as_of, version=version)
    _check_no_instant_is_lost(view, slices, ignored - whole.archived.keys(), partitions=partitions, as_of=as_of)
    return slices


def _check_no_instant_is_lost(
    view: TableView,
    slices: Sequence[FileSlice],
    unknown: Iterable[str],
    *,
    partitions: WantedPartitions | None,
    as_of: str | None,
) -> None:
    """Refuse a read whose file slices lack files of a lost instant.

    `unknown` are the instants of listed files that are neither on the timeline nor archived. Without them and without
    pending writes that the last listing knew as recorded, it takes no request.

    Raises: CorruptFileError.
    """
    lost = [
        found
        for found in (*lost_and_recorded(view), *gone_instants(view, unknown))
        if as_of is None or found.requested_time <= as_of
    ]
    if not lost:
        return
    gone = {found.requested_time: found.recorded_at or found.requested_time for found in lost}
    timeline = view.timeline.filter(lambda instant: instant.requested_time not in gone)
    mended = replace(view, timeline=replace(timeline, archived={**timeline.archived, **gone}))
    needed = list_slices(mended, partitions, as_of=as_of)
    has = {path for found in slices for path in found.paths}
    missing = {path for found in needed for path in found.paths} - has
    logs = [log for found in needed for log in found.log_files if log.path in missing]
    for one in lost:
        names_it = any(instant_of_data_file(path) == one.requested_time for path in missing)
        if view.config.version.log_name_has_base_instant and not names_it:
            names_it = bool(logs_of_instant(view.store, logs, one.requested_time))
        if names_it or (one.instant is not None and one.instant.action in REPLACING):
            raise one.error(view)


def list_files(view: TableView, partitions: WantedPartitions | None = None) -> Mapping[str, Mapping[str, int]]:
    """Return the files by partition path: from the metadata table if the table has one, else from storage.

    `partitions` are paths, or a function that chooses them among the paths of all partitions.

    A metadata table that is missing is no error, as it holds derived data: a warning says so.

    Raises: CorruptFileError if the metadata table is damaged.
    """
    if view.lists_by_partition:
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


def check_span(view: TableView, start: str) -> None:
    """Refuse an incremental read of the writes of the view after `start` if one of them is lost.

    Call it after the files were listed. `start` is an order time. Raises: CorruptFileError.
    """
    recorded = {time: at for time, at in recorded_by_last_listing(view).items() if at > start}
    gone: list[LostInstant] = []
    if any(map(view.whole_timeline().is_missing, recorded)):
        listed = {instant_of_data_file(name) or "" for names in list_files(view).values() for name in names}
        gone = gone_instants(view, listed & recorded.keys())
    for lost in (*lost_and_recorded(view), *gone):
        if lost.requested_time in recorded:
            raise lost.error(view)


def with_archived_logs(view: TableView, listing: Listing) -> Timeline:
    """Return the view's timeline with the completion times of archived instants that log files in `listing` need.

    The archive is read for merge-on-read tables only, and once for each instant.
    """
    timeline, known = view.timeline, view.state.archived_times
    if view.config.table_type is not TableType.MERGE_ON_READ or view.config.version.log_name_has_base_instant:
        return timeline
    in_doubt = {time for names in listing.values() for time in logs_in_doubt(names, timeline.start)}
    whole = view.whole_timeline()
    in_doubt = {time for time in in_doubt if whole.get(time) is None}
    unknown = in_doubt - known.keys()
    if unknown:
        found = {instant.requested_time: instant for instant in view.archive().find(unknown) if _is_write(instant)}
        # An instant that is not archived never completed; its completion time is not looked up again.
        known.update({time: _completion_time(found, time) for time in unknown})
    archived = {time: known[time] for time in in_doubt if known[time]}
    return replace(timeline, archived={**timeline.archived, **archived}) if archived else timeline


def with_archived_between(view: TableView, timeline: Timeline, times: Collection[str]) -> Timeline:
    """Return the timeline with those of the times that are archived, of the instants that miss between others.

    The archive is read if there is such an instant. JVM Hudi leaves them if it deletes a savepoint whose later commits
    are archived.

    Raises: CorruptFileError if the archive is damaged.
    """
    known, missing = view.state.archived_times, _missing_between(timeline, view.whole_timeline(), times)
    unknown = {time for time in missing if not known.get(time)}
    if unknown:
        # What is not found is looked up again by the next view: it may complete and be archived until then.
        found = (instant for instant in view.archive().find(unknown) if instant.action.writes_data)
        known.update({instant.requested_time: instant.completion_time or instant.requested_time for instant in found})
    archived = {time: known[time] for time in missing if known.get(time)}
    return replace(timeline, archived={**timeline.archived, **archived}) if archived else timeline


def committed_times(timeline: Timeline, archive: ArchivedTimeline, times: Collection[str]) -> set[str]:
    """Return those of the times, of instants in names of files, whose files are committed.

    The archive is asked for the instants that are not on the timeline and older than its newest one. Those before the
    first archived instant count as committed if they are before the timeline's start: of a copy without history, or
    with a part of it, nothing tells.

    Raises: CorruptFileError if the archive is damaged.
    """
    committed = set(filter(timeline.contains_or_before_start, times))
    old = {time for time in committed if timeline.get(time) is None and time not in timeline.archived}
    unknown = old | _missing_between(timeline, timeline, times)
    if not unknown:
        return committed
    oldest = archive.oldest_time()
    if not oldest:
        return committed
    archived = {instant.requested_time for instant in archive.find(unknown)}
    return (committed - unknown) | archived | {time for time in old if time < oldest}


def _missing_between(timeline: Timeline, whole: Timeline, times: Collection[str]) -> set[str]:
    """Return the times that miss between others; `whole` has the instants that completed later too.

    Instants after the newest one are new: their writers began after the timeline was loaded.
    """
    newest = whole.latest()
    return set() if newest is None else {t for t in filter(timeline.is_missing, times) if t < newest.requested_time}


def _is_write(instant: Instant) -> bool:
    return instant.action.writes_data


def _completion_time(found: Mapping[str, Instant], requested_time: str) -> str:
    instant = found.get(requested_time)
    return "" if instant is None else instant.completion_time or requested_time
