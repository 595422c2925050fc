"""Tag keys of which most belong to one hot partition, with the bloom index: is any task longer than the others?

`python -m bench.skew build FOLDER ROWS` and `python -m bench.skew tag FOLDER THREADS` measure in separate processes.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import hoodie
from bench.child import figures_of, print_figures, tell
from bench.indexes import PROPERTIES, tag_keys
from bench.keys import uuid_keys
from bench.markdown import machine_line, table
from bench.settings import Settings, machine
from hoodie.engine import LocalEngine, TaskContext
from hoodie.index.bloom.check import CheckTask
from hoodie.storage import LocalStore

_CITIES = 10
_COMMITS = 20
"""Bulk inserts, each of which writes two files for each partition."""
_COLD_EVERY = 10
"""One row of so many is in one of the other cities."""


@dataclass(frozen=True, slots=True)
class _TimedEngine(LocalEngine):
    """Notes the comparisons and the seconds of each task of the bloom index."""

    noted: list[tuple[int, float]] = field(default_factory=list)

    def run(
        self, function: Callable[[Any, TaskContext], Any], tasks: Sequence[Any], sizes: Sequence[int] | None = None
    ) -> list[Any]:
        """Run the tasks, and note those that compare keys with files."""

        def timed(task: Any, context: TaskContext) -> Any:
            started = time.perf_counter()
            result = function(task, context)
            if isinstance(task, CheckTask):
                rows = int((task.comparisons.stop - task.comparisons.first).sum())
                self.noted.append((rows, time.perf_counter() - started))
            return result

        return LocalEngine(self.threads).run(timed, tasks)


def run(settings: Settings) -> dict[str, Any]:
    """Build the table, tag all of its keys with one thread and with two, and with the JVM."""
    told, rows = machine(), settings.skew_rows
    folder = settings.work / "table-skew"
    shutil.rmtree(folder, ignore_errors=True)
    tell(f"skew: a table of {rows:,} rows ...")
    found: dict[str, Any] = figures_of("bench.skew", "build", folder, rows)
    for threads in (1, 2):
        tell(f"skew: {rows:,} keys, {threads} threads ...")
        found[f"threads {threads}"] = figures_of("bench.skew", "tag", folder, threads)
    tell(f"skew: {rows:,} keys, JVM ...")
    jvm = figures_of("bench.tag_jvm", folder / "table", folder / "keys.parquet", 2, 1, "bloom", version="3.5")["bloom"]
    shutil.rmtree(folder, ignore_errors=True)
    return {"machine": told, "rows": rows, "jvm": jvm} | found


def render(result: Mapping[str, Any]) -> str:
    """Render the times, and the sizes of the tasks."""
    rows = []
    for threads in (1, 2):
        found = result[f"threads {threads}"]
        seconds = sorted(took for _, took in found["tasks"])
        cells = [found["seconds"], sum(seconds), seconds[len(seconds) // 2], seconds[-1]]
        rows.append([f"hoodie, {threads} threads", *(f"{value:.2f}" for value in cells), str(len(seconds))])
    rows.append(["JVM Hudi 1.2.0 on Spark, 2 cores", f"{result['jvm']['seconds'][-1]:.2f}", "-", "-", "-", "-"])
    most = max(compared for compared, _ in result["threads 2"]["tasks"])
    total = sum(compared for compared, _ in result["threads 2"]["tasks"])
    title = (
        f"{result['rows']:,} random keys, nine tenths of them in one of {_CITIES} partitions with {result['hot']} of "
        f"{result['files']} files, all stored, {machine_line(result['machine'])}: {total:,} comparisons, the largest "
        f"task has {most:,}"
    )
    head = ["seconds", "tag", "all tasks", "median task", "longest task", "tasks"]
    return "\n".join([title, "", table(head, rows), ""])


def _build(folder: Path, rows: int) -> dict[str, Any]:
    numbers = np.arange(rows)
    cold = (numbers % _COLD_EVERY == 0) * (1 + numbers // _COLD_EVERY % (_CITIES - 1))
    names = pa.array([f"city-{city}" for city in range(_CITIES)])
    data = pa.table({"key": uuid_keys(numbers), "ts": pa.array(np.zeros(rows, np.int64)), "city": names.take(cold)})
    made = hoodie.create(
        folder / "table", data.schema, record_key="key", partition_by="city", ordering="ts", index="bloom",
        properties=PROPERTIES,
    )  # fmt: skip
    for start in range(0, rows, rows // _COMMITS):
        made.bulk_insert(data.slice(start, rows // _COMMITS))
    keys = data.append_column("path", pc.binary_join_element_wise("city", data["city"], "="))
    pq.write_table(keys, folder / "keys.parquet")
    files = made.inspect.files()["partition_path"].to_pylist()
    return {"files": len(files), "hot": files.count("city=city-0")}


def _tag(folder: Path, threads: int) -> dict[str, Any]:
    store, rows = LocalStore(str(folder / "table")), pq.read_table(folder / "keys.parquet")
    tag_keys(store, rows.slice(0, len(rows) // 10))
    engine = _TimedEngine(threads)
    started = time.perf_counter()
    found = tag_keys(store, rows, engine)
    took = time.perf_counter() - started
    assert found == len(rows), f"{found:,} of {len(rows):,} stored keys were found"
    return {"seconds": round(took, 3), "tasks": [(rows, round(seconds, 4)) for rows, seconds in engine.noted]}


def main() -> None:
    """Run the step that the arguments name."""
    mode, folder, number = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    if mode not in ("build", "tag"):
        raise SystemExit(f"no mode {mode}")
    print_figures(_build(folder, number) if mode == "build" else _tag(folder, number))


if __name__ == "__main__":
    main()
