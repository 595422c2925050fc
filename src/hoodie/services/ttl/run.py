"""Delete expired partitions, in one replace commit (docs/operations/time-to-live.md).

The commit is a write of the operation DELETE_PARTITION: the record index follows, and the files stay for readers of
older snapshots until they are cleaned.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from hoodie.errors import UnsupportedError
from hoodie.format.table.call_options import check_call_options
from hoodie.progress import PhaseTimes
from hoodie.services.call import ServiceCall
from hoodie.services.result import ServiceResult
from hoodie.services.ttl.plan import Expired, TtlOptions, find_expired, partition_times
from hoodie.view.table_view import TableView

OPERATION: Final = "expire partitions"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExpiredResult(ServiceResult):
    """The outcome of a run; `partitions` maps the deleted partition paths to the time that decided."""

    partitions: Mapping[str, str] = field(default_factory=dict, hash=False)


def expire_partitions(call: ServiceCall, *, dry_run: bool = False, now: datetime | None = None) -> ExpiredResult:
    """Delete the partitions whose time to live is over; with `dry_run` only return them.

    Under the commit's begin the times are looked at once more: a partition that was written to meanwhile stays.

    Raises:
        UnsupportedError: a table that this release does not write.
        InvalidConfigError: a wrong option.
        CommitConflictError: another writer changed an expired partition while it was deleted; nothing was deleted.
    """
    times = PhaseTimes()
    view = TableView.load(call.state)
    check_call_options(call.properties, view.config)
    if not view.config.version.is_written:
        raise UnsupportedError(
            f"{view.store.uri('')} has table version {view.config.version.value}; this release deletes partitions of "
            "version 9 only and never upgrades a table"
        )
    rule, now = TtlOptions.of({**view.config.raw, **call.properties}), now or datetime.now(UTC)
    engine = call.engine_for(0)
    with times.phase("plan"):
        expired = find_expired(view, rule, engine, now=now)
        _remember(view, rule, expired)
    instant: str | None = None
    deleted: Mapping[str, str] = expired.times
    if deleted and not dry_run:
        bound = rule.bound(view, now)

        def still_expired(begun: TableView) -> Collection[str]:
            nonlocal deleted
            found = partition_times(begun, rule, engine, frozenset(expired.times))
            deleted = {path: found[path] for path in expired.times if found.get(path, bound) < bound}
            return deleted

        with times.phase("delete"):
            instant = call.remove_partitions(still_expired)
    return ExpiredResult(
        operation=OPERATION,
        instant=instant,
        counts={
            "partitions_deleted": len(deleted),
            "partitions_kept": expired.others + len(expired.times) - len(deleted),
        },
        seconds=times.seconds(),
        dry_run=dry_run,
        partitions=deleted,
    )


def is_expiry_due(call: ServiceCall, view: TableView) -> bool:
    """Return whether a partition may have expired. Reads the timeline only, or lists the archive's folder."""
    rule = TtlOptions.of({**view.config.raw, **call.properties})
    if not rule.days or not view.config.version.is_written or not view.config.partition_fields:
        return False
    bound = rule.bound(view, datetime.now(UTC))
    known = view.state.expiry
    if known is not None and known[0] == rule:
        return known[1] < bound
    oldest = view.timeline.start
    return oldest is not None and (oldest < bound or view.has_archived_instants())


def _remember(view: TableView, rule: TtlOptions, expired: Expired) -> None:
    """Note in this process the oldest time of a partition: until it expires, no other partition does."""
    newest = max((found.requested_time for found in view.timeline), default="")
    times = [*expired.times.values(), expired.others_since or newest]
    view.state.expiry = (rule, min(times))
