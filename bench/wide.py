"""Measure tables of many columns and few rows: what one more column costs a write and a read.

`python -m bench --only wide` prints the table. `python -m bench.wide FOLDER LANE COLUMNS REPEATS` measures one lane.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa

import hoodie
from bench.child import figures_of, print_figures, tell
from bench.markdown import machine_line, seconds_text, table
from bench.settings import Settings, machine

LANES = ("hoodie", "hoodie merge-on-read", "delta-rs", "Spark Parquet")
STEPS = ("write", "upsert", "update", "read")
_ROWS = 2
Steps = Mapping[str, Callable[[], object]]


def run(settings: Settings) -> dict[str, Any]:
    """Measure each lane in a separate process, for each number of columns."""
    told, widths = machine(), settings.wide_columns
    found: dict[str, list[Any]] = {lane: [] for lane in LANES}
    for lane in LANES:
        for columns in widths:
            tell(f"wide, {lane}: {columns:,} columns ...")
            folder = settings.work / "table-wide"
            found[lane].append(figures_of("bench.wide", folder, lane, columns, settings.wide_repeats))
    return {"machine": told, "columns": list(widths), "repeats": settings.wide_repeats, "lanes": found}


def render(result: Mapping[str, Any]) -> str:
    """Render a row for each step of each lane, and what a column costs at the greatest number of columns."""
    widths = result["columns"]
    rows = []
    for lane, found in result["lanes"].items():
        for step in STEPS:
            seconds = [one[step] for one in found if step in one]
            if seconds:
                each = f"{median(seconds[-1]) / widths[-1] * 1e6:,.0f} µs"
                rows.append([f"{lane}: {step}", *map(seconds_text, seconds), each])
    title = (
        f"{_ROWS} rows of integers, texts and doubles, {machine_line(result['machine'])}: seconds, median (range) of "
        f"{result['repeats']}, each with a new handle. Spark's Parquet has no updates: it writes and reads a folder"
    )
    head = ["", *(f"{columns:,} columns" for columns in widths), "for each column"]
    return "\n".join([title, "", table(head, rows), ""])


def rows_of(columns: int, value: int) -> pa.Table:
    """Return the rows with a key, an ordering value and so many more columns."""
    kinds = (pa.array([value] * _ROWS), pa.array([str(value)] * _ROWS), pa.array([value / 2] * _ROWS))
    given = {f"c{number:05}": kinds[number % 3] for number in range(columns)}
    return pa.table({"id": [str(row) for row in range(_ROWS)], "ts": [value] * _ROWS, **given})


def _hoodie(folder: Path, table_type: str, first: pa.Table, second: pa.Table) -> Steps:
    hoodie.create(folder, first.schema, record_key="id", ordering="ts", type=table_type, spark=False)
    return {
        "write": lambda: hoodie.open(folder, spark=False).bulk_insert(first),
        "upsert": lambda: hoodie.open(folder, spark=False).upsert(second),
        "update": lambda: hoodie.open(folder, spark=False).update({"c00000": "c00000 + 1"}),
        "read": lambda: hoodie.open(folder, spark=False).to_arrow(),
    }


def _delta(folder: Path, first: pa.Table, second: pa.Table) -> Steps:
    from deltalake import DeltaTable, write_deltalake

    def upsert() -> object:
        merger = DeltaTable(folder).merge(second, "t.id = s.id", source_alias="s", target_alias="t")
        return merger.when_matched_update_all().when_not_matched_insert_all().execute()

    return {
        "write": lambda: write_deltalake(folder, first),
        "upsert": upsert,
        "update": lambda: DeltaTable(folder).update({"c00000": "c00000 + 1"}),
        "read": lambda: DeltaTable(folder).to_pyarrow_table(),
    }


def _spark(folder: Path, first: pa.Table) -> Steps:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    frame = session.createDataFrame(first.to_pylist(), first.schema.names)
    return {
        "write": lambda: frame.coalesce(1).write.mode("overwrite").parquet(str(folder)),
        "read": lambda: session.read.parquet(str(folder)).collect(),
    }


def _steps(folder: Path, lane: str, columns: int) -> Steps:
    shutil.rmtree(folder, ignore_errors=True)
    first, second = (rows_of(columns, value) for value in (0, 1))
    if lane == "delta-rs":
        return _delta(folder, first, second)
    if lane == "Spark Parquet":
        return _spark(folder, first)
    return _hoodie(folder, "merge_on_read" if "merge" in lane else "copy_on_write", first, second)


def measure(folder: Path, lane: str, columns: int, repeats: int) -> dict[str, list[float]]:
    """Return the seconds of each step; the first run, of what a process does once, does not count."""
    seconds: dict[str, list[float]] = {}
    for number in range(repeats + 1):
        for step, call in _steps(folder, lane, 1 if number == 0 else columns).items():
            started = time.perf_counter()
            call()
            if number:
                seconds.setdefault(step, []).append(time.perf_counter() - started)
    shutil.rmtree(folder)
    return seconds


def main() -> None:
    """Measure with the folder, the lane and the sizes of the arguments."""
    folder, lane, columns, repeats = sys.argv[1:]
    print_figures(measure(Path(folder), lane, int(columns), int(repeats)))


if __name__ == "__main__":
    main()
