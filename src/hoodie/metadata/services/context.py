"""The arguments of every service of the metadata table, and the limits that decide when a service runs.

docs/format/metadata.md §3.9. JVM Hudi 1.2.0 derives the same limits from the table's options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hoodie.config.indexes import METADATA_COMPACT_DELTA_COMMITS
from hoodie.metadata.data_table import DataTable
from hoodie.metadata.folder import MetadataFolder, time_after
from hoodie.metadata.instants import visible_instants
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.timeline import Action, Instant, Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLimits:
    """Limits as numbers of completed delta commits and compactions."""

    delta_commits_to_compact: int = METADATA_COMPACT_DELTA_COMMITS.default
    """Number of delta commits since the last compaction at which the next compaction is due."""
    commits_retained: int = 20
    """Number of newest commits whose file slices the cleaner keeps: twice the number of the data table, which is 10."""
    commits_kept_min: int = 21
    """Number of commits that archiving keeps on the active timeline; one more than for the data table."""
    commits_kept_max: int = 31
    """Archiving is due if the active timeline has more commits than this."""

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> ServiceLimits:
        """Return the limits of a table with these stored properties.

        Raises: InvalidConfigError if an option does not parse.
        """
        return cls(delta_commits_to_compact=METADATA_COMPACT_DELTA_COMMITS.get(properties))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceContext:
    """One run of the services, under the table's lock.

    `kinds` are the partitions that exist, by name. Partitions in `unfinished` are being built. Writers already write
    log files to them. A base file compacted from these log files could be newer than the base file of the build, and
    hide it.
    """

    folder: MetadataFolder
    kinds: Mapping[str, PartitionKind]
    table: DataTable
    """The data table, as it is under the lock."""
    metadata_timeline: Timeline
    limits: ServiceLimits = field(default_factory=ServiceLimits)
    unfinished: frozenset[str] = frozenset()

    @property
    def finished_kinds(self) -> dict[str, PartitionKind]:
        """The partitions whose file slices may be compacted and cleaned."""
        return {name: kind for name, kind in self.kinds.items() if name not in self.unfinished}

    @property
    def visible(self) -> Timeline:
        """The instants of the metadata table that readers see."""
        return visible_instants(self.metadata_timeline, self.table.timeline)

    def next_time(self) -> str:
        """Return a time that is later than every instant of both timelines."""
        return time_after(self.table.clock, self.table.timeline, self.metadata_timeline)

    def service_time(self, code: str) -> str:
        """Return the instant of a new service; in version 6 the last delta commit and the code."""
        if self.folder.names_base_instants:
            last = self.metadata_timeline.completed().filter(lambda found: found.action is Action.DELTA_COMMIT).latest()
            if last is not None:
                return f"{last.requested_time}{code}"
        return self.next_time()

    def complete(self, requested_time: str, action: Action, content: bytes) -> None:
        """Complete the instant of a service; fails if the caller lost the table's lock."""
        self.folder.complete(
            requested_time,
            action,
            content,
            completion_time=self.next_time(),
            create_last=self.table.create_last,
        )

    def reloaded(self) -> ServiceContext:
        """Return a copy with the metadata table's timeline loaded again."""
        return replace(self, metadata_timeline=self.folder.timeline())

    def completed_commits(self) -> list[Instant]:
        """Return the completed delta commits and compactions of the metadata table, by requested time."""
        return list(self.metadata_timeline.writes().completed().instants)

    def first_pending_time(self) -> str | None:
        """Return the requested time of the oldest pending instant of either table; None if there is no pending instant.

        A data instant may have files in the metadata table before it is on the metadata table's timeline.
        """
        pending = [*self.table.timeline.pending(), *self.metadata_timeline.pending()]
        return min((instant.requested_time for instant in pending), default=None)
