"""`make bench`: all lanes one after the other on this machine, medians and ratios into bench/results.

`python -m bench [--rows 1000000,4000000] [--repeats 3,1] [--readme] [--lanes …]`. Environment: HOODIE_BENCH_PYTHON_35
(Python of the PySpark 3.5 environment) and HOODIE_JVM_BUNDLE, which `make bench` sets.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.data import inputs
from bench.table import put_into_readme, render

HERE = Path(__file__).parent
RESULTS = HERE / "results"


def main() -> None:
    """Run every lane in a process of its own, then write and show the results."""
    wanted = _arguments()
    work = Path(wanted.work)
    work.mkdir(parents=True, exist_ok=True)
    tables = []
    for rows, repeats in zip(wanted.rows, wanted.repeats, strict=True):
        inputs(work, rows)
        figures = [_run(label, rows, repeats, work) for label in wanted.lanes]
        result = {"machine": _machine(), "rows": rows, "repeats": repeats, "lanes": figures}
        RESULTS.mkdir(exist_ok=True)
        name = RESULTS / f"copy-on-write-{rows}.json"
        name.write_text(json.dumps(result, indent=1) + "\n")
        tables.append(render(result))
        print(tables[-1])
        print(f"written to {name}")
    if wanted.readme:
        put_into_readme(HERE.parent / "README.md", tables)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench")
    numbers = lambda text: [int(part) for part in text.split(",")]  # noqa: E731
    parser.add_argument("--rows", type=numbers, default=[1_000_000, 4_000_000])
    parser.add_argument("--repeats", type=numbers, default=[3, 1], help="for each of --rows")
    parser.add_argument("--readme", action="store_true", help="put the tables into README.md")
    parser.add_argument("--work", default="/tmp/hoodie-bench")
    parser.add_argument(
        "--lanes",
        type=lambda text: text.split(","),
        default=["parquet", "parquet-partitioned", "hoodie/4", "hoodie/3.5", "hudi-jvm/3.5", "delta-rs"],
    )
    return parser.parse_args()


def _run(label: str, rows: int, repeats: int, work: Path) -> dict[str, Any]:
    """One lane's figures; its output is shown where it fails."""
    lane, _, version = label.partition("/")
    python = os.environ["HOODIE_BENCH_PYTHON_35"] if version == "3.5" else sys.executable
    command = [python, "-m", "bench.run_lane", lane, str(rows), str(repeats), str(work)]
    print(f"{label}: {rows:,} rows ...", file=sys.stderr, flush=True)
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parent, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("FIGURES ")]
    if done.returncode or not lines:
        raise SystemExit(f"{label} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    figures: dict[str, Any] = json.loads(lines[-1].removeprefix("FIGURES "))
    return figures | {"lane": label}


def _machine() -> dict[str, Any]:
    memory = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(int(memory.split()[1]) / 2**20, 1),
        "python": platform.python_version(),
        "load_before": os.getloadavg()[0],
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }


if __name__ == "__main__":
    main()
