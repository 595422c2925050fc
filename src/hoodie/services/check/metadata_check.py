"""Check the metadata table against the data table's timeline; its listing is compared in `files_check`.

docs/format/metadata.md §3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from hoodie.engine import LocalEngine, TaskContext
from hoodie.errors import CorruptFileError, HoodieError, MetadataTableMissingError
from hoodie.files.logs.log_scan import ScanRule, scan_blocks
from hoodie.files.slices import BaseFile, FileSlice, LogFile, latest_slices
from hoodie.format.filenames import instant_of_data_file
from hoodie.format.hfile import HFileReader
from hoodie.format.log.delete_block import DeleteRecords
from hoodie.format.log.log_block import BlockType
from hoodie.index import lost_record_index
from hoodie.index.record.building.plan import pending_indexing
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.instants import build_time, fills_a_partition, visible_instants, with_archived_logs
from hoodie.metadata.kinds.registry import KINDS
from hoodie.metadata.paths import METADATA_COMMITS, METADATA_FOLDER, partition_folder
from hoodie.metadata.services.compaction import missing_files
from hoodie.metadata.slices import StoredFile, check_recorded_logs
from hoodie.metadata.table import MetadataTable
from hoodie.services.check import kinds
from hoodie.services.check.survey import Problem, Survey
from hoodie.storage import Store
from hoodie.timeline import HOODIE_FOLDER, Action, Instant, State, Timeline
from hoodie.view.slices import data_table

_WHOLE_BYTES: Final = 128 * 1024
"""Opening an HFile reads so many bytes of its end: of a smaller file, all entries are checked with the same request."""
_RULE: Final = ScanRule(commits=METADATA_COMMITS)


def damaged_files(store: Store, slices: Iterable[FileSlice]) -> Iterator[tuple[str, str]]:
    """Yield the paths of damaged or missing files of these slices, each with what is wrong.

    Costs two or three requests for each file, several files at once. Memory: the index of an HFile, or 4 MiB of a log
    file, for each thread.
    """
    files: list[BaseFile | LogFile] = []
    for found in slices:
        files += [found.base_file] if found.base_file is not None else []
        files += found.log_files

    def check(file: BaseFile | LogFile, _context: TaskContext) -> str:
        try:
            if isinstance(file, BaseFile):
                _check_hfile(StoredFile(store, file.path, file.size_bytes), store.uri(file.path))
            else:
                _check_log(store, file)
        except CorruptFileError as error:
            return str(error)
        return ""

    for file, problem in zip(files, LocalEngine().run(check, files), strict=True):
        if problem:
            yield file.path, problem


def _check_log(store: Store, file: LogFile) -> None:
    """Raises: CorruptFileError, also for torn blocks, unless a failed attempt at a delta commit left the file."""
    for block in scan_blocks(store, (file,), _RULE):
        where, place = store.uri(block.path), block.place
        if block.block_type is BlockType.HFILE_DATA:
            _check_hfile(StoredFile(store, block.path, place.content_bytes, place.content_offset), where)
        elif block.block_type is BlockType.DELETE:
            DeleteRecords.parse(block.read(store).content, path=where, offset=place.content_offset)


def _check_hfile(source: StoredFile, where: str) -> None:
    """Parse trailer and index, and all entries if they were read with them."""
    if source.size > _WHOLE_BYTES:
        HFileReader(source, path=where)
        return
    content = source.read(0, source.size)
    if len(content) != source.size:
        raise CorruptFileError(f"expected {source.size} bytes, found {len(content)}", path=where)
    for _ in HFileReader(content, path=where).batches():
        pass


_LOST = "none: t.index.rebuild() builds the metadata table anew"


@dataclass(frozen=True, slots=True)
class MetadataState:
    """The metadata table: its problems, its listing (None if there is none that can be read), and its commits."""

    problems: tuple[Problem, ...] = ()
    listing: Mapping[str, Mapping[str, int]] | None = field(default=None, repr=False)
    commits: frozenset[str] = frozenset()


def check_metadata_table(survey: Survey) -> MetadataState:
    """Read the listing, check the instant files and the recorded log files of every partition, and look for gaps."""
    config = survey.view.config
    lost = lost_record_index(survey.view)
    problems = [] if lost is None else [Problem(kinds.INDEX_MISSING, "record_index", found=lost)]
    problems += [Problem(kinds.STATISTICS_MISSING, kind.name) for kind in KINDS.lost(data_table(survey.view))]
    building = config.metadata_partitions_inflight
    if building and not pending_indexing(survey.view):
        # The properties name partitions as being built, while no build is pending.
        properties = f"{HOODIE_FOLDER}/hoodie.properties"
        problems.append(Problem(kinds.INDEX_BUILD_ABANDONED, properties, found=", ".join(building)))
    if not config.has_metadata_table:
        return MetadataState(tuple(problems))
    folder = MetadataFolder(survey.view.store, config)
    try:
        timeline = folder.existing_timeline()
    except MetadataTableMissingError as error:
        return MetadataState((*problems, Problem(kinds.METADATA_MISSING, METADATA_FOLDER, found=str(error))))
    for info in survey.directly_in(folder.layout.instant_folder()):
        instant = folder.layout.parse(info)
        if instant is not None and instant.is_completed and instant.action.writes_data and not info.size_bytes:
            problems.append(Problem(kinds.METADATA_DAMAGED, info.path, "commit metadata", "0 bytes"))
    try:
        leftover = unfinished_build_files(survey, folder, timeline)
        problems += [Problem(kinds.LEFTOVER_INDEX_FILES, path) for path in leftover]
    except CorruptFileError as error:
        problems.append(Problem(kinds.METADATA_DAMAGED, METADATA_FOLDER, found=str(error)))
    problems += _behind(survey, folder, timeline)
    damaged, listing = _content(survey, folder, timeline)
    problems += damaged
    commits = frozenset(instant.requested_time for instant in timeline.completed())
    return MetadataState(tuple(problems), listing, commits)


def _content(
    survey: Survey, folder: MetadataFolder, timeline: Timeline
) -> tuple[list[Problem], Mapping[str, Mapping[str, int]] | None]:
    """Return the problems of the files of all partitions, and the listing if it can be read."""
    listing = None
    problems: list[Problem] = []
    try:
        for instant, path in missing_files(folder):
            needed = f"a file of the plan of the pending {instant}"
            problems.append(Problem(kinds.METADATA_DAMAGED, path, needed, _LOST))
        slices = _newest_slices(survey, timeline)
        for name, newest in slices.items():
            whole = f"a whole file of the metadata partition {name}"
            damaged = damaged_files(survey.view.store, newest)
            problems += [Problem(kinds.METADATA_DAMAGED, path, whole, problem) for path, problem in damaged]
        listing = MetadataTable(folder.store, folder.config).listing(survey.timeline)
        check_recorded_logs(folder.store, slices, visible_instants(timeline, survey.timeline))
    except HoodieError as error:
        text = str(error) if isinstance(error, CorruptFileError) else f"{type(error).__name__}: {error}"
        is_named = any(problem.key in text for problem in problems)
        if not is_named:
            problems.append(Problem(kinds.METADATA_DAMAGED, METADATA_FOLDER, found=text))
    except FileNotFoundError as error:
        problems.append(Problem(kinds.METADATA_DAMAGED, METADATA_FOLDER, found=str(error)))
    return problems, listing


def unfinished_build_files(survey: Survey, folder: MetadataFolder, timeline: Timeline) -> Iterator[str]:
    """Yield the files of builds whose instant is neither in the metadata table, active or archived, nor pending.

    Once the metadata table's timeline starts later, their instants would count as archived, and their entries as real.

    Raises: CorruptFileError if the archived timeline of the metadata table is damaged.
    """
    running = {build_time(instant.requested_time) for instant in pending_indexing(survey.view)}
    found: dict[str, list[str]] = {}
    for info in survey.below(METADATA_FOLDER):
        time = instant_of_data_file(info.name)
        is_build = time is not None and fills_a_partition(time) and not time.startswith("0000")
        if is_build and time is not None and time not in running and timeline.get(time) is None:
            found.setdefault(time, []).append(info.path)
    known = folder.archive().completion_times(found.keys()) if found else {}
    for time, paths in found.items():
        if time not in known:
            yield from paths


def _behind(survey: Survey, folder: MetadataFolder, timeline: Timeline) -> Iterator[Problem]:
    """Find completed writes that completed after the metadata table was filled and that it has not.

    The times before the first delta commit of the metadata table that is not archived are not checked. Between older
    instants, the metadata table archives those whose files are gone: its archive is read if an instant is missing. In
    version 6 no completion time records when the metadata table was filled: its first delta commit came later, unless
    it belongs to an instant that was pending, such as a planned compaction.
    """
    fills = [instant for instant in timeline if fills_a_partition(instant.requested_time)]
    times = {instant.requested_time for instant in fills}
    first = min((i.requested_time for i in timeline if i.requested_time not in times), default="")
    if folder.names_base_instants:
        since = max(first, min((time for time in times if not time.startswith("0000")), default=""))
    else:
        since = max((instant.completion_time or "" for instant in fills if instant.is_completed), default=first)
    if not since:
        return
    missing: dict[str, Instant | None] = {}
    for instant in survey.commits:
        begun = instant.requested_time
        if survey.view.order_time(instant) > since and begun > since:
            found = timeline.get(begun, Action.DELTA_COMMIT)
            if found is None or found.state is not State.COMPLETED:
                missing[begun] = found
    try:
        archived = folder.archive().completion_times(missing.keys()) if missing else {}
    except CorruptFileError as error:
        yield Problem(kinds.METADATA_DAMAGED, METADATA_FOLDER, found=str(error))
        return
    for begun, found in missing.items():
        if begun not in archived:
            state = "none" if found is None else str(found)
            yield Problem(kinds.METADATA_BEHIND, begun, "a completed delta commit in the metadata table", state)


def _newest_slices(survey: Survey, timeline: Timeline) -> dict[str, list[FileSlice]]:
    """Return the newest slices of each partition in use, by name. Raises: CorruptFileError."""
    visible = visible_instants(timeline, survey.timeline)
    config = survey.view.config
    slices = {}
    for name in config.metadata_partitions:
        path = partition_folder(name)
        listed = {info.name: info.size_bytes for info in survey.directly_in(path)}
        if not listed:
            raise CorruptFileError("expected the files of a metadata partition, found none", path=path)
        kind = KINDS.find(name)
        known = visible if kind is None else with_archived_logs(survey.view.store, visible, listed, kind)
        slices[name] = latest_slices({path: listed}, known, {}, version=config.version)
    return slices
