"""When the partitions of a table were last written to."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from hoodie.files.slices import FileSlice
from hoodie.view.table_view import TableView


def last_writes(view: TableView, slices: Iterable[FileSlice]) -> dict[str, str]:
    """Return the newest instant that wrote a file of each partition, of its newest file slices.

    In version 6 the name of a log file has the instant of its file slice, not the write's instant
    (docs/format/table.md §4.1); a table that was upgraded can still have such files. There the commits since the oldest
    slice with log files are read, archived ones too. Archived commits may be newer than the start of the timeline, so
    the archive is always read: each file once in a process. Memory: the partitions, the archived instants,
    and one commit.

    Raises: CorruptFileError if a commit that is read is damaged.
    """
    newest: dict[str, str] = {}
    logged: list[str] = []
    is_older = view.config.may_have_slice_logs
    for found in slices:
        times = [log.name.instant_time for log in found.log_files]
        base = None if found.base_file is None else found.base_file.instant_time
        if view.config.version.log_name_has_base_instant or (is_older and base in (None, *times[:1])):
            logged += times[:1]
        if found.base_file is not None:
            times.append(found.base_file.instant_time)
        newest[found.partition_path] = max([newest.get(found.partition_path, ""), *times])
    if logged:
        after = min(logged)
        active = (found for found in view.completed_writes() if found.requested_time > after)
        commits = chain(
            ((found, view.commit_metadata(found)) for found in active),
            view.archived_commits(view.archived_writes(after)),
        )
        for instant, commit in commits:
            time = instant.requested_time
            newest |= {path: max(time, newest[path]) for path in commit.partition_to_write_stats if path in newest}
    return newest
