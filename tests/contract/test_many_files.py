"""Reads of many files: Spark gets them as a list, and the plan of a read takes no job and no request a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie import HoodieWarning
from hoodie.spark import to_arrow
from hoodie.spark.scan import LISTED_FILES_MAX, FileOfScan, read_files
from tests.contract.table_lanes import Lane, session_with, trips
from tests.support.rows import assert_same_rows

_COUNT = 260  # above the number of tasks of which Spark Connect warns
_ROWS = pa.concat_tables(trips((f"k{number}", 1, 1.0, f"{number} %41{{a}}[b]* é")) for number in range(_COUNT))
_IGNORED = ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles")
_IGNORE_LOG = "spark.sql.streaming.fileStreamSink.ignoreMetadata"


def _is_connect(session: Any) -> bool:
    return ".connect." in type(session).__module__


@pytest.fixture(scope="module")
def many(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> hoodie.Table:
    """A table of many files in as many partitions, whose names need escapes; written in process."""
    path = Lane(None, tmp_path_factory.mktemp("many")).path
    hoodie.create(path, _ROWS.schema, record_key="id", partition_by="city", spark=False).bulk_insert(_ROWS)
    return hoodie.open(path, spark=spark)


def _sizes(table: hoodie.Table) -> dict[str, int]:
    files = Path(table.path.removeprefix("file://")).glob("*/*.parquet")
    return {path.name: path.stat().st_size for path in files}


@pytest.mark.spark
@pytest.mark.connect
@pytest.mark.filterwarnings("ignore:Spark Connect lists:hoodie.HoodieWarning")
def test_spark_reads_the_rows_of_many_files(many: hoodie.Table, spark: Any) -> None:
    """Even if it ignores lists of files, or cannot open them."""
    places = ["_metadata.file_name AS name", "_metadata.file_size AS size"]
    found = to_arrow(many.read().selectExpr(*_ROWS.schema.names, *places))
    assert_same_rows(found.select(_ROWS.schema.names), _ROWS, key="id")
    assert dict(zip(found["name"].to_pylist(), found["size"].to_pylist(), strict=True)) == _sizes(many)
    opener = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
    for confs in ({_IGNORE_LOG: "true"}, {"spark.sql.streaming.checkpointFileManagerClass": opener}):
        with session_with(spark, confs):
            assert_same_rows(to_arrow(many.read(columns=[*_ROWS.schema.names])), _ROWS, key="id")


@pytest.mark.spark
@pytest.mark.connect
@pytest.mark.parametrize("loss", ["missing", "damaged"])
@pytest.mark.parametrize("count", [3, LISTED_FILES_MAX + 1], ids=["few files", "many files"])
@pytest.mark.matrix(keep=2)
def test_no_setting_of_a_session_leaves_out_the_rows_of_a_lost_file(spark_lane: Lane, loss: str, count: int) -> None:
    lane = spark_lane
    table = lane.table(_ROWS.slice(0, count), partition_by="city")
    lost = sorted(lane.path.glob("*/*.parquet"))[0]
    content = lost.read_bytes()
    with session_with(lane.session, dict.fromkeys(_IGNORED, "true")):
        frame = table.read()
        if loss == "missing":
            lost.unlink()
        else:
            lost.write_bytes(content[:-100] + bytes(100))
        with pytest.raises(Exception, match=r"(?i)not exist|not a parquet file|magic"):
            frame.collect()
        lost.write_bytes(content)
        assert table.read().count() == count


@pytest.mark.spark
@pytest.mark.connect
def test_a_plan_runs_no_job_to_list_files(many: hoodie.Table, spark: Any) -> None:
    if _is_connect(spark):
        with pytest.warns(HoodieWarning, match=rf"{_COUNT} files of this read in {_COUNT} tasks.*parallelism"):
            many.read()
        return
    context = spark.sparkContext
    context.setJobGroup("plans", "plans of reads")
    try:
        many.read()
        assert list(context.statusTracker().getJobIdsForGroup("plans")) == []
        with session_with(spark, {_IGNORE_LOG: "true"}):
            many.read()
        assert len(context.statusTracker().getJobIdsForGroup("plans")) == 1
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)


class _Ignorant:
    """A reader of a Spark that knows no logs of file sinks."""

    def __init__(self, spark: Any) -> None:
        self._spark, self._reader = spark, spark.read.schema("id string")

    def option(self, name: str, value: str) -> _Ignorant:
        self._reader = self._reader.option(name, value)
        return self

    def parquet(self, *paths: str) -> Any:
        with session_with(self._spark, {_IGNORE_LOG: "true"}):
            return self._reader.parquet(*paths)


@pytest.mark.spark
def test_a_spark_that_knows_no_lists_of_files_raises_an_error(spark: Any, tmp_path: Path) -> None:
    files = [FileOfScan(f"file://{tmp_path}/{number}.parquet", 4, 0) for number in range(40)]
    frame = read_files(spark, _Ignorant(spark), files)
    with pytest.raises(Exception, match="spark-did-not-read-the-list-of-files"):
        frame.count()
