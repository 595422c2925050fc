"""File groups and file slices: the files that hold a table's rows as of an instant, and all slices, which cleans need.

Implements docs/format/table.md §5.1. Pure functions: the caller reads the listing and the timeline.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from hoodie.format.filenames import BaseFileName, LogFileName, base_name_parts, name_of, parse_data_file
from hoodie.format.instants.write_stat import WriteStat
from hoodie.format.table.versions import TableVersion
from hoodie.timeline import Timeline

Listing = Mapping[str, Mapping[str, int]]
"""Partition path -> file name -> size in bytes."""


@dataclass(frozen=True, slots=True)
class BaseFile:
    """One base file of a file group."""

    partition_path: str
    name: str
    file_id: str
    instant_time: str
    size_bytes: int

    @property
    def path(self) -> str:
        """Path relative to the table's base path."""
        return join_path(self.partition_path, self.name)


@dataclass(frozen=True, slots=True)
class LogFile:
    """One log file of a file group."""

    partition_path: str
    name: LogFileName
    size_bytes: int

    @property
    def path(self) -> str:
        """Path relative to the table's base path."""
        return join_path(self.partition_path, self.name.name)


@dataclass(frozen=True, slots=True)
class CountedInstants:
    """The instants whose blocks count in log files of version 6, which may have blocks of any instants. Picklable.

    Instants before `start` are archived, so they are completed.
    """

    completed: frozenset[str]
    start: str | None

    @classmethod
    def of(cls, timeline: Timeline) -> CountedInstants:
        """Return the completed instants of a timeline."""
        return cls(frozenset(instant.requested_time for instant in timeline.completed()), timeline.start)

    def accepts(self, instant_time: str) -> bool:
        """Return whether blocks of this instant count."""
        return instant_time in self.completed or (self.start is not None and instant_time < self.start)


@dataclass(frozen=True, slots=True)
class FileSlice:
    """The state of a file group at one time: a base file, and the log files written since then."""

    partition_path: str
    file_id: str
    base_instant_time: str
    base_file: BaseFile | None
    log_files: tuple[LogFile, ...] = ()
    counted: CountedInstants | None = None
    """Which log blocks of a slice of the metadata table count; None: all, as the names of its files show."""

    @property
    def group(self) -> tuple[str, str]:
        """Partition path and file id of its file group."""
        return self.partition_path, self.file_id

    @property
    def size_bytes(self) -> int:
        """Bytes of all its files."""
        base = self.base_file.size_bytes if self.base_file else 0
        return base + sum(log.size_bytes for log in self.log_files)

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of all its files, relative to the table's base path."""
        base = () if self.base_file is None else (self.base_file.path,)
        return (*base, *(log.path for log in self.log_files))


def join_path(partition_path: str, name: str) -> str:
    """Return the path of a file in a partition; in a table without partitions, the folder is the base path."""
    return f"{partition_path}/{name}" if partition_path else name


def written_file(stat: WriteStat) -> BaseFile | LogFile | None:
    """Return the file of a write statistic; None if it has no name of a base or log file."""
    path, name = stat.partition_path or "", name_of(stat.path or "")
    found = parse_data_file(name)
    if isinstance(found, BaseFileName):
        return BaseFile(path, name, found.file_id, found.instant_time, stat.file_size_bytes)
    return None if found is None else LogFile(path, found, stat.file_size_bytes)


def latest_slices(
    listing: Listing,
    timeline: Timeline,
    replaced: Mapping[str, Collection[str]],
    *,
    as_of: str | None = None,
    version: TableVersion,
    ignored: set[str] | None = None,
) -> list[FileSlice]:
    """Return the newest committed slice of every file group, sorted by partition path and file id.

    `timeline` holds all instants; files of instants that are not completed are ignored. `replaced` maps a partition
    path to the file ids that completed replace commits replaced. `as_of` (inclusive) is a requested time. The instants
    of ignored files are added to `ignored`.

    A slice contains the log files that complete after the requested time of its base file, even if a compaction is
    pending. Log files that are written during a compaction belong to the slice that the compaction creates, and to the
    previous slice until the compaction completes. As of a time before a compaction, a slice has the older base file and
    all log files requested by then.

    On version 6 the name of a log file contains the base instant of its slice, not the instant that wrote it:
    `log_scan` decides whether its blocks count, and as of which instant.
    """
    slices: list[FileSlice] = []
    for partition_path in sorted(listing):
        gone = replaced.get(partition_path, ())
        files = _PartitionFiles.of(partition_path, listing[partition_path], timeline, version, as_of=as_of)
        if ignored is not None:
            ignored |= files.uncommitted
        for file_id in files.file_ids():
            found = None if file_id in gone else files.newest_slice(file_id)
            if found is not None:
                slices.append(found)
    return slices


@dataclass(slots=True)
class _PartitionFiles:
    """The committed files of one partition by file id: all, or those up to a requested time."""

    partition_path: str
    timeline: Timeline
    version: TableVersion
    bases: dict[str, list[BaseFile]] = field(default_factory=dict)
    logs: dict[str, list[LogFile]] = field(default_factory=dict)
    uncommitted: set[str] = field(default_factory=set)
    """Instants of files that are ignored, because they are not completed."""

    @classmethod
    def of(
        cls,
        partition_path: str,
        listed: Mapping[str, int],
        timeline: Timeline,
        version: TableVersion,
        *,
        as_of: str | None = None,
        with_cdc: bool = False,
    ) -> _PartitionFiles:
        files = cls(partition_path, timeline, version)
        committed: dict[str, bool] = {}
        for name, size_bytes in listed.items():
            base = base_name_parts(name)
            log = LogFileName.parse(name) if base is None else None
            if base is not None:
                file_id, instant_time = base
            elif log is not None:
                file_id, instant_time = log.file_id, log.instant_time
            else:
                continue
            if as_of is not None and instant_time > as_of:
                continue
            if base is None and version.log_name_has_base_instant:
                is_seen = True
            else:
                if instant_time not in committed:
                    committed[instant_time] = timeline.contains_or_before_start(instant_time)
                is_seen = committed[instant_time]
            if is_seen and base is not None:
                found = BaseFile(partition_path, name, file_id, instant_time, size_bytes)
                files.bases.setdefault(file_id, []).append(found)
            elif is_seen and log is not None and (with_cdc or not log.is_cdc):
                files.logs.setdefault(file_id, []).append(LogFile(partition_path, log, size_bytes))
        files.uncommitted = {time for time, is_seen in committed.items() if not is_seen}
        return files

    def file_ids(self) -> list[str]:
        """Return the ids of file groups that have files, sorted."""
        return sorted(self.bases.keys() | self.logs.keys())

    def newest_slice(self, file_id: str) -> FileSlice | None:
        """Return the newest slice of a file group; None if the group has no committed file."""
        bases = self.bases.get(file_id)
        if bases is not None and len(bases) == 1 and file_id not in self.logs:  # nearly all groups of a large table
            return self._slice(file_id, bases[0], ())
        base = max(bases, key=lambda found: found.instant_time) if bases else None
        logs = self._sorted_logs(file_id)
        if base is not None:
            logs = [log for log in logs if (self._since(log) or log.name.instant_time) >= base.instant_time]
        return self._slice(file_id, base, tuple(logs))

    def slices(self, file_id: str) -> Iterator[FileSlice]:
        """Yield the slices of a file group, newest first; see `slice_histories`.

        In version 6 a log file whose name has no base file's instant begins no slice if an older base file is there:
        its compaction is pending or was rolled back, or a later version wrote it, before the table became one of
        version 6.
        """
        bases, logs = {base.instant_time: base for base in self.bases.get(file_id, ())}, self._sorted_logs(file_id)
        by_start: dict[str, list[LogFile]] = {start: [] for start in bases}
        first_log = min((log.name.instant_time for log in logs), default="")
        newest = max(bases, default=first_log)
        for log in logs:
            since = self._since(log)
            if since is None and log.name.instant_time < newest:
                start = newest
            else:
                since = since or log.name.instant_time
                start = max((base for base in bases if base <= since), default=first_log)
            by_start.setdefault(start, []).append(log)
        for start in sorted(by_start, reverse=True):
            yield FileSlice(self.partition_path, file_id, start, bases.get(start), tuple(by_start[start]))

    def _sorted_logs(self, file_id: str) -> list[LogFile]:
        return sorted(self.logs.get(file_id, ()), key=lambda log: log.name.sort_key)

    def _since(self, log: LogFile) -> str | None:
        """Return the time to compare with base instants: the log's completion time, or the base instant in its name.

        None if the completion time is not known.
        """
        instant_time = log.name.instant_time
        if self.version.log_name_has_base_instant:
            return instant_time
        return self.timeline.completion_time_of(instant_time)

    def _slice(self, file_id: str, base: BaseFile | None, logs: tuple[LogFile, ...]) -> FileSlice | None:
        if base is not None:
            return FileSlice(self.partition_path, file_id, base.instant_time, base, logs)
        if not logs:
            return None
        return FileSlice(self.partition_path, file_id, min(log.name.instant_time for log in logs), None, logs)


def logs_in_doubt(names: Iterable[str], start: str | None, *, all_old: bool = False) -> set[str]:
    """Return the instants of the log files that need their completion time, which only the archive has.

    `names` are the files of one partition, `start` is the first instant of the active timeline. A log file is in doubt
    if it is older than `start`, and older than a base file of its file group: its instant may have completed before or
    after the compaction of the base file was requested. `all_old`: every log file older than `start` is in doubt.
    """
    if start is None:
        return set()
    logs: list[LogFileName] = []
    others: list[str] = []
    for name in names:
        log = LogFileName.parse(name)
        if log is None:
            others.append(name)
        elif log.instant_time < start:
            logs.append(log)
    if not logs or all_old:
        return {log.instant_time for log in logs}
    groups = {log.file_id for log in logs}
    newest: dict[str, str] = {}
    for name in others:
        base = BaseFileName.parse(name)
        if base is not None and base.file_id in groups:
            newest[base.file_id] = max(newest.get(base.file_id, ""), base.instant_time)
    return {log.instant_time for log in logs if log.instant_time < newest.get(log.file_id, "")}


def slice_histories(
    partition_path: str, listed: Mapping[str, int], timeline: Timeline, *, version: TableVersion
) -> list[tuple[FileSlice, ...]]:
    """Return the slices of each file group of a partition, newest first; `listed` maps file names to sizes.

    The file groups are sorted by file id; each has at least one slice. Files of instants that are not completed are
    left out; files of change data capture belong to their slice. A log file belongs to the newest slice whose base
    instant is not later than its completion time. If that time is not known (see `logs_in_doubt`), the log file belongs
    to the newest slice, which no cleaner deletes. In version 6 a log file belongs to the slice of the base instant in
    its name, or else to the one before it; all are listed, as their blocks decide whether they count.
    """
    files = _PartitionFiles.of(partition_path, listed, timeline, version, with_cdc=True)
    return [tuple(files.slices(file_id)) for file_id in files.file_ids()]
