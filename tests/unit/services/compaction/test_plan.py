"""Which file slices a compaction takes: pure functions, no table."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie.errors import InvalidConfigError
from hoodie.files.compaction_operation import operation_of, slice_of
from hoodie.files.slices import BaseFile, FileSlice, LogFile
from hoodie.format.filenames import BaseFileName, LogFileName
from hoodie.format.instants.service_metadata import CompactionPlan
from hoodie.services.compaction.plan import StrategyOptions, plan_compaction, strategy_named

MIB = 1024 * 1024


def slice_with(file_id: str, partition: str, logs: list[int], base_bytes: int | None = MIB) -> FileSlice:
    """A file slice whose log files have these sizes."""
    base = None
    if base_bytes is not None:
        base = BaseFile(partition, BaseFileName(file_id, "0-1-0", "10").name, file_id, "10", base_bytes)
    found = tuple(
        LogFile(partition, LogFileName(file_id, str(20 + number), 1), size) for number, size in enumerate(logs)
    )
    return FileSlice(partition, file_id, "10", base, found)


SLICES = [
    slice_with("a", "2026/11/19", [10, 20]),
    slice_with("b", "2026/11/20", []),
    slice_with("c", "2026/11/20", [100]),
    slice_with("d", "day=2026-11-21", [5, 5, 5], base_bytes=None),
    slice_with("e", "unknown", [1]),
]


def chosen(strategy: str, busy: set[tuple[str, str]] | None = None, **limits: int) -> list[str]:
    plan = plan_compaction(SLICES, busy or set(), strategy_named(strategy), StrategyOptions(**limits))
    return [operation.file_id for operation in plan.operations]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("log_file_size", ["c", "a", "d", "e"]),
        ("org.apache.hudi.table.action.compact.strategy.LogFileSizeBasedCompactionStrategy", ["c", "a", "d", "e"]),
        ("log_file_num", ["d", "a", "c", "e"]),
        ("LogFileNumBasedCompactionStrategy", ["d", "a", "c", "e"]),
        ("bounded_io", ["a", "c", "d", "e"]),
        ("BoundedIOCompactionStrategy", ["a", "c", "d", "e"]),
        ("unbounded", ["a", "c", "d", "e"]),
        ("UnBoundedCompactionStrategy", ["a", "c", "d", "e"]),
        ("day_based", ["d", "c", "a", "e"]),
        ("org.apache.hudi.table.action.compact.strategy.DayBasedCompactionStrategy", ["d", "c", "a", "e"]),
    ],
)
def test_each_strategy_has_an_order_and_two_names(strategy: str, expected: list[str]) -> None:
    assert chosen(strategy) == expected


def test_slices_without_logs_and_busy_file_groups_are_left_out() -> None:
    assert chosen("unbounded", {("2026/11/20", "c"), ("other", "a")}) == ["a", "d", "e"]


def test_limits_of_the_strategies() -> None:
    assert chosen("log_file_size", log_bytes_min=15) == ["c", "a", "d"]
    assert chosen("log_file_num", log_files_min=2) == ["d", "a"]
    assert chosen("day_based", target_partitions=2) == ["d", "c"]


def test_bounded_io_takes_slices_until_it_is_used_up_and_one_at_least() -> None:
    # A base file of one MiB is read and written: two for each slice that has one.
    assert chosen("bounded_io", target_mib=1) == ["a"]
    assert chosen("bounded_io", target_mib=3) == ["a", "c"]
    assert chosen("log_file_size", target_mib=3) == ["c", "a"]


def test_no_such_strategy() -> None:
    with pytest.raises(InvalidConfigError, match="one of log_file_size"):
        strategy_named("the best one")


def test_an_operation_is_its_slice() -> None:
    for found in SLICES:
        sizes = {log.name.name: log.size_bytes for log in found.log_files}
        if found.base_file is not None:
            sizes[found.base_file.name] = found.base_file.size_bytes
        operation = operation_of(found.partition_path, found)
        assert slice_of(operation, found.partition_path, sizes) == found


def test_a_plan_survives_its_file() -> None:
    plan = plan_compaction(SLICES, set(), strategy_named("unbounded"), StrategyOptions(), {"team": "riders"})
    assert CompactionPlan.parse(plan.to_bytes()) == plan


def test_a_plan_is_what_the_jvm_would_have_planned(golden_tables: Path) -> None:
    """The slices that a plan of the JVM names give the same operations again, numbers included."""
    for name in ("v8_mor", "v9_mor"):
        timeline = golden_tables / name / ".hoodie" / "timeline"
        stored = CompactionPlan.parse(next(timeline.glob("*.compaction.requested")).read_bytes())
        slices = []
        for operation in stored.operations:
            folder = golden_tables / name / operation.partition_path
            sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
            slices.append(slice_of(operation, operation.partition_path, sizes))
        ours = plan_compaction(reversed(slices), set(), strategy_named("log_file_size"), StrategyOptions())
        assert ours == stored
