"""Completion times of archived instants. They decide to which file slice a log file belongs.

docs/format/table.md §5.1. The JVM archives instants whose log files still exist. Archiving in this library does not, so
the archive is not read for tables that only this library wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import replace

from hoodie.files.slices import FileSlice, logs_in_doubt
from hoodie.metadata.build_instants import fills_a_partition
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.metadata.places import METADATA_HISTORY
from hoodie.storage import Store, StoreSpec
from hoodie.timeline import Timeline, TimelineArchive

_known: dict[StoreSpec, Mapping[str, str]] = {}
"""Completion times that earlier calls read, by table. They do not change. At most one for each file."""


def with_archived_logs(store: Store, timeline: Timeline, names: Collection[str], kind: PartitionKind) -> Timeline:
    """Add the completion times of archived instants that are needed to the metadata table's timeline.

    `names` are the files of the partition `kind`. A log file needs its completion time if it is older than the active
    timeline and older than a base file of its file group: its instant may have completed before or after the compaction
    of the base file was requested. If the kind's log files are written before their delta commit, every log file that
    is older than the active timeline needs its completion time: a JVM writer that rolls back a dead write of this
    library leaves these log files, and archives the instants before and after. The archive is read only if this process
    has not looked up the instant of such a log file before.

    Raises:
        CorruptFileError: the archive does not parse.
    """
    in_doubt = logs_in_doubt(names, timeline.start, all_old=kind.logs_before_commit)
    if not in_doubt:
        return timeline
    completed = _completion_times(store, in_doubt)
    never = frozenset(in_doubt - completed.keys())
    return replace(timeline, archived={**timeline.archived, **completed}, never_completed=never)


def with_archived_fills(store: Store, timeline: Timeline, slices: Iterable[FileSlice]) -> Timeline:
    """Add the completion times of archived instants that filled the partitions of these slices.

    The JVM gives such instants small numbers, so it archives them before older delta commits. The archive is read only
    if this process has not looked up the instant before.

    Raises:
        CorruptFileError: the archive does not parse.
    """
    times = {found.base_instant_time for found in slices}
    archived = {time for time in times if fills_a_partition(time) and timeline.get(time) is None}
    if not archived:
        return timeline
    return replace(timeline, archived={**timeline.archived, **_completion_times(store, archived)})


def _completion_times(store: Store, requested_times: Set[str]) -> dict[str, str]:
    """Return the completion times of those of these instants that are archived."""
    known = dict(_known.get(store.spec, {}))
    unknown = requested_times - known.keys()
    if unknown:
        known |= TimelineArchive(store, METADATA_HISTORY).completion_times(unknown)
        _known[store.spec] = known
    return {time: known[time] for time in requested_times & known.keys()}
