"""Completion times of archived instants, which decide to which file slice their log files belong.

docs/format/table.md §5.1. The JVM archives instants whose log files are still there. Our archiving does not, so tables
that only this library wrote cost nothing here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from hoodie.format.filenames import BaseFileName, LogFileName
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.metadata.places import METADATA_HISTORY
from hoodie.storage import Store, StoreSpec
from hoodie.timeline import Timeline, TimelineArchive

_known: dict[StoreSpec, Mapping[str, str]] = {}
"""Completion times that earlier calls read, by table. Archived instants do not change. Bounded by the log files."""


def with_archived_logs(store: Store, timeline: Timeline, names: Collection[str], kind: PartitionKind) -> Timeline:
    """Add completion times of archived instants to the metadata table's timeline, as far as they are needed.

    `names` are the files of the partition `kind`. The completion time is needed of a log file that is older than the
    active timeline and than a base file of its file group: its instant may have completed before or after the base file
    was begun. It is needed of every such log file if the kind's log files are written before their delta commit: a
    JVM writer that rolls back a dead write of ours leaves them, and archives the instants around them. The archive is
    read only if there is such a log file whose instant this process has not looked up before.

    Raises:
        CorruptFileError: the archive does not parse.
    """
    in_doubt = _in_doubt(timeline, names, kind)
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


def _in_doubt(timeline: Timeline, names: Collection[str], kind: PartitionKind) -> set[str]:
    """Instants of the log files whose completion time is needed."""
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
        log.instant_time for log in logs if kind.logs_before_commit or log.instant_time < newest.get(log.file_id, "")
    }
