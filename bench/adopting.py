"""Compare `hoodie.adopt` of Parquet files with a partitioned Parquet write of the same rows by pyarrow.

`python -m bench --only adopting` prints the table. `python -m bench.adopting FOLDER ROWS REPEATS` measures.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.dataset as ds

import hoodie
from bench.child import figures_of, print_figures, tell
from bench.data import inputs
from bench.markdown import machine_line, seconds_text, table
from bench.settings import Settings, machine

_PARQUET = "partitioned Parquet by pyarrow"
_PLAN = "`hoodie.adopt`, the plan alone: footers, and duplicates of keys"


def run(settings: Settings) -> dict[str, Any]:
    """Measure in a separate process."""
    told, sizes = machine(), (settings.adopting_rows, settings.adopting_repeats)
    tell(f"adopting: {sizes[0]:,} rows, {sizes[1]} times each ...")
    seconds = figures_of("bench.adopting", settings.work, *sizes)
    return {"machine": told, "rows": sizes[0], "repeats": sizes[1], "seconds": seconds}


def render(result: Mapping[str, Any]) -> str:
    """Render a row for each way."""
    base = median(result["seconds"][_PARQUET])
    lines = [[way, seconds_text(found), f"{median(found) / base:.2f}x"] for way, found in result["seconds"].items()]
    title = (
        f"{result['rows']:,} rows of ten columns in four Parquet files, to partitions by city (zstd), in process, "
        f"{machine_line(result['machine'])}: seconds, median (range) of {result['repeats']} rounds, taken in turns"
    )
    return "\n".join([title, "", table(["", "seconds", "to Parquet"], lines), ""])


def _measure(work: Path, rows: int, repeats: int) -> dict[str, list[float]]:
    source, target = inputs(work, rows).base, work / "adopted"

    def adopt(index: str, *, dry_run: bool = False) -> Callable[[], object]:
        return lambda: hoodie.adopt(
            source, target=target, record_key="key", partition_by=["city"], ordering="ts", index=index, dry_run=dry_run
        )

    ways: dict[str, Callable[[], object]] = {
        _PARQUET: lambda: _parquet(source, target),
        _PLAN: adopt("simple", dry_run=True),
        "`hoodie.adopt`, index `simple`": adopt("simple"),
        "`hoodie.adopt`, index `record`": adopt("record"),
    }
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(repeats):
        for way in ways if number % 2 else reversed(ways):
            shutil.rmtree(target, ignore_errors=True)
            started = time.perf_counter()
            ways[way]()
            seconds[way].append(time.perf_counter() - started)
    shutil.rmtree(target, ignore_errors=True)
    return seconds


def _parquet(source: Path, target: Path) -> None:
    parquet = ds.ParquetFileFormat()
    ds.write_dataset(
        ds.dataset(source, format="parquet"), target, format=parquet, partitioning=["city"], partitioning_flavor="hive",
        file_options=parquet.make_write_options(compression="zstd"),
    )  # fmt: skip


def main() -> None:
    """Measure with the folder and sizes of the arguments."""
    print_figures(_measure(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))


if __name__ == "__main__":
    main()
