"""Run one lane in this process and print its figures as JSON.

`python -m bench.run_lane LANE ROWS REPEATS WORK_FOLDER`
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from bench.child import print_figures
from bench.data import Inputs, inputs, some_keys
from bench.lanes import LANES, Lane, Phases
from bench.memory import Peak, peak_memory

_WARM_ROWS = 20_000


@dataclass(slots=True)
class Figures:
    """The seconds of each step, one value for each repetition, and the peak memory of each step in MiB."""

    lane: str
    rows: int
    seconds: dict[str, list[float]] = field(default_factory=dict)
    memory: dict[str, dict[str, float]] = field(default_factory=dict)
    size_mib: float = 0.0

    def time(self, step: str, work: Callable[[], Any]) -> Any:
        """Run one step and store its time and its peak memory."""
        with peak_memory() as peak:
            started = time.perf_counter()
            result = work()
            took = time.perf_counter() - started
        self.seconds.setdefault(step, []).append(round(took, 3))
        self._note(step, peak)
        return result

    def time_write(self, step: str, work: Callable[[], Phases | None]) -> None:
        """Run a write step; if it returns phases, store them as steps such as `upsert.tag`."""
        for phase, took in (self.time(step, work) or {}).items():
            if phase != "total":
                self.seconds.setdefault(f"{step}.{phase}", []).append(round(took, 3))

    def _note(self, step: str, peak: Peak) -> None:
        known = self.memory.setdefault(step, {"driver_mib": 0.0, "worker_mib": 0.0, "jvm_mib": 0.0})
        for name in known:
            known[name] = round(max(known[name], getattr(peak, name)), 1)

    def medians(self) -> dict[str, float]:
        """Return the median of each step's repetitions."""
        return {step: round(median(values), 3) for step, values in self.seconds.items()}


def run(lane: Lane, name: str, rows: int, repeats: int, work: Path) -> Figures:
    """Warm up on a small table, then run all steps `repeats` times."""
    _story(lane, Figures(name, _WARM_ROWS), inputs(work, _WARM_ROWS))
    figures = Figures(name, rows)
    data = inputs(work, rows)
    for _ in range(repeats):
        _story(lane, figures, data)
    return figures


def _story(lane: Lane, figures: Figures, data: Inputs) -> None:
    has_logs = type(lane).compact is not Lane.compact
    lane.drop()
    figures.time_write("bulk_insert", lambda: lane.bulk_insert(data.base))
    for _ in range(2):
        figures.time("snapshot", lane.aggregate)
    if type(lane).upsert is not Lane.upsert:
        figures.time_write("upsert", lambda: lane.upsert(data.upsert))
        if has_logs:
            for _ in range(2):
                figures.time("snapshot_logs", lane.aggregate)
        figures.time_write("commit_100", lambda: lane.upsert(data.small))
    if type(lane).incremental is not Lane.incremental:
        changed = figures.time("incremental", lane.incremental)
        assert changed == 100, f"{figures.lane}: the last commit changed {changed} rows, not 100"
    if type(lane).read_keys is not Lane.read_keys:
        assert (lane.path / ".hoodie/metadata/record_index").is_dir(), f"{figures.lane}: the table has no record index"
        for _ in range(2):
            found = figures.time("keys_3", lambda: lane.read_keys(some_keys(data.rows)))
            assert found == 3, f"{figures.lane}: 3 keys were asked for, {found} rows came"
    if type(lane).upsert is not Lane.upsert:
        figures.time_write("late_100", lambda: lane.upsert(data.late))
    if has_logs:
        rows = lane.aggregate()
        figures.time("compact", lane.compact)
        for _ in range(2):
            compacted = figures.time("snapshot_compacted", lane.aggregate)
        assert _counts(compacted) == _counts(rows), f"{figures.lane}: the compaction changed the number of rows"
    figures.size_mib = sum(p.stat().st_size for p in lane.path.rglob("*.parquet")) / 2**20


def _counts(aggregate: list[Any]) -> dict[str, int]:
    """Return the number of rows by partition."""
    return {row[0]: row[1] for row in aggregate}


def main() -> None:
    """Run the lane that the arguments name."""
    name, rows, repeats, work = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    lane = LANES[name](work / f"table-{name}")
    figures = run(lane, name, rows, repeats, work)
    lane.drop()
    print_figures(asdict(figures) | {"medians": figures.medians()})


if __name__ == "__main__":
    main()
