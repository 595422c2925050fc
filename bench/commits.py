"""Compare the cost of commit #500 with commit #10: many small commits on one table with the record index.

`python -m bench.commits FOLDER ROWS COMMITS TYPE` measures in a separate process. A commit has 80 new keys and 20
updates. Tables of the type merge_on_read are compacted inline, after every fifth commit.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import hoodie
from bench.child import figures_of, print_figures, tell
from bench.keys import Numbers, narrow_rows
from bench.markdown import machine_line, table
from bench.settings import Settings, machine

WINDOW = 11
"""Number of commits in each compared window: #10 to #20, and the last commits.

Each window contains one compaction of the metadata table.
"""
_FIRST = 10
_INSERTS = 80
_UPDATES = 20
_PHASES = ("total", "stage", "tag", "write", "index", "commit", "compact")
_PROPERTIES = {
    "copy_on_write": {},
    "merge_on_read": {"hoodie.compact.inline": "true", "hoodie.compaction.strategy": "unbounded"},
}


def run(settings: Settings) -> dict[str, Any]:
    """Build a copy-on-write table and measure the commits."""
    return _run(settings, "copy_on_write")


def run_with_logs(settings: Settings) -> dict[str, Any]:
    """Build a merge-on-read table and measure the commits."""
    return _run(settings, "merge_on_read")


def _run(settings: Settings, table_type: str) -> dict[str, Any]:
    told = machine()
    folder = settings.work / "table-commits"
    tell(f"{table_type}: {settings.commits} commits ...")
    figures: dict[str, Any] = figures_of("bench.commits", folder, settings.commits_rows, settings.commits, table_type)
    sizes = {"rows": settings.commits_rows, "commits": settings.commits, "type": table_type}
    return {"machine": told} | sizes | figures


def render(result: Mapping[str, Any]) -> str:
    """Render a row for each phase and each count of files, a column for each window, and the ratio of the windows."""
    ends = (_FIRST + WINDOW - 1, result["commits"])
    windows = [result["seconds"][end - WINDOW : end] for end in ends]
    rows = []
    for phase in _PHASES:
        if phase not in windows[0][0]:
            continue
        early, late = (median(commit[phase] for commit in window) for window in windows)
        rows.append([f"{phase}, median seconds", f"{early:.3f}", f"{late:.3f}", _ratio(early, late)])
    means = [sum(commit["total"] for commit in window) / len(window) for window in windows]
    rows.append(["total, mean", *(f"{took:.3f}" for took in means), _ratio(*means)])
    slowest = [max(commit["total"] for commit in window) for window in windows]
    rows.append(["total, slowest", *(f"{took:.3f}" for took in slowest), _ratio(*slowest)])
    for name, title in (
        ("metadata_files", "files in .hoodie/metadata"),
        ("metadata_mib", "MiB in .hoodie/metadata"),
        ("timeline_files", "files of the table's timeline"),
    ):
        counts = [result["files"][str(end)][name] for end in ends]
        rows.append([title, *(f"{count:,.4g}" for count in counts), _ratio(*counts)])
    head = ["", *(f"#{end - WINDOW + 1} to #{end}" for end in ends), "ratio"]
    title = (
        f"{result['rows']:,} rows, {result['type'].replace('_', '-')}, {result['commits']} commits of {_INSERTS} new "
        f"rows and {_UPDATES} updates, in process, {machine_line(result['machine'])}; files are counted after the last "
        "commit of each column"
    )
    return "\n".join([title, "", table(head, rows), ""])


def _ratio(early: float, late: float) -> str:
    return f"{late / early:.2f}x" if early else "-"


def _commit_all(folder: Path, rows: int, commits: int, table_type: str) -> dict[str, Any]:
    shutil.rmtree(folder, ignore_errors=True)
    data = narrow_rows(np.arange(rows), ts=0)
    options: dict[str, Any] = {"record_key": "key", "ordering": "ts", "index": "record", "type": table_type}
    hoodie.create(folder, data.schema, **options, properties=_PROPERTIES[table_type]).bulk_insert(data)
    random = np.random.default_rng(0)
    seconds: list[dict[str, float]] = []
    files: dict[str, dict[str, float]] = {}
    for number in range(1, commits + 1):
        chosen = _numbers(rows + (number - 1) * _INSERTS, random)
        result = hoodie.open(folder, spark=False).upsert(narrow_rows(chosen, ts=number))
        assert (result.inserted, result.updated) == (_INSERTS, _UPDATES), str(result)
        seconds.append({phase: round(took, 4) for phase, took in result.seconds.items()})
        if number in (_FIRST + WINDOW - 1, commits):
            files[str(number)] = _files(folder)
    shutil.rmtree(folder)
    return {"seconds": seconds, "files": files}


def _numbers(known: int, random: np.random.Generator) -> Numbers:
    """Return the row numbers of one commit: some known rows for updates, then new rows."""
    return np.concatenate([random.choice(known, _UPDATES, replace=False), np.arange(known, known + _INSERTS)])


def _files(folder: Path) -> dict[str, float]:
    metadata = _sizes(folder / ".hoodie/metadata")
    return {
        "metadata_files": len(metadata),
        "metadata_mib": round(sum(metadata) / 2**20, 2),
        "timeline_files": len(_sizes(folder / ".hoodie/timeline")),
    }


def _sizes(folder: Path) -> Sequence[int]:
    return [path.stat().st_size for path in folder.rglob("*") if path.is_file()]


def main() -> None:
    """Measure with the folder, sizes and table type of the arguments."""
    print_figures(_commit_all(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))


if __name__ == "__main__":
    main()
