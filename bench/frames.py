"""Queries of DuckDB and Polars over a table: as plain Parquet files, by hoodie, and by hudi-rs.

`python -m bench --only frames` prints the table. `python -m bench.frames LANE FOLDER REPEATS` measures one lane. Daft
is not among the lanes: it reads tables of the versions 5 and 6 only.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

import hoodie
from bench.child import figures_of, print_figures, tell
from bench.data import inputs
from bench.markdown import machine_line, seconds_text, table
from bench.settings import Settings, machine

LANES = ("plain Parquet", "hoodie", "hudi-rs", "hoodie merge-on-read", "hudi-rs merge-on-read")
QUERIES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "count": ("SELECT count(*) FROM t", ("city",)),
    "sum": ("SELECT sum(fare) FROM t", ("fare",)),
    "filter": ("SELECT count(*) FROM t WHERE seats = 4 AND fare > 90", ("seats", "fare")),
    "group by": ("SELECT city, count(*), sum(fare) FROM t GROUP BY city", ("city", "fare")),
}
"""The queries, and the columns that they read; the same text runs in DuckDB and in Polars."""


def run(settings: Settings) -> dict[str, Any]:
    """Make the tables, then measure each lane in a separate process."""
    told, rows = machine(), settings.frames_rows
    tell(f"frames: tables of {rows:,} rows ...")
    folder = settings.work / "table-frames"
    _make(folder, inputs(settings.work, rows).base, inputs(settings.work, rows).small)
    found = {}
    for lane in LANES:
        tell(f"frames, {lane} ...")
        found[lane] = figures_of("bench.frames", lane, folder, settings.frames_repeats)
    return {"machine": told, "rows": rows, "repeats": settings.frames_repeats, "lanes": found}


def render(result: Mapping[str, Any]) -> str:
    """Render a row for each engine of each lane, and the ratios."""
    rows = [
        [f"{engine}: {lane}", *(seconds_text(found[engine][query]) for query in QUERIES)]
        for engine in ("DuckDB", "Polars")
        for lane, found in result["lanes"].items()
    ]
    title = (
        f"{result['rows']:,} rows in ten columns, {machine_line(result['machine'])}: seconds, median (range) of "
        f"{result['repeats']}, each with a new handle; merge-on-read: the logs change 100 rows in all partitions"
    )
    return "\n".join([title, "", table(["", *QUERIES], rows), "", *_ratios(result["lanes"])])


def _ratios(lanes: Mapping[str, Any]) -> list[str]:
    def least(lane: str, engine: str, query: str) -> float:
        return min(lanes[lane][engine][query])

    lines = []
    for engine in ("DuckDB", "Polars"):
        for own, other in (("hoodie", "plain Parquet"), ("hudi-rs", "hoodie"), ("hudi-rs merge-on-read", LANES[3])):
            told = (f"{query} {least(own, engine, query) / least(other, engine, query):.2f}x" for query in QUERIES)
            lines.append(f"- {engine}, {own} against {other}: {', '.join(told)} its time (fastest runs)")
    return [*lines, ""]


def _make(folder: Path, base: Path, changes: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for table_type in ("cow", "mor"):
        made = hoodie.create(
            folder / table_type, ds.dataset(base).schema, record_key="key", partition_by="city", ordering="ts",
            type=table_type, spark=False,
        )  # fmt: skip
        made.bulk_insert(ds.dataset(base).scanner().to_reader())
    made.upsert(ds.dataset(changes).to_table())
    shutil.copytree(base, folder / "parquet")


Ask = Callable[[str, tuple[str, ...]], object]


def _hudi_rs(path: Path, columns: tuple[str, ...]) -> pa.RecordBatchReader:
    from hudi import HudiReadOptions, HudiTableBuilder

    found = HudiTableBuilder.from_base_uri(str(path)).build()
    batches = found.read_stream(HudiReadOptions().with_projection(list(columns)))
    first = next(iter(batches))
    first = pa.record_batch(first)

    def all_batches() -> Any:
        yield first
        yield from (pa.record_batch(batch) for batch in batches)

    return pa.RecordBatchReader.from_batches(first.schema, all_batches())


def _duckdb(lane: str, folder: Path) -> Ask:
    import duckdb

    path = folder / ("mor" if "merge" in lane else "cow")

    def ask(text: str, columns: tuple[str, ...]) -> object:
        con: Any = duckdb.connect()
        if lane == "plain Parquet":
            con.read_parquet(f"{folder}/parquet/*.parquet").create_view("t")
        elif "hudi-rs" in lane:
            con.register("t", _hudi_rs(path, columns))
        else:
            hoodie.open(path, spark=False).to_duckdb(con).create_view("t")
        return con.sql(text).fetchall()

    return ask


def _polars(lane: str, folder: Path) -> Ask:
    import polars as pl

    path = folder / ("mor" if "merge" in lane else "cow")

    def ask(text: str, columns: tuple[str, ...]) -> object:
        frame: Any
        if lane == "plain Parquet":
            frame = pl.scan_parquet(f"{folder}/parquet/*.parquet")
        elif "hudi-rs" in lane:
            frame = pl.DataFrame(_hudi_rs(path, columns)).lazy()
        else:
            frame = hoodie.open(path, spark=False).to_polars()
        return pl.SQLContext(t=frame).execute(text).collect()

    return ask


def measure(lane: str, folder: Path, repeats: int) -> dict[str, dict[str, list[float]]]:
    """Return the seconds of each query in each engine; a first run of each does not count."""
    seconds: dict[str, dict[str, list[float]]] = {}
    for engine, made in (("DuckDB", _duckdb), ("Polars", _polars)):
        ask = made(lane, folder)
        for query, (text, columns) in QUERIES.items():
            times = seconds.setdefault(engine, {}).setdefault(query, [])
            for number in range(repeats + 1):
                started = time.perf_counter()
                ask(text, columns)
                times += [time.perf_counter() - started] if number else []
    return seconds


if __name__ == "__main__":
    print_figures(measure(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
