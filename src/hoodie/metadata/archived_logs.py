"""Log files of archived instants: the archive tells when they completed, and so to which file slice they belong.

docs/format/table.md §5.1. The JVM archives instants whose log files are still there; our own archiving does not, so
that tables of ours cost nothing here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from hoodie.format.filenames import BaseFileName, LogFileName
from hoodie.metadata.places import METADATA_HISTORY, RECORD_INDEX_PREFIX
from hoodie.storage import Store, StoreSpec
from hoodie.timeline import Timeline, TimelineArchive

_known: dict[StoreSpec, Mapping[str, str]] = {}
"""What the last call for each table found out: archived instants do not change. Bounded by the log files of a table."""


def with_archived_logs(store: Store, timeline: Timeline, names: Collection[str]) -> Timeline:
    """The metadata table's timeline, with completion times of the archived instants that `names` leave in doubt.

    `names` are the files of one partition. In doubt is a log file older than a base file of its file group: its
    instant may have completed before or after that was begun. So is every one of the record index, whose log files are
    written before their instants are: the JVM that rolls back a dead write of ours leaves them, and archives what is
    around them. Reads the archive only if there is such a log file, and this process has not met it before.

    Raises:
        CorruptFileError: the archive does not parse.
    """
    in_doubt = _in_doubt(timeline, names)
    if not in_doubt:
        return timeline
    known = dict(_known.get(store.spec, {}))
    unknown = in_doubt - known.keys()
    if unknown:
        known |= TimelineArchive(store, METADATA_HISTORY).completion_times(unknown)
        _known[store.spec] = known
    completed = {time: known[time] for time in in_doubt & known.keys()}
    never = frozenset(in_doubt - known.keys())
    return replace(timeline, archived={**timeline.archived, **completed}, never_completed=never)


def _in_doubt(timeline: Timeline, names: Collection[str]) -> set[str]:
    start = timeline.start or ""
    newest: dict[str, str] = {}
    logs: list[LogFileName] = []
    for name in names:
        log = LogFileName.parse(name)
        if log is not None:
            if log.instant_time < start:
                logs.append(log)
            continue
        base = BaseFileName.parse(name)
        if base is not None:
            newest[base.file_id] = max(newest.get(base.file_id, ""), base.instant_time)
    return {
        log.instant_time
        for log in logs
        if log.file_id.startswith(RECORD_INDEX_PREFIX) or log.instant_time < newest.get(log.file_id, "")
    }
