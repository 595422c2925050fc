"""Log files that are older than the active timeline: which of them need the completion time of their instant.

docs/format/table.md §5.1. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable

from hoodie.format.filenames import BaseFileName, LogFileName


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
