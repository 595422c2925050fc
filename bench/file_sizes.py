"""Measure the files that a bulk insert of many tasks and partitions makes, with each distribution, and what they cost.

`python -m bench.file_sizes FOLDER INPUT ROUNDS` measures in a separate process, the ways in alternation.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import hoodie
from bench.child import figures_of, print_figures, tell
from bench.data import PARTITIONS, inputs
from bench.lanes import PartitionedParquetLane
from bench.markdown import machine_line, seconds_text, table
from bench.settings import Settings, machine

_TASKS = 16
_PARQUET = "plain Parquet, written by Spark"
_DISTRIBUTIONS = ("none", "partition", "auto")


def run(settings: Settings) -> dict[str, Any]:
    """Write the same rows as plain Parquet and with each distribution."""
    told, rows = machine(), settings.file_sizes_rows
    tell(f"file sizes: bulk inserts of {rows:,} rows from {_TASKS} tasks ...")
    folder = settings.work / "file-sizes"
    shutil.rmtree(folder, ignore_errors=True)
    source = inputs(settings.work, rows).base
    ways = figures_of("bench.file_sizes", folder, source, settings.file_sizes_rounds)
    shutil.rmtree(folder, ignore_errors=True)
    return {"machine": told, "rows": rows, "rounds": settings.file_sizes_rounds, "ways": ways}


def render(result: Mapping[str, Any]) -> str:
    """Render a row for each way: files, their size, seconds and CPU seconds of the write, seconds of a read."""
    ways = result["ways"]
    none = median(ways["none"]["cpu_seconds"])
    rows = []
    for name, found in ways.items():
        title = name if name == _PARQUET else f"`distribution={name!r}`"
        cells = [f"{found['files']:,}", f"{found['median_mib']:.1f}", seconds_text(found["seconds"])]
        cells += [seconds_text(found["cpu_seconds"]), f"{median(found['cpu_seconds']) / none:.2f}x"]
        rows.append([title, *cells, seconds_text(found["read_seconds"])])
    title = (
        f"Bulk insert of {result['rows']:,} rows of ten columns into {PARTITIONS} partitions by Spark from {_TASKS} "
        f"tasks, on two cores; {machine_line(result['machine'])}, median of {result['rounds']} (least-greatest). CPU "
        "seconds are those of the driver, the JVM and the Python workers. The read is an aggregate by Spark"
    )
    head = ["", "files", "median MiB", "write, s", "write, CPU s", "CPU / none", "read, s"]
    return "\n".join([title, "", table(head, rows), ""])


def _measure(folder: Path, source: Path, rounds: int) -> dict[str, Any]:
    lane = PartitionedParquetLane(folder / "table")
    spark = lane.spark
    lane.load(source).repartition(_TASKS).write.parquet(str(folder / "input"))
    spark.conf.set("spark.sql.files.openCostInBytes", str(1 << 30))  # each file is a task
    frame = spark.read.parquet(str(folder / "input"))
    ways: dict[str, Callable[[], Any]] = {_PARQUET: lambda: lane.bulk_insert(folder / "input")}
    ways |= {name: _insert(lane.path, frame, name) for name in _DISTRIBUTIONS}

    def read(name: str) -> Any:
        return spark.read.parquet(str(lane.path)) if name == _PARQUET else hoodie.open(lane.path, spark=spark).read()

    found: dict[str, dict[str, Any]] = {name: {"seconds": [], "cpu_seconds": [], "read_seconds": []} for name in ways}
    answers: set[tuple[Any, ...]] = set()
    for turn in range(rounds + 1):
        for name, write in ways.items():
            lane.drop()
            worked, began = _cpu_seconds(), time.perf_counter()
            write()
            took = {"seconds": time.perf_counter() - began, "cpu_seconds": _cpu_seconds() - worked}
            began = time.perf_counter()
            answers.add(tuple(sorted((row[0], row[1]) for row in lane.summed(read(name)))))
            took["read_seconds"] = time.perf_counter() - began
            if turn:  # the first round warms up
                for figure, value in took.items():
                    found[name][figure].append(round(value, 3))
            sizes = [path.stat().st_size / 2**20 for path in lane.path.glob("*/*.parquet")]
            found[name] |= {"files": len(sizes), "median_mib": median(sizes)}
    assert len(answers) == 1, answers
    return found


def _insert(path: Path, frame: Any, distribution: str) -> Callable[[], Any]:
    def insert() -> None:
        made = hoodie.create(path, frame, record_key="key", partition_by="city", ordering="ts", index="simple")
        made.bulk_insert(frame, distribution=distribution)

    return insert


def _cpu_seconds() -> float:
    """Return the CPU seconds of this process and all processes below it, and of their children that ended."""
    return sum(_ticks_below(os.getpid())) / os.sysconf("SC_CLK_TCK")


def _ticks_below(root: int) -> Iterator[int]:
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        pid = int(stat.parent.name)
        children.setdefault(int(fields[1]), []).append(pid)
        ticks[pid] = sum(map(int, fields[11:15]))
    left = [root]
    while left:
        pid = left.pop()
        yield ticks.get(pid, 0)
        left += children.get(pid, [])


if __name__ == "__main__":
    print_figures(_measure(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
