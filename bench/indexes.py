"""Tag keys with each index of hoodie and of the JVM, on the same tables: random keys, and keys in the order of time.

`python -m bench.indexes MODE FOLDER ROWS …` measures one step in a separate process: `build`, `tag` or `switch`.
The keys are tagged and nothing is written; the step includes reading the file of keys and the table's state.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import hoodie
from bench.child import figures_of, print_figures, tell
from bench.keys import Numbers, narrow_rows
from bench.markdown import machine_line, seconds_text, table
from bench.picture import draw_tagging
from bench.settings import Settings, machine
from hoodie.commit.call import Call
from hoodie.config import writes
from hoodie.engine import ArrowDataset, LocalEngine
from hoodie.files.staging.staged import stage_folder
from hoodie.storage import LocalStore, Store
from hoodie.table import Table
from hoodie.write.insert_policy import known_row_count
from hoodie.write.jobs import preparation_of, tag_request_of
from hoodie.write.setup import check_write
from hoodie.write.staging import stage
from tests.support.fault_store import FaultStore
from tests.support.hbase_server import running_hbase

LAYOUTS = {
    "bloom": ("bloom", "simple", "global_bloom", "global_simple", "hbase", "record"),
    "bucket": ("bucket",),
}
"""The indexes that are measured on a table built with an index, in this order: the record index stays for the JVM."""
JVM = ("record", "bloom", "global_bloom", "simple", "global_simple", "bucket")
KINDS = ("random", "time-ordered")
HBASE_ROWS_MAX = 1_000_000
"""Rows of the largest table whose keys are put into HBase: the server has 2 GiB."""
_CITIES = 10
_COMMIT_ROWS = 500_000
"""Rows of a bulk insert, which writes two files for each partition."""
_FILE_ROWS = 25_000
_FIRST_MILLISECOND = 1_700_000_000_000
PROPERTIES = {
    "hoodie.parquet.small.file.limit": "0",
    # As a table of the JVM has them: ranges of keys need no footers.
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.column.stats.column.list": "ts",
}


def run(settings: Settings) -> dict[str, Any]:
    """Build each table, tag its keys with each index, and draw the picture."""
    told = machine()
    shutil.rmtree(settings.work / "hbase", ignore_errors=True)
    with running_hbase(settings.work / "hbase", heap="2g") as port:
        tables = [_measure(settings, rows, kind, port) for rows in settings.index_rows for kind in KINDS]
    shutil.rmtree(settings.work / "hbase", ignore_errors=True)
    result = {"machine": told, "keys": settings.tagging_keys, "rounds": settings.index_rounds, "tables": tables}
    draw_tagging(result, settings.indexes_picture)
    return result


def _measure(settings: Settings, rows: int, kind: str, port: int) -> dict[str, Any]:
    """Measure one table with the indexes of both sides, and remove it. `port`: of HBase's Thrift server."""
    folder = settings.work / f"table-indexes-{rows}-{kind}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    wanted, rounds = settings.tagging_keys, settings.index_rounds
    buckets = max(rows // _CITIES // _FILE_ROWS, 1)
    keys = folder / "keys.parquet"
    pq.write_table(_keys(rows, kind, wanted), keys)
    found: dict[str, Any] = {"rows": rows, "kind": kind, "files": {}, "hoodie": {}, "jvm": {}}
    for layout, names in LAYOUTS.items():
        tell(f"indexes: {rows:,} {kind} keys, a table with index={layout} ...")
        path = folder / layout
        found["files"][layout] = figures_of("bench.indexes", "build", path, layout, rows, kind, buckets)["files"]
        for name in names:
            if name == "hbase" and rows > HBASE_ROWS_MAX:
                continue
            tell(f"indexes: {rows:,} {kind} keys, {name} ...")
            switched = {} if name == layout else figures_of("bench.indexes", "switch", path, name, port)
            found["hoodie"][name] = switched | figures_of("bench.indexes", "tag", path, keys, rounds)
        theirs = [name for name in names if name in JVM]
        tell(f"indexes: {rows:,} {kind} keys, JVM {', '.join(theirs)} ...")
        found["jvm"] |= figures_of("bench.tag_jvm", path, keys, rounds + 1, buckets, *theirs, version="3.5")
    for side in ("hoodie", "jvm"):
        for name, figures in found[side].items():
            if figures["found"] != wanted:
                raise SystemExit(f"{side} {name}: {figures['found']:,} of {wanted:,} stored keys were found")
    shutil.rmtree(folder, ignore_errors=True)
    return found


def render(result: Mapping[str, Any]) -> str:
    """Render a row for each index, with columns for each table: hoodie, the JVM, and the ratio."""
    tables = result["tables"]
    head = ["seconds"]
    for found in tables:
        what = f"{found['rows'] // 1_000_000}M {found['kind']}"
        head += [what, "JVM", "ratio", "files"]
    rows = []
    for name in dict.fromkeys(name for found in tables for name in found["hoodie"]):
        row = [f"`{name}`"]
        for found in tables:
            ours, theirs = found["hoodie"].get(name), found["jvm"].get(name)
            row.append(seconds_text(ours["seconds"]) if ours else "-")
            row.append(seconds_text(theirs["seconds"][1:]) if theirs else "-")
            row.append(f"{median(theirs['seconds'][1:]) / median(ours['seconds']):.1f}x" if theirs else "-")
            row.append(f"{ours['files_read']:,}" if ours and ours.get("files_read") is not None else "-")
        rows.append(row)
    files = "; ".join(
        f"{found['rows']:,} {found['kind']} keys: {found['files']['bloom']:,} files, "
        f"with buckets {found['files']['bucket']:,}"
        for found in tables
    )
    title = (
        f"{result['keys']:,} stored keys tagged, hoodie in process, JVM Hudi 1.2.0 on Spark with two cores, on the "
        "same tables; "
        f"{machine_line(result['machine'])}, median of {result['rounds']} (least-greatest) after one round to warm up"
    )
    return "\n".join([title, "", table(head, rows), "", f"- {files}.", ""])


def _numbers(rows: int, kind: str, wanted: int) -> Numbers:
    """Return the rows whose keys are tagged: random ones, or the newest."""
    if kind == "random":
        return np.random.default_rng(1).choice(rows, wanted, replace=False)
    return np.arange(rows - wanted, rows)


def _rows(numbers: Numbers, kind: str) -> pa.Table:
    """Return rows in the order of their numbers; the keys are random, or begin with the millisecond of the row."""
    found = narrow_rows(numbers, ts=0, cities=_CITIES)
    if kind == "random":
        return found
    times = pc.cast(pa.array(_FIRST_MILLISECOND + numbers), pa.string())
    keys = pc.binary_join_element_wise(times, pc.utf8_slice_codeunits(found["key"], 14), "-")
    return found.set_column(0, "key", keys)


def _keys(rows: int, kind: str, wanted: int) -> pa.Table:
    """Return the keys that are tagged, with the partition column and the partition path."""
    found = _rows(_numbers(rows, kind, wanted), kind)
    return found.append_column("path", pc.binary_join_element_wise("city", found["city"], "="))


def _build(folder: Path, layout: str, rows: int, kind: str, buckets: int) -> dict[str, Any]:
    step = rows if layout == "bucket" else min(_COMMIT_ROWS, rows)
    parts = [_rows(np.arange(start, start + step), kind) for start in range(0, rows, step)]
    properties = PROPERTIES | ({"hoodie.bucket.index.num.buckets": str(buckets)} if layout == "bucket" else {})
    made = hoodie.create(
        folder,
        parts[0].schema,
        record_key="key",
        partition_by="city",
        ordering="ts",
        index=layout,
        properties=properties,
    )
    for part in parts:
        made.bulk_insert(part)
    return {"files": hoodie.open(folder, spark=False).inspect.files().num_rows}


def _switch(folder: Path, name: str, port: str) -> dict[str, Any]:
    started = time.perf_counter()
    index = hoodie.open(folder, spark=False).index
    if name == "hbase":
        table_name = f"bench-{folder.parent.name}"
        index.build(name, properties={"hoodie.index.hbase.table": table_name, "hoodie.index.hbase.thrift.port": port})
    else:
        index.switch(name)
    return {"switched": round(time.perf_counter() - started, 2)}


def _tag(folder: Path, keys: Path, rounds: int) -> dict[str, Any]:
    """Tag in a few rounds, then once more through a store that counts the data files that are read."""
    seconds = []
    for _ in range(rounds + 1):
        started = time.perf_counter()
        found = tag_keys(LocalStore(str(folder)), pq.read_table(keys))
        seconds.append(round(time.perf_counter() - started, 4))
    store = FaultStore(LocalStore(str(folder)), count_reads=True)
    store.register()
    tag_keys(store, pq.read_table(keys))
    read = {call.path for call in store.calls if call.path.startswith("city=") and call.path.endswith(".parquet")}
    return {"seconds": seconds[1:], "found": found, "files_read": len(read)}


def tag_keys(store: Store, rows: pa.Table, call_engine: LocalEngine | None = None) -> int:
    """Tag rows with the table's index, as a write does; return how many were found.

    With `call_engine` all work is done by it, however small.
    """
    view = Table(store).view()
    if call_engine is None:
        call = Call(state=view.state, engine=LocalEngine())
    else:
        call = Call(state=view.state, engine=call_engine, properties={writes.LOCAL_BYTES_MAX.key: "0"})
    setup = check_write(call, None)
    key_stage = setup.index.key_stage(setup.merger)
    meets = setup.index.needs_exchange
    preparation = preparation_of(setup, keys_only=True, buckets=call.engine.parallelism if meets else 0)
    with stage_folder(store) as folder:
        staged = stage(
            call.engine, ArrowDataset(rows.drop_columns("path")), preparation, store.spec, folder,
            merger=setup.merger if meets else None, key_stage=key_stage,
        )  # fmt: skip
        tagged = setup.index.tag(tag_request_of(setup, staged, folder))
        return known_row_count(store, tagged.hits)


def main() -> None:
    """Run the step that the arguments name."""
    mode, folder, *rest = sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]
    if mode == "build":
        layout, rows, kind, buckets = rest
        print_figures(_build(folder, layout, int(rows), kind, int(buckets)))
    elif mode == "switch":
        print_figures(_switch(folder, *rest))
    elif mode == "tag":
        print_figures(_tag(folder, Path(rest[0]), int(rest[1])))
    else:
        raise SystemExit(f"no mode {mode}")


if __name__ == "__main__":
    main()
