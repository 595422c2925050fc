"""The input of the benchmark: Parquet files with ten columns, md5 keys and ten partitions, for every lane.

`base-N` has N rows. `upsert-N` updates 10% of these rows, evenly spread, and adds 1% new rows. `small-N` updates 100
rows; `late-N` has older versions of the same rows, which all lose.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PARTITIONS = 10
UPDATE_EVERY = 10
SMALL_ROWS = 100
_FILES = 4


@dataclass(frozen=True, slots=True)
class Inputs:
    """The folders of Parquet files, one for each input."""

    rows: int
    base: Path
    upsert: Path
    small: Path
    late: Path


def inputs(folder: Path, rows: int) -> Inputs:
    """Write the inputs for a table of `rows` rows, unless they exist."""
    names = (f"{name}-{rows}" for name in ("base", "upsert", "small", "late"))
    found = Inputs(rows, *(folder / name for name in names))
    inserts = rows // 100
    _write(found.base, np.arange(rows), 0)
    _write(found.upsert, np.concatenate([np.arange(0, rows, UPDATE_EVERY), np.arange(rows, rows + inserts)]), 1)
    small = np.arange(3, rows, rows // SMALL_ROWS)[:SMALL_ROWS]
    _write(found.small, small, 2)
    _write(found.late, small, -1)
    return found


def some_keys(rows: int) -> list[str]:
    """Return three keys of a table of `rows` rows, far from each other."""
    return [_key(rows * quarter // 4) for quarter in (1, 2, 3)]


def _key(number: int) -> str:
    return hashlib.md5(str(number).encode(), usedforsecurity=False).hexdigest()


def _write(folder: Path, numbers: np.ndarray[tuple[int], np.dtype[np.int64]], version: int) -> None:
    if (folder / "_SUCCESS").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for part, chosen in enumerate(np.array_split(numbers, _FILES)):
        pq.write_table(_rows(chosen, version), folder / f"part-{part}.parquet", compression="zstd")
    (folder / "_SUCCESS").touch()


def _rows(numbers: np.ndarray[tuple[int], np.dtype[np.int64]], version: int) -> pa.Table:
    random = np.random.default_rng(int(numbers[0]) + version if len(numbers) else version)
    count = len(numbers)
    keys = [_key(number) for number in numbers.tolist()]
    moments = pa.array(1_700_000_000_000_000 + numbers * 1_000_000 + version).cast(pa.timestamp("us", "UTC"))
    return pa.table(
        {
            "key": pa.array(keys),
            "city": pa.array([f"city-{number % PARTITIONS}" for number in numbers]),
            "ts": pa.array(np.full(count, version, np.int64)),
            "rider": pa.array([f"rider-{number % 50_000:06d}" for number in numbers]),
            "driver": pa.array([f"driver-{value}" for value in random.integers(0, 10_000, count)]),
            "fare": pa.array(random.random(count) * 100),
            "distance": pa.array(random.random(count) * 30),
            "seats": pa.array(random.integers(1, 5, count).astype(np.int32)),
            "started": moments,
            "note": pa.array([f"note {value:x}" for value in random.integers(0, 1 << 40, count)]),
        }
    )
