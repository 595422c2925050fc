"""Workers that lack the package end a job with one sentence: which interpreter they ran and what to set."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hoodie
from hoodie.engine import TaskContext
from hoodie.spark import SparkEngine
from hoodie.spark.workers import check_workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_local_workers_are_checked_before_a_job_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "python-without-packages"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(bare))
    with pytest.raises(hoodie.UnsupportedError) as raised:
        SparkEngine(spark.newSession()).run(_number, [1])
    assert str(raised.value) == (
        f"Spark's workers run {bare}: ModuleNotFoundError: No module named 'hoodie'; set the environment variable "
        f"PYSPARK_PYTHON={sys.executable} before the session starts, or install hoodie where the workers find it"
    )


def test_a_missing_interpreter_is_named(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/nowhere/python9")
    with pytest.raises(hoodie.UnsupportedError, match="run /nowhere/python9: it does not exist; set the environment"):
        SparkEngine(spark.newSession()).run(_number, [1])


def test_a_session_that_works_is_not_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The context keeps the interpreter that it started with; files that were sent may hold the package."""
    monkeypatch.setenv("PYSPARK_PYTHON", "/nowhere/python9")
    session = spark.newSession()
    assert SparkEngine(session).run(_number, [1]) == [1]
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/nowhere/python9")
    monkeypatch.setattr(spark.sparkContext, "_python_includes", ["hoodie.zip"])
    check_workers(spark.newSession())


@pytest.mark.connect
def test_workers_elsewhere_are_recognised_by_their_error(spark: SparkSession) -> None:
    def without_package(task: int, context: TaskContext) -> Any:
        raise ModuleNotFoundError("No module named 'hoodie'")

    with pytest.raises(hoodie.UnsupportedError, match=r"Spark's workers ran a Python without hoodie.*PYSPARK_PYTHON="):
        SparkEngine(spark).run(without_package, [1])


def _number(task: int, context: TaskContext) -> int:
    return task
