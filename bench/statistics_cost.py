"""Measure column statistics: what they cost the writes, and what they save a point query on a clustered column.

`python -m bench --only statistics` prints the tables. `python -m bench.statistics_cost FOLDER ROWS REPEATS TYPE`
measures the writes of one table type, with and without statistics in turns; with the type `query`, the point query.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import hoodie
from bench.child import figures_of, print_figures, tell
from bench.data import inputs
from bench.markdown import machine_line, seconds_text, table
from bench.settings import Settings, machine

TYPES = ("copy_on_write", "merge_on_read")
_MODES = ("without", "with")
_STEPS = ("bulk_insert", "upsert", "commit_100")
_TABLE: Any = {"record_key": "key", "ordering": "ts", "partition_by": "city", "index": "record"}
_STATISTICS = "hoodie.metadata.index.column.stats.enable"
_QUERY_STEPS = ("plan, new handle", "plan, same handle", "plan and read, new handle")
_QUERY_ROWS = 200_000
_SMALL_FILES = {"hoodie.clustering.plan.strategy.target.file.max.bytes": "1500"}


def run(settings: Settings) -> dict[str, Any]:
    """Measure in separate processes."""
    told = machine()
    rows, repeats = settings.statistics_rows, settings.statistics_repeats
    found = inputs(settings.work / "inputs", rows)
    result: dict[str, Any] = {"machine": told, "rows": rows, "repeats": repeats}
    for name in (*TYPES, "query"):
        tell(f"statistics, {name}: {rows:,} rows ...")
        folder = settings.work / "table-statistics"
        result[name] = figures_of("bench.statistics_cost", folder, found.base.parent, rows, repeats, name)
    return result


def render(result: Mapping[str, Any]) -> str:
    """Render a row for each step of a write, and one for each step of the query."""
    rows = []
    for name in TYPES:
        for step in _STEPS:
            without, with_them = (result[name][mode][step] for mode in _MODES)
            cost = f"{median(with_them) / median(without) - 1:+.0%}"
            rows.append([f"{name.replace('_', '-')}: {step}", seconds_text(without), seconds_text(with_them), cost])
    title = (
        f"{result['rows']:,} rows of ten columns in ten partitions, an upsert of 11%, and a commit of 100 rows, in "
        f"process, {machine_line(result['machine'])}: CPU seconds, and seconds of the query, median (range) of "
        f"{result['repeats']}, in turns"
    )
    query = result["query"]
    head = ["", "without statistics", "with", ""]
    lines = [
        [
            f"point query on a clustered column, {step}",
            seconds_text(query["without"][step]),
            seconds_text(query["with"][step]),
            f"{median(query['with'][step]) / median(query['without'][step]):.2f}x",
        ]
        for step in _QUERY_STEPS
    ]
    opened = f"Of {query['files']:,} files the query opens {query['opened']} with statistics."
    return "\n".join([title, "", table(head, [*rows, *lines]), "", opened, ""])


def _writes(folder: Path, source: Path, rows: int, repeats: int, table_type: str) -> dict[str, Any]:
    found = inputs(source, rows)
    batches = dict(zip(_STEPS, (pq.read_table(path) for path in (found.base, found.upsert, found.small)), strict=True))
    seconds: dict[str, dict[str, list[float]]] = {mode: {step: [] for step in _STEPS} for mode in _MODES}
    warm = {step: batch.slice(0, 1000) for step, batch in batches.items()}
    _story(folder, warm, table_type, "with", {step: [] for step in _STEPS})  # what a process does once
    for number in range(repeats):
        for mode in _MODES if number % 2 else reversed(_MODES):
            _story(folder, batches, table_type, mode, seconds[mode])
    return seconds


def _story(
    folder: Path, batches: Mapping[str, pa.Table], table_type: str, mode: str, seconds: Mapping[str, list[float]]
) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    schema = batches["bulk_insert"].schema
    properties = {_STATISTICS: str(mode == "with").lower()}
    hoodie.create(folder, schema, **_TABLE, type=table_type, properties=properties)
    for step, batch in batches.items():
        written = hoodie.open(folder, spark=False)
        call = written.bulk_insert if step == "bulk_insert" else written.upsert
        started = time.process_time()
        call(batch)
        seconds[step].append(time.process_time() - started)
    shutil.rmtree(folder)


def _query(folder: Path, repeats: int) -> dict[str, Any]:
    """Cluster a table of about a thousand files by a column, and ask for one value of it."""
    shutil.rmtree(folder, ignore_errors=True)
    mixed = np.random.default_rng(0).permutation(_QUERY_ROWS)
    keys = pa.array([f"{number:09d}" for number in range(_QUERY_ROWS)])
    data = pa.table({"key": keys, "number": mixed, "half": mixed / 2})
    hoodie.create(folder, data.schema, record_key="key", index="simple")
    hoodie.open(folder, spark=False).bulk_insert(data)
    hoodie.open(folder, spark=False).cluster("number", properties=_SMALL_FILES)
    where = f"number = {_QUERY_ROWS // 3}"
    seconds = {"without": _asked(folder, where, repeats)}
    hoodie.open(folder, spark=False).index.build("column_stats")
    seconds["with"] = _asked(folder, where, repeats)
    explained = hoodie.open(folder, spark=False).explain(where)
    shutil.rmtree(folder)
    return {**seconds, "files": explained.all_file_slices, "opened": explained.file_slices}


def _asked(folder: Path, where: str, repeats: int) -> dict[str, list[float]]:
    """Return the seconds of the plan alone, with a new handle and with the same, and of a whole read."""
    seconds: dict[str, list[float]] = {step: [] for step in _QUERY_STEPS}
    hoodie.open(folder, spark=False).explain(where)  # what a process does once
    for _ in range(repeats):
        opened, started = hoodie.open(folder, spark=False), time.perf_counter()
        opened.explain(where)
        middle = time.perf_counter()
        opened.explain(where)
        ended = time.perf_counter()
        found = hoodie.open(folder, spark=False).to_arrow(where=where)
        took = time.perf_counter() - ended
        assert found.num_rows == 1
        for step, value in zip(_QUERY_STEPS, (middle - started, ended - middle, took), strict=True):
            seconds[step].append(value)
    return seconds


def main() -> None:
    """Measure with the folders, sizes and the table type of the arguments."""
    folder, source, rows, repeats, name = sys.argv[1:]
    if name == "query":
        print_figures(_query(Path(folder), int(repeats)))
    else:
        print_figures(_writes(Path(folder), Path(source), int(rows), int(repeats), name))


if __name__ == "__main__":
    main()
