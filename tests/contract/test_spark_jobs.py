"""Jobs that Spark does not complete raise an error of ours with Spark's reason; errors of the caller's plan stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, ArithmeticException, PythonException

import hoodie
from hoodie.engine import TaskContext
from hoodie.errors import JobFailedError
from hoodie.spark import SparkEngine
from tests.contract.table_lanes import ANSI, session_with
from tests.support.tables import new_table, values_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.connect]
TYPES = "id string, n long"
SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64())])
LOST = "Spark did not complete a job of this call: Job aborted due to stage failure: .*worker"


def dying() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A step of the caller's plan whose worker ends; Spark has no retries here, so it aborts the job."""

    def step(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os
        import signal

        yield from batches
        os.kill(os.getpid(), signal.SIGKILL)

    return step


def failing() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def step(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        raise ValueError("an error of the caller's function")

    return step


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> hoodie.Table:
    """A table with a row."""
    new_table(SCHEMA, {"id": ["a"], "n": [1]}, path=tmp_path / "table")
    return hoodie.open(tmp_path / "table", spark=spark)


def check_unchanged(table: hoodie.Table) -> None:
    """The rows are those of the fixture, and no trace of a write is left but what a task that still ran has staged."""
    assert values_of(table) == [("a", 1)]
    report = table.verify(full=True)
    assert report.ok, str(report)
    assert set(report.warnings) <= {"leftover-stage"}, str(report)


@pytest.mark.parametrize("method", ["upsert", "bulk_insert"])
def test_a_write_whose_job_spark_aborts_commits_nothing(spark: SparkSession, table: hoodie.Table, method: str) -> None:
    rows: Any = spark.sql("select 'a' id, 2l n").mapInArrow(dying(), TYPES)
    with pytest.raises(JobFailedError, match=LOST) as caught:
        getattr(table, method)(rows)
    assert "\n" not in str(caught.value)
    assert "stacktrace" not in str(caught.value)
    check_unchanged(table)
    table.upsert({"id": ["a"], "n": [1]})
    check_unchanged(table)


def test_a_read_of_keys_and_a_task_of_ours_whose_worker_is_lost(spark: SparkSession, table: hoodie.Table) -> None:
    with pytest.raises(JobFailedError, match=LOST):
        table.read_keys(spark.sql("select 'a' id, 1l n").mapInArrow(dying(), TYPES))

    def die(task: int, context: TaskContext) -> int:
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)
        return task

    with pytest.raises(JobFailedError, match=LOST):
        SparkEngine(spark).run(die, [1])


@pytest.mark.surface
def test_errors_of_the_callers_plan_stay_what_they_are(spark: SparkSession, table: hoodie.Table) -> None:
    with pytest.raises(PythonException, match="an error of the caller's function"):
        table.upsert(spark.sql("select 'a' id, 2l n").mapInArrow(failing(), TYPES))
    # Spark 3.5 aborts the job; later versions raise what its task raised.
    by_zero = pytest.raises((ArithmeticException, JobFailedError), match="DIVIDE_BY_ZERO")
    with session_with(spark, {ANSI: "true"}), by_zero:
        table.upsert(spark.range(1).selectExpr("'a' id", "cast(7 / id as long) n"))
    with pytest.raises(AnalysisException):
        table.upsert(spark.sql("select 'a' id, 2l n").where("missing = 1"))
    check_unchanged(table)
