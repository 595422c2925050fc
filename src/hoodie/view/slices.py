"""The file slices of a view, from its listing and its timeline.

docs/format/table.md §2.6 to §2.8, §5.1. The archive is read only if the active timeline cannot answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from hoodie.engine import EngineFor, local_engine
from hoodie.errors import HistoryLostError
from hoodie.files.damage import lost_file
from hoodie.files.logs.log_scan import logs_of_instant
from hoodie.files.slices import FileSlice, Listing, latest_slices, logs_in_doubt
from hoodie.format.filenames import instant_of_data_file
from hoodie.format.table.table_config import TableType
from hoodie.metadata.data_table import DataTable
from hoodie.metadata.kinds.files import WantedPartitions
from hoodie.timeline import Timeline
from hoodie.view.columns import moved_columns
from hoodie.view.listing import list_files, list_from_storage, with_archived_between
from hoodie.view.lost_instants import REPLACING, LostInstant, gone_instants, lost_and_recorded, recorded_by_last_listing
from hoodie.view.saved_slices import SavedSnapshot
from hoodie.view.still_there import check_files_stay
from hoodie.view.superseded import lost_before
from hoodie.view.table_view import TableView


def data_table(view: TableView, engine_for: EngineFor = local_engine) -> DataTable:
    """Return the table as the metadata table and its partition kinds see it; a change needs a view under the lock."""
    return DataTable(
        store=view.store,
        config=view.config,
        timeline=view.timeline,
        clock=view.clock,
        create_last=lambda path, content: view.held_lock.create_last(path, content),
        prepare=lambda content: view.held_lock.prepare(content),
        ask_if_held=lambda content: view.held_lock.ask_if_held(content),
        ask_next=lambda: view.held_lock.ask_next(),
        ensure_held=lambda: view.held_lock.ensure_held(),
        columns=lambda: view.schema().arrow,
        moved_columns=partial(moved_columns, view),
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

    Of an earlier state it reads the commits that completed after it, as a listing does not show that a file was lost.

    Raises: HistoryLostError if the cleaner removed files that `as_of` needs; MissingFileError if somebody deleted one;
        CorruptFileError.
    """
    saved = SavedSnapshot.needed_by(view, as_of)
    listing = list_files(view, partitions)
    slices = _slices_of(view, listing, as_of, partitions)
    asked = None if partitions is None else listing.keys()
    if saved is not None:
        saved.check(slices, asked)
    else:
        _check_no_file_is_lost(view, slices, asked, as_of)
    return slices


def list_existing_slices(view: TableView, partitions: Collection[str]) -> list[FileSlice]:
    """Return the slices as `list_slices`, made of the files that exist: the caller checks that none was cleaned."""
    return _slices_of(view, list_files(view, partitions), None, partitions)


def _check_no_file_is_lost(
    view: TableView, slices: Sequence[FileSlice], partitions: Collection[str] | None, as_of: str | None
) -> None:
    """Refuse an earlier state if somebody deleted one of its files. Of the newest state it takes no request.

    Raises: MissingFileError; ViewOvertakenError if others have taken the files since the view was loaded.
    """
    later = [found for found in view.completed_later if found.action.writes_data]
    if as_of is not None:
        later += [found for found in view.timeline.writes().completed() if found.requested_time > as_of]
    lost = lost_before(view, slices, later, partitions=partitions, as_of=as_of) if later else []
    if lost:
        check_files_stay(view, as_of)
        raise lost_file(view.store, lost[0], others=len(lost) - 1)


def _slices_of(
    view: TableView, listing: Mapping[str, Mapping[str, int]], as_of: str | None, partitions: WantedPartitions | None
) -> list[FileSlice]:
    slices, unknown = slices_of_listing(view, listing, as_of)
    _check_no_instant_is_lost(view, slices, unknown, partitions=partitions, as_of=as_of)
    return slices


def slices_of_listing(view: TableView, listing: Listing, as_of: str | None = None) -> tuple[list[FileSlice], set[str]]:
    """Return the newest committed slices of listed files; and the instants of files that are not known as committed."""
    version, timeline = view.config.version, with_archived_logs(view, listing)
    replaced, ignored = view.replaced_file_ids(as_of), set[str]()
    slices = latest_slices(listing, timeline, replaced, as_of=as_of, version=version, ignored=ignored)
    whole = with_archived_between(view, timeline, ignored)
    if whole is not timeline:
        slices = latest_slices(listing, whole, replaced, as_of=as_of, version=version)
    return slices, ignored - whole.archived.keys()


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
    names_base = view.config.version.log_name_has_base_instant
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
    try:
        needed = list_slices(mended, partitions, as_of=as_of)
    except HistoryLostError:
        # A clean counted the instant as the oldest one to keep.
        raise max(lost, key=lambda one: one.requested_time).error(view) from None
    has = {path for found in slices for path in found.paths}
    missing = {path for found in needed for path in found.paths} - has
    logs = [log for found in needed for log in found.log_files]
    for one in lost:
        names_it = any(instant_of_data_file(path) == one.requested_time for path in missing)
        if names_base and not names_it:
            names_it = bool(logs_of_instant(view.store, logs, one.requested_time))
        if names_it or (one.instant is not None and one.instant.action in REPLACING):
            raise one.error(view)


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
        found = (instant for instant in view.archive().find(unknown) if instant.action.writes_data)
        archived = {instant.requested_time: instant.completion_time or instant.requested_time for instant in found}
        # An instant that is not archived never completed; its completion time is not looked up again.
        known.update(dict.fromkeys(unknown, "") | archived)
    archived = {time: known[time] for time in in_doubt if known[time]}
    return replace(timeline, archived={**timeline.archived, **archived}) if archived else timeline
