"""Check the files of a table without reading them, and find what dead writers left.

Data files are compared, by name and length, with the table's commits and with the listing in the metadata table;
`data_check` reads them (docs/format/table.md §5.1). So are files of earlier states and of savepoints. Leftovers are
without committed rows: markers, stages, heartbeats, locks, temporary files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from hoodie.display import command_text, counted
from hoodie.errors import CorruptFileError, HoodieError, TableNotFoundError
from hoodie.files.markers import TEMP_FOLDER
from hoodie.files.slices import FileSlice, join_path, latest_slices
from hoodie.files.staging.row_files import is_unowned_row_folder
from hoodie.files.staging.staged import is_dead_stage_folder
from hoodie.files.table_properties import BACKUP, PROPERTIES
from hoodie.format.filenames import PARTITION_METADATA_NAME, BaseFileName, LogFileName, name_of, parse_data_file
from hoodie.format.instants.planned_replacement import accepted_losses
from hoodie.format.instants.replaced_files import FileGroup, found_by
from hoodie.format.instants.service_metadata import CleanerPlan
from hoodie.format.table.table_config import TableConfig
from hoodie.metadata.paths import METADATA_HOODIE_FOLDER
from hoodie.results import EXAMPLES_MAX
from hoodie.services.check import kinds
from hoodie.services.check.survey import Problem, Survey
from hoodie.services.cleaning.clean import pending_cleans
from hoodie.services.cleaning.execution import files_to_delete
from hoodie.storage import FileInfo, Store
from hoodie.timeline import HOODIE_FOLDER, Action, State, is_live, read_instant
from hoodie.timeline.locks import storage_based, zookeeper
from hoodie.timeline.locks.inspection import is_storage_based
from hoodie.timeline.locks.provider import LockOptions
from hoodie.timeline.owner import Owner
from hoodie.view.history import oldest_readable_instant, read_savepoint, savepointed_instants
from hoodie.view.table_view import TableView

Listing = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class KnownFiles:
    """What the table records about its files: `listing` of the metadata table (None: it has none, or it is damaged).

    `archived` are instants of data files that the archive has, by requested time, with their completion times;
    `in_metadata_table` are the completed delta commits of the metadata table. `slices` are the newest file slices; some
    of their files may not exist. `leaving` are the files that a pending clean deletes, or that a commit gave up: they
    may be gone, and are listed until the clean completes.
    """

    listing: Listing | None
    archived: Mapping[str, str]
    in_metadata_table: frozenset[str]
    slices: tuple[FileSlice, ...] = ()
    leaving: frozenset[str] = frozenset()

    @classmethod
    def of(cls, survey: Survey, listing: Listing | None, in_metadata_table: frozenset[str]) -> KnownFiles:
        """Look up the instants of the files in the archive, and find the newest file slices.

        Raises: CorruptFileError if the archive is damaged.
        """
        before = {
            parsed.instant_time
            for _, _, parsed in survey.data_files.values()
            if survey.timeline.get(parsed.instant_time) is None
        }
        view = survey.view
        archive = view.stored_archive()
        archived = archive.completion_times(before)
        leaving = frozenset((*_leaving(survey), *accepted_losses(survey.commits.values())))
        found = cls(listing, archived, in_metadata_table, leaving=leaving)
        return replace(found, slices=tuple(_newest_slices(survey, found)))

    @cached_property
    def needed(self) -> frozenset[str]:
        """The files of the newest file slices."""
        return frozenset(path for found in self.slices for path in found.paths)

    def lists(self, path: str) -> bool:
        """Return whether the metadata table lists the file."""
        partition_path, _, name = path.rpartition("/")
        return self.listing is not None and name in self.listing.get(partition_path, {})


def file_problems(survey: Survey, known: KnownFiles) -> Iterator[Problem]:
    """Check that needed files exist with their length, that no file is orphaned, and the listing."""
    for path in sorted(known.needed - survey.data_files.keys() - known.leaving):
        yield Problem(kinds.FILE_MISSING, path, "a file", "none")
    for path, size_bytes in survey.recorded.items():
        found = None if path in known.leaving else survey.data_files.get(path)
        if found is None or not size_bytes:
            continue
        found_bytes = found[1].size_bytes
        # A commit may have appended to a log file of version 6 after this one.
        if found_bytes < size_bytes or (found_bytes > size_bytes and not isinstance(found[2], LogFileName)):
            yield Problem(kinds.FILE_LENGTH, path, f"{size_bytes} bytes", f"{found_bytes} bytes")
    orphans = set()
    for path in sorted(survey.data_files):
        kind = _doubt(survey, known, path)
        if kind is not None:
            orphans.add(path)
            yield Problem(kind, path, found=f"{survey.data_files[path][1].size_bytes} bytes")
    if known.listing is not None:
        yield from _listing_problems(survey, known, known.listing, orphans)
    folders = {found[0] for path, found in survey.data_files.items() if path not in orphans}
    marked = {path.rpartition("/")[0] for path, info in survey.files.items() if _is_partition_metadata(info.name)}
    for folder in sorted(folders - marked):
        yield Problem(kinds.PARTITION_FILE_MISSING, join_path(folder, PARTITION_METADATA_NAME), "a file", "none")


def _is_before_start(survey: Survey, instant_time: str) -> bool:
    start = survey.timeline.start
    return start is not None and instant_time < start and survey.timeline.get(instant_time) is None


def _is_of_slice(survey: Survey, path: str) -> bool:
    """Return whether a log file may be one of version 6, whose name has the instant of its file slice.

    In a table that was upgraded: if a base file of its group has this instant, or it is not the first of the slice.
    """
    config = survey.view.config
    if config.version.log_name_has_base_instant or not config.may_have_slice_logs:
        return config.version.log_name_has_base_instant
    partition_path, _, log = survey.data_files[path]
    is_later = isinstance(log, LogFileName) and log.version > 1
    return is_later or (partition_path, log.file_id, log.instant_time) in survey.base_instants


def _doubt(survey: Survey, known: KnownFiles, path: str) -> kinds.FindingKind | None:
    """Return why the file may not be one of the table; None if a completed or pending instant names it."""
    _, _, parsed = survey.data_files[path]
    is_log = isinstance(parsed, LogFileName)
    if path in survey.recorded or (is_log and _is_of_slice(survey, path)):
        return None
    instant = survey.timeline.get(parsed.instant_time)
    if instant is not None:
        is_checked = instant.is_completed and instant not in survey.damaged and instant.action.writes_data
        return kinds.FILE_ORPHANED if is_checked and not known.lists(path) else None
    if parsed.instant_time in known.archived or parsed.instant_time in survey.written_late:
        return None
    if _is_before_start(survey, parsed.instant_time) or not survey.timeline.instants:
        if known.lists(path):
            return None
        # Without a listing only the archive could name the instant, and a copied table may lack a part of its archive.
        is_sure = known.listing is not None and bool(survey.timeline.instants)
        return kinds.FILE_ORPHANED if is_sure else kinds.FILE_UNKNOWN
    is_lost = parsed.instant_time in known.in_metadata_table or parsed.instant_time in survey.bases
    return kinds.INSTANT_LOST if is_lost else kinds.FILE_ORPHANED


def _leaving(survey: Survey) -> Iterator[str]:
    """Yield the files of the plans of inflight cleans; the timeline's check reports a plan that does not parse."""
    view = survey.view
    for clean in pending_cleans(view):
        if clean.state is State.INFLIGHT:
            with suppress(HoodieError):
                content = read_instant(view.store, view.layout, clean, State.REQUESTED)
                plan = CleanerPlan.parse(content, path=view.path_of(clean))
                for partition_path, names in files_to_delete(view, plan, by=str(clean)).items():
                    yield from (join_path(partition_path, name) for name in names)


def _newest_slices(survey: Survey, known: KnownFiles) -> list[FileSlice]:
    """Return the newest slices of all files that exist, are recorded or are listed."""
    together: dict[str, dict[str, int]] = {}
    for path, (partition_path, info, parsed) in survey.data_files.items():
        is_old = _is_before_start(survey, parsed.instant_time) and parsed.instant_time not in known.archived
        if not is_old and _doubt(survey, known, path) is None:
            together.setdefault(partition_path, {})[info.name] = info.size_bytes
    for path, size_bytes in survey.recorded.items():
        partition_path, _, name = path.rpartition("/")
        together.setdefault(partition_path, {}).setdefault(name, size_bytes)
    for partition_path, names in (known.listing or {}).items():
        for name, size_bytes in names.items():
            together.setdefault(partition_path, {}).setdefault(name, size_bytes)
    replaced: dict[str, set[str]] = {}
    for instant, commit in survey.commits.items():
        if instant.action is Action.REPLACE_COMMIT:
            for partition_path, file_ids in (commit.partition_to_replace_file_ids or {}).items():
                replaced.setdefault(partition_path, set()).update(file_ids)
    version = survey.view.config.version
    timeline = survey.timeline
    if version.has_completion_time_in_name:
        timeline = replace(timeline, archived={**timeline.archived, **known.archived})
    return latest_slices(together, timeline, replaced, version=version)


def history_problems(survey: Survey, known: KnownFiles) -> Iterator[Problem]:
    """Check the base files that commits replaced, and the files that savepoints name; one read for each savepoint.

    All states that no clean has passed are checked. The newest rows do not need these files, so that a listing that was
    built anew does not show that one is lost. A savepoint or clean that does not parse is left out: the check of the
    timeline reports it.
    """
    there = survey.data_files.keys() | known.leaving | known.needed
    saved: dict[str, list[str]] = {}
    for path, commit in _of_savepoints(survey.view):
        if path not in there:
            saved.setdefault(commit, []).append(path)
    for commit, paths in sorted(saved.items()):
        missing = f"{counted(len(paths), 'files')} missing: {', '.join(sorted(paths)[:EXAMPLES_MAX])}"
        yield Problem(kinds.SAVEPOINT_FILE_MISSING, commit, "all files that the savepoint names", missing)
    there = there.union(*saved.values())
    with suppress(CorruptFileError):
        replaced = {path: commit for path, commit in _replaced(survey) if path not in there}
        for path, commit in sorted(replaced.items()):
            yield Problem(kinds.HISTORY_FILE_MISSING, path, f"a file, which {commit} replaced", "none")


def _of_savepoints(view: TableView) -> Iterator[tuple[str, str]]:
    """Yield the paths of the files of each savepoint, with its commit.

    A savepoint of the JVM can name log files that were written after its commit, and may have been rolled back.
    """
    for commit in savepointed_instants(view):
        savepoint = view.timeline.get(commit, Action.SAVEPOINT)
        with suppress(CorruptFileError):
            for path, names in read_savepoint(view, savepoint).files.items() if savepoint else ():
                for name in names:
                    parsed = parse_data_file(name)
                    is_log = isinstance(parsed, LogFileName)
                    if parsed and not (is_log and (view.config.may_have_slice_logs or parsed.instant_time > commit)):
                        yield join_path(path, name), commit


def _replaced(survey: Survey) -> Iterator[tuple[str, str]]:
    """Yield the paths of the base files that a state which is not cleaned needs, with the commit that replaced each."""
    view, earliest = survey.view, oldest_readable_instant(survey.view)
    bases: dict[FileGroup, list[tuple[str, str]]] = {}
    for path in survey.recorded:
        name = parse_data_file(path)
        if isinstance(name, BaseFileName):
            bases.setdefault((path.rpartition("/")[0], name.file_id), []).append((name.instant_time, path))
    for instant, commit in survey.commits.items():
        # A clean keeps what the state as of its earliest commit needs; what that commit replaced may be gone.
        for was in found_by(commit).replaced if instant.requested_time > earliest else ():
            if was.base is not None and view.timeline.contains_or_before_start(was.base.instant_time):
                yield join_path(was.group[0], was.base.name), instant.requested_time
            elif was.is_ended:
                before = [found for found in bases.get(was.group, ()) if found[0] < instant.requested_time]
                yield from ((path, instant.requested_time) for _, path in before and [max(before)])


def _listing_problems(survey: Survey, known: KnownFiles, listing: Listing, orphans: set[str]) -> Iterator[Problem]:
    listed = {join_path(path, name): size for path, names in listing.items() for name, size in names.items()}
    for path, size_bytes in sorted(listed.items()):
        found = survey.data_files.get(path)
        if found is None:
            if path not in known.needed and path not in known.leaving:
                yield Problem(kinds.LISTING_STALE, path, "a file", "none")
        elif size_bytes and not _is_listed_length(survey, found, size_bytes):
            found_bytes, recorded = found[1].size_bytes, survey.recorded.get(path)
            if recorded and recorded != found_bytes:
                continue  # `file_problems` reports the file
            # Without a record the listing was right when it was written, so a file that is shorter was cut.
            kind = kinds.LISTING_LENGTH if recorded or found_bytes > size_bytes else kinds.FILE_LENGTH
            yield Problem(kind, path, f"{size_bytes} bytes", f"{found_bytes} bytes")
    for path in sorted(survey.data_files.keys() - listed.keys() - orphans):
        _, _, parsed = survey.data_files[path]
        instant = survey.timeline.get(parsed.instant_time)
        is_committed = parsed.instant_time in known.archived or (instant is not None and instant.is_completed)
        if isinstance(parsed, LogFileName) and _is_of_slice(survey, path):
            # Its name has the instant of its file slice: a pending write may have written it.
            is_committed = path in survey.recorded
        if is_committed and not (isinstance(parsed, LogFileName) and parsed.is_cdc):
            yield Problem(kinds.LISTING_LACKS, path, "an entry", "none")


def _is_listed_length(survey: Survey, found: tuple[str, FileInfo, BaseFileName | LogFileName], listed: int) -> bool:
    """Return whether the listing may have this length of a file.

    In version 6 a rolled back log file is listed with any length from 1 byte on, and writers may append to log files.
    """
    _, info, parsed = found
    is_log = isinstance(parsed, LogFileName) and _is_of_slice(survey, info.path)
    return info.size_bytes == listed or (is_log and info.size_bytes > listed)


def _is_partition_metadata(name: str) -> bool:
    return name == PARTITION_METADATA_NAME or name.startswith(f"{PARTITION_METADATA_NAME}.")


_LOCKS = f"{HOODIE_FOLDER}/.locks"
_LOCK_FILES = ("prepared-", "takeover-")
_PREPARED_MS_MAX = 10 * 60_000
"""A writer that runs has such a file for moments, whichever lock provider it uses."""
_SILENT_MS = 3_600_000
"""A storage-based lock that ended so long ago and was not released is worth a note."""


def property_problems(store: Store) -> Iterator[Problem]:
    """Check hoodie.properties and its backup. One is whole: else the table cannot be opened.

    Raises: TableNotFoundError.
    """
    has_backup = store.head(BACKUP) is not None
    try:
        TableConfig.parse(store.read(PROPERTIES), path=store.uri(PROPERTIES))
    except FileNotFoundError as error:
        if not has_backup:
            raise TableNotFoundError(f"{store.uri('')} has neither {PROPERTIES} nor its backup") from error
        yield Problem(kinds.PROPERTIES_DAMAGED, PROPERTIES, "a file", "none")
    except CorruptFileError as error:
        yield Problem(kinds.PROPERTIES_DAMAGED, PROPERTIES, "whole properties", str(error))
    else:
        if has_backup:
            yield Problem(kinds.PROPERTIES_BACKUP, BACKUP)


def leftover_problems(survey: Survey, *, now_ms: int) -> Iterator[Problem]:
    """Find leftovers; what a running writer may own is not found."""
    store = survey.view.store
    found = _storage_based(survey)
    if found is not None and found[1] is None and is_storage_based(store, tuple(survey.directly_in(_LOCKS))):
        # No writer can take the lock.
        yield Problem(kinds.LOCK_DAMAGED, found[0], "JSON with expired, validUntil and owner", "other bytes")
    pending = {instant.requested_time for instant in survey.timeline.pending()}
    for folder in _folders_of(survey, TEMP_FOLDER):
        name = name_of(folder)
        if name.isdigit():
            if name not in pending and not is_live(store, name):
                yield Problem(kinds.LEFTOVER_MARKERS, folder)
        elif is_dead_stage_folder(store, folder, now_ms=now_ms):
            yield Problem(kinds.LEFTOVER_STAGE, folder)
    for base in (HOODIE_FOLDER, METADATA_HOODIE_FOLDER):
        for info in survey.directly_in(f"{base}/.heartbeat"):
            if info.name not in pending and not is_live(store, info.name, folder=base):
                yield Problem(kinds.LEFTOVER_HEARTBEAT, info.path)
    for info in survey.directly_in(_LOCKS):
        is_old = now_ms - info.modified_ms > _PREPARED_MS_MAX
        if info.name.startswith(_LOCK_FILES) and is_old and _is_of_dead(survey, info.path, info.name, now_ms):
            yield Problem(kinds.LEFTOVER_LOCK, info.path)
    if (lock := survey.files.get(f"{HOODIE_FOLDER}/lock")) is not None and _is_of_dead(survey, lock.path, "", now_ms):
        yield Problem(kinds.LEFTOVER_LOCK, lock.path)
    for info in store.temporary_files():
        yield Problem(kinds.LEFTOVER_TEMPORARY, info.path, found=f"{info.size_bytes} bytes")


def stage_notes(survey: Survey, *, now_ms: int) -> Iterator[str]:
    """Yield a note for staged rows that may belong to a running stream: it is unknown whether their writer runs."""
    store = survey.view.store
    for folder in _folders_of(survey, TEMP_FOLDER):
        if is_unowned_row_folder(folder) and not is_dead_stage_folder(store, folder, now_ms=now_ms):
            yield (
                f"{folder} has staged rows of a data source write that may run; the next write or repair deletes them "
                "a day after their last change"
            )


def lock_notes(survey: Survey, properties: Mapping[str, str], *, now_ms: int) -> Iterator[str]:
    """Say which locks were not released, and which were not looked at. `properties` are the options of the call."""
    path, lock = _storage_based(survey) or ("", None)
    if lock is not None and not lock.is_released and now_ms - lock.valid_until_ms > _SILENT_MS:
        yield (
            f"{path} was not released by {lock}: that writer ended without doing so; its lock has ended, and the next "
            "writer takes it"
        )
    provider = LockOptions.of(properties, survey.view.config.raw).provider
    if provider in (zookeeper.NAME, zookeeper.IMPLICIT_NAME):
        command = command_text("hoodie inspect TABLE locks", survey.view.store.uri(""))
        yield f"the lock in ZooKeeper was not looked at: `{command}` shows who holds it"


def _storage_based(survey: Survey) -> tuple[str, storage_based.LockFile | None] | None:
    """Return the path and the content of the storage-based lock's file, None if it is no lock; None without a file."""
    path = f"{_LOCKS}/{storage_based.FILE_NAME}"
    if path not in survey.files:
        return None
    try:
        return path, storage_based.LockFile.parse(survey.view.store.read(path))
    except FileNotFoundError:
        return None


def _folders_of(survey: Survey, folder: str) -> list[str]:
    """Return the folders in a folder: those with files, and empty ones of a local disk."""
    prefix = f"{folder}/"
    with_files = {prefix + info.path[len(prefix) :].partition("/")[0] for info in survey.below(folder)}
    return sorted(with_files | set(survey.view.store.folders(folder)))


def _is_of_dead(survey: Survey, path: str, name: str, now_ms: int) -> bool:
    """Return whether the writer of a lock file is known to be dead; a prepared file belongs to the holder of the lock.

    The next holder of the lock deletes prepared files before it does anything else, so one without a lock is left over.
    """
    store = survey.view.store
    if name.startswith("prepared-"):
        found = _storage_based(survey)
        is_held = found is not None and (found[1] is None or found[1].is_valid(now_ms))
        return not is_held and store.head(f"{HOODIE_FOLDER}/lock") is None
    try:
        owner = Owner.read(store, path)
    except FileNotFoundError:
        return False
    return owner is not None and owner.is_running() is False
