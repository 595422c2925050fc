"""Measure what durable writes cost: a bulk insert and small commits, with and without, in turns in one process.

`python -m bench --only durable` prints the table. `python -m bench.durable FOLDER ROWS COMMITS REPEATS` measures.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import hoodie
from bench.child import figures_of, print_figures, tell
from bench.keys import narrow_rows
from bench.markdown import machine_line, seconds_text, table
from bench.settings import Settings, machine

_COMMIT_ROWS = 100
_MODES = ("default", "durable")
_STEPS = ("bulk_insert", "commit_100")


def run(settings: Settings) -> dict[str, Any]:
    """Measure in a separate process."""
    told = machine()
    rows, commits, repeats = settings.durable_rows, settings.durable_commits, settings.durable_repeats
    tell(f"durable: {rows:,} rows and {commits} commits, {repeats} times each ...")
    figures: dict[str, Any] = figures_of("bench.durable", settings.work / "durable", rows, commits, repeats)
    return {"machine": told, "rows": rows, "commits": commits, "repeats": repeats} | figures


def render(result: Mapping[str, Any]) -> str:
    """Render a row for each step: seconds of both modes, the difference and the system's syncs."""
    lines = []
    for step in _STEPS:
        default, durable = (result["seconds"][mode][step] for mode in _MODES)
        more = median(durable) - median(default)
        cost = f"{more * 1000:+.0f} ms ({more / median(default):+.0%})"
        lines.append([step, seconds_text(default), seconds_text(durable), cost, str(result["syncs"][step])])
    title = (
        f"Bulk inserts of {result['rows']:,} rows and commits of {_COMMIT_ROWS} rows (80 new, 20 updated), "
        f"copy-on-write with a record index, in process, {machine_line(result['machine'])}: seconds, median (range) of "
        f"{result['repeats']} inserts and {result['repeats'] * result['commits']} commits, taken in turns"
    )
    return "\n".join([title, "", table(["", "default", "durable", "difference", "syncs"], lines), ""])


def _measure(folder: Path, rows: int, commits: int, repeats: int) -> dict[str, Any]:
    data = narrow_rows(np.arange(rows), ts=0)
    seconds: dict[str, dict[str, list[float]]] = {mode: {step: [] for step in _STEPS} for mode in _MODES}
    syncs = {step: 0 for step in _STEPS}
    _story(folder, data.slice(0, 1000), "default", 1, {step: [] for step in _STEPS})  # what a process does once
    for number in range(repeats):
        for mode in _MODES if number % 2 else reversed(_MODES):
            counted = _story(folder, data, mode, commits, seconds[mode])
            syncs = counted if mode == "durable" else syncs
    return {"seconds": seconds, "syncs": syncs}


def _story(folder: Path, data: Any, mode: str, commits: int, seconds: dict[str, list[float]]) -> dict[str, int]:
    """Write a table and return the number of syncs of each step."""
    shutil.rmtree(folder, ignore_errors=True)
    os.sync()  # the bytes of the last story are not written during this one
    options: dict[str, Any] = {"record_key": "key", "ordering": "ts", "index": "record"}
    hoodie.create(folder, data.schema, **options, properties={"hoodie.python.durable": str(mode == "durable").lower()})
    table_of_story = hoodie.open(folder, spark=False)
    syncs = dict.fromkeys(_STEPS, 0)
    with _CountedSyncs() as counted:
        started = time.perf_counter()
        table_of_story.bulk_insert(data)
        seconds["bulk_insert"].append(time.perf_counter() - started)
        syncs["bulk_insert"] = counted.count
        for number in range(commits):
            chosen = np.concatenate([np.arange(20) + 20 * number, data.num_rows + np.arange(80) + 80 * number])
            rows = narrow_rows(chosen, ts=number + 1)
            before, started = counted.count, time.perf_counter()
            table_of_story.upsert(rows)
            seconds["commit_100"].append(time.perf_counter() - started)
            syncs["commit_100"] = counted.count - before
    shutil.rmtree(folder)
    return syncs


class _CountedSyncs:
    """Counts the calls of `os.fsync` in its body."""

    count = 0

    def __enter__(self) -> _CountedSyncs:
        self._fsync = os.fsync

        def fsync(descriptor: int) -> None:
            self.count += 1
            self._fsync(descriptor)

        os.fsync = fsync  # type: ignore[assignment]
        return self

    def __exit__(self, *_: object) -> None:
        os.fsync = self._fsync


def main() -> None:
    """Measure with the folder and sizes of the arguments."""
    print_figures(_measure(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))


if __name__ == "__main__":
    main()
