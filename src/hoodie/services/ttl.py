"""Delete the partitions whose time to live is over: `t.expire_partitions()`, and after a commit if that is on.

Hudi's strategies and options decide (docs/operations/time-to-live.md). The time of a partition is the time of its
last write, or of its creation. A last write is the newest instant that wrote a base or log file of its newest file
slices; JVM Hudi 1.2.0 looks at base files only, so that there a merge-on-read partition may expire while it is written
to. One replace commit, a write of the operation DELETE_PARTITION, deletes the partitions: the record index follows, and
the files stay for readers of older snapshots until they are cleaned.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from hoodie.commit.call import Call
from hoodie.config import retention
from hoodie.engine import Engine, TaskContext
from hoodie.errors import InvalidConfigError
from hoodie.files.slices import join_path
from hoodie.format.filenames import PARTITION_METADATA_NAME
from hoodie.format.table.call_options import effective_options
from hoodie.format.table.properties import PartitionMetadata
from hoodie.progress import PhaseTimes
from hoodie.results import OnResult, ServiceResult
from hoodie.services.service import TableService
from hoodie.storage import StoreSpec, open_store
from hoodie.timeline import to_instant_time
from hoodie.view.last_writes import last_writes
from hoodie.view.listing import note_unknown
from hoodie.view.slices import list_slices
from hoodie.view.table_view import TableView

_BY_CREATION: Final = "keep_by_creation_time"
_DAYS_MAX: Final = 365 * 1000
_PARTITIONS_AT_ONCE: Final = 1000
_RESERVED: Final = "0000"
"""How instant times begin that are not dates; bootstraps have such times (docs/format/table.md §2.2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _TtlOptions:
    """The rule of one table: `days` after its time a partition has expired; 0: none ever does.

    `partitions`: the paths that may expire; empty: all. `partitions_max`: how many one run deletes.
    """

    days: int = 0
    by_creation: bool = False
    partitions: frozenset[str] = frozenset()
    partitions_max: int = retention.TTL_PARTITIONS_MAX.default

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> _TtlOptions:
        """Return the rule that these properties define. Raises: InvalidConfigError if a value does not parse."""
        days = retention.TTL_DAYS.get(properties)
        if days > _DAYS_MAX:
            raise InvalidConfigError(f"{retention.TTL_DAYS.key}={days}: at most {_DAYS_MAX} days expected")
        return cls(
            days=max(days, 0),
            by_creation=retention.TTL_STRATEGY.get(properties) == _BY_CREATION,
            partitions=frozenset(retention.TTL_PARTITIONS_SELECTED.get(properties)),
            partitions_max=retention.TTL_PARTITIONS_MAX.get(properties),
        )

    def bound(self, view: TableView, now: datetime) -> str:
        """Return the instant time before which the time of an expired partition is; `now` has a time zone."""
        return to_instant_time(now - timedelta(days=self.days), view.layout.zone)


def _find_expired(
    view: TableView, rule: _TtlOptions, engine: Engine, *, now: datetime
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the partitions to delete, the longest expired first, and those that stay, each with its time.

    A table without partitions has none. Memory: its listing; by creation, one small file of each partition is read.
    """
    if not rule.days or not view.config.partition_fields:
        return {}, {}
    bound = rule.bound(view, now)
    ordered = sorted(_partition_times(view, rule, engine).items(), key=lambda found: (found[1], found[0]))
    gone = [(path, time) for path, time in ordered if time < bound][: rule.partitions_max]
    return dict(gone), dict(ordered[len(gone) :])


def _partition_times(
    view: TableView, rule: _TtlOptions, engine: Engine, partitions: Collection[str] | None = None
) -> dict[str, str]:
    """Return the time from which the time to live of each partition counts; partitions without rows are left out."""
    newest = last_writes(view, list_slices(view, partitions if partitions is not None else (rule.partitions or None)))
    if not rule.by_creation:
        return _with_dates(view, newest)
    paths = sorted(newest)
    batches = [paths[start : start + _PARTITIONS_AT_ONCE] for start in range(0, len(paths), _PARTITIONS_AT_ONCE)]
    created: dict[str, str] = {}
    for times_of in engine.run(partial(_read_creation, spec=view.store.spec), batches):
        created |= times_of
    # Old writers did not store a creation time; such a partition never expires, as in the JVM.
    return _with_dates(view, created)


def _with_dates(view: TableView, times: dict[str, str]) -> dict[str, str]:
    """Replace the reserved times of bootstraps, which are before every date, by the completion times of their commits.

    A partition is left out if the completion time is not known: old writers did not archive it.
    """
    reserved = {time for time in times.values() if time.startswith(_RESERVED)}
    if not reserved:
        return times
    found = (view.timeline.get(time) for time in reserved)
    instants = [*filter(None, found), *view.archive().find(reserved)]
    ends = {instant.requested_time: instant.completion_time or "" for instant in reversed(instants)}
    dated = {path: ends.get(time, "") if time in reserved else time for path, time in times.items()}
    return {path: time for path, time in dated.items() if time and not time.startswith(_RESERVED)}


def _read_creation(paths: list[str], _context: TaskContext, *, spec: StoreSpec) -> dict[str, str]:
    """Read the instant that created each partition."""
    store = open_store(spec)
    found: dict[str, str] = {}
    for path in paths:
        file = join_path(path, PARTITION_METADATA_NAME)
        with suppress(FileNotFoundError):
            created = PartitionMetadata.parse(store.read(file), path=store.uri(file)).commit_time
            found |= {path: created} if created else {}
    return found


OPERATION: Final = "expire partitions"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExpiredResult(ServiceResult):
    """The outcome of a run; `partitions` maps the deleted partition paths to the time that decided."""

    partitions: Mapping[str, str] = field(default_factory=dict, hash=False)

    def details(self) -> Sequence[str]:
        """Return the partitions and their times, one a line."""
        return [f"  {partition}  since {since}" for partition, since in self.partitions.items()]


def expire_partitions(call: Call, *, dry_run: bool = False, now: datetime | None = None) -> ExpiredResult:
    """Delete the partitions whose time to live is over; with `dry_run` only return them.

    Under the commit's begin the times are looked at once more: a partition that was written to meanwhile stays.

    Raises: as `Table.expire_partitions`.
    """
    times = PhaseTimes()
    view = call.checked_view()
    rule, now = _TtlOptions.of(effective_options(view.config, call.properties)), now or datetime.now(UTC)
    engine = call.engine_for(0)
    with times.phase("plan"):
        expired, others = _find_expired(view, rule, engine, now=now)
        # Until the oldest time of a partition expires, no other partition does.
        newest = max((found.requested_time for found in view.timeline), default="")
        view.state.expiry = (rule, min([*expired.values(), *(others.values() or [newest])]))
    instant: str | None = None
    deleted: Mapping[str, str] = expired
    if deleted and not dry_run:
        bound = rule.bound(view, now)

        def still_expired(begun: TableView) -> Collection[str]:
            nonlocal deleted
            found = _partition_times(begun, rule, engine, frozenset(expired))
            deleted = {path: found[path] for path in expired if found.get(path, bound) < bound}
            return deleted

        with times.phase("delete"):
            instant = call.remove_partitions(call, still_expired)
    partitions = len(others) + len(expired)
    return ExpiredResult(
        operation=OPERATION,
        instant=instant,
        counts={"partitions_deleted": len(deleted), "partitions_kept": partitions - len(deleted)} if partitions else {},
        seconds=times.seconds(),
        dry_run=dry_run,
        notes=note_unknown(view, rule.partitions, retention.TTL_PARTITIONS_SELECTED.key) if rule.days else (),
        partitions=deleted,
    )


def is_expiry_due(call: Call, view: TableView) -> bool:
    """Return whether a partition may have expired. Reads the timeline only, or lists the archive's folder."""
    rule = _TtlOptions.of(effective_options(view.config, call.properties))
    if not rule.days or not view.config.partition_fields:
        return False
    bound = rule.bound(view, datetime.now(UTC))
    known = view.state.expiry
    if known is not None and known[0] == rule:
        return known[1] < bound
    oldest = view.timeline.start
    return oldest is not None and (oldest < bound or view.has_archived_instants())


def _run(call: Call, report: OnResult) -> None:
    result = expire_partitions(call)
    if result.partitions:
        report(result)


EXPIRE = TableService(
    name="ttl", about="Delete expired partitions.", is_on=retention.TTL_INLINE.get, is_due=is_expiry_due, run=_run
)
