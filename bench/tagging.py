"""Measure tagging and look-ups by key at two table sizes: whether the cost grows with the batch or with the table.

`python -m bench.tagging MODE FOLDER ROWS KEYS SEED` measures one mode in a separate process: `build`, `look_up`, `tag`
or `memory`. Files are in the page cache. "cold" is the first call of a process. When pyarrow converts Python values for
the first time, it imports pandas if pandas is installed. The time of this import is reported separately, because in
most programs it happened before.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import hoodie
from bench.child import figures_of, print_figures, tell
from bench.keys import Numbers, narrow_rows, uuid_keys
from bench.look_up_memory import memory_of_look_up
from bench.markdown import machine_line, seconds_text, table
from bench.settings import Settings, machine

_WARM_LOOK_UPS = 5


def run(settings: Settings) -> dict[str, Any]:
    """Build both tables, and measure each: look-ups of 3 keys, memory, then upserts."""
    told = machine()
    sizes = []
    for rows in settings.tagging_rows:
        folder = settings.work / f"table-tagging-{rows}"
        shutil.rmtree(folder, ignore_errors=True)
        tell(f"tagging: {rows:,} keys ...")

        def child(mode: str, seed: int, folder: Path = folder, rows: int = rows) -> Any:
            return figures_of("bench.tagging", mode, folder, rows, settings.tagging_keys, seed)

        repeats = range(1, settings.tagging_repeats + 1)
        size = {"rows": rows, "build": child("build", 0), "look_up": [child("look_up", seed) for seed in repeats]}
        sizes.append(size | {"memory": child("memory", 0), "tag": [child("tag", seed) for seed in repeats]})
        shutil.rmtree(folder, ignore_errors=True)
    return {"machine": told, "keys": settings.tagging_keys, "repeats": settings.tagging_repeats, "sizes": sizes}


def render(result: Mapping[str, Any]) -> str:
    """Render a row for each measurement, a column for each size, and the ratio of the sizes."""
    sizes = result["sizes"]
    lines = [
        ("build: bulk_insert", [[size["build"]["seconds"]["total"]] for size in sizes]),
        ("build: index write", [[size["build"]["seconds"]["index"]] for size in sizes]),
        ("once a process: pyarrow imports pandas", [[run["import"] for run in size["look_up"]] for size in sizes]),
        ("3 keys, first call of a process", [[run["cold"] for run in size["look_up"]] for size in sizes]),
        ("3 keys, later", [[took for run in size["look_up"] for took in run["warm"]] for size in sizes]),
        (f"tag {result['keys']:,} keys, cold", [[run["cold"]["tag"] for run in size["tag"]] for size in sizes]),
        (f"tag {result['keys']:,} keys, warm", [[run["warm"]["tag"] for run in size["tag"]] for size in sizes]),
        ("whole upsert, warm", [[run["warm"]["total"] for run in size["tag"]] for size in sizes]),
    ]
    rows = [[name, *map(seconds_text, values), _ratio(*values)] for name, values in lines]
    head = ["seconds", *(f"{size['rows']:,} keys" for size in sizes), "ratio"]
    title = f"{machine_line(result['machine'])}, in process, median of {result['repeats']} processes"
    memory = [f"- {_memory_line(size)}" for size in sizes]
    index = [f"- {size['rows']:,} keys: index of {size['build']['index_mib']:.1f} MiB" for size in sizes]
    return "\n".join([title, "", table(head, rows), "", *memory, *index, ""])


def _ratio(small: list[float], large: list[float]) -> str:
    floor = float(np.median(small))
    return f"{float(np.median(large)) / floor:.1f}x" if floor else "-"


def _memory_line(size: Mapping[str, Any]) -> str:
    found = size["memory"]
    return (
        f"{size['rows']:,} keys: a worker that looks up {found['keys']:,} of them takes {found['grown_mib']:.0f} MiB "
        f"at most on top of the {found['before_mib']:.0f} MiB it has before; bound {found['bound_mib']:.0f} MiB: "
        f"{found['cache_mib']:.0f} MiB of files kept, and {found['threads']} threads with {found['task_mib']:.1f} MiB "
        "each (a bucket's file, and all of its entries as blocks and as columns)"
    )


def _build(folder: Path, rows: int) -> dict[str, Any]:
    data = narrow_rows(np.arange(rows), ts=0)
    table = hoodie.create(folder, data.schema, record_key="key", partition_by="city", ordering="ts", index="record")
    result = table.bulk_insert(data)
    index = sum(path.stat().st_size for path in (folder / ".hoodie/metadata/record_index").iterdir())
    return {"seconds": result.seconds, "index_mib": index / 2**20}


def _look_up(folder: Path, rows: int, seed: int) -> dict[str, Any]:
    def took(attempt: int) -> float:
        keys = uuid_keys(_some(rows, 3, seed * 100 + attempt)).to_pylist()
        started = time.perf_counter()
        found = hoodie.open(folder, spark=False).read_keys(keys)
        seconds = time.perf_counter() - started
        assert found.num_rows == 3, f"3 keys were asked for, {found.num_rows} rows came"
        return round(seconds, 4)

    started = time.perf_counter()
    pa.array(["a"])
    imported = round(time.perf_counter() - started, 4)
    return {"import": imported, "cold": took(0), "warm": [took(attempt + 1) for attempt in range(_WARM_LOOK_UPS)]}


def _tag(folder: Path, rows: int, keys: int, seed: int) -> dict[str, Any]:
    def upsert(attempt: int) -> dict[str, float]:
        number = 2 * seed + attempt
        result = hoodie.open(folder, spark=False).upsert(narrow_rows(_some(rows, keys, number), ts=number))
        assert (result.updated, result.inserted) == (keys, 0), str(result)
        print(result, file=sys.stderr)
        return {phase: round(took, 4) for phase, took in result.seconds.items()}

    return {"cold": upsert(0), "warm": upsert(1)}


def _some(rows: int, count: int, seed: int) -> Numbers:
    """Return `count` different row numbers."""
    return np.random.default_rng(seed).choice(rows, count, replace=False)


def main() -> None:
    """Run the mode that the arguments name."""
    mode, folder = sys.argv[1], Path(sys.argv[2])
    rows, keys, seed = map(int, sys.argv[3:])
    if mode == "build":
        print_figures(_build(folder, rows))
    elif mode == "look_up":
        print_figures(_look_up(folder, rows, seed))
    elif mode == "tag":
        print_figures(_tag(folder, rows, keys, seed))
    elif mode == "memory":
        print_figures(memory_of_look_up(folder, uuid_keys(_some(rows, keys, seed))))
    else:
        raise SystemExit(f"no mode {mode}")


if __name__ == "__main__":
    main()
