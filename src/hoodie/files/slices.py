"""File groups and file slices: which files hold a table's rows as of an instant.

Implements docs/format/table.md §5.1. Pure: works on a listing and a timeline that somebody else read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from hoodie.format.filenames import BaseFileName, LogFileName
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
class FileSlice:
    """A file group at one point of its life: a base file, and the log files written since."""

    partition_path: str
    file_id: str
    base_instant_time: str
    base_file: BaseFile | None
    log_files: tuple[LogFile, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Bytes of all its files."""
        base = self.base_file.size_bytes if self.base_file else 0
        return base + sum(log.size_bytes for log in self.log_files)


def join_path(partition_path: str, name: str) -> str:
    """Path of a file in a partition; the non-partitioned table's partition is the base path itself."""
    return f"{partition_path}/{name}" if partition_path else name


def latest_slices(
    listing: Listing,
    timeline: Timeline,
    replaced: Mapping[str, Collection[str]],
    *,
    as_of: str | None = None,
) -> list[FileSlice]:
    """The newest committed slice of every file group, sorted by partition path and file id.

    `timeline` holds all instants; files of instants that did not complete are not seen. `replaced` maps a partition
    path to the file ids that completed replace commits took out of it. `as_of` (inclusive) is a requested time.
    """
    slices: list[FileSlice] = []
    for partition_path in sorted(listing):
        gone = replaced.get(partition_path, ())
        groups = _file_groups(partition_path, listing[partition_path], timeline, as_of)
        for file_id in sorted(groups):
            if file_id not in gone:
                slices.append(groups[file_id])
    return slices


def _file_groups(
    partition_path: str, files: Mapping[str, int], timeline: Timeline, as_of: str | None
) -> dict[str, FileSlice]:
    """Newest committed base file of each file group of one partition, with the log files that belong to it."""
    newest: dict[str, BaseFile] = {}
    logs: dict[str, list[LogFile]] = {}
    committed: dict[str, bool] = {}
    for name, size_bytes in files.items():
        parsed = BaseFileName.parse(name)
        if parsed is None:
            log_name = LogFileName.parse(name)
            if log_name is not None and not log_name.is_cdc:
                logs.setdefault(log_name.file_id, []).append(LogFile(partition_path, log_name, size_bytes))
            continue
        instant_time = parsed.instant_time
        if as_of is not None and instant_time > as_of:
            continue
        if instant_time not in committed:
            committed[instant_time] = timeline.contains_or_before_start(instant_time)
        current = newest.get(parsed.file_id)
        if committed[instant_time] and (current is None or instant_time > current.instant_time):
            newest[parsed.file_id] = BaseFile(partition_path, name, parsed.file_id, instant_time, size_bytes)
    groups = {file_id: FileSlice(partition_path, file_id, base.instant_time, base) for file_id, base in newest.items()}
    for file_id, found in logs.items():
        kept = tuple(_logs_since(found, groups.get(file_id), timeline, as_of))
        if not kept:
            continue
        base = groups.get(file_id)
        base_instant = base.base_instant_time if base else min(log.name.instant_time for log in kept)
        groups[file_id] = FileSlice(partition_path, file_id, base_instant, base.base_file if base else None, kept)
    return groups


def _logs_since(
    logs: list[LogFile], base: FileSlice | None, timeline: Timeline, as_of: str | None
) -> Iterator[LogFile]:
    """Committed log files of the newest slice, oldest first: completed no earlier than the base file's instant."""
    for log in sorted(logs, key=lambda found: found.name.sort_key):
        instant_time = log.name.instant_time
        if as_of is not None and instant_time > as_of:
            continue
        if not timeline.contains_or_before_start(instant_time):
            continue
        completion = timeline.completion_time_of(instant_time) or instant_time
        if base is None or completion >= base.base_instant_time:
            yield log
