"""Workers that lack the package end a job with one sentence: which interpreter they ran and what to set."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
import pytest

import hoodie
from hoodie.engine import TaskContext
from hoodie.spark import SparkEngine
from tests.contract.table_lanes import ON_WORKERS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


RELEASE = re.escape(hoodie.__version__)
SCHEMA = pyarrow.schema([("id", pyarrow.string()), ("n", pyarrow.int64())])


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


def install_another_release(folder: Path) -> None:
    """Give the program of `bare_python` another release of hoodie."""
    (folder / "packages" / "hoodie").mkdir()
    (folder / "packages" / "hoodie" / "__init__.py").write_text('__version__ = "0.0.1"\n')


@pytest.mark.parametrize("interpreter", ["without packages", "missing"])
def test_jobs_run_the_interpreter_of_the_program_if_the_configured_one_cannot(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interpreter: str
) -> None:
    """A script that `venv/bin/python` runs, with another `python3` on PATH, works; code of others is left alone."""
    configured = tmp_path / "python-without-packages"
    if interpreter == "without packages":
        configured.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
        configured.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(configured))
    session = spark.newSession()
    assert SparkEngine(session).run(_interpreter, [1]) == [sys.executable]
    table = hoodie.create(tmp_path / "table", SCHEMA, record_key="id", spark=session, properties=ON_WORKERS)
    assert table.read().count() == 0
    table.upsert(session.range(1_000).selectExpr("string(id) id", "id n"))
    assert table.read_keys(["7"]).count() == 1
    assert hoodie.ship(session).sent_bytes == 0
    assert spark.sparkContext.pythonExec == str(configured)


def test_a_registered_session_has_the_formats_whatever_python_its_workers_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/nowhere/python9")
    session = spark.newSession()
    rows = session.range(3).selectExpr("string(id) id", "id n")
    hoodie.register(session)
    try:
        options = {"record_key": "id", "path": str(tmp_path / "table")}
        rows.write.format("hoodie").mode("append").options(**options).save()
        assert session.read.format("hoodie").load(options["path"]).count() == 3
        if hasattr(session, "dataSource"):
            session.sql(f"CREATE TEMPORARY VIEW rows_of_workers USING hoodie OPTIONS (path '{options['path']}')")
            assert session.table("rows_of_workers").count() == 3
    finally:
        hoodie.unregister(session)


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
        rf"Spark's workers run \S+ \(Python 3\.\d+\): No module named 'hoodie'; install hoodie {RELEASE} for that "
        r"interpreter, or set .* PYSPARK_PYTHON, .* or call hoodie\.ship\(spark\) \(docs/deploy\.md\)$",
        str(raised.value),
    )
    install_another_release(tmp_path)
    with pytest.raises(
        hoodie.WorkerEnvironmentError,
        match=rf"hoodie 0\.0\.1 is there, the program runs {RELEASE}; install .* hoodie\.ship",
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
    session.conf.set("spark.executorEnv.PYTHONPATH", "/somewhere")  # the jobs run the configured interpreter
    install_another_release(tmp_path)
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
    table = hoodie.create(tmp_path / "table", SCHEMA, record_key="id", spark=session, properties=ON_WORKERS)
    for count in (1_000, 1_010):
        table.upsert(session.range(1_000, 1_000 + count).selectExpr("string(id) id", "id n"))
    assert table.read().where("n >= 2000").count() == 10
    again = hoodie.ship(session)
    assert (again.sent_bytes, str(again).split("\n")[0]) == (
        0,
        f"the workers have hoodie {hoodie.__version__}: nothing sent",
    )


@pytest.mark.surface
@pytest.mark.connect
def test_ship_sends_nothing_to_workers_that_have_the_package(spark: SparkSession) -> None:
    result = hoodie.ship(spark)
    assert (result.sent_bytes, {worker.hoodie for worker in result.workers}) == (0, {hoodie.__version__})


def test_a_missing_interpreter_is_named(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ship` cannot help, and is not advised."""
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/nowhere/python9")
    session = spark.newSession()
    session.conf.set("spark.executorEnv.PYTHONPATH", "/somewhere")
    for call in (lambda: SparkEngine(session).run(_number, [1]), lambda: hoodie.ship(session)):
        with pytest.raises(hoodie.WorkerEnvironmentError, match="cannot start /nowhere/python9; install") as raised:
            call()
        assert "ship" not in str(raised.value)


def test_a_session_that_works_keeps_its_interpreter(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The context keeps the interpreter that it started with; an interpreter that can run the package is used."""
    monkeypatch.setenv("PYSPARK_PYTHON", "/nowhere/python9")
    session = spark.newSession()
    assert SparkEngine(session).run(_number, [1]) == [1]
    other = tmp_path / "other-python"
    other.write_text(f'#!/bin/sh\nOTHER=1 exec {sys.executable} "$@"\n')
    other.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(other))
    assert SparkEngine(spark.newSession()).run(_other, [1]) == ["1"]


def _lacks(module: str) -> Callable[[int, TaskContext], Any]:
    def without_package(task: int, context: TaskContext) -> Any:
        raise ModuleNotFoundError(f"No module named '{module}'")

    return without_package


def _other_python() -> Callable[[int, TaskContext], Any]:
    def other_python(task: int, context: TaskContext) -> Any:
        from pyspark.errors import PySparkRuntimeError

        versions = {"worker_version": "3.99", "driver_version": "3.98"}
        raise PySparkRuntimeError(None, "PYTHON_VERSION_MISMATCH", versions)

    return other_python


ELSEWHERE: dict[str, tuple[Callable[[int, TaskContext], Any], str]] = {
    "without hoodie": (_lacks("hoodie"), r"ran \S+, a Python without hoodie.*PYSPARK_PYTHON.*ship"),
    "without what ship does not send": (
        _lacks("pyarrow"),
        rf"ran {sys.executable}, a Python without pyarrow((?!ship).)*$",
    ),
    # PySpark's worker raises this error before it unpickles a task of another minor version.
    "another Python": (_other_python(), r"workers ran \S+, Python 3\.99, the driver Python 3\.\d+"),
}


@pytest.mark.connect
@pytest.mark.parametrize("name", ELSEWHERE)
def test_workers_elsewhere_are_recognised_by_their_error(spark: SparkSession, name: str) -> None:
    work, message = ELSEWHERE[name]
    with pytest.raises(hoodie.WorkerEnvironmentError, match=message) as raised:
        SparkEngine(spark).run(work, [1])
    assert name != "without what ship does not send" or "ship" not in str(raised.value)


def _file_of_hoodie(task: int, context: TaskContext) -> str:
    return str(hoodie.__file__)


def _number(task: int, context: TaskContext) -> int:
    return task


def _interpreter(task: int, context: TaskContext) -> str:
    return sys.executable


def _other(task: int, context: TaskContext) -> str | None:
    return os.environ.get("OTHER")
