"""All file slices of the file groups of one partition, not only the newest: what a cleaner chooses from.

Implements docs/format/table.md §5.1. Pure functions: the caller reads the listing and the timeline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hoodie.files.slices import BaseFile, FileSlice, LogFile
from hoodie.format.filenames import BaseFileName, LogFileName
from hoodie.timeline import Timeline


@dataclass(frozen=True, slots=True)
class SliceHistory:
    """The committed slices of one file group, newest first; at least one."""

    partition_path: str
    file_id: str
    slices: tuple[FileSlice, ...]


def slice_histories(partition_path: str, listed: Mapping[str, int], timeline: Timeline) -> list[SliceHistory]:
    """Return the slices of each file group of a partition, sorted by file id; `listed` maps file names to sizes.

    Files of instants that are not completed are left out; files of change data capture belong to their slice. A log
    file belongs to the newest slice whose base instant is not later than its completion time. If that time is not known
    (see `logs_in_doubt`), the log file belongs to the newest slice, which no cleaner deletes.
    """
    bases, logs = _committed(partition_path, listed, timeline)
    found: list[SliceHistory] = []
    for file_id in sorted(bases.keys() | logs.keys()):
        slices = _slices(partition_path, file_id, bases.get(file_id, {}), logs.get(file_id, []), timeline)
        found.append(SliceHistory(partition_path, file_id, tuple(slices)))
    return found


def logs_in_doubt(listed: Mapping[str, int], timeline: Timeline) -> set[str]:
    """Return the archived instants whose completion time decides to which slice their log file belongs.

    These are instants of log files that are older than a base file of their file group, and older than the timeline.
    """
    bases, logs = _committed("", listed, timeline)
    return {
        log.name.instant_time
        for file_id, found in logs.items()
        for log in found
        if _since(log, timeline) is None and log.name.instant_time < max(bases.get(file_id, {}), default="")
    }


def _committed(
    partition_path: str, listed: Mapping[str, int], timeline: Timeline
) -> tuple[dict[str, dict[str, BaseFile]], dict[str, list[LogFile]]]:
    """Return the committed base files by file id and instant, and the committed log files by file id."""
    bases: dict[str, dict[str, BaseFile]] = {}
    logs: dict[str, list[LogFile]] = {}
    committed: dict[str, bool] = {}
    for name, size_bytes in listed.items():
        base = BaseFileName.parse(name)
        parsed = base or LogFileName.parse(name)
        if parsed is None:
            continue
        instant_time = parsed.instant_time
        if instant_time not in committed:
            committed[instant_time] = timeline.contains_or_before_start(instant_time)
        if not committed[instant_time]:
            continue
        if isinstance(parsed, BaseFileName):
            file = BaseFile(partition_path, name, parsed.file_id, instant_time, size_bytes)
            bases.setdefault(parsed.file_id, {})[instant_time] = file
        else:
            logs.setdefault(parsed.file_id, []).append(LogFile(partition_path, parsed, size_bytes))
    return bases, logs


def _slices(
    partition_path: str, file_id: str, bases: Mapping[str, BaseFile], logs: list[LogFile], timeline: Timeline
) -> Iterator[FileSlice]:
    """Yield the slices of one file group, newest first."""
    by_start: dict[str, list[LogFile]] = {start: [] for start in bases}
    first_log = min((log.name.instant_time for log in logs), default="")
    newest = max(bases, default=first_log)
    for log in sorted(logs, key=lambda found: found.name.sort_key):
        since = _since(log, timeline)
        if since is None and log.name.instant_time < newest:
            start = newest
        else:
            since = since or log.name.instant_time
            start = max((found for found in bases if found <= since), default=first_log)
        by_start.setdefault(start, []).append(log)
    for start in sorted(by_start, reverse=True):
        yield FileSlice(partition_path, file_id, start, bases.get(start), tuple(by_start[start]))


def _since(log: LogFile, timeline: Timeline) -> str | None:
    """Return the completion time of the log file's instant; None if it is archived and was not looked up."""
    return timeline.completion_time_of(log.name.instant_time)
