"""What a check reads once: the view, all files of the table's folder, the instant files, and the commits' statistics.

Costs two listings of the timeline, one listing of the whole folder, and one read for each completed write of the active
timeline. Memory: the names of all files of the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

from hoodie.engine import LocalEngine, TaskContext
from hoodie.errors import CorruptFileError, HoodieError
from hoodie.files.slices import join_path
from hoodie.format.filenames import BaseFileName, LogFileName, name_of, parse_data_file
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.services.check.kinds import FindingKind
from hoodie.services.versions.kept import written_after_move
from hoodie.storage import FileInfo
from hoodie.timeline import HOODIE_FOLDER, Instant, TableLock, Timeline
from hoodie.view.lost_instants import bases_of
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

_TRIES = 3


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding; `key` is the path of a file relative to the base path, or the requested time of an instant."""

    kind: FindingKind
    key: str
    expected: str | None = None
    found: str | None = None


@dataclass(frozen=True)
class Survey:
    """A table at one time. `files` are all files below the base path; `damaged` are commits that do not parse."""

    view: TableView
    files: Mapping[str, FileInfo]
    commits: Mapping[Instant, CommitMetadata] = field(repr=False)
    damaged: Mapping[Instant, str]

    @classmethod
    def of(cls, state: TableState) -> Survey:
        """Read a table that other writers may change meanwhile.

        If a writer commits during each of three attempts, the last attempt holds the table's lock.

        Raises: as `TableView.load`.
        """
        for _ in range(_TRIES):
            found = cls._read(state)
            if not found.has_changed():
                return found
        with cls.locked(state) as found:
            return found

    @classmethod
    @contextmanager
    def locked(cls, state: TableState) -> Iterator[Survey]:
        """Hold the table's lock in a `with` block, which gets the survey. Raises: as `TableView.locked`."""
        with state.table_lock() as lock:
            yield cls._read(state, lock)

    @classmethod
    def _read(cls, state: TableState, lock: TableLock | None = None) -> Survey:
        # The files first: an instant exists before its files do.
        files = {info.path: info for info in state.store.list("", recursive=True)}
        view = TableView.load(state, lock)
        commits, damaged = _commits(view)
        return cls(view, files, commits, damaged)

    def has_changed(self) -> bool:
        """Return whether the timeline or the properties of the table are others now."""
        now = self.view.refreshed()
        return now.timeline != self.timeline or now.config != self.view.config

    @property
    def timeline(self) -> Timeline:
        """The active timeline."""
        return self.view.timeline

    @cached_property
    def data_files(self) -> Mapping[str, tuple[str, FileInfo, BaseFileName | LogFileName]]:
        """Data files by path: partition path, file, and parsed name."""
        found = {}
        for path, info in self.files.items():
            partition_path, _, name = path.rpartition("/")
            if partition_path.partition("/")[0] != HOODIE_FOLDER and (parsed := parse_data_file(name)) is not None:
                found[path] = (partition_path, info, parsed)
        return found

    @cached_property
    def base_instants(self) -> frozenset[tuple[str, str, str]]:
        """Partition path, file id and instant of each base file."""
        found = self.data_files.values()
        return frozenset(
            (path, name.file_id, name.instant_time) for path, _, name in found if isinstance(name, BaseFileName)
        )

    @cached_property
    def recorded(self) -> Mapping[str, int]:
        """The files that completed writes of the active timeline recorded, with their sizes (0: not known).

        Later commits name the log files of a slice again, without sizes.
        """
        recorded: dict[str, int] = {}
        for found in self.commits.values():
            for path, size in _files_of_commit(found):
                recorded[path] = max(size, recorded.get(path, 0))
        return recorded

    @cached_property
    def bases(self) -> frozenset[str]:
        """The instants on whose files completed writes of the active timeline were based."""
        return frozenset(time for found in self.commits.values() for time in bases_of(found, self.view.config.version))

    @cached_property
    def written_late(self) -> frozenset[str]:
        """The instants that a writer of another table version wrote to the kept timeline after the move."""
        return frozenset(found.requested_time for found in written_after_move(self.view))

    def below(self, folder: str) -> Iterator[FileInfo]:
        """Yield the files anywhere below a folder of `.hoodie`."""
        prefix = f"{folder}/"
        return (info for path, info in self.files.items() if path.startswith(prefix))

    def directly_in(self, folder: str) -> Iterator[FileInfo]:
        """Yield the files directly in a folder."""
        return (info for info in self.below(folder) if info.path.rpartition("/")[0] == folder)


def _files_of_commit(metadata: CommitMetadata) -> Iterator[tuple[str, int]]:
    """Yield path and size of each file that a commit recorded; a log file that grew is recorded by several commits."""
    for partition_path, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            if stat.path:
                yield join_path(partition_path, name_of(stat.path)), stat.file_size_bytes
            for name in stat.log_files or ():
                yield join_path(partition_path, name_of(name)), 0
            for path, size_bytes in (stat.cdc_stats or {}).items():
                yield join_path(partition_path, name_of(path)), size_bytes


def _commits(view: TableView) -> tuple[dict[Instant, CommitMetadata], dict[Instant, str]]:
    """Read the completed writes, several at once."""

    def read(instant: Instant, _context: TaskContext) -> CommitMetadata | str:
        try:
            return view.commit_metadata(instant)
        except CorruptFileError as error:
            return str(error)
        except HoodieError as error:
            return f"{type(error).__name__}: {error}"

    instants = view.completed_writes()
    found = dict(zip(instants, LocalEngine().run(read, instants), strict=True))
    commits = {instant: content for instant, content in found.items() if isinstance(content, CommitMetadata)}
    return commits, {instant: text for instant, text in found.items() if isinstance(text, str)}
