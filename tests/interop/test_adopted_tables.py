"""Parquet files that we adopt: JVM Hudi reads the table and goes on, by rewritten files and by skeleton files."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from tests.interop.judges import HIVE, Jvm, read_with_hudi_rs
from tests.support.rows import META_COLUMNS, assert_same_rows

ROWS = pa.table(
    {
        "id": [f"k{number}" for number in range(6)],
        "v": pa.array(range(6), pa.int32()),
        "s": [{"x": number, "y": str(number)} for number in range(6)],
        "at": pa.array([datetime.datetime(2026, 1, 1, number) for number in range(6)], pa.timestamp("us", "UTC")),
        "ts": pa.array([1] * 6, pa.int64()),
        "city": ["sf", "sf", "new york", "new york", "la", None],
        "day": [datetime.date(2026, 1, 1 + number // 2) for number in range(6)],
        "n": pa.array([1, 1, 1, 2, 2, 2], pa.int32()),
    }
)
NEW = pa.Table.from_pylist(
    [{**ROWS.slice(2, 1).to_pylist()[0], "v": 20, "ts": 2}, {**ROWS.slice(1, 1).to_pylist()[0], "id": "k9", "v": 9}],
    schema=ROWS.schema,
)
PARTITIONS = {"": "Nonpartitioned", "city": "Simple", "n,city": "Complex"}


def source_of(jvm: Jvm, tmp_path: Path, partition: str, times: str = "TIMESTAMP_MICROS") -> Path:
    """The rows in files of Spark."""
    with jvm.configured({"spark.sql.parquet.outputTimestampType": times}):
        writer = jvm.frame(ROWS).coalesce(1).write
        (writer.partitionBy(*partition.split(",")) if partition else writer).parquet(str(tmp_path / "raw"))
    return tmp_path / "raw"


def check(jvm: Jvm, path: Path, expected: list[pa.Table]) -> None:
    """The JVM and we read these rows, in process and by Spark."""
    rows = pa.concat_tables(expected)
    found = jvm.read(path)
    names = [name for name in found.column_names if name not in META_COLUMNS]
    assert {*names} == {*rows.column_names}
    assert_same_rows(found.select(rows.column_names), rows)
    assert_same_rows(hoodie.open(path, spark=False).to_arrow(columns=rows.column_names), rows)


@pytest.mark.parametrize("mode", ["rewrite", "metadata_only", "both"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.matrix(keep=5)
def test_the_jvm_reads_and_continues(jvm: Jvm, tmp_path: Path, partition: str, kind: str, mode: str) -> None:
    path = tmp_path / "t"
    files = source_of(jvm, tmp_path, partition)
    folders = sorted({str(file.parent.relative_to(files)) for file in files.rglob("*.parquet")})
    chosen: str | dict[str, str] = dict.fromkeys(folders[1::2], "metadata_only") if mode == "both" else mode
    done = hoodie.adopt(files, path, record_key="id", ordering="ts", type=kind, mode=chosen, dry_run=False)
    assert done.write is not None
    assert done.write.inserted == ROWS.num_rows
    check(jvm, path, [ROWS])
    if mode == "rewrite":
        assert_same_rows(read_with_hudi_rs(path).select(ROWS.column_names), ROWS)
    assert hoodie.open(path, spark=False).verify(full=True).ok
    jvm.write(
        NEW,
        path,
        table_name="t",
        key="id",
        partition=[name for name in partition.split(",") if name],
        ordering="ts",
        table_type={"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}[kind],
        options={
            **HIVE,
            "hoodie.datasource.write.keygenerator.class": (
                f"org.apache.hudi.keygen.{PARTITIONS[partition]}KeyGenerator"
            ),
        },
    )
    check(jvm, path, [ROWS.slice(0, 2), NEW, ROWS.slice(3)])
    assert hoodie.open(path, spark=False).verify(full=True).ok


@pytest.mark.parametrize("mode", ["rewrite", "metadata_only"])
@pytest.mark.parametrize("version", [6, 8])
@pytest.mark.matrix(keep=2)
def test_older_versions_and_merged_duplicates(jvm: Jvm, tmp_path: Path, version: int, mode: str) -> None:
    """The JVM continues the table in its version. A rewrite has the newest row of each key."""
    path, files = tmp_path / "t", source_of(jvm, tmp_path, "city")
    expected, duplicates = [ROWS], "error"
    if mode == "rewrite":
        with jvm.configured({"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}):
            jvm.frame(NEW).coalesce(1).write.mode("append").partitionBy("city").parquet(str(files))
        expected, duplicates = [ROWS.slice(0, 2), NEW, ROWS.slice(3)], "merge"
    done = hoodie.adopt(
        files, path, record_key="id", ordering="ts", index="simple", table_version=version, mode=mode,
        duplicates=duplicates, dry_run=False,
    )  # fmt: skip
    assert done.write is not None
    assert done.write.duplicates == (mode == "rewrite")
    check(jvm, path, expected)
    jvm.write(
        NEW, path, table_name="t", key="id", partition="city", ordering="ts", table_version=version, options=HIVE,
    )  # fmt: skip
    check(jvm, path, [ROWS.slice(0, 2), NEW, ROWS.slice(3)])
    table = hoodie.open(path, spark=False)
    assert table.view().config.version.value == version
    assert table.verify(full=True).ok


@pytest.mark.parametrize("mode", ["rewrite", "metadata_only"])
def test_times_of_int96(jvm: Jvm, tmp_path: Path, mode: str) -> None:
    """Spark writes them unless it is told otherwise. JVM Hudi reads skeleton files beside them, but cannot update."""
    files = source_of(jvm, tmp_path, "city", "INT96")
    plan = hoodie.adopt(files, tmp_path / "t", record_key="id", mode=mode, dry_run=False)
    assert any("INT96" in note for note in plan.notes) == (mode == "metadata_only")
    check(jvm, tmp_path / "t", [ROWS])
