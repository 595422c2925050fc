"""Snapshots behind a clean: commits whose files a savepoint keeps (docs/operations/savepoints.md).

A savepoint names the files of one commit. Where writers overlapped, these can differ from the snapshot that a read
requests: JVM Hudi names the files of the writes that were requested before the commit, this library the files of the
writes that completed before it. So the existing slices are compared with the names; an incomplete snapshot is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter

from hoodie.errors import HistoryLostError
from hoodie.files.slices import FileSlice
from hoodie.format.filenames import BaseFileName, LogFileName, name_of
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.table.versions import TableVersion
from hoodie.timeline import Action, Instant
from hoodie.view.history import oldest_readable_instant, oldest_to_ask_for, read_savepoint, readable_savepoints
from hoodie.view.table_view import TableView

_Group = tuple[str, str]
"""Partition path and file id."""


@dataclass(frozen=True, slots=True)
class SavedSnapshot:
    """The snapshot of a view (as of `as_of`, if that is given) that is the one of a commit with a savepoint.

    `archived` are the archived writes of the snapshot that overlapped with the commit.
    """

    view: TableView
    commit: Instant
    savepoint: Instant
    archived: tuple[Instant, ...]
    as_of: str | None

    @classmethod
    def needed_by(cls, view: TableView, as_of: str | None) -> SavedSnapshot | None:
        """Return the snapshot if a savepoint alone keeps the files of this state; None if no clean reached the state.

        `as_of` is a requested time (inclusive). Raises: HistoryLostError if a clean deleted files of this state;
        CorruptFileError.
        """
        later = [instant.requested_time for instant in view.completed_later if instant.action.writes_data]
        if as_of is None and not later:
            return None
        earliest = oldest_readable_instant(view)
        if not earliest or _newest_before(view, min(later, default=""), as_of, earliest) >= earliest:
            return None
        saved = cls._find(view, as_of)
        if saved is None:
            raise _cleaned(view, as_of, earliest)
        return saved

    @classmethod
    def _find(cls, view: TableView, as_of: str | None) -> SavedSnapshot | None:
        """Return the snapshot; None if its last commit has no savepoint. Reads the archive if there is a savepoint.

        The last commit is the commit completed last; with `as_of` (inclusive) the commit requested last.

        Raises: CorruptFileError if the archive is damaged.
        """
        visible = [found for found in view.completed_writes() if as_of is None or found.requested_time <= as_of]
        if not visible:
            return None
        last = visible[-1] if as_of is None else max(visible, key=lambda found: found.requested_time)
        savepoint = view.whole_timeline().get(last.requested_time, Action.SAVEPOINT)
        if savepoint is None or not savepoint.is_completed:
            return None
        archived = [
            found
            for found in view.archived_writes(last.requested_time)
            if as_of is None or found.requested_time <= as_of
        ]
        order = view.order_time if as_of is None else attrgetter("requested_time")
        if any(order(found) > order(last) for found in archived):
            return None
        return cls(view, last, savepoint, tuple(found for found in archived if _overlap(view, last, found)), as_of)

    def check(self, slices: Collection[FileSlice], partitions: Collection[str] | None) -> None:
        """Refuse if `slices`, those of `partitions` (None: all) that exist, are not the whole snapshot.

        Reads the savepoint, and the metadata of the commits that overlapped with its commit.

        Raises: HistoryLostError; CorruptFileError.
        """
        named = named_groups(read_savepoint(self.view, self.savepoint).files)
        found = {part.group: part for part in slices}
        for group in sorted({*named, *found}):
            if (partitions is None or group[0] in partitions) and not self._is_whole(
                found.get(group), named.get(group, ())
            ):
                raise self._refused(group, "is not as the savepoint names it")
        replaced = self.view.replaced_file_ids(self.as_of)
        for instant, group, path in self._written_beside():
            is_asked = (partitions is None or group[0] in partitions) and group[1] not in replaced.get(group[0], ())
            if is_asked and not _has(found.get(group), instant, path, self.view):
                raise self._refused(group, f"has not the file that {instant} wrote")

    def _is_whole(self, found: FileSlice | None, named: Collection[str]) -> bool:
        """Return whether a slice has the named files that count for the snapshot.

        A savepoint of the JVM, or of an earlier release, can name log files that were written after its commit. Blocks
        in further log files of version 6 that were written later are left out when the slice is read.
        """
        expected = {name for name in named if not self._is_later_log(name)}
        return not expected if found is None else has_named_files(found, expected, self.view.config.version)

    def _is_later_log(self, name: str) -> bool:
        log = LogFileName.parse(name)
        if log is None:
            return False
        if self.as_of is not None and log.instant_time > self.as_of:
            return True  # in version 6 too: no block of a log file is older than the base instant in its name
        is_named_after_base = self.view.config.version.log_name_has_base_instant
        return not is_named_after_base and not self.view.timeline.contains_or_before_start(log.instant_time)

    def _written_beside(self) -> Iterator[tuple[Instant, _Group, str]]:
        """Yield what commits of the snapshot wrote that overlapped with its last one: instant, file group, path.

        Version 6 does not record which commits overlapped: there all active ones are examined.
        """
        every = not self.view.config.version.has_completion_time_in_name
        for instant in self.view.completed_writes():
            is_visible = self.as_of is None or instant.requested_time <= self.as_of
            if is_visible and instant != self.commit and (every or _overlap(self.view, self.commit, instant)):
                yield from _files_of(instant, self.view.commit_metadata(instant))
        for instant, commit in self.view.archived_commits(self.archived):
            yield from _files_of(instant, commit)

    def _refused(self, group: _Group, what: str) -> HistoryLostError:
        oldest = oldest_to_ask_for(self.view, self.as_of)
        return HistoryLostError(
            f"{self.view.store.uri('')} as of {self.commit.requested_time}: cleans kept only the files of its "
            f"savepoint, and the file slice {group[1]} of partition {group[0]!r} {what}: writers overlapped when the "
            f"commit was made, or files were deleted. Read as of an instant from {oldest} on, or restore the savepoint",
            oldest_instant=oldest,
        )


def _newest_before(view: TableView, later: str, as_of: str | None, earliest: str) -> str:
    """Return the requested time of the newest instant of the state that was requested before all `later` writes.

    It is `as_of` if that is given. The archive is read, from `earliest` on, if the active timeline has none from then.
    """
    if as_of is not None:
        return as_of
    newest = max((time for found in view.timeline if (time := found.requested_time) < later), default="")
    if newest < earliest:
        since = earliest if view.config.version.has_completion_time_in_name else ""
        archived = (found.requested_time for found in view.archived_writes(since))
        newest = max((time for time in archived if time < later), default=newest)
    return newest


def _cleaned(view: TableView, as_of: str | None, earliest: str) -> HistoryLostError:
    saved = ", ".join(readable_savepoints(view, earliest))
    others = f" (as of commits with a savepoint the table can be read too: {saved})" if saved else ""
    oldest = oldest_to_ask_for(view, as_of, earliest)
    last = max((found.requested_time for found in view.timeline.writes().completed()), default="its beginning")
    return HistoryLostError(
        f"{view.store.uri('')} as of {as_of or last}: the cleaner kept only the files that instants from "
        f"{oldest} on need{others}; ask for a later time, and raise hoodie.clean.commits.retained to keep more",
        oldest_instant=oldest,
    )


def has_named_files(found: FileSlice, named: Collection[str], version: TableVersion) -> bool:
    """Return whether a slice has exactly the named files, except for further log files of version 6.

    `version` is the table's. After an upgrade such a log file is known by its name: it has the slice's base instant.
    """
    names = {name_of(path) for path in found.paths}
    more = [LogFileName.parse(name) for name in names.difference(named)]
    if version.log_name_has_base_instant:
        return names.issuperset(named) and all(more)
    return names.issuperset(named) and all(log and log.instant_time == found.base_instant_time for log in more)


def named_groups(files: Mapping[str, Collection[str]]) -> dict[_Group, set[str]]:
    """Return the names of the base files and log files by file group; files of change data capture are left out."""
    groups: dict[_Group, set[str]] = {}
    for path, names in files.items():
        for name in names:
            parsed = BaseFileName.parse(name) or LogFileName.parse(name)
            if parsed is not None and not (isinstance(parsed, LogFileName) and parsed.is_cdc):
                groups.setdefault((path, parsed.file_id), set()).add(name)
    return groups


def _overlap(view: TableView, one: Instant, other: Instant) -> bool:
    """Return whether the instants completed in another order than they were requested."""
    return (one.requested_time < other.requested_time) != (view.order_time(one) < view.order_time(other))


def _files_of(instant: Instant, commit: CommitMetadata) -> Iterator[tuple[Instant, _Group, str]]:
    for stat in commit.write_stats():
        yield instant, (stat.partition_path or "", stat.file_id or ""), stat.path or ""


def _has(found: FileSlice | None, instant: Instant, path: str, view: TableView) -> bool:
    """Return whether a slice has a file that an instant wrote, or a later base file that has its rows."""
    if found is None:
        return False
    is_log = LogFileName.parse(name_of(path)) is not None
    since = view.order_time(instant) if is_log else instant.requested_time
    return path in found.paths or found.base_instant_time > since
