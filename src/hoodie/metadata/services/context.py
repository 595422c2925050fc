"""What every service of the metadata table gets: the folder, the two timelines as they are, the clock, the limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from hoodie.engine import Engine, LocalEngine
from hoodie.metadata.folder import MetadataFolder, time_after
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.metadata.services.limits import ServiceLimits
from hoodie.timeline import Instant, InstantClock, Timeline

EngineFor = Callable[[int], Engine]
"""Which engine does work on so many bytes of files."""


def local_engine(work_bytes: int) -> Engine:
    """Threads of this process, however much there is to do."""
    return LocalEngine()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceContext:
    """One run of the services, under the table's lock.

    `kinds` are the partitions that exist, by name. Those in `unfinished` are being built: writers log to them already,
    but a base file made of those logs would hide the one that the build makes, which may have an older instant.
    """

    folder: MetadataFolder
    kinds: Mapping[str, PartitionKind]
    clock: InstantClock
    data_timeline: Timeline
    """The whole active timeline of the data table, pending instants too."""
    metadata_timeline: Timeline
    limits: ServiceLimits = field(default_factory=ServiceLimits)
    engine_for: EngineFor = local_engine
    unfinished: frozenset[str] = frozenset()

    @property
    def finished_kinds(self) -> dict[str, PartitionKind]:
        """The partitions whose file slices may be compacted and cleaned."""
        return {name: kind for name, kind in self.kinds.items() if name not in self.unfinished}

    def next_time(self) -> str:
        """A time later than everything on both timelines."""
        return time_after(self.clock, self.data_timeline, self.metadata_timeline)

    def reloaded(self) -> ServiceContext:
        """The same with the metadata table's timeline read anew."""
        return replace(self, metadata_timeline=self.folder.timeline())

    def completed_commits(self) -> list[Instant]:
        """Completed delta commits and compactions of the metadata table, by requested time."""
        return list(self.metadata_timeline.writes().completed().instants)

    def first_pending_time(self) -> str | None:
        """Requested time of the oldest instant, of either table, that is not completed.

        A data instant may have files in the metadata table before it has an instant there.
        """
        pending = [*self.data_timeline.pending(), *self.metadata_timeline.pending()]
        return min((instant.requested_time for instant in pending), default=None)
