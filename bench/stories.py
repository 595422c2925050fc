"""The stories `copy-on-write`, `record`, `merge-on-read`, `in-process` and `spark-path`.

A story runs its lanes one after the other, each in a separate process.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.child import figures_of, tell
from bench.data import inputs
from bench.settings import (
    COPY_ON_WRITE_LANES,
    IN_PROCESS_LANES,
    MERGE_ON_READ_LANES,
    RECORD_LANES,
    SPARK_PATH_LANES,
    Settings,
    machine,
)


def copy_on_write(settings: Settings) -> list[dict[str, Any]]:
    """Return a result for each size: tables without the record index, as in earlier releases."""
    sizes = zip(settings.rows, settings.repeats, strict=True)
    return [_story(settings.chosen(COPY_ON_WRITE_LANES), rows, repeats, settings.work) for rows, repeats in sizes]


def record(settings: Settings) -> list[dict[str, Any]]:
    """Return one result: tables of hoodie and JVM Hudi, both with the record index."""
    lanes = settings.chosen(RECORD_LANES)
    return [_story(lanes, settings.record_rows, settings.record_repeats, settings.work)]


def merge_on_read(settings: Settings) -> list[dict[str, Any]]:
    """Return one result: merge-on-read tables of hoodie and JVM Hudi, compared with plain Parquet."""
    lanes = settings.chosen(MERGE_ON_READ_LANES)
    return [_story(lanes, settings.merge_on_read_rows, settings.merge_on_read_repeats, settings.work)]


def in_process(settings: Settings) -> list[dict[str, Any]]:
    """Return one result: Arrow data without Spark, beside delta-rs."""
    lanes = settings.chosen(IN_PROCESS_LANES)
    return [_story(lanes, settings.in_process_rows, settings.in_process_repeats, settings.work)]


def spark_path(settings: Settings) -> list[dict[str, Any]]:
    """Return a result for each size: all steps on Spark's workers, beside small work on the driver and the JVM."""
    sizes = zip(settings.spark_path_rows, settings.spark_path_repeats, strict=True)
    return [_story(settings.chosen(SPARK_PATH_LANES), rows, repeats, settings.work) for rows, repeats in sizes]


def _story(lanes: tuple[str, ...], rows: int, repeats: int, work: Path) -> dict[str, Any]:
    inputs(work, rows)
    told = machine()
    figures = []
    for label in lanes:
        tell(f"{label}: {rows:,} rows ...")
        lane, _, version = label.partition("/")
        figures.append(figures_of("bench.run_lane", lane, rows, repeats, work, version=version) | {"lane": label})
    return {"machine": told, "rows": rows, "repeats": repeats, "lanes": figures}
