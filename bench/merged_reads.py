"""Read a merge-on-read table with rows in logs by Spark: plain Parquet of the same rows, hoodie, and JVM Hudi.

`python -m bench.merged_reads build FOLDER ROWS SHARE` and `python -m bench.merged_reads read FOLDER ROUNDS ENGINE…`
measure in separate processes; the engines of one process read in alternation.
"""

from __future__ import annotations

import itertools
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

import hoodie
from bench.child import figures_of, print_figures, tell
from bench.keys import uuid_keys
from bench.lanes import JVM_SESSION, ParquetLane, SparkLane
from bench.markdown import machine_line, seconds_text, table
from bench.settings import Settings, machine

_COMMIT_ROWS = 1_000_000
_CITIES = 10
_FIRST = "hoodie-first"
_QUERIES: Mapping[str, Callable[[Any], Any]] = {
    "count by city": lambda frame: sorted(tuple(row) for row in frame.groupBy("city").count().collect()),
    "sum of a column": lambda frame: round(frame.selectExpr("sum(fare)").collect()[0][0]),
    "condition on a column": lambda frame: frame.where("number % 100 = 0 AND fare < 1").count(),
    "all columns": lambda frame: frame.write.format("noop").mode("overwrite").save(),
}


def run(settings: Settings) -> dict[str, Any]:
    """Build a table for each size and share, and read it with both versions of Spark."""
    told, sizes = machine(), []
    for rows, share in settings.merged_reads:
        folder = settings.work / "merged-reads"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        tell(f"merged-reads: a table of {rows:,} rows, {share:.0%} in logs ...")
        found: dict[str, Any] = {"rows": rows, "share": share}
        found |= figures_of("bench.merged_reads", "build", folder, rows, share)
        rounds = settings.merged_reads_rounds
        tell("merged-reads: hoodie beside plain Parquet ...")
        ours = figures_of("bench.merged_reads", "read", folder, rounds, "parquet", _FIRST, "hoodie")
        tell("merged-reads: the JVM beside plain Parquet, on Spark 3.5 ...")
        theirs = figures_of("bench.merged_reads", "read", folder, rounds, "parquet", "jvm", version="3.5")
        sizes.append(found | {"4": ours, "3.5": theirs})
        shutil.rmtree(folder, ignore_errors=True)
    return {"machine": told, "rounds": settings.merged_reads_rounds, "sizes": sizes}


def render(result: Mapping[str, Any]) -> str:
    """Render a row for each table and query: plain Parquet, hoodie and the JVM, and their ratios."""
    rows = []
    for found in result["sizes"]:
        for query in _QUERIES:
            plain, theirs = found["4"]["parquet"][query], found["3.5"]["jvm"][query]
            cells = [seconds_text(plain)]
            for ours in (found["4"][_FIRST][query], found["4"]["hoodie"][query]):
                cells += [seconds_text(ours), f"{median(ours) / median(plain):.2f}x"]
            cells += [seconds_text(theirs), f"{median(theirs) / median(ours):.1f}x"]
            rows.append([f"{found['rows']:,} rows, {found['share']:.0%} in logs: {query}", *cells])
    title = (
        "A merge-on-read table of 10 columns, read by Spark on two cores; plain Parquet has the same rows in as many "
        "files; hoodie reads the table for the first time (files of the metadata table are read, logs are merged), and "
        f"again; {machine_line(result['machine'])}, median of {result['rounds']} (least-greatest) after two rounds to "
        "warm up"
    )
    head = [
        "seconds",
        "plain Parquet",
        "hoodie, first",
        "/ Parquet",
        "hoodie, again",
        "/ Parquet",
        "JVM Hudi 1.2.0",
        "JVM / hoodie",
    ]
    return "\n".join([title, "", table(head, rows), ""])


def _rows(numbers: npt.NDArray[np.int64], ts: int) -> pa.Table:
    random = np.random.default_rng(ts)
    count = len(numbers)

    def names(kind: str, distinct: int) -> pa.Array:
        chosen = pa.array(random.integers(0, distinct, count).astype(np.int32))
        return pa.DictionaryArray.from_arrays(chosen, [f"{kind}-{n}" for n in range(distinct)]).cast(pa.string())

    cities = pa.array([f"city-{city}" for city in range(_CITIES)])
    return pa.table(
        {
            "key": uuid_keys(numbers),
            "ts": pa.array(np.full(count, ts)),
            "city": cities.take(pa.array(numbers % _CITIES)),
            "fare": random.random(count) * 100,
            "distance": random.random(count) * 30,
            "tip": random.random(count),
            "driver": names("driver", 5_000),
            "rider": names("rider", 50_000),
            "number": pa.array(numbers),
            "paid": pa.array(random.random(count) > 0.5),
        }
    )


def _build(folder: Path, rows: int, share: float) -> dict[str, Any]:
    """Write the table, and the same rows as plain Parquet in as many files as the table has base files."""
    step = min(rows, _COMMIT_ROWS)
    made = hoodie.create(
        folder / "table", _rows(np.arange(1), 1).schema, record_key="key", partition_by="city", ordering="ts",
        type="merge_on_read",
    )  # fmt: skip
    for start in range(0, rows, step):
        made.bulk_insert(_rows(np.arange(start, start + step), 1))
    changed = np.random.default_rng(0).choice(rows, int(rows * share), replace=False)
    for part in np.array_split(changed, max(1, len(changed) // _COMMIT_ROWS)):
        made.upsert(_rows(part, 2))
    slices = made.inspect.slices()
    merged = made.to_arrow(columns=made.schema.names)
    (folder / "parquet").mkdir()
    for number, part in enumerate(np.array_split(np.arange(rows), len(slices))):
        pq.write_table(merged.slice(part[0], len(part)), folder / "parquet" / f"{number}.parquet", compression="zstd")
    return {"files": len(slices), "log_files": sum(slices["log_files"].to_pylist())}


def _read(folder: Path, rounds: int, engines: list[str]) -> dict[str, dict[str, list[float]]]:
    confs = {**JVM_SESSION, "spark.jars": os.environ["HOODIE_JVM_BUNDLE"]} if "jvm" in engines else {}
    session = _session(folder, confs)
    # What a process keeps of a table has the table's path in its key.
    places = (folder / f"table-{number}" for number in itertools.count())
    place = folder / "table"

    frames: Mapping[str, Callable[[], Any]] = {
        "parquet": lambda: session.read.parquet(str(folder / "parquet")),
        _FIRST: lambda: hoodie.open(place, spark=session).read(),
        "hoodie": lambda: hoodie.open(place, spark=session).read(),
        "jvm": lambda: session.read.format("hudi").load(str(folder / "table")),
    }
    seconds: dict[str, dict[str, list[float]]] = {engine: {query: [] for query in _QUERIES} for engine in engines}
    for turn in range(rounds + 2):
        for query, work in _QUERIES.items():
            answers = []
            for engine in engines:
                if engine == _FIRST:
                    place = place.rename(next(places))
                started = time.perf_counter()
                answers.append(work(frames[engine]()))
                if turn >= 2:  # the first rounds warm up
                    seconds[engine][query].append(round(time.perf_counter() - started, 4))
            assert all(answer == answers[0] for answer in answers), f"{query}: {answers}"
    place.rename(folder / "table")
    return seconds


def _session(folder: Path, confs: dict[str, str]) -> Any:
    lane: SparkLane = ParquetLane(folder, confs)
    return lane.spark


def main() -> None:
    """Run the step that the arguments name."""
    mode, folder, number, *rest = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:]
    if mode not in ("build", "read"):
        raise SystemExit(f"no mode {mode}")
    print_figures(_build(folder, number, float(rest[0])) if mode == "build" else _read(folder, number, rest))


if __name__ == "__main__":
    main()
