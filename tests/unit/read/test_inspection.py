"""History, inspection and streamed scans, on tables of ours and of the JVM."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.read.local import count_rows, first_rows, stream
from hoodie.read.plan import plan_scan
from hoodie.records.condition import Condition
from tests.support.tables import new_table

ROWS = pa.table({"id": ["a", "b", "c"], "x": [1, None, 3], "p": ["m", "n", "m"]})
GOLDEN = [f"{version}_{kind}" for version in ("v6", "v8", "v9") for kind in ("cow", "mor")]


@pytest.fixture
def table(tmp_path: Path) -> hoodie.Table:
    """Two upserts and a delete."""
    made = new_table(ROWS.schema, ROWS, ROWS.slice(0, 1), path=tmp_path / "t", partition_by="p")
    made.delete(ROWS.slice(2, 1))
    return made


def test_history_is_newest_first_with_counts(table: hoodie.Table) -> None:
    names = ["operation", "action", "state", "inserted", "updated", "deleted", "files_created", "files_updated"]
    rows = [tuple(row.values()) for row in table.history().select(names).to_pylist()]
    assert rows == [
        ("delete", "commit", "completed", 0, 0, 1, 0, 1),
        ("upsert", "commit", "completed", 0, 1, 0, 0, 1),
        ("upsert", "commit", "completed", 3, 0, 0, 2, 0),
    ]
    assert all(row["bytes_written"] > 0 and row["seconds"] >= 0 for row in table.history().to_pylist())
    assert table.history(limit=1)["operation"].to_pylist() == ["delete"]
    assert table.history(limit=0).num_rows == 0


def test_history_of_a_new_table_is_empty() -> None:
    table = new_table(ROWS.schema)
    assert table.history().num_rows == 0
    assert table.inspect.files().num_rows == 0
    assert table.inspect.statistics().num_rows == 0


def test_files_tell_what_is_current(table: hoodie.Table) -> None:
    files = table.inspect.files().to_pylist()
    assert [(row["partition_path"], row["rows"], row["is_current"]) for row in files] == [
        ("p=m", 2, False),
        ("p=m", 2, False),
        ("p=m", 1, True),
        ("p=n", 1, True),
    ]
    folder = Path(table.path.removeprefix("file://"))
    assert [(folder / row["partition_path"] / row["file"]).stat().st_size for row in files] == [
        row["size_bytes"] for row in files
    ]


def test_slices_and_partitions_sum_up(table: hoodie.Table) -> None:
    slices = table.inspect.slices().to_pylist()
    assert [(row["partition_path"], row["base_rows"], row["log_files"]) for row in slices] == [
        (path, 1, 0) for path in ("p=m", "p=n")
    ]
    partitions = table.inspect.partitions().to_pylist()
    assert [(row["partition_path"], row["file_groups"], row["base_rows"]) for row in partitions] == [
        ("p=m", 1, 1),
        ("p=n", 1, 1),
    ]
    assert [row["size_bytes"] for row in partitions] == [row["base_size_bytes"] for row in slices]


def test_statistics_come_from_the_footers(table: hoodie.Table) -> None:
    rows = {(row["partition_path"], row["column"]): row for row in table.inspect.statistics().to_pylist()}
    assert [rows["p=m", "id"][name] for name in ("rows", "nulls", "min", "max")] == [1, 0, "a", "a"]
    assert [rows["p=n", "x"][name] for name in ("rows", "nulls", "min", "max")] == [1, 1, None, None]


def test_the_greatest_value_of_a_column_with_nan_is_nan() -> None:
    rows = pa.table({"id": ["a", "b"], "x": [math.nan, 1.5], "y": [2.5, 1.5]})
    found = {row["column"]: row for row in new_table(rows.schema, rows).inspect.statistics().to_pylist()}
    assert [(found[name]["nulls"], found[name]["min"], found[name]["max"]) for name in "xy"] == [
        (0, "1.5", "nan"),
        (0, "1.5", "2.5"),
    ]


def test_an_unknown_instant_is_our_error(table: hoodie.Table) -> None:
    with pytest.raises(hoodie.InstantNotFoundError, match="20200101000000000"):
        table.inspect.instant("20200101000000000")


@pytest.mark.parametrize("name", GOLDEN)
def test_tables_of_the_jvm_can_be_inspected(golden_tables: Path, name: str) -> None:
    table = hoodie.open(golden_tables / name)
    history = table.history()
    assert history.num_rows == len(table.timeline)
    for instant in history["instant"].to_pylist():
        json.dumps(table.inspect.instant(instant))
    current = [row for row in table.inspect.files().to_pylist() if row["is_current"]]
    slices = table.inspect.slices()
    assert sum(row["kind"] == "base" for row in current) == slices.num_rows - slices["base_file"].null_count
    assert sum(row["kind"] == "log" for row in current) == sum(slices["log_files"].to_pylist())
    assert None not in table.inspect.partitions()["base_rows"].to_pylist()


@pytest.mark.parametrize("name", ["v6_mor", "v8_mor", "v9_mor"])
def test_merge_on_read_tables_tell_of_their_logs(golden_tables: Path, name: str) -> None:
    table = hoodie.open(golden_tables / name)
    history = table.history(2).select(["operation", "updated", "deleted", "files_updated"]).to_pylist()
    assert [tuple(row.values()) for row in history] == [("upsert", 3, 0, 2), ("compact", None, None, 2)]
    logs = [row for row in table.inspect.files().to_pylist() if row["kind"] == "log"]
    assert len(logs) == 8
    assert sum(row["rows"] or 0 for row in logs if row["is_current"]) == (0 if name == "v6_mor" else 3)
    partitions = table.inspect.partitions().to_pylist()
    newest = table.timeline.instants[-1].requested_time
    assert [(row["log_files"], row["base_rows"], row["latest_instant"]) for row in partitions] == [(1, 170, newest)] * 2


def test_streamed_scans_count_and_stop(table: hoodie.Table) -> None:
    plan = plan_scan(table.view(), columns=["id"])
    assert count_rows(plan) == 2
    assert count_rows(plan_scan(table.view(), columns=["id"], where=Condition.parse("x IS NULL"))) == 1
    assert sorted(stream(plan).read_all()["id"].to_pylist()) == ["a", "b"]
    assert first_rows(plan, 1).num_rows == 1
    assert first_rows(plan, 0).num_rows == 0
    assert first_rows(plan.with_columns(["p", "x"]), 9).column_names == ["p", "x"]
