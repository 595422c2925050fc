"""Write the files of a record index build, and keep the state of the table that the files contain.

Row counts in Parquet footers decide the number of buckets, without reading all data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from hoodie.config import indexes
from hoodie.engine import EngineFor, TaskContext
from hoodie.errors import CommitConflictError, InvalidConfigError, RecordKeyError
from hoodie.files.base_file import open_base_file
from hoodie.files.merged_slice import SliceRead, read_file_slice
from hoodie.files.slices import FileSlice
from hoodie.files.staging.staged_keys import KeyGroups
from hoodie.format.filenames import BaseFileName, LogFileName, instant_of_data_file
from hoodie.format.instants.commit_metadata import WriteStat
from hoodie.format.metadata_table.record_location import RecordLocation
from hoodie.format.table.table_config import TimelineZone
from hoodie.index.record.building.file_group_files import (
    StagedFileGroups,
    WrittenFileGroup,
    count_entries,
    write_base_files,
    write_file_group_logs,
)
from hoodie.index.record.building.plan import IndexBuild
from hoodie.index.record.differences import FileGroupChange, changes_between, stage_changes
from hoodie.index.record.entries import ENTRY_BYTES, EntryStage
from hoodie.index.record.file_groups import IndexFileGroup, RecordIndexState, list_index_files
from hoodie.metadata.kinds.record_index import FILE_ID_PREFIX
from hoodie.metadata.paths import file_id_of
from hoodie.records.change import RECORD_KEY
from hoodie.storage import FileInfo, StoreSpec, open_store
from hoodie.timeline import Action, Instant, State, Timeline, ms_of_instant_time
from hoodie.view.slices import list_slices
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

KEYS_PER_BUCKET = 1_000_000
"""Target number of keys in a bucket after the table has grown by the growth factor."""
BUCKETS_MAX = 10_000
"""Maximum number of buckets. File ids contain the bucket number with four digits, so text order is number order."""
_FILES_PER_TASK = 64
_FOOTER_BYTES = 64 * 1024


def bucket_count(rows: int, properties: Mapping[str, str], *, asked: int | None = None) -> int:
    """Return the number of buckets for `rows` keys: `asked` if given, else for a million keys each, after growth.

    Raises: InvalidConfigError if `asked` is not a number from 1 to `BUCKETS_MAX`.

    >>> bucket_count(40_000_000, {}), bucket_count(1000, {}), bucket_count(1000, {}, asked=3)
    (80, 10, 3)
    """
    if asked is not None:
        if isinstance(asked, bool) or not isinstance(asked, int) or not 1 <= asked <= BUCKETS_MAX:
            raise InvalidConfigError(f"buckets={asked!r}: expected a number from 1 to {BUCKETS_MAX:,}")
        return asked
    least, most = indexes.RECORD_INDEX_BUCKETS_MIN.get(properties), indexes.RECORD_INDEX_BUCKETS_MAX.get(properties)
    wanted = math.ceil(rows * indexes.RECORD_INDEX_GROWTH_FACTOR.get(properties) / KEYS_PER_BUCKET)
    return min(max(wanted, least), most, BUCKETS_MAX)


def rows_of_slices(
    engine_for: EngineFor, store: StoreSpec, slices: Sequence[FileSlice], read: SliceRead
) -> dict[FileSlice, int]:
    """Return the rows of each file slice: from the base file's footer, or by merging if there are log files.

    Raises: CorruptFileError if a file is damaged or missing.
    """
    pieces = [tuple(slices[start : start + _FILES_PER_TASK]) for start in range(0, len(slices), _FILES_PER_TASK)]
    engine = engine_for(sum(file_slice.size_bytes if file_slice.log_files else _FOOTER_BYTES for file_slice in slices))
    counts = engine.run(partial(_count_rows, spec=store, read=replace(read, columns=(RECORD_KEY,))), pieces)
    return {
        found: rows
        for piece, row_counts in zip(pieces, counts, strict=True)
        for found, rows in zip(piece, row_counts, strict=True)
    }


def _count_rows(slices: tuple[FileSlice, ...], _context: TaskContext, *, spec: StoreSpec, read: SliceRead) -> list[int]:
    store = open_store(spec)
    rows = []
    for file_slice in slices:
        if file_slice.log_files or file_slice.base_file is None:
            rows.append(sum(merged.num_rows for merged in read_file_slice(store, file_slice, read)))
            continue
        with open_base_file(store, file_slice.base_file) as (parquet, _):
            rows.append(int(parquet.metadata.num_rows))
    return rows


_EXAMPLES_MAX = 5


class IndexFiles:
    """Writes the files of one build, and counts entries and files. Driver memory: twice the table's file slices."""

    def __init__(self, state: TableState, engine_for: EngineFor, build: IndexBuild, rows: dict[FileSlice, int]) -> None:
        """Create a writer. `rows` has the row counts of file slices that are already known."""
        self.build = build
        self.entries = 0
        self.files_read = 0
        self.stats: list[WriteStat] = []
        self.notes: list[str] = []
        self.is_outdated = False
        self._state = state
        self._engine_for = engine_for
        self._rows = rows
        self._slices: list[FileSlice] = []
        view = TableView.load(state)
        self._version = view.config.version
        self._read = view.slice_read()
        self._round = 0

    def write_base(self, folder: str) -> None:
        """Write the base files of all file groups for the state at the begin of the build; existing base files stay.

        Raises: RecordKeyError if two rows have the same key.
        """
        view = TableView.load(self._state).as_completed_by(self.build.requested_time)
        self._slices = list_slices(view)
        kept = self._take_up()
        missing = [number for number in range(self.build.buckets) if number not in kept]
        changes = changes_between([], self._slices)
        self.files_read += len(changes)
        staged = self._staged(changes, folder)
        written = write_base_files(
            self._engine_for(self._rows_of_slices() * ENTRY_BYTES),
            self._state.store.spec,
            staged,
            missing,
            self._locations(staged, self._slices, view.layout.zone),
            instant_time=self.build.build_time,
        )
        _check_unique(written, self._state.store.uri(""))
        self._count([*kept.values(), *written])

    def catch_up(self, view: TableView, folder: str) -> bool:
        """Write the changes since the last call to one log file for each file group. Returns whether any exist.

        Raises: CommitConflictError if a file of the earlier state does not exist any more.
        """
        slices = list_slices(view)
        changes = changes_between(self._slices, slices)
        if not changes:
            return False
        self._check_there(changes)
        self._round += 1
        self.files_read += len(changes)
        staged = self._staged(changes, f"{folder}/{self._round}")
        written = write_file_group_logs(
            self._engine_for(sum(change.size_bytes for change in changes)),
            self._state.store.spec,
            staged,
            self._file_groups(),
            self._locations(staged, slices, view.layout.zone),
            instant_time=self.build.build_time,
            # Version 1 is the empty log file that creates the file group.
            version=self._round + 1,
        )
        self._slices = slices
        self._count(written)
        return True

    def check_counts(self) -> None:
        """Refuse an index whose number of entries differs from the number of rows. Raises: RecordKeyError."""
        rows = self._rows_of_slices()
        if self.entries != rows:
            raise RecordKeyError(
                f"{self._state.store.uri('')}: the record index would have {self.entries:,} entries for {rows:,} rows, "
                "as keys were written more than once during the build; the index was not switched on. Remove the "
                "duplicates, then build it again"
            )

    def _take_up(self) -> dict[int, WrittenFileGroup]:
        """Return the base files of an earlier process, by number. Delete its log files: their round is unknown."""
        found: dict[int, FileInfo] = {}
        numbers = {file_id_of(FILE_ID_PREFIX, number): number for number in range(self.build.buckets)}
        for info in self._own_files().values():
            base, log = BaseFileName.parse(info.name), LogFileName.parse(info.name)
            if base is not None and base.file_id in numbers:
                found[numbers[base.file_id]] = info
            elif log is None or log.version > 1:
                self._state.store.delete(info.path)
        if found:
            self.notes.append(f"{len(found):,} index file groups were kept from an earlier run")
        engine = self._engine_for(sum(info.size_bytes for info in found.values()))
        counted = count_entries(engine, self._state.store.spec, found)
        return {written.number: written for written in counted}

    def _staged(self, changes: Sequence[FileGroupChange], folder: str) -> StagedFileGroups:
        stage = EntryStage(folder, KeyGroups(self.build.buckets))
        staged = stage_changes(self._engine_for, self._state.store.spec, changes, stage, self._read)
        return StagedFileGroups.of(staged, self.build.buckets)

    def _locations(
        self, staged: StagedFileGroups, slices: Iterable[FileSlice], zone: TimelineZone
    ) -> list[RecordLocation]:
        """Return the locations of the entries, with the time of their base file."""
        times = {found.group: _instant_ms(found.base_instant_time, zone) for found in slices}
        return [RecordLocation(path, file_id, times[path, file_id]) for path, file_id in staged.locations]

    def _own_files(self) -> dict[str, FileInfo]:
        """Return the base and log files of this build, by path."""
        own: dict[str, FileInfo] = {}
        for path, info in list_index_files(self._state.store).items():
            if instant_of_data_file(path) == self.build.build_time:
                own[path] = info
        return own

    def _file_groups(self) -> Sequence[IndexFileGroup]:
        """Return the file groups as already written, by number."""
        instant = Instant(
            requested_time=self.build.build_time,
            action=Action.DELTA_COMMIT,
            state=State.COMPLETED,
            completion_time=self.build.build_time,
        )
        found = RecordIndexState.of(self._own_files(), Timeline.of([instant]), version=self._version).file_groups
        if len(found) != self.build.buckets:
            self.is_outdated = True
            raise CommitConflictError(
                f"expected {self.build.buckets} file groups of the index, found {len(found)}: another engine built or "
                f"dropped the record index of {self._state.store.uri('')} meanwhile; build it again"
            )
        return found

    def _rows_of_slices(self) -> int:
        unknown = [found for found in self._slices if found not in self._rows]
        if unknown:
            self._rows |= rows_of_slices(self._engine_for, self._state.store.spec, unknown, self._read)
        return sum(self._rows[found] for found in self._slices)

    def _check_there(self, changes: Iterable[FileGroupChange]) -> None:
        old = [path for change in changes if change.old is not None for path in change.old.paths]
        for path in old:
            if self._state.store.head(path) is None:
                self.is_outdated = True
                raise CommitConflictError(
                    f"{path} was cleaned or rolled back during the index build, so the changes since cannot be read; "
                    "build the index again (and keep more with hoodie.clean.commits.retained)"
                )

    def _count(self, written: Iterable[WrittenFileGroup]) -> None:
        for file_group in written:
            self.entries += file_group.entries
            if file_group.stat is not None:
                self.stats.append(file_group.stat)


def _check_unique(written: Iterable[WrittenFileGroup], where: str) -> None:
    doubled = [file_group for file_group in written if file_group.duplicates]
    if doubled:
        count = sum(file_group.duplicates for file_group in doubled)
        examples = [key for file_group in doubled for key in file_group.examples][:_EXAMPLES_MAX]
        raise RecordKeyError(
            f"{where} has {count:,} rows whose key another row also has, such as {examples}: a record index stores one "
            "row of each key, so it was not switched on. Remove the duplicates, then build it again"
        )


def _instant_ms(instant_time: str, zone: TimelineZone) -> int:
    """Return milliseconds since the epoch; 0 for reserved times, which are not dates."""
    try:
        return ms_of_instant_time(instant_time, zone)
    except InvalidConfigError:
        return 0
