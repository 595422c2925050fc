"""Find the partitions whose time to live is over, by Hudi's strategies and options (docs/operations/time-to-live.md).

The time of a partition is that of its last write, or of its creation. A last write is the newest instant of a base or
log file of its newest file slices; JVM Hudi 1.2.0 looks at base files only, so that there a merge-on-read partition may
expire while it is written to.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from hoodie import config as options
from hoodie.engine import Engine, TaskContext
from hoodie.errors import InvalidConfigError
from hoodie.files.slices import join_path
from hoodie.format.filenames import PARTITION_METADATA_NAME
from hoodie.format.table.properties import PartitionMetadata
from hoodie.storage import StoreSpec, open_store
from hoodie.timeline import to_instant_time
from hoodie.view.table_view import TableView

_BY_CREATION: Final = "keep_by_creation_time"
_DAYS_MAX: Final = 365 * 1000
_PARTITIONS_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TtlOptions:
    """The rule of one table: `days` after its time a partition has expired; 0: none ever does.

    `partitions`: the paths that may expire; empty: all. `partitions_max`: how many one run deletes.
    """

    days: int = 0
    by_creation: bool = False
    partitions: frozenset[str] = frozenset()
    partitions_max: int = options.TTL_PARTITIONS_MAX.default

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> TtlOptions:
        """Return the rule that these properties define. Raises: InvalidConfigError if a value does not parse."""
        days = options.TTL_DAYS.get(properties)
        if days > _DAYS_MAX:
            raise InvalidConfigError(f"{options.TTL_DAYS.key}={days}: at most {_DAYS_MAX} days expected")
        return cls(
            days=max(days, 0),
            by_creation=options.TTL_STRATEGY.get(properties) == _BY_CREATION,
            partitions=frozenset(filter(None, options.TTL_PARTITIONS_SELECTED.get(properties).split(","))),
            partitions_max=options.TTL_PARTITIONS_MAX.get(properties),
        )

    def bound(self, view: TableView, now: datetime) -> str:
        """Return the instant time before which the time of an expired partition is; `now` has a time zone."""
        return to_instant_time(now - timedelta(days=self.days), view.layout.zone)


@dataclass(frozen=True, slots=True)
class Expired:
    """The partitions to delete, the longest expired first, and the time that decided; `others`: partitions that stay.

    `others_since` is the oldest time among them; empty without others.
    """

    times: Mapping[str, str]
    others: int
    others_since: str


def find_expired(view: TableView, rule: TtlOptions, engine: Engine, *, now: datetime) -> Expired:
    """Return the expired partitions of a table. Memory: its listing; by creation, one small file of each is read.

    A table without partitions has none.

    Raises: CorruptFileError if the metadata file of a partition does not parse.
    """
    if not rule.days or not view.config.partition_fields:
        return Expired({}, 0, "")
    times = partition_times(view, rule, engine)
    bound = rule.bound(view, now)
    ordered = sorted(times.items(), key=lambda found: (found[1], found[0]))
    gone = [(path, time) for path, time in ordered if time < bound][: rule.partitions_max]
    stays = ordered[len(gone) :]
    return Expired(dict(gone), len(stays), stays[0][1] if stays else "")


def partition_times(
    view: TableView, rule: TtlOptions, engine: Engine, partitions: Collection[str] | None = None
) -> dict[str, str]:
    """Return the time from which the time to live of each partition counts; partitions without rows are left out."""
    newest: dict[str, str] = {}
    for found in view.slices(partitions if partitions is not None else (rule.partitions or None)):
        times = [log.name.instant_time for log in found.log_files]
        if found.base_file is not None:
            times.append(found.base_file.instant_time)
        newest[found.partition_path] = max(newest.get(found.partition_path, ""), *times)
    if not rule.by_creation:
        return newest
    paths = sorted(newest)
    batches = [paths[start : start + _PARTITIONS_AT_ONCE] for start in range(0, len(paths), _PARTITIONS_AT_ONCE)]
    created: dict[str, str] = {}
    for times_of in engine.run(_ReadCreation(view.store.spec), batches):
        created |= times_of
    # Old writers did not store a creation time; such a partition never expires, as in the JVM.
    return created


@dataclass(frozen=True, slots=True)
class _ReadCreation:
    """Callable for `Engine.run`: read the instant that created each partition of a batch."""

    store: StoreSpec

    def __call__(self, paths: list[str], _context: TaskContext) -> dict[str, str]:
        store = open_store(self.store)
        found: dict[str, str] = {}
        for path in paths:
            file = join_path(path, PARTITION_METADATA_NAME)
            try:
                content = store.read(file)
            except FileNotFoundError:
                continue
            created = PartitionMetadata.parse(content, path=store.uri(file)).commit_time
            if created:
                found[path] = created
        return found
