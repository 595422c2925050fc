"""Read archived instants: their times and actions from an index of each file, their contents on demand.

On-disk format: docs/format/table.md §2.7; §2.6 for the log files of version 6.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from hoodie.errors import CorruptFileError, InstantNotFoundError, UnsupportedError
from hoodie.format.instants.archive import (
    ArchivedInstant,
    ArchiveFile,
    archived_columns,
    archived_rows,
    greatest_completion_time,
)
from hoodie.format.instants.archive_log import (
    MERGE_PLAN_FILE,
    archive_log_name,
    archive_log_number,
    archive_log_to_bytes,
    merged_file_of,
    parse_archive_log,
)
from hoodie.storage import FileInfo, Store
from hoodie.timeline.archive import ArchiveLimits, Fence, TimelineArchive, completed_action
from hoodie.timeline.instant import Instant, State
from hoodie.timeline.layout import Layout

_T = TypeVar("_T")
_TRIES = 5
"""How often a read begins anew because a writer merged the files meanwhile and deleted the old ones."""


class ArchivedTimeline(Protocol):
    """The archived instants of one table. All are completed. Thread-safe."""

    def completed(self, after: str = "", until: str | None = None) -> list[Instant]:
        """Return the instants with a completion time in `(after, until]`, sorted by completion time.

        In version 6 requested times take the place of completion times, as everywhere.

        Raises: CorruptFileError.
        """

    def find(self, requested_times: Collection[str]) -> list[Instant]:
        """Return the instants with these requested times, sorted by requested time. Raises: CorruptFileError."""

    def oldest_time(self) -> str:
        """Return the least requested time of the archived instants; empty if there are none. Raises: as `find`."""

    def newest_time(self) -> str:
        """Return the greatest requested time of the archived instants; empty if there are none. Raises: as `find`."""

    def contents(self, instants: Collection[Instant]) -> Iterator[ArchivedInstant]:
        """Yield the contents of archived instants, in no defined order.

        Raises: CorruptFileError; InstantNotFoundError if one of them is not archived.
        """

    def all_contents(self) -> Iterator[ArchivedInstant]:
        """Yield the contents of all archived instants, file by file; an instant may come twice.

        Call it under the table's lock, or writers may delete files meanwhile. Raises: CorruptFileError.
        """


@dataclass(slots=True)
class _FileIndex:
    """What is known of one file: its greatest completion time, and the row of each instant once they were needed."""

    newest: str | None
    rows: dict[Instant, int] | None = None


class ArchiveReader(ArchivedTimeline):
    """The archived timeline of table versions 8 and 9. Files that cannot have a wanted instant are not read.

    Files never change, so each is indexed once: its footer, and three columns of it if it may have a wanted instant.
    Memory: about 300 bytes for each instant of an indexed file, and one row group of contents.
    """

    def __init__(self, archive: TimelineArchive) -> None:
        """Read nothing yet."""
        self._archive = archive
        self._lock = threading.Lock()
        self._known: dict[ArchiveFile, _FileIndex] = {}

    @property
    def store(self) -> Store:
        """The table's folder."""
        return self._archive.store

    def completed(self, after: str = "", until: str | None = None) -> list[Instant]:
        """As `ArchivedTimeline.completed`. An instant completes after its request: later files are skipped."""

        def in_files(files: tuple[ArchiveFile, ...]) -> set[Instant]:
            return {
                instant
                for file in files
                if until is None or self._archive.ranged(file).may_have("", until)
                for instant in self._instants(file, after)
                if after < (instant.completion_time or "")
                and (until is None or (instant.completion_time or "") <= until)
            }

        found = self._retried(in_files)
        return sorted(found, key=lambda instant: (instant.completion_time or "", instant.requested_time))

    def find(self, requested_times: Collection[str]) -> list[Instant]:
        """As `ArchivedTimeline.find`. Reads files whose range of instants contains one of the times."""
        wanted = frozenset(requested_times)
        if not wanted:
            return []

        def in_files(files: tuple[ArchiveFile, ...]) -> set[Instant]:
            return {
                instant
                for file in files
                if any(self._archive.ranged(file).may_have(time, time) for time in wanted)
                for instant in self._instants(file)
                if instant.requested_time in wanted
            }

        return sorted(self._retried(in_files), key=lambda instant: (instant.requested_time, instant.action))

    def oldest_time(self) -> str:
        """As `ArchivedTimeline.oldest_time`; the names of nearly all files contain it."""

        def in_files(files: tuple[ArchiveFile, ...]) -> str:
            return min((self._archive.ranged(file).first_time for file in files), default="")

        return self._retried(in_files)

    def newest_time(self) -> str:
        return self._archive.newest_time()

    def contents(self, instants: Collection[Instant]) -> Iterator[ArchivedInstant]:
        """As `ArchivedTimeline.contents`. Reads the row groups that have the instants."""
        left = set(instants)
        for last_try in range(1, _TRIES + 1):
            try:
                for file in self._files():
                    indexed = self._rows(file)
                    for instant, content in self._contents_in(
                        file, {row: i for i, row in indexed.items() if i in left}
                    ):
                        left.discard(instant)
                        yield content
                break
            except FileNotFoundError:
                if last_try == _TRIES:
                    raise self._lost() from None
        if left:
            raise InstantNotFoundError(
                f"{min(map(str, left))} is not in the archived timeline {self.store.uri(self._archive.folder)}"
            )

    def all_contents(self) -> Iterator[ArchivedInstant]:
        """As `ArchivedTimeline.all_contents`. Memory: one row group."""
        for file in sorted(self._files()):
            wanted = {row: instant for instant, row in self._rows(file).items()}
            yield from (content for _, content in self._contents_in(file, wanted))

    def _retried(self, in_files: Callable[[tuple[ArchiveFile, ...]], _T]) -> _T:
        for _ in range(_TRIES):
            try:
                return in_files(self._files())
            except FileNotFoundError:
                continue
        raise self._lost()

    def _lost(self) -> CorruptFileError:
        message = "a file that the manifest of the archived timeline lists is missing; restore the file"
        return CorruptFileError(message, path=self.store.uri(self._archive.folder))

    def _files(self) -> tuple[ArchiveFile, ...]:
        """Return the files of the newest snapshot, and forget what is known of others."""
        files = self._archive.snapshot().manifest.files
        with self._lock:
            for file in self._known.keys() - set(files):
                del self._known[file]
        return files

    def _instants(self, file: ArchiveFile, after: str = "") -> Collection[Instant]:
        """Return the instants of a file; none if all of them completed at `after` or before."""
        known = self._known.get(file)
        if known is None and after:
            with self._archive.open(file) as source:
                known = _FileIndex(self._archive.parsed(file, lambda: greatest_completion_time(source)))
            with self._lock:
                known = self._known.setdefault(file, known)
        if known is not None and known.newest is not None and known.newest <= after:
            return ()
        return self._rows(file).keys()

    def _rows(self, file: ArchiveFile) -> dict[Instant, int]:
        known = self._known.get(file)
        if known is not None and known.rows is not None:
            return known.rows
        with self._archive.open(file) as source:
            columns = self._archive.parsed(file, lambda: archived_columns(source))
        where = self.store.uri(f"{self._archive.folder}/{file.name}")
        rows = {
            Instant(
                requested_time=time,
                action=completed_action(action, where),
                state=State.COMPLETED,
                completion_time=completion_time or time,
            ): row
            for row, (time, completion_time, action) in enumerate(zip(*columns, strict=True))
            if time
        }
        newest = max((instant.completion_time or "" for instant in rows), default="")
        with self._lock:
            self._known[file] = _FileIndex(newest, rows)
        return rows

    def _contents_in(self, file: ArchiveFile, wanted: dict[int, Instant]) -> Iterator[tuple[Instant, ArchivedInstant]]:
        if not wanted:
            return
        with self._archive.open(file) as source:
            rows = self._archive.parsed(file, lambda: archived_rows(source, wanted))
            while (found := self._archive.parsed(file, lambda: next(rows, None))) is not None:
                yield wanted[found[0]], found[1]


@dataclass(slots=True)
class ArchiveLogs(ArchivedTimeline):
    """The archived timeline in one folder, `.hoodie/archived` of a table of version 6.

    The names of its files do not say which instants they have, so all files are read once; files that did not change
    are not read again. Instants are ordered by requested time. Memory: about 300 bytes an instant, and one file.
    """

    store: Store
    folder: str
    _known: dict[FileInfo, frozenset[Instant]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def completed(self, after: str = "", until: str | None = None) -> list[Instant]:
        """Return the instants requested in `(after, until]`, sorted by requested time. See `ArchivedTimeline`."""
        found = (instant for file in self._files() for instant in self._instants(file))
        chosen = {i for i in found if after < i.requested_time and (until is None or i.requested_time <= until)}
        return sorted(chosen, key=lambda instant: (instant.requested_time, instant.action))

    def find(self, requested_times: Collection[str]) -> list[Instant]:
        wanted = frozenset(requested_times)
        return [found for found in self.completed() if found.requested_time in wanted] if wanted else []

    def oldest_time(self) -> str:
        return min((found.requested_time for found in self.completed()), default="")

    def newest_time(self) -> str:
        return max((found.requested_time for found in self.completed()), default="")

    def completion_times(self, requested_times: Collection[str]) -> dict[str, str]:
        """Return those of the requested times that are archived, each as its own completion time, as everywhere."""
        return {found.requested_time: found.requested_time for found in self.find(requested_times)}

    def append(self, instants: Sequence[ArchivedInstant], fence: Fence | None = None) -> None:
        """Add instants as a new file, which readers see at once. `fence` as for `TimelineArchive.append`.

        An instant whose files were not deleted after an earlier call is added again, which changes nothing.
        """
        if instants:
            numbers = (archive_log_number(name) for name in self.store.names(self.folder))
            number = 1 + max((found for found in numbers if found is not None), default=0)
            path = f"{self.folder}/{archive_log_name(number)}"
            content = archive_log_to_bytes(sorted(instants, key=lambda found: (found.requested_time, found.action)))
            (self.store.create if fence is None else fence.create_last)(path, content)

    def compact(self, limits: ArchiveLimits | None = None, fence: Fence | None = None) -> None:
        """Merge nothing: archive files of version 6 stay as they are, as in JVM Hudi by default."""

    def give_up_damaged(self, fence: Fence | None = None) -> list[str]:
        """Delete the files that do not parse; return their names."""
        damaged = [file for file in self._files() if not self._is_whole(file)]
        for file in damaged:
            if fence is not None:
                fence.ensure_held()
            self.store.delete(file.path)
        return [file.name for file in damaged]

    def contents(self, instants: Collection[Instant]) -> Iterator[ArchivedInstant]:
        """As `ArchivedTimeline.contents`. Reads the files that have the instants."""
        left = {(instant.requested_time, instant.action.value) for instant in instants}
        for file in self._files():
            if not any((found.requested_time, found.action.value) in left for found in self._instants(file)):
                continue
            for content in self._parsed(file):
                if (content.requested_time, content.action) in left:
                    left.discard((content.requested_time, content.action))
                    yield content
        if left:
            missing = ".".join(min(left))
            raise InstantNotFoundError(f"{missing} is not in the archived timeline {self.store.uri(self.folder)}")

    def all_contents(self) -> Iterator[ArchivedInstant]:
        """As `ArchivedTimeline.all_contents`, the oldest file first. Memory: one file."""
        for file in reversed(self._files()):
            yield from self._parsed(file)

    def _files(self) -> list[FileInfo]:
        """Return the archive files, newest first, without the file of an unfinished merge."""
        infos = self.store.list(self.folder)
        unfinished = ""
        for info in infos:
            if info.name == MERGE_PLAN_FILE:
                unfinished = merged_file_of(self.store.read(info.path), path=self.store.uri(info.path))
        numbered = [(number, info) for info in infos if (number := archive_log_number(info.name)) is not None]
        files = [info for _, info in sorted(numbered, key=lambda found: (-found[0], found[1].name))]
        return [info for info in files if info.name != unfinished or self._is_whole(info)]

    def _is_whole(self, file: FileInfo) -> bool:
        try:
            self._instants(file)
        except (CorruptFileError, UnsupportedError):
            return False
        return True

    def _instants(self, file: FileInfo) -> frozenset[Instant]:
        known = self._known.get(file)
        if known is None:
            known = frozenset(
                Instant(
                    requested_time=found.requested_time,
                    action=completed_action(found.action, self.store.uri(file.path)),
                    state=State.COMPLETED,
                    completion_time=found.completion_time,
                )
                for found in self._parsed(file)
            )
            with self._lock:
                self._known[file] = known
        return known

    def _parsed(self, file: FileInfo) -> Iterator[ArchivedInstant]:
        return parse_archive_log(self.store.read(file.path), path=self.store.uri(file.path))


def archive_of(
    store: Store, layout: Layout, *, name: str = "history", names_are_ranges: bool = True
) -> TimelineArchive | ArchiveLogs:
    """Return the archive that a writer of the timeline adds to.

    `name` is `TableConfig.archive_name`; `names_are_ranges` as for `TimelineArchive`.
    """
    if layout.names_completion_time:
        return TimelineArchive.of(store, layout, history_path=name, names_are_ranges=names_are_ranges)
    return ArchiveLogs(store, f"{layout.folder}/{name}")
