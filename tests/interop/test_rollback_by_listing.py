"""JVM clients that roll back by listing (`hoodie.rollback.using.markers=false`) parse our inflight files first."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import hoodie
from hoodie.storage import LocalStore
from hoodie.table import Table
from hoodie.timeline import Action, forget_all
from tests.interop.judges import QUICK_OPTIONS, Jvm, read_with_hudi_rs
from tests.support.deaths import run_until
from tests.support.fault_store import CrashPoint
from tests.support.rows import assert_same_rows

BY_LISTING = {"hoodie.rollback.using.markers": "false"}


def trips(numbers: range, fare: float) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{n}" for n in numbers],
            "fare": [fare] * len(numbers),
            "city": [("sf", "nyc")[n % 2] for n in numbers],
        }
    )


def new_table(path: Path) -> Table:
    """A merge-on-read table of ten rows, four of them updated three times in log files."""
    table = hoodie.create(
        path, trips(range(1), 0.0).schema, record_key="id", partition_by="city", ordering="fare", name="trips",
        type="merge_on_read", index="simple", spark=False,
        properties={"hoodie.compact.inline.max.delta.commits": "100"},
    )  # fmt: skip
    table.upsert(trips(range(10), 1.0))
    for fare in (2.0, 3.0, 4.0):
        table.upsert(trips(range(4), fare))
    return table


def die(path: Path, run: Callable[[Table], object], ending: str) -> None:
    """Let an action die before it closes or moves its first file with this ending; which call, a copy tells."""
    copy = path.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(path, copy)
    calls = run_until(LocalStore(str(copy)), run, None).calls
    places = [
        n for n, call in enumerate(calls, 1) if call.operation in ("close_output", "move") and ending in call.path
    ]
    assert run_until(LocalStore(str(path)), run, places[0], CrashPoint.BEFORE).crashed
    forget_all()


def agreed(jvm: Jvm, path: Path) -> pa.Table:
    """The rows, which all judges read, without the names of their files."""
    rows = hoodie.open(path, spark=False).to_arrow()
    for metadata in ("true", "false"):
        assert_same_rows(jvm.read(path, options={"hoodie.metadata.enable": metadata}), rows, meta=True)
    assert_same_rows(read_with_hudi_rs(path), rows, meta=True)
    return rows.drop_columns(["_hoodie_file_name"])


def parsed_operation(jvm: Jvm, path: Path) -> str:
    """The operation in the inflight file of the pending instant, as the JVM's rollback by listing parses it."""
    client = jvm.meta_client(path)
    (pending,) = client.getActiveTimeline().filterInflightsAndRequested().getInstants()
    conversion = jvm.spark._jvm.org.apache.hudi.common.table.timeline.MetadataConversionUtils  # type: ignore[union-attr]
    return str(conversion.getHoodieCommitMetadata(client, pending).get().getOperationType())


OVERWRITES: dict[str, Callable[[Table], object]] = {
    "INSERT_OVERWRITE": lambda table: table.insert_overwrite(trips(range(0, 10, 2), 7.0)),
    "INSERT_OVERWRITE_TABLE": lambda table: table.insert_overwrite_table(trips(range(5), 7.0)),
    "DELETE_PARTITION": lambda table: table.delete_partitions(["city=sf"]),
}


def test_half_done_overwrites(jvm: Jvm, tmp_path: Path) -> None:
    path = tmp_path / "trips"
    table = new_table(path)
    for operation, run in OVERWRITES.items():
        before = agreed(jvm, path)
        die(path, run, ".deltacommit")
        (pending,) = table.timeline.pending()
        assert pending.action is Action.REPLACE_COMMIT
        assert parsed_operation(jvm, path) == operation
        jvm.rollback(path, pending.requested_time, table_name="trips", table_version=9)
        assert not list(table.timeline.pending())
        assert not [file for file in path.glob("city=*/*") if pending.requested_time in file.name]
        assert_same_rows(agreed(jvm, path), before, meta=True)
    assert table.upsert(trips(range(8, 12), 8.0)).updated == 2
    assert table.insert_overwrite(trips(range(0, 4, 2), 9.0)).inserted == 2
    assert agreed(jvm, path).num_rows == 8


def test_half_done_compactions(jvm: Jvm, tmp_path: Path) -> None:
    path = tmp_path / "trips"
    table = new_table(path)
    before = agreed(jvm, path)
    folding = table.schedule_log_compaction(2)
    assert folding is not None
    die(path, lambda table: table.compact(folding), ".deltacommit")
    assert parsed_operation(jvm, path) == "LOG_COMPACT"
    assert_same_rows(agreed(jvm, path), before, meta=True)
    assert table.compact(folding).operation == "log compaction"
    assert_same_rows(agreed(jvm, path), before, meta=True)

    instant = table.schedule_compaction()
    assert instant is not None
    die(path, lambda table: table.compact(), ".parquet")
    assert parsed_operation(jvm, path) == "COMPACT"
    options = ",".join(f"{key}={value}" for key, value in {**QUICK_OPTIONS, **BY_LISTING}.items())
    jvm.sql(f"CALL run_compaction(op => 'run', path => '{path}', timestamp => {instant}, options => '{options}')")
    assert not list(table.timeline.pending())
    assert_same_rows(agreed(jvm, path), before, meta=True)
    assert table.upsert(trips(range(8, 12), 8.0)).updated == 2
    assert agreed(jvm, path).num_rows == 12
