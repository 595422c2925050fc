"""A build of the record index on the data timeline: an indexing instant, as the JVM's asynchronous indexer makes it.

docs/format/table.md §2.5 (`HoodieIndexPlan`). A plan of this library also stores the number of buckets. Writers run
during the build. Unlike the JVM's build, it does not rely on entries that they write.
"""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.errors import InstantNotFoundError
from hoodie.format.instants.service_metadata import IndexCommitMetadata, IndexPartitionInfo, IndexPlan
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.metadata.instants import build_time
from hoodie.timeline import Action, Instant, State, read_instant
from hoodie.view.table_view import TableView

_BUCKETS_KEY = "hoodie.python.record.index.buckets"
"""In the plan's extra metadata. On disk: do not change."""


@dataclass(frozen=True, slots=True)
class IndexBuild:
    """One build: its indexing instant on the data timeline, and the number of buckets that it makes."""

    requested_time: str
    buckets: int

    @property
    def build_time(self) -> str:
        """The instant of the build on the metadata table's timeline. The names of its files contain this instant."""
        return build_time(self.requested_time)

    def metadata_to_bytes(self, upto: str | None) -> bytes:
        """Return the content of the completed file; `upto` is the last instant whose keys are in the index."""
        return IndexCommitMetadata(index_partition_infos=(_info(self.buckets, upto),)).to_bytes()


def plan_to_bytes(buckets: int, upto: str | None) -> bytes:
    """Return the content of the requested file; `upto` is the last instant that completed before the build began."""
    return IndexPlan(index_partition_infos=(_info(buckets, upto),)).to_bytes()


def _info(buckets: int, upto: str | None) -> IndexPartitionInfo:
    return IndexPartitionInfo(
        metadata_partition_path=RECORD_INDEX,
        index_upto_instant=upto,
        extra_metadata={_BUCKETS_KEY: str(buckets)},
    )


def build_of(view: TableView, instant: Instant) -> IndexBuild | None:
    """Return the build of an indexing instant; None if this library did not make it, or if it has just ended.

    Raises: CorruptFileError if its plan does not parse.
    """
    try:
        content = read_instant(view.store, view.layout, instant, State.REQUESTED)
    except InstantNotFoundError:
        return None
    plan = IndexPlan.parse(content, path=str(instant)) if content else IndexPlan()
    for info in plan.index_partition_infos:
        buckets = (info.extra_metadata or {}).get(_BUCKETS_KEY, "")
        if info.metadata_partition_path == RECORD_INDEX and buckets.isdigit():
            return IndexBuild(instant.requested_time, int(buckets))
    return None


def pending_indexing(view: TableView) -> list[Instant]:
    """Return the pending indexing instants of this library and of the JVM."""
    return [found for found in view.timeline.pending() if found.action is Action.INDEXING]


def pending_build(view: TableView) -> IndexBuild | None:
    """Return the pending build of this library, running or abandoned; None if there is no pending build."""
    builds = (build_of(view, instant) for instant in pending_indexing(view))
    return next((build for build in builds if build is not None), None)
