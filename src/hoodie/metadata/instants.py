"""The instants of the metadata table: which readers see, which fill a whole partition, and which are archived.

docs/format/metadata.md §3.4, §3.5, §3.9; docs/format/table.md §5.1. A table's first partitions are filled at counters,
`0000…`. An index that is built while writers run is filled at the time of its indexing instant followed by the
operation code of the indexer. This time is greater than the time of every earlier instant, so that the files do not
count as files of archived instants before the build completes. The JVM archives instants whose log files still exist;
this library does not, so the archive is not read for tables that only this library wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import replace
from functools import lru_cache
from typing import Final

from hoodie.files.slices import FileSlice, logs_in_doubt
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.metadata.paths import METADATA_HISTORY
from hoodie.storage import Store, StoreSpec
from hoodie.timeline import Timeline, TimelineArchive

_COUNTER_BEGINS: Final = "0000"
_INSTANT_DIGITS: Final = 17
FIRST_FILL_CODE: Final = 10
"""Version 6: the least code of an instant that fills a partition of a table with commits. On disk: do not change."""
_INDEXER: Final = "004"
"""Operation code of the indexer. On disk: do not change."""


def build_time(indexing_time: str) -> str:
    """Return the metadata table's instant for an index build; `indexing_time` is its instant on the data timeline."""
    return f"{indexing_time}{_INDEXER}"


def indexing_time(built_at: str) -> str:
    """Return the instant on the data timeline of an index build; the opposite of `build_time`."""
    return built_at.removesuffix(_INDEXER)


@lru_cache(maxsize=1 << 12)
def fills_a_partition(instant_time: str) -> bool:
    """Return whether the instant fills a partition: it holds the entries of many instants of the data table.

    >>> fills_a_partition("00000000000000001"), fills_a_partition("20261121123616628004")
    (True, True)
    >>> fills_a_partition("20261121123616628010"), fills_a_partition("20261121123616628001")
    (True, False)
    >>> fills_a_partition("20261121123616628")
    False
    """
    code = instant_time[_INSTANT_DIGITS:]
    is_coded = len(code) == len(_INDEXER) and int(code) >= FIRST_FILL_CODE
    return is_coded or is_build(instant_time) or instant_time.startswith(_COUNTER_BEGINS)


def is_build(instant_time: str) -> bool:
    """Return whether the instant belongs to an index build (`build_time`).

    >>> is_build(build_time("20261121123616628")), is_build("20261121123616628010")
    (True, False)
    """
    return instant_time[_INSTANT_DIGITS:] == _INDEXER


def is_of_data_table(instant_time: str) -> bool:
    """Return whether the instant is of the data table, not a service of the metadata table or a partition's filling.

    >>> is_of_data_table("20261121123616628"), is_of_data_table("20261121123616628001")
    (True, False)
    """
    return len(instant_time) <= _INSTANT_DIGITS and not fills_a_partition(instant_time)


def visible_instants(metadata_timeline: Timeline, data_timeline: Timeline) -> Timeline:
    """Return the instants of the metadata table that readers see: completed, and not pending on the data timeline.

    The delta commit of a data instant completes before the data instant. Until the data instant completes, readers must
    not see its rows. `data_timeline` is the whole active timeline of the data table. An instant that is not on it was
    archived, or exists only in the metadata table (a compaction): it is visible.
    """

    times = [instant.requested_time for instant in data_timeline.pending().instants]
    # A savepoint that is pending has the time of its commit.
    hidden = {time for time in times if not ((found := data_timeline.get(time)) and found.is_completed)}
    return metadata_timeline.completed().filter(lambda instant: instant.requested_time not in hidden)


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

    Raises: CorruptFileError if the archive does not parse.
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

    Raises: CorruptFileError if the archive does not parse.
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
