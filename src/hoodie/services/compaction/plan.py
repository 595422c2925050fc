"""Plan a compaction: when it is due, which file slices it takes, and its instant on the timeline.

Implements docs/format/table.md §9.2. Writers are not blocked. A plan contains the log files that exist at its time.
Later log files belong to the file slices that the compaction will create. Triggers and strategies are Hudi's
(`CompactionTriggerStrategy`, `CompactionStrategy`); only this library has the trigger `log_size`. A trigger reads the
timeline only (except `log_size`), so that each write can check it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from hoodie.commit.call import Call
from hoodie.commit.pending import request
from hoodie.commit.writable import check_no_exclusive_service, check_writable
from hoodie.config import compaction
from hoodie.config.option import compaction_strategy
from hoodie.errors import CommitConflictError, InvalidConfigError, UnsupportedError
from hoodie.files.compaction_operation import LOG_BYTES, LOG_FILES, TOTAL_MIB, operation_of
from hoodie.files.slices import FileSlice
from hoodie.format.instants.service_metadata import CompactionOperation, CompactionPlan
from hoodie.format.table.call_options import check_texts, effective_options
from hoodie.format.table.table_config import TableType
from hoodie.timeline import Action, Instant, Timeline, parse_instant_time
from hoodie.view.columns import bootstrap_source
from hoodie.view.pending_plans import FileGroup, planned_groups
from hoodie.view.slices import list_slices
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """The rule of one table or write that decides when a compaction is due."""

    strategy: str = compaction.COMPACT_TRIGGER.default
    delta_commits: int = compaction.COMPACT_DELTA_COMMITS.default
    delta_seconds: int = compaction.COMPACT_DELTA_SECONDS.default
    delta_bytes: int = compaction.COMPACT_DELTA_BYTES.default

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Trigger:
        """Return the rule that these properties define. Raises: InvalidConfigError if a value does not parse."""
        return cls(
            strategy=compaction.COMPACT_TRIGGER.get(properties),
            delta_commits=compaction.COMPACT_DELTA_COMMITS.get(properties),
            delta_seconds=compaction.COMPACT_DELTA_SECONDS.get(properties),
            delta_bytes=compaction.COMPACT_DELTA_BYTES.get(properties),
        )

    def is_due(self, view: TableView, *, now_seconds: float | None = None) -> bool:
        """Return whether a compaction should be scheduled now. `log_size` reads commit metadata that is not cached."""
        timeline = view.timeline
        if self.strategy == "num_commits_after_last_request":
            return len(deltas_since_request(timeline)) >= self.delta_commits
        deltas = deltas_since_compaction(timeline)
        if not deltas:
            return False
        if self.strategy == "log_size":
            return self._is_large(view, deltas)
        is_many = len(deltas) >= self.delta_commits
        if self.strategy == "num_commits" or (is_many and self.strategy == "num_or_time"):
            return is_many
        if not is_many and self.strategy == "num_and_time":
            return False
        last = _last_compaction(timeline) or deltas[0]
        began = parse_instant_time(last.requested_time, view.layout.zone).timestamp()
        return (time.time() if now_seconds is None else now_seconds) - began >= self.delta_seconds

    def _is_large(self, view: TableView, deltas: list[Instant]) -> bool:
        """Return whether the delta commits since the last compaction logged at least `delta_bytes` bytes."""
        total = 0
        for instant in reversed(deltas):
            stats = view.commit_metadata(instant).write_stats()
            total += sum(stat.file_size_bytes for stat in stats if stat.is_log_append)
            if total >= self.delta_bytes:
                return True
        return False


def deltas_since_compaction(timeline: Timeline) -> list[Instant]:
    """Return the completed delta commits that no completed compaction includes, oldest first."""
    last = _last_compaction(timeline)
    return _deltas_after(timeline, "" if last is None else last.requested_time)


def deltas_since_request(timeline: Timeline) -> list[Instant]:
    """Return the completed delta commits that no completed or pending compaction includes, oldest first."""
    compactions = (found for found in timeline if found.action is Action.COMPACTION or _is_compaction(found))
    return _deltas_after(timeline, max((found.requested_time for found in compactions), default=""))


def _last_compaction(timeline: Timeline) -> Instant | None:
    return timeline.filter(_is_compaction).latest()


def _is_compaction(instant: Instant) -> bool:
    """Return whether the instant is a completed compaction: other writes of merge-on-read tables are delta commits."""
    return instant.is_completed and instant.action is Action.COMMIT


def _deltas_after(timeline: Timeline, requested_time: str) -> list[Instant]:
    """Return the delta commits that completed after `requested_time`: a plan includes only earlier completed ones."""
    return [
        found
        for found in timeline.completed()
        if found.action is Action.DELTA_COMMIT and (found.completion_time or "") > requested_time
    ]


_DATE = re.compile(r"(?<!\d)(\d{4})([-/]?)(\d{2})\2(\d{2})(?!\d)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyOptions:
    """The limits of the strategies: sizes of a slice's log files in bytes, sizes of its reads and writes in MiB."""

    log_bytes_min: int = compaction.COMPACTION_LOG_BYTES_MIN.default
    log_files_min: int = compaction.COMPACTION_LOG_FILES_MIN.default
    target_mib: int = compaction.COMPACTION_TARGET_MIB.default
    target_partitions: int = compaction.COMPACTION_TARGET_PARTITIONS.default

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> StrategyOptions:
        """Return the limits that these properties define. Raises: InvalidConfigError if a value does not parse."""
        return cls(
            log_bytes_min=compaction.COMPACTION_LOG_BYTES_MIN.get(properties),
            log_files_min=compaction.COMPACTION_LOG_FILES_MIN.get(properties),
            target_mib=compaction.COMPACTION_TARGET_MIB.get(properties),
            target_partitions=compaction.COMPACTION_TARGET_PARTITIONS.get(properties),
        )


Strategy = Callable[[Sequence[CompactionOperation], StrategyOptions], list[CompactionOperation]]


def strategy_named(name: str) -> Strategy:
    """Return the strategy of a short name or of a Hudi class name, with or without its package.

    Raises: InvalidConfigError for any other name.
    """
    try:
        return _STRATEGIES[compaction_strategy(name)]
    except ValueError:
        raise InvalidConfigError(
            f"unknown compaction strategy {name!r}: expected one of {', '.join(_STRATEGIES)}, or the Hudi class name "
            "of one of them"
        ) from None


def largest_logs_first(operations: Sequence[CompactionOperation], limits: StrategyOptions) -> list[CompactionOperation]:
    """Choose slices with at least `log_bytes_min` bytes of log files, most bytes first, up to the I/O limit."""
    return bounded_io(_most_first(operations, LOG_BYTES, limits.log_bytes_min), limits)


def most_logs_first(operations: Sequence[CompactionOperation], limits: StrategyOptions) -> list[CompactionOperation]:
    """Choose slices with at least `log_files_min` log files, most files first, up to the I/O limit."""
    return bounded_io(_most_first(operations, LOG_FILES, limits.log_files_min), limits)


def bounded_io(operations: Sequence[CompactionOperation], limits: StrategyOptions) -> list[CompactionOperation]:
    """Choose the first slices, until their reads and writes reach `target_mib`.

    The slice that reaches the limit is included.
    """
    chosen: list[CompactionOperation] = []
    left = float(limits.target_mib)
    for operation in operations:
        chosen.append(operation)
        left -= _metric(operation, TOTAL_MIB)
        if left <= 0:
            break
    return chosen


def newest_days_first(operations: Sequence[CompactionOperation], limits: StrategyOptions) -> list[CompactionOperation]:
    """Choose all slices of the `target_partitions` partitions with the newest dates in their paths.

    Partitions without a date come last, in descending order of their names.
    """
    by_partition: dict[str, list[CompactionOperation]] = {}
    for operation in operations:
        by_partition.setdefault(operation.partition_path, []).append(operation)
    chosen = sorted(by_partition, key=lambda path: (_date_in(path), path), reverse=True)[: limits.target_partitions]
    return [operation for path in chosen for operation in by_partition[path]]


def unbounded(operations: Sequence[CompactionOperation], limits: StrategyOptions) -> list[CompactionOperation]:
    """Choose every slice."""
    return list(operations)


_STRATEGIES: Mapping[str, Strategy] = {
    "log_file_size": largest_logs_first,
    "log_file_num": most_logs_first,
    "bounded_io": bounded_io,
    "day_based": newest_days_first,
    "unbounded": unbounded,
}


def _most_first(operations: Sequence[CompactionOperation], metric: str, least: int) -> list[CompactionOperation]:
    enough = [operation for operation in operations if _metric(operation, metric) >= least]
    return sorted(enough, key=lambda operation: -_metric(operation, metric))


def _metric(operation: CompactionOperation, name: str) -> float:
    return (operation.metrics or {}).get(name, 0.0)


def _date_in(partition_path: str) -> str:
    """Return the date in a partition path (`2026/11/21`, `day=2026-11-21`, `20261121`) as eight digits, or "".

    >>> _date_in("year=2026/11/21"), _date_in("day=2026-11-21"), _date_in("city=sf")
    ('20261121', '20261121', '')
    """
    values = "/".join(part.rpartition("=")[2] for part in partition_path.split("/"))
    match = _DATE.search(values)
    return "" if match is None else match[1] + match[3] + match[4]


def plan_compaction(
    slices: Iterable[FileSlice],
    busy: Collection[FileGroup],
    strategy: Strategy,
    limits: StrategyOptions,
    extra_metadata: Mapping[str, str] | None = None,
    sources_of: Callable[[Sequence[FileSlice]], Mapping[FileGroup, str]] = lambda _: {},
) -> CompactionPlan:
    """Return the compaction plan of a strategy for the newest file slices; it may have no operations.

    Slices without log files are skipped. Slices of `busy` file groups, which are in another pending plan, are skipped
    too: a file group is in at most one pending plan, so that several plans can be executed at the same time.
    `sources_of` returns the source files of skeleton slices: the JVM finds them in the plan only.
    """
    logged = [one for one in slices if one.log_files and one.group not in busy]
    sources = sources_of(logged)
    operations = [operation_of(one.partition_path, one, sources.get(one.group)) for one in logged]
    return CompactionPlan(operations=tuple(strategy(operations, limits)), extra_metadata=dict(extra_metadata or {}))


def schedule_compaction(
    state: TableState,
    *,
    strategy: str | None = None,
    extra_metadata: Mapping[str, str] | None = None,
    properties: Mapping[str, str] | None = None,
    trigger: Trigger | None = None,
) -> str | None:
    """Plan a compaction of the file slices that have log files; return its instant, or None if there are none.

    `strategy` is a short name or the class name in Hudi (default: `hoodie.compaction.strategy`). `properties` override
    the options that the table stores. File groups in a pending compaction or clustering are skipped, so that any number
    of plans can be pending. With a `trigger`, a compaction is planned only if it is due.

    Raises: as `Table.schedule_compaction`; InvalidConfigError too for a table property among the options.
    """
    extra = dict(extra_metadata or {})
    check_texts("extra_metadata", extra)
    view = Call(state=state, properties=properties or {}).checked_view()
    check_compactable(view)
    effective = effective_options(view.config, properties or {})
    chosen = strategy_named(strategy or compaction.COMPACTION_STRATEGY.get(effective))
    limits = StrategyOptions.of(effective)
    if trigger is not None and not trigger.is_due(view):
        return None
    with TableView.locked(state, properties, finishes_update=True) as view:
        check_no_exclusive_service(view)
        pending = _write_to_wait_for(view)
        if trigger is not None and (pending is not None or not trigger.is_due(view)):
            return None
        if pending is not None:
            raise CommitConflictError(
                f"{view.store.uri('')}: a compaction of a table of version {view.config.version.value} is planned "
                f"while no write is pending, found {pending}; plan it when that write has ended. If its writer has "
                "died, the next write rolls it back"
            )
        busy = planned_groups(view)
        plan = plan_compaction(list_slices(view), busy, chosen, limits, extra, partial(_sources, view))
        if not plan.operations:
            return None
        return request(view, Action.COMPACTION, plan.to_bytes()).requested_time


def _sources(view: TableView, slices: Sequence[FileSlice]) -> dict[FileGroup, str]:
    """Return the source files of the skeleton slices among these slices."""
    source = bootstrap_source(view)
    bases = [one.base_file for one in slices if one.base_file is not None]
    skeletons = [file for file in bases if source is not None and source.is_of(file)]
    uris = [] if source is None else source.uris_of(view.store, skeletons)
    return {(file.partition_path, file.file_id): uri for file, uri in zip(skeletons, uris, strict=True)}


def _write_to_wait_for(view: TableView) -> Instant | None:
    """Return a pending write during which no compaction of version 6 may be planned (docs/format/table.md §9.2).

    The write may append to log files that the plan has, after the plan was made: its rows would be lost.
    """
    if not view.config.version.log_name_has_base_instant:
        return None
    return next((found for found in view.timeline.writes().pending() if not found.action.is_planned), None)


def check_compactable(view: TableView) -> None:
    """Refuse copy-on-write tables, and tables whose base files this release does not write.

    Raises: UnsupportedError; its message names the unsupported feature and an engine that supports it.
    """
    if view.config.table_type is not TableType.MERGE_ON_READ:
        raise UnsupportedError(f"{view.store.uri('')} is a copy-on-write table: it has no log files to compact")
    check_writable(view, "compact", reads_skeletons=True)
