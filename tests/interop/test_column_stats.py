"""Column statistics that the JVM and this library write for each other: the same bytes, and both skip files by them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.format.metadata_table.column_stats import StatsRow, column_stats_key
from hoodie.format.metadata_table.metadata_record import RecordType
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.instants import visible_instants
from hoodie.metadata.kinds.column_stats import ColumnStatsKind, statistics_columns
from hoodie.metadata.kinds.statistics import base_file_ranges, log_file_ranges
from hoodie.metadata.slices import SliceReader
from hoodie.view.slices import list_slices
from tests.interop.judges import Jvm

ON = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "3",
}
TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]
# JVM Hudi 1.2.0 stores 0.0 as bounds of Parquet columns with NaN, and takes texts above 4096 bytes for nulls.
WRONG_OF_THE_JVM = {"nan", "long"}
# It stores 0 as bounds of Parquet columns that have only nulls: wider than need be.
WIDE_OF_THE_JVM = {"nothing"}


def rows(numbers: Sequence[int], partition: str, *, add: int = 0) -> pa.Table:
    count = len(numbers)
    return pa.table(
        {
            "id": [f"k{number}" for number in numbers],
            "p": [partition] * count,
            "ts": pa.array([1 + add] * count, pa.int64()),
            "x": pa.array([number + add for number in numbers], pa.int64()),
            "i": pa.array([None if number % 3 else -number for number in numbers], pa.int32()),
            "f": pa.array([number + 0.5 for number in numbers], pa.float32()),
            "nan": [float("nan") if number % 2 else 2.5 for number in numbers],
            "s": [f"é{number:03d}" for number in numbers],
            "long": ["z" * 5000] * count,
            "y": pa.array([b"\xff\x01"] * count, pa.binary()),
            "b": [number % 2 == 0 for number in numbers],
            "d": pa.array([Decimal(f"-{number}.25") for number in numbers], pa.decimal128(10, 2)),
            "e": pa.array([Decimal(f"12345678901234567890.{number:03d}") for number in numbers], pa.decimal128(38, 10)),
            "day": pa.array([dt.date(1960, 1, 1) + dt.timedelta(days=number) for number in numbers], pa.date32()),
            "t": pa.array(
                [dt.datetime(1969, 12, 31, 23, 59, 59, 999999 - number, dt.UTC) for number in numbers],
                pa.timestamp("us", tz="UTC"),
            ),
            "none": pa.array([None] * count, pa.string()),
            "nothing": pa.array([None] * count, pa.int64()),
            "o": pa.array(
                [{"a": number, "b": "q"} for number in numbers], pa.struct([("a", pa.int64()), ("b", pa.string())])
            ),
        }
    )


def stored(path: Path) -> dict[bytes, bytes]:
    """All rows of `column_stats` that no compaction has rewritten, by key."""
    view = hoodie.open(str(path)).view()
    folder = MetadataFolder(view.store, view.config)
    timeline = visible_instants(folder.existing_timeline(), view.whole_timeline())
    found: dict[bytes, bytes] = {}
    for content in SliceReader(view.store).read(ColumnStatsKind(), timeline):
        for block in content.blocks:
            if block.values is not None:
                found |= dict(zip(block.keys.to_pylist(), block.values.to_pylist(), strict=True))
    return found


@pytest.mark.parametrize("kind", TYPES)
def test_our_rows_of_the_jvms_files_have_the_jvms_bytes(jvm: Jvm, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "t"
    options = {**ON, "hoodie.metadata.compact.max.delta.commits": "20"}
    for batch in (rows(range(6), "a"), rows(range(3), "a", add=9)):
        jvm.write(batch, path, table_name="t", key="id", partition="p", ordering="ts", table_type=kind, options=options)
    view = hoodie.open(str(path)).view()
    columns = statistics_columns(view.store, view.config.version)
    assert columns is not None
    theirs, compared = stored(path), 0
    for found in list_slices(view):
        ranges = {}
        if found.base_file is not None:
            ranges[found.base_file.name] = base_file_ranges(view.store, found.base_file, columns)
        for log in found.log_files:
            ranges[log.name.name] = log_file_ranges(view.store, log, columns, view.slice_read())
        for name, parts in ranges.items():
            is_log = name.startswith(".")
            assert len(parts) == len(columns)
            for part in parts:
                # The greatest value of NaN is infinity in our rows, and NaN in the JVM's rows of log files.
                if part.column != "nan" and (is_log or part.column not in WRONG_OF_THE_JVM | WIDE_OF_THE_JVM):
                    value = StatsRow(name=name, range=part).to_bytes(RecordType.COLUMN_STATS)
                    key = column_stats_key(part.column, found.partition_path, name).encode()
                    assert theirs[key] == value, part
                    compared += 1
    assert compared >= len(columns) - len(WRONG_OF_THE_JVM | WIDE_OF_THE_JVM)


@pytest.mark.parametrize(("kind", "version"), [*((kind, 9) for kind in TYPES), ("MERGE_ON_READ", 8)])
def test_both_skip_files_by_statistics_of_both(jvm: Jvm, tmp_path: Path, kind: str, version: int) -> None:
    """Ours, then the JVM's, then ours: a point query finds its row, and opens few of the files."""
    path = tmp_path / "t"
    few = {**ON, "hoodie.parquet.small.file.limit": "0"}
    table = hoodie.create(
        str(path), rows([0], "a").schema, record_key="id", partition_by="p", ordering="ts", index="simple",
        type=kind.lower(), properties=few, table_version=version,
    )  # fmt: skip
    for number in range(4):
        table.upsert(rows([10 * number + one for one in range(3)], "a" if number < 2 else "b"))
    expect_skipping(jvm, path, {11: "k11", 31: "k31"})
    jvm.write(
        rows([10, 11], "a", add=500), path, table_name="t", key="id", partition="p", ordering="ts", table_type=kind,
        table_version=version, options={**few, "hoodie.index.type": "SIMPLE"},
    )  # fmt: skip
    table.upsert(rows([20], "b", add=700))
    table.upsert(rows([50, 51], "b"))
    table.delete(pa.table({"id": ["k30"], "p": ["b"]}))
    expect_skipping(jvm, path, {511: "k11", 31: "k31", 720: "k20", 51: "k51"})
    assert {"column_stats", "partition_stats"} <= set(table.view().config.metadata_partitions)
    # Only ranges that the JVM stored wrong, of its own files, differ from the data.
    report = table.index.verify("column_stats")
    assert all(finding.key.rpartition(" ")[2] in WRONG_OF_THE_JVM for finding in report.findings), report
    table.index.build("column_stats")
    assert table.index.verify("column_stats").ok
    expect_skipping(jvm, path, {511: "k11", 720: "k20"})


def expect_skipping(jvm: Jvm, path: Path, keys: dict[int, str]) -> None:
    table = hoodie.open(str(path))
    total = table.explain().file_slices
    assert total >= 4
    for value, key in keys.items():
        assert table.to_arrow("id", where=f"x = {value}")["id"].to_pylist() == [key]
        assert table.explain(f"x = {value}").file_slices < total
        found = jvm.read_where(path, f"x = {value}", skips=True)
        assert [row["id"] for row in found.rows] == [key]
        assert found.files < jvm.read_where(path, f"x = {value}", skips=False).files
    for where in ("x > 100000", "s = 'nothing'", "d < -1000", "day < '1950-01-01'", "none IS NOT NULL"):
        assert table.to_arrow("id", where=where).num_rows == 0
        assert table.explain(where).file_slices == 0
        assert jvm.read_where(path, where, skips=True).rows == []
    # What the JVM cannot know of its own files it must find in ours.
    wanted = sorted(table.to_arrow("id", where="long LIKE 'zzz%' AND nan >= 2")["id"].to_pylist())
    assert wanted == sorted(table.to_arrow("id")["id"].to_pylist())


def test_a_widened_column_keeps_statistics_that_the_jvm_merges(jvm: Jvm, tmp_path: Path) -> None:
    path = tmp_path / "t"
    small = pa.table({"id": ["a"], "p": ["x"], "v": pa.array([5], pa.int32())})
    table = hoodie.create(str(path), small.schema, record_key="id", partition_by="p", index="simple", properties=ON)
    table.upsert(small)
    wide = pa.table({"id": ["b", "c"], "p": ["x", "y"], "v": pa.array([2**40, 7], pa.int64())})
    table.upsert(wide)
    for where, ids in {"v = 5": ["a"], f"v = {2**40}": ["b"], "v > 6": ["b", "c"], "v < 0": []}.items():
        assert sorted(row["id"] for row in jvm.read_where(path, where, skips=True).rows) == ids
        assert sorted(table.to_arrow("id", where=where)["id"].to_pylist()) == ids
    jvm.write(wide, path, table_name="t", key="id", partition="p", options={**ON, "hoodie.index.type": "SIMPLE"})
    assert sorted(row["id"] for row in jvm.read_where(path, "v >= 5", skips=True).rows) == ["a", "b", "c"]


def test_statistics_that_were_built_serve_the_jvm(jvm: Jvm, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = hoodie.create(
        str(path), rows([0], "a").schema, record_key="id", partition_by="p", ordering="ts", index="simple",
        type="merge_on_read", properties={"hoodie.parquet.small.file.limit": "0"},
    )  # fmt: skip
    for number in range(4):
        table.upsert(rows([10 * number, 10 * number + 1], "a" if number < 2 else "b"))
    table.upsert(rows([10], "a", add=600))
    table.index.build("column_stats")
    expect_skipping(jvm, path, {610: "k10", 31: "k31"})
    assert table.index.verify("column_stats").ok
    table.index.drop("column_stats")
    assert "column_stats" not in table.view().config.metadata_partitions
    assert [row["id"] for row in jvm.read_where(path, "x = 31", skips=True).rows] == ["k31"]
