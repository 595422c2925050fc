"""A build on the data timeline: an indexing instant, as the JVM's asynchronous indexer makes it.

docs/format/table.md §2.5 (`HoodieIndexPlan`). Writers run during the build. Unlike the JVM's build, it does not rely on
entries that they write. A plan of this library records this: the plan of a record index stores the number of buckets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hoodie.format.instants.service_metadata import IndexCommitMetadata, IndexPartitionInfo, IndexPlan
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.metadata.instants import build_time
from hoodie.metadata.kinds.registry import KINDS
from hoodie.timeline import Action, Instant
from hoodie.view.table_view import TableView

_BUCKETS_KEY = "hoodie.python.record.index.buckets"
_FILES_KEY = "hoodie.python.statistics"
# In the plan's extra metadata. On disk: do not change.


@dataclass(frozen=True, slots=True)
class IndexBuild:
    """One build: its indexing instant on the data timeline, and the metadata partitions that it makes."""

    requested_time: str
    names: tuple[str, ...]
    extra_metadata: Mapping[str, str] = field(hash=False)

    @classmethod
    def of_records(cls, buckets: int, requested_time: str = "") -> IndexBuild:
        """Return a build of the record index with so many index file groups."""
        return cls(requested_time, (RECORD_INDEX,), {_BUCKETS_KEY: str(buckets)})

    @classmethod
    def of_files(cls, names: tuple[str, ...], requested_time: str = "") -> IndexBuild:
        """Return a build of partitions that are made of the data files (`KINDS.builder`)."""
        return cls(requested_time, names, {_FILES_KEY: "true"})

    @property
    def buckets(self) -> int:
        """The number of index file groups of a record index."""
        return int(self.extra_metadata[_BUCKETS_KEY])

    @property
    def is_of_records(self) -> bool:
        """Whether the build makes the record index."""
        return self.names == (RECORD_INDEX,)

    @property
    def build_time(self) -> str:
        """The instant of the build on the metadata table's timeline. The names of its files contain this instant."""
        return build_time(self.requested_time)

    def plan_to_bytes(self, view: TableView) -> bytes:
        """Return the content of the requested file, which names the last instant that completed before the build."""
        return IndexPlan(index_partition_infos=self._infos(view)).to_bytes()

    def metadata_to_bytes(self, now: TableView) -> bytes:
        """Return the content of the completed file, which names the last instant whose keys or files are covered."""
        return IndexCommitMetadata(index_partition_infos=self._infos(now)).to_bytes()

    def _infos(self, view: TableView) -> tuple[IndexPartitionInfo, ...]:
        last = view.timeline.writes().completed().latest()
        upto, extra = None if last is None else last.requested_time, dict(self.extra_metadata)
        return tuple(
            IndexPartitionInfo(metadata_partition_path=name, index_upto_instant=upto, extra_metadata=extra)
            for name in self.names
        )


def build_of(view: TableView, instant: Instant) -> IndexBuild | None:
    """Return the build of an instant; None if this library makes no index by it, or if it has just ended.

    Raises: CorruptFileError if its plan does not parse.
    """
    if instant.action is not Action.INDEXING:
        return None
    content = view.pending_content(instant)
    plan = IndexPlan.parse(content, path=str(instant)) if content else IndexPlan()
    of_files: list[str] = []
    for info in plan.index_partition_infos:
        name, extra = info.metadata_partition_path or "", info.extra_metadata or {}
        if name == RECORD_INDEX and extra.get(_BUCKETS_KEY, "").isdigit():
            return IndexBuild.of_records(int(extra[_BUCKETS_KEY]), instant.requested_time)
        if extra.get(_FILES_KEY) == "true" and KINDS.builder(name) is not None:
            of_files.append(name)
    return IndexBuild.of_files(tuple(of_files), instant.requested_time) if of_files else None


def pending_indexing(view: TableView) -> list[Instant]:
    """Return the pending indexing instants of this library and of the JVM."""
    return [instant for instant in view.timeline.pending() if instant.action is Action.INDEXING]


def pending_build(view: TableView) -> IndexBuild | None:
    """Return the pending build of the record index by this library, running or abandoned; None if there is none."""
    builds = (build_of(view, instant) for instant in pending_indexing(view))
    return next((build for build in builds if build is not None and build.is_of_records), None)
