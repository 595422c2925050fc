"""Choose the file slices of one compaction, and their order: Hudi's strategies, as pure functions of operations.

Each strategy has a short name and the name of its class in Hudi; tables and pipelines may use either name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hoodie.config import compaction
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
    text = name.strip()
    short = _CLASSES.get(text.removeprefix(_HUDI_PACKAGE), text.lower())
    found = _STRATEGIES.get(short)
    if found is None:
        raise InvalidConfigError(
            f"unknown compaction strategy {name!r}: expected one of {', '.join(_STRATEGIES)}, or the Hudi class name "
            "of one of them"
        )
    return found


def largest_logs_first(operations: Sequence[CompactionOperation], limits: StrategyOptions) -> list[CompactionOperation]:
    """Choose slices with at least `log_bytes_min` bytes of log files, most bytes first, up to the I/O limit."""
    return _bounded(_most_first(operations, LOG_BYTES, limits.log_bytes_min), limits)


def most_logs_first(operations: Sequence[CompactionOperation], limits: StrategyOptions) -> list[CompactionOperation]:
    """Choose slices with at least `log_files_min` log files, most files first, up to the I/O limit."""
    return _bounded(_most_first(operations, LOG_FILES, limits.log_files_min), limits)


def bounded_io(operations: Sequence[CompactionOperation], limits: StrategyOptions) -> list[CompactionOperation]:
    """Choose slices in the order of partitions and file ids, up to the I/O limit."""
    return _bounded(operations, limits)


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


def _bounded(operations: Iterable[CompactionOperation], limits: StrategyOptions) -> list[CompactionOperation]:
    """Return operations from the start of the list until their reads and writes reach `target_mib`.

    The operation that reaches or exceeds the limit is included.
    """
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
    """Return the date in a partition path (`2026/11/21`, `day=2026-11-21`, `20261121`) as eight digits, or "".

    >>> _date_in("year=2026/11/21"), _date_in("day=2026-11-21"), _date_in("city=sf")
    ('20261121', '20261121', '')
    """
    values = "/".join(part.rpartition("=")[2] for part in partition_path.split("/"))
    match = _DATE.search(values)
    return "" if match is None else match[1] + match[3] + match[4]
