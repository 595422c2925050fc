"""Measure tables of very many files: open, plan one partition, upsert into one partition, plan the whole table.

`python -m bench.many_files FOLDER PARTITIONS FILES REPEATS` measures one table in a separate process. The table has one
partition with real files. All others exist in the metadata table only: no read or write of that partition opens them.
"""

from __future__ import annotations

import random
import shutil
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa

import hoodie
from bench.child import figures_of, print_figures, tell
from bench.markdown import machine_line, seconds_text, table
from bench.settings import Settings, machine
from hoodie.metadata.table import MetadataTable
from hoodie.read.plan import plan_scan
from hoodie.records.condition import Condition
from hoodie.storage import LocalStore
from hoodie.table import Table
from hoodie.view.listing import list_files
from hoodie.view.slices import data_table
from tests.support.fault_store import FaultStore

_REAL = "real"
_REAL_ROWS = 10_000
_CHANGES = 100
_FEW = (10, 10)
"""The table to compare with: 10 partitions of 10 files."""
_STEPS = {
    "open": "open, schema",
    "plan_one": "plan of one partition",
    "read_one": "`to_arrow(where=\"p = 'real'\")`",
    "upsert": f"upsert of {_CHANGES} rows into one partition",
    "plan_all": "plan of the whole table",
}


def run(settings: Settings) -> dict[str, Any]:
    """Measure a table of 100 files, and the large ones."""
    told, tables = machine(), []
    for partitions, files in (_FEW, *settings.many_files):
        tell(f"many files: {partitions:,} partitions of {files} files ...")
        folder = settings.work / "table-many-files"
        tables.append(figures_of("bench.many_files", folder, partitions, files, settings.many_files_repeats))
    return {"machine": told, "repeats": settings.many_files_repeats, "tables": tables}


def render(result: Mapping[str, Any]) -> str:
    """Render a row for each step; for each table its seconds, its storage requests and the ratio to the first."""
    tables = result["tables"]
    counts = [f"{one['partitions'] * one['files']:,} files" for one in tables]
    head = ["seconds; storage requests", *counts, "last / first"]
    rows = []
    for step, title in _STEPS.items():
        cells = [f"{seconds_text(one['seconds'][step])}; {one['requests'][step]:,}" for one in tables]
        first, last = (median(tables[place]["seconds"][step]) for place in (0, -1))
        rows.append([title, *cells, f"{last / first:.2f}x"])
    rows.append(["memory of the plan of the whole table", *(f"{one['plan_mib']:,.0f} MiB" for one in tables), ""])
    partitions = ", ".join(f"{one['partitions']:,}" for one in tables)
    made = ", ".join(f"{one['generated_seconds']:.1f} s" for one in tables)
    title = (
        f"Tables of {partitions} partitions, in process, {machine_line(result['machine'])}, median of "
        f"{result['repeats']} (least-greatest), each with a new handle. One partition has files; the others are rows "
        f"of the metadata table, made in {made}"
    )
    return "\n".join([title, "", table(head, rows), ""])


def make_table(folder: Path, partitions: int, files: int) -> float:
    """Create a table with a real partition, and `partitions` with `files` base files each that only it lists.

    Returns the seconds that the metadata table took.
    """
    rows = pa.table({"id": [f"k{row}" for row in range(_REAL_ROWS)], "v": [0] * _REAL_ROWS, "p": [_REAL] * _REAL_ROWS})
    made = hoodie.create(folder, rows.schema, record_key="id", partition_by="p", index="simple", spark=False)
    instant = made.bulk_insert(rows).instant
    view = made.view()
    began = time.perf_counter()
    listing = {path: dict(found) for path, found in list_files(view).items()}
    bits = random.Random(1)
    for number in range(partitions):
        names = (f"{uuid.UUID(int=bits.getrandbits(128))}-0_0-0-0_{instant}.parquet" for _ in range(files))
        listing[f"p=p{number:06}"] = {name: bits.randrange(1, 120_000_000) for name in names}
    with view.state.table_lock() as lock:
        MetadataTable.create(replace(data_table(view.refreshed(lock)), list_files=lambda: listing))
    return time.perf_counter() - began


def _measure(folder: Path, partitions: int, files: int, repeats: int) -> dict[str, Any]:
    shutil.rmtree(folder, ignore_errors=True)
    generated = make_table(folder, partitions, files)
    changes = pa.table({"id": [f"k{row}" for row in range(_CHANGES)], "v": [1] * _CHANGES, "p": [_REAL] * _CHANGES})
    where = f"p = '{_REAL}'"
    actions: dict[str, Callable[[Table], Any]] = {
        "open": lambda opened: opened.schema,
        "plan_one": lambda opened: plan_scan(opened.view(), where=Condition.parse(where)),
        "read_one": lambda opened: opened.to_arrow(where=where),
        "upsert": lambda opened: opened.upsert(changes),
    }
    seconds: dict[str, list[float]] = {}
    requests: dict[str, int] = {}
    for step, action in actions.items():
        took = [_timed(folder, action) for _ in range(repeats + 1)]
        seconds[step] = took[1:]  # the first call imports modules
        requests[step] = _requests(folder, action)

    def plan_all(opened: Table) -> None:
        assert len(plan_scan(opened.view()).slices) > partitions * files

    before = _reset_peak_mib()
    seconds["plan_all"] = [_timed(folder, plan_all)]
    grown = _status_mib("VmHWM") - before
    requests["plan_all"] = _requests(folder, plan_all)
    return {
        "partitions": partitions,
        "files": files,
        "generated_seconds": generated,
        "seconds": seconds,
        "requests": requests,
        "plan_mib": grown,
    }


def _reset_peak_mib() -> float:
    """Forget the peak of this process, and return its resident size."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status_mib("VmRSS")


def _status_mib(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) / 1024


def _timed(folder: Path, action: Callable[[Table], Any]) -> float:
    """Return the seconds of an action with a new handle."""
    began = time.perf_counter()
    action(Table(LocalStore(str(folder)), spark=False))
    return time.perf_counter() - began


def _requests(folder: Path, action: Callable[[Table], Any]) -> int:
    """Return the number of storage calls of an action with a new handle."""
    counting = FaultStore(LocalStore(str(folder)), count_reads=True)
    counting.register()
    try:
        action(Table(counting, spark=False))
    finally:
        counting.unregister()
    return len(counting.calls)


if __name__ == "__main__":
    print_figures(_measure(Path(sys.argv[1]), *(int(text) for text in sys.argv[2:5])))
