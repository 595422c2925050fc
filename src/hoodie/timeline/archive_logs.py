"""Read the archived timeline of table version 6: log files with the states of instants (docs/format/table.md §2.6)."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from hoodie.errors import CorruptFileError, InstantNotFoundError, UnsupportedError
from hoodie.format.instants.archive import ArchivedInstant
from hoodie.format.instants.archive_log import MERGE_PLAN_FILE, archive_log_number, merged_file_of, parse_archive_log
from hoodie.storage import FileInfo, Store
from hoodie.timeline.instant import Action, Instant, State


@dataclass(slots=True)
class ArchiveLogs:
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
        """As `ArchivedTimeline.find`."""
        wanted = frozenset(requested_times)
        return [found for found in self.completed() if found.requested_time in wanted] if wanted else []

    def oldest_time(self) -> str:
        """As `ArchivedTimeline.oldest_time`."""
        return min((found.requested_time for found in self.completed()), default="")

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

    def _files(self) -> list[FileInfo]:
        """Return the archive files, newest first, without one that a merge has not finished."""
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
                    action=self._action(found.action, file),
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

    def _action(self, name: str, file: FileInfo) -> Action:
        try:
            return Action(name)
        except ValueError as error:
            message = f"a completed action expected, found {name[:50]!r}; restore the file"
            raise CorruptFileError(message, path=self.store.uri(file.path)) from error
