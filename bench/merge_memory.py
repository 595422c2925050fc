"""Measure the memory of a worker that merges or compacts one file slice, for slices of several sizes.

`python -m bench.merge_memory build|read|compact FOLDER ROWS` runs one step in a separate process. The slice has a base
file of ROWS rows, and log files with new versions of half of these rows.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import hoodie
from bench.child import figures_of, print_figures, tell
from bench.keys import narrow_rows
from bench.markdown import machine_line, table
from bench.memory import peak_memory
from bench.settings import Settings, machine
from hoodie.files.merged_slice import read_file_slice
from hoodie.storage import open_store
from hoodie.view.slices import list_slices

_LOGS = 5
_FULL = {"hoodie.parquet.max.file.size": str(1 << 40), "hoodie.parquet.small.file.limit": str(1 << 30)}


def run(settings: Settings) -> dict[str, Any]:
    """Measure all steps for each size."""
    told = machine()
    sizes = []
    for rows in settings.merge_memory_rows:
        tell(f"merge memory: a slice of {rows:,} rows ...")
        folder = settings.work / "table-merge-memory"
        figures: dict[str, Any] = {}
        for step in _STEPS:
            figures |= figures_of("bench.merge_memory", step, folder, rows)
        sizes.append(figures)
    return {"machine": told, "sizes": sizes}


def render(result: Mapping[str, Any]) -> str:
    """Render a row for each size."""
    rows = [
        [
            f"{size['rows']:,}",
            f"{size['logged']:,}",
            f"{size['slice_mib']:.0f}",
            f"{size['read_mib']:.0f}",
            f"{size['read_seconds']:.1f}",
            f"{size['compact_mib']:.0f}",
            f"{size['compact_seconds']:.1f}",
        ]
        for size in result["sizes"]
    ]
    head = ["rows", "of them in logs", "slice MiB", "read, MiB more", "s", "compact, MiB more", "s"]
    title = f"One file slice in one task, peak memory on top of what was held, {machine_line(result['machine'])}"
    return "\n".join([title, "", table(head, rows), ""])


def _build(folder: Path, rows: int) -> dict[str, Any]:
    shutil.rmtree(folder, ignore_errors=True)
    schema = narrow_rows(np.arange(1), ts=0).schema
    options: dict[str, Any] = {"record_key": "key", "ordering": "ts", "type": "merge_on_read", "index": "simple"}
    built = hoodie.create(folder, schema, **options, properties=_FULL)
    built.upsert(narrow_rows(np.arange(rows), ts=0))
    for number in range(_LOGS):
        built.upsert(narrow_rows(np.arange(number, rows, 2 * _LOGS), ts=1 + number))
    (found,) = list_slices(built.view())
    return {"rows": rows, "logged": rows // 2, "slice_mib": found.size_bytes / 2**20}


def _read(folder: Path, rows: int) -> dict[str, Any]:
    view = hoodie.open(folder, spark=False).view()
    (found,) = list_slices(view)
    read = view.slice_read()
    merged = 0

    def work() -> None:
        nonlocal merged
        for batch in read_file_slice(open_store(folder), found, read):
            merged += batch.num_rows

    figures = _grown("read", work)
    assert merged == rows, f"{merged} rows came out of {rows}"
    return figures


def _compact(folder: Path, rows: int) -> dict[str, Any]:
    opened = hoodie.open(folder, spark=False)
    opened.schedule_compaction(strategy="unbounded")
    figures = _grown("compact", lambda: opened.compact())
    assert opened.count() == rows
    shutil.rmtree(folder)
    return figures


def _grown(step: str, work: Callable[[], object]) -> dict[str, float]:
    """Measure the growth of the process's memory up to the peak of the work; the process must be new."""
    pq.read_schema(pa.BufferReader(_parquet()))  # loads libraries, whose memory is not part of the figure
    with peak_memory() as peak:
        peak.sample()
        before = peak.driver_mib
        started = time.perf_counter()
        work()
        took = time.perf_counter() - started
    return {f"{step}_mib": peak.driver_mib - before, f"{step}_seconds": took}


def _parquet() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(narrow_rows(np.arange(10), ts=0), sink)
    return bytes(sink.getvalue())


_STEPS = {"build": _build, "read": _read, "compact": _compact}


def main() -> None:
    """Run the step that the arguments name."""
    print_figures(_STEPS[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3])))


if __name__ == "__main__":
    main()
