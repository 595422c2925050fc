"""Count what a commit costs after a thousand commits with all table services on, for both table types.

`python -m bench.life FOLDER ROWS COMMITS TYPE` measures in a separate process. Each commit upserts 20 known and 20 new
rows, as a handle that was just opened. Storage requests are counted at the door to the storage, reads too.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np

from bench.child import figures_of, print_figures, tell
from bench.keys import narrow_rows
from bench.markdown import machine_line, table
from bench.picture import draw_life
from bench.settings import Settings, machine
from hoodie.storage import LocalStore
from hoodie.table import Table
from hoodie.write.create import CreateOptions, create_table
from tests.support.fault_store import FaultStore

TYPES = ("copy_on_write", "merge_on_read")
WINDOW = 20
"""Number of commits that are compared: #11 to #30, #61 to #80 and the last commits.

The services run in cycles that divide the window: compaction after 5 delta commits, clustering after 20 commits.
"""
_CHANGES = 20
_CITIES = 4
_PROPERTIES = {
    "hoodie.clean.automatic": "true",
    "hoodie.archive.automatic": "true",
    "hoodie.clustering.inline": "true",
    "hoodie.clustering.inline.max.commits": "20",
    "hoodie.metadata.index.column.stats.enable": "true",
}
_COMPACTION = {"hoodie.compact.inline": "true", "hoodie.compaction.strategy": "unbounded"}


def run(settings: Settings) -> dict[str, Any]:
    """Measure both table types, and draw the picture."""
    told = machine()
    result: dict[str, Any] = {"machine": told, "rows": settings.life_rows, "commits": settings.life_commits}
    for table_type in TYPES:
        tell(f"{table_type}: {settings.life_commits} commits with all services ...")
        folder = settings.work / "table-life"
        result[table_type] = figures_of("bench.life", folder, settings.life_rows, settings.life_commits, table_type)
    draw_life({name: result[name] for name in TYPES}, settings.life_picture)
    return result


def render(result: Mapping[str, Any]) -> str:
    """Render a row for each figure and table type; a column for each window, and the ratio of their ends."""
    last = result["commits"]
    ends = [end for end in (30, 80) if end < last - WINDOW] + [last]
    rows = []
    for table_type in TYPES:
        commits = result[table_type]["commits"]
        windows = [commits[end - WINDOW : end] for end in ends]
        name = table_type.replace("_", "-")
        for title, figures in (
            ("seconds, median", [median(_values(window, "seconds")) for window in windows]),
            ("seconds, mean", [mean(_values(window, "seconds")) for window in windows]),
            ("CPU seconds, mean", [mean(_values(window, "cpu_seconds")) for window in windows]),
            ("storage requests, mean", [mean(_values(window, "requests")) for window in windows]),
            ("files in .hoodie", [window[-1]["hoodie_files"] for window in windows]),
            ("files of the table", [window[-1]["files"] for window in windows]),
        ):
            ratio = f"{figures[-1] / figures[0]:.2f}x"
            rows.append([f"{name}: {title}", *(f"{figure:,.4g}" for figure in figures), ratio])
    head = ["", *(f"#{end - WINDOW + 1} to #{end}" for end in ends), "last / first"]
    title = (
        f"{result['rows']:,} rows, {result['commits']:,} commits of {_CHANGES} new rows and {_CHANGES} updates with "
        f"cleaning, archiving, clustering, statistics and compaction, in process, {machine_line(result['machine'])}; "
        "files are counted after the last commit of each column"
    )
    return "\n".join([title, "", table(head, rows), ""])


def _values(window: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [commit[name] for commit in window]


def _commit_all(folder: Path, rows: int, commits: int, table_type: str) -> dict[str, Any]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    store = FaultStore(LocalStore(str(folder)), count_reads=True)
    store.register()
    properties = _PROPERTIES | (_COMPACTION if table_type == "merge_on_read" else {})
    data = narrow_rows(np.arange(rows), ts=0, cities=_CITIES)
    options = CreateOptions(
        record_key="key", partition_by="city", ordering="ts", type=table_type, index="record", properties=properties
    )
    create_table(store, data.schema, options)
    Table(store).bulk_insert(data)
    random = np.random.default_rng(0)
    figures = []
    for number in range(1, commits + 1):
        known = rows + (number - 1) * _CHANGES
        chosen = np.concatenate([random.choice(known, _CHANGES, replace=False), np.arange(known, known + _CHANGES)])
        changes = narrow_rows(chosen, ts=number, cities=_CITIES)
        store.calls.clear()
        began, worked = time.perf_counter(), time.process_time()
        result = Table(store).upsert(changes)
        took, worked = time.perf_counter() - began, time.process_time() - worked
        assert (result.inserted, result.updated) == (_CHANGES, _CHANGES), str(result)
        names = [path.relative_to(folder).parts[0] for path in folder.rglob("*") if path.is_file()]
        figures.append(
            {
                "seconds": round(took, 4),
                "cpu_seconds": round(worked, 4),
                "requests": len(store.calls),
                "hoodie_files": names.count(".hoodie"),
                "files": len(names),
                "services": [service.operation for service in result.services],
            }
        )
    found = Table(store).to_arrow(columns=["key"])
    assert len(set(found["key"].to_pylist())) == found.num_rows == rows + commits * _CHANGES
    shutil.rmtree(folder)
    return {"commits": figures}


def main() -> None:
    """Measure with the folder, sizes and table type of the arguments."""
    print_figures(_commit_all(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))


if __name__ == "__main__":
    main()
