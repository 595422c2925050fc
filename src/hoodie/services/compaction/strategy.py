"""Which file slices one compaction takes, and in which order: Hudi's strategies, as pure functions of operations.

Each has a short name, and the name of Hudi's class, by which tables and pipelines may call it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hoodie import config as options
from hoodie.errors import InvalidConfigError
from hoodie.files.compaction_operation import LOG_BYTES, LOG_FILES, TOTAL_MIB
from hoodie.format.instants.service_metadata import CompactionOperation

_HUDI_PACKAGE = "org.apache.hudi.table.action.compact.strategy."
_CLASSES = {
    "LogFileSizeBasedCompactionStrategy": "log_file_size",
    "LogFileNumBasedCompactionStrategy": "log_file_num",
    "BoundedIOCompactionStrategy": "bounded_io",
    "DayBasedCompactionStrategy": "day_based",
    "UnBoundedCompactionStrategy": "unbounded",
}
_DATE = re.compile(r"(?<!\d)(\d{4})([-/]?)(\d{2})\2(\d{2})(?!\d)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyOptions:
    """The numbers that strategies go by; sizes of a slice's logs in bytes, of its reads and writes in MiB."""

    log_bytes_min: int = options.COMPACTION_LOG_BYTES_MIN.default
    log_files_min: int = options.COMPACTION_LOG_FILES_MIN.default
    target_mib: int = options.COMPACTION_TARGET_MIB.default
    target_partitions: int = options.COMPACTION_TARGET_PARTITIONS.default

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> StrategyOptions:
        """The numbers that these properties ask for. Raises: InvalidConfigError if one does not parse."""
        return cls(
            log_bytes_min=options.COMPACTION_LOG_BYTES_MIN.get(properties),
            log_files_min=options.COMPACTION_LOG_FILES_MIN.get(properties),
            target_mib=options.COMPACTION_TARGET_MIB.get(properties),
            target_partitions=options.COMPACTION_TARGET_PARTITIONS.get(properties),
        )


Strategy = Callable[[Sequence[CompactionOperation], StrategyOptions], list[CompactionOperation]]


def strategy_named(name: str) -> Strategy:
    """The strategy of a short name, or of one of Hudi's classes, with or without its package.

    Raises: InvalidConfigError for any other.
    """
    text = name.strip()
    short = _CLASSES.get(text.removeprefix(_HUDI_PACKAGE), text.lower())
    found = _STRATEGIES.get(short)
    if found is None:
        raise InvalidConfigError(
            f"unknown compaction strategy {name!r}: one of {', '.join(_STRATEGIES)} expected, or Hudi's class for one "
            "of these"
        )
    return found


def largest_logs_first(operations: Sequence[CompactionOperation], limits: StrategyOptions) -> list[CompactionOperation]:
    """Slices with enough bytes of logs, most bytes first, until the I/O is used up."""
    return _bounded(_most_first(operations, LOG_BYTES, limits.log_bytes_min), limits)


def most_logs_first(operations: Sequence[CompactionOperation], limits: StrategyOptions) -> list[CompactionOperation]:
    """Slices with enough log files, most files first, until the I/O is used up."""
    return _bounded(_most_first(operations, LOG_FILES, limits.log_files_min), limits)


def bounded_io(operations: Sequence[CompactionOperation], limits: StrategyOptions) -> list[CompactionOperation]:
    """Slices in the order of partitions and file ids, until the I/O is used up."""
    return _bounded(operations, limits)


def newest_days_first(operations: Sequence[CompactionOperation], limits: StrategyOptions) -> list[CompactionOperation]:
    """All slices of the partitions with the newest dates; of partitions without a date, those with the last names."""
    by_partition: dict[str, list[CompactionOperation]] = {}
    for operation in operations:
        by_partition.setdefault(operation.partition_path, []).append(operation)
    chosen = sorted(by_partition, key=lambda path: (_date_in(path), path), reverse=True)[: limits.target_partitions]
    return [operation for path in chosen for operation in by_partition[path]]


def unbounded(operations: Sequence[CompactionOperation], limits: StrategyOptions) -> list[CompactionOperation]:
    """Every slice."""
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


def _bounded(operations: Iterable[CompactionOperation], limits: StrategyOptions) -> list[CompactionOperation]:
    """The first of them whose reads and writes fit; the first one always, and the one that goes over."""
    chosen: list[CompactionOperation] = []
    left = float(limits.target_mib)
    for operation in operations:
        chosen.append(operation)
        left -= _metric(operation, TOTAL_MIB)
        if left <= 0:
            break
    return chosen


def _metric(operation: CompactionOperation, name: str) -> float:
    return (operation.metrics or {}).get(name, 0.0)


def _date_in(partition_path: str) -> str:
    """The date that a partition path names (`2026/11/21`, `day=2026-11-21`, `20261121`), as eight digits, or nothing.

    >>> _date_in("year=2026/11/21"), _date_in("day=2026-11-21"), _date_in("city=sf")
    ('20261121', '20261121', '')
    """
    values = "/".join(part.rpartition("=")[2] for part in partition_path.split("/"))
    match = _DATE.search(values)
    return "" if match is None else match[1] + match[3] + match[4]
