"""Measure copy-on-write changes that touch few rows: the CPU of a change, and the rows and files that it leaves alone.

`python -m bench --only locality` prints the table. `python -m bench.locality FOLDER LANE ROWS REPEATS` measures one
lane. CPU seconds count all threads of the process, so that other work on the machine plays a small part.
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

import hoodie
from bench.child import figures_of, print_figures, tell
from bench.keys import Numbers
from bench.markdown import machine_line, seconds_text, table
from bench.settings import Settings, machine

LANES = ("hoodie", "delta-rs")
FEW = 100
"""Rows of a small change, spread over all files."""
WIDE = 100
"""Columns of the wide table, which has a tenth of the rows."""
WIDE_UPDATE = f"update of 1 of {WIDE} columns in 10% of the rows"
Change = Callable[[Path], object]


def run(settings: Settings) -> dict[str, Any]:
    """Measure each lane in a separate process."""
    told, rows = machine(), settings.locality_rows
    found = {}
    for lane in LANES:
        tell(f"locality, {lane}: {rows:,} rows ...")
        found[lane] = figures_of(
            "bench.locality", settings.work / "table-locality", lane, rows, settings.locality_repeats
        )
    return {"machine": told, "rows": rows, "repeats": settings.locality_repeats, "lanes": found}


def render(result: Mapping[str, Any]) -> str:
    """Render a row for each change, a column for each lane."""
    lanes = result["lanes"]
    rows = [[change, *(seconds_text(lanes[lane][change]) for lane in LANES)] for change in lanes[LANES[0]]]
    title = (
        f"CPU seconds of one change of a copy-on-write table of {result['rows']:,} rows of eleven columns (index "
        f"`simple`; the wide table has {WIDE} columns and a tenth of the rows), in process, each with a new handle, "
        f"median (range) of {result['repeats']}, "
        f"{machine_line(result['machine'])}"
    )
    return "\n".join([title, "", table(["", *LANES], rows), ""])


def rows_of(numbers: Numbers, ts: int) -> pa.Table:
    """Return rows with these keys; the keys of a later number are greater, as keys that begin with the time are."""
    random, count = np.random.default_rng(ts), len(numbers)
    return pa.table(
        {
            "id": pa.array([f"k{number:010d}" for number in numbers]),
            "ts": np.full(count, ts, np.int64),
            **{f"d{place}": random.random(count) for place in range(4)},
            **{f"n{place}": random.integers(0, 1000, count) for place in range(3)},
            "name": np.char.add("name", random.integers(0, 100_000, count).astype(str)),
            "color": np.array(["red", "green", "blue"])[random.integers(0, 3, count)],
        }
    )


def wide_rows_of(count: int) -> pa.Table:
    """Return rows of many columns."""
    random = np.random.default_rng(1)
    columns = {f"c{place}": random.random(count) for place in range(WIDE - 3)}
    keys = pa.array([f"k{number:010d}" for number in range(count)])
    return pa.table({"id": keys, "ts": np.ones(count, np.int64), "n": random.integers(0, 1000, count), **columns})


def _changes(lane: str, rows: int) -> dict[str, Change]:
    random = np.random.default_rng(0)
    few = np.sort(random.choice(rows, FEW, replace=False))
    batches = {
        f"upsert of {FEW} keys all over": rows_of(few, 2),
        "upsert of the newest 2%": rows_of(np.arange(rows - rows // 50, rows), 2),
        "upsert of 2% new keys": rows_of(np.arange(rows, rows + rows // 50), 2),
        "upsert of 10% of the keys all over": rows_of(np.sort(random.choice(rows, rows // 10, replace=False)), 2),
    }
    upsert, delete = (_upsert_delta, _delete_delta) if lane == "delta-rs" else (_upsert, _delete)
    keys = [f"k{number:010d}" for number in few]
    return {
        "delete of 1 key": lambda path: delete(path, keys[:1]),
        f"delete of {FEW} keys all over": lambda path: delete(path, keys),
        **{name: (lambda path, batch=batch: upsert(path, batch)) for name, batch in batches.items()},
        WIDE_UPDATE: _update_delta if lane == "delta-rs" else _update,
    }


def _upsert(path: Path, batch: pa.Table) -> object:
    return hoodie.open(path, spark=False).upsert(batch)


def _delete(path: Path, keys: list[str]) -> object:
    return hoodie.open(path, spark=False).delete(keys)


def _update(path: Path) -> object:
    return hoodie.open(path, spark=False).update({"c1": "c1 + 1"}, "n % 10 = 0")


def _update_delta(path: Path) -> object:
    from deltalake import DeltaTable

    return DeltaTable(path).update(updates={"c1": "c1 + 1"}, predicate="n % 10 = 0")


def _upsert_delta(path: Path, batch: pa.Table) -> object:
    from deltalake import DeltaTable

    merger = DeltaTable(path).merge(batch, "t.id = s.id", source_alias="s", target_alias="t")
    return merger.when_matched_update_all().when_not_matched_insert_all().execute()


def _delete_delta(path: Path, keys: list[str]) -> object:
    from deltalake import DeltaTable

    return DeltaTable(path).delete(f"id IN ({', '.join(map(repr, keys))})")


def _create(lane: str, folder: Path, data: pa.Table) -> None:
    if lane == "delta-rs":
        from deltalake import write_deltalake

        write_deltalake(folder, data)
        return
    made = hoodie.create(folder, data.schema, record_key="id", ordering="ts", index="simple", spark=False)
    made.bulk_insert(data)


def measure(folder: Path, lane: str, rows: int, repeats: int) -> dict[str, list[float]]:
    """Return the CPU seconds of each change of a fresh copy; the first change of the process does not count."""
    shutil.rmtree(folder, ignore_errors=True)
    whole, wide, copied = folder / "whole", folder / "wide", folder / "copied"
    _create(lane, whole, rows_of(np.arange(rows), 1))
    _create(lane, wide, wide_rows_of(rows // 10))
    seconds: dict[str, list[float]] = {}
    for number in range(repeats + 1):
        for name, change in _changes(lane, rows).items():
            shutil.copytree(wide if name == WIDE_UPDATE else whole, copied)
            started = time.process_time()
            change(copied)
            if number:
                seconds.setdefault(name, []).append(time.process_time() - started)
            shutil.rmtree(copied)
            if not number:
                break
    shutil.rmtree(folder)
    return seconds


def main() -> None:
    """Measure with the folder, the lane and the sizes of the arguments."""
    folder, lane, rows, repeats = sys.argv[1:]
    print_figures(measure(Path(folder), lane, int(rows), int(repeats)))


if __name__ == "__main__":
    main()
