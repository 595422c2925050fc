"""Workers that lack the package end a job with one sentence: which interpreter they ran and what to set."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
import pytest

import hoodie
from hoodie.engine import TaskContext
from hoodie.spark import SparkEngine
from hoodie.spark.workers import check_workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


RELEASE = re.escape(hoodie.__version__)


def bare_python(folder: Path) -> Path:
    """Write a program that runs this Python with the packages that hoodie needs in `packages`, without hoodie."""
    packages = folder / "packages"
    packages.mkdir()
    for path in Path(pyarrow.__file__).parents[1].iterdir():
        if "hoodie" not in path.name:
            (packages / path.name).symlink_to(path)
    python = folder / "python-without-hoodie"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={packages} exec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    return python


def test_local_workers_are_checked_before_a_job_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "python-without-packages"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(bare))
    with pytest.raises(hoodie.WorkerEnvironmentError) as raised:
        SparkEngine(spark.newSession()).run(_number, [1])
    assert str(raised.value) == (
        f"Spark's workers run {bare}: ModuleNotFoundError: No module named 'hoodie'; set the environment variable "
        f"PYSPARK_PYTHON={sys.executable} before the session starts, install hoodie where the workers find it, or call "
        "hoodie.ship(spark)"
    )


def test_a_task_says_what_its_worker_lacks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing can be checked before the job, the task names its interpreter, and tells another release apart."""
    session = spark.newSession()
    session.conf.set("spark.executorEnv.PYTHONPATH", "/somewhere")
    bare = bare_python(tmp_path)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(bare))
    with pytest.raises(hoodie.WorkerEnvironmentError) as raised:
        SparkEngine(session).run(_number, [1])
    assert re.match(
        r"Spark's workers run \S+ \(Python 3\.\d+\): No module named 'hoodie'; set .* PYSPARK_PYTHON=",
        str(raised.value),
    )
    other = tmp_path / "packages" / "hoodie"
    other.mkdir()
    (other / "__init__.py").write_text('__version__ = "0.0.1"\n')
    with pytest.raises(
        hoodie.WorkerEnvironmentError, match=rf"hoodie 0\.0\.1 is there, the program runs {RELEASE}; set"
    ):
        SparkEngine(session).run(_number, [1])


def test_ship_sends_the_package_to_workers_that_lack_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writes and reads then run in workers without the package, and in workers with another release of it."""
    context = spark.sparkContext
    bare = bare_python(tmp_path)
    monkeypatch.setattr(context, "pythonExec", str(bare))
    monkeypatch.setattr(context, "_python_includes", [])
    monkeypatch.setattr(sys, "path", [*sys.path])
    session = spark.newSession()
    other = tmp_path / "packages" / "hoodie"
    other.mkdir()
    (other / "__init__.py").write_text('__version__ = "0.0.1"\n')
    for name in ("isal", "obstore", "fastavro", "sqlglot"):  # workers that have pyarrow and numpy only
        (tmp_path / "packages" / name).unlink()
    with monkeypatch.context() as patch:
        patch.setattr("hoodie.spark.ship.NEEDED", ("pyarrow", "numpy", "isal"))
        with pytest.raises(
            hoodie.WorkerEnvironmentError, match="lacks isal, which hoodie does not send: install them there"
        ):
            hoodie.ship(session)
    result = hoodie.ship(session)
    assert result.sent_bytes > 0
    lacking = {"isal", "obstore"}
    for worker in result.workers:
        assert worker.hoodie == hoodie.__version__
        assert {name for name, release in worker.packages.items() if release is None} == lacking
    assert re.match(rf"sent hoodie {RELEASE} to the workers: [\d,]+ bytes\n  host .*, hoodie {RELEASE}, ", str(result))
    assert [note.split(":")[0] for note in result.notes] == ["workers lack isal", "workers lack obstore"]
    assert f"note: {result.notes[0]}" in str(result)
    assert f"<td>{hoodie.__version__}</td>" in result._repr_html_()
    assert (
        SparkEngine(session)
        .run(_file_of_hoodie, [1])[0]
        .endswith(f"hoodie-{hoodie.__version__}.zip/hoodie/__init__.py")
    )
    schema = pyarrow.schema([("id", pyarrow.string()), ("n", pyarrow.int64())])
    on_workers = {"hoodie.python.local.bytes.max": "0"}
    table = hoodie.create(tmp_path / "table", schema, record_key="id", spark=session, properties=on_workers)
    for count in (1_000, 1_010):
        table.upsert(session.range(1_000, 1_000 + count).selectExpr("string(id) id", "id n"))
    assert table.read().where("n >= 2000").count() == 10
    again = hoodie.ship(session)
    assert (again.sent_bytes, str(again).split("\n")[0]) == (
        0,
        f"the workers have hoodie {hoodie.__version__}: nothing sent",
    )


@pytest.mark.connect
def test_ship_sends_nothing_to_workers_that_have_the_package(spark: SparkSession) -> None:
    result = hoodie.ship(spark)
    assert (result.sent_bytes, {worker.hoodie for worker in result.workers}) == (0, {hoodie.__version__})


def test_a_missing_interpreter_is_named(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/nowhere/python9")
    with pytest.raises(
        hoodie.WorkerEnvironmentError, match="run /nowhere/python9: it does not exist; set the environment"
    ):
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

    with pytest.raises(
        hoodie.WorkerEnvironmentError, match=r"Spark's workers ran a Python without hoodie.*PYSPARK_PYTHON="
    ):
        SparkEngine(spark).run(without_package, [1])


@pytest.mark.connect
def test_another_python_is_named(spark: SparkSession) -> None:
    """PySpark's worker raises this error before it unpickles a task of another minor version."""

    def other_python(task: int, context: TaskContext) -> Any:
        from pyspark.errors import PySparkRuntimeError

        versions = {"worker_version": "3.99", "driver_version": "3.98"}
        raise PySparkRuntimeError(None, "PYTHON_VERSION_MISMATCH", versions)

    with pytest.raises(hoodie.WorkerEnvironmentError, match=r"workers ran Python 3\.99, the driver Python 3\.\d+"):
        SparkEngine(spark).run(other_python, [1])


def _file_of_hoodie(task: int, context: TaskContext) -> str:
    return str(hoodie.__file__)


def _number(task: int, context: TaskContext) -> int:
    return task
