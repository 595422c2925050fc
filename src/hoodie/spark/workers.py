"""Check that Spark's Python workers can run this package, before a job runs, in its tasks, or from the error of a job.

A worker runs the interpreter that the variable PYSPARK_PYTHON named when the session started, otherwise `python3` of
PATH. In a virtual environment that is not activated this is often another interpreter.
"""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakSet

from pyspark import cloudpickle

from hoodie.errors import WorkerEnvironmentError

_SECONDS_MAX = 60
_checked: WeakSet[Any] = WeakSet()
_TOLD = re.compile(r"RuntimeError: HOODIE_WORKER: (.*)")
_MISSING = re.compile(r"No module named '((?:hoodie|pyarrow|numpy|obstore|fastavro|isal|sqlglot)\b)[.\w]*'")
_WORKER_FILE = re.compile(r'File "(?P<home>[^"]*?)/lib/python[\d.]+/')
_OTHER_PYTHON = re.compile(r"PYTHON_VERSION_MISMATCH|Python in worker has different version")
_MINOR_OF_WORKER = re.compile(r"different version:? ['\"]?(\d+\.\d+)")


def release() -> str:
    """Return the release of this package that the program has imported."""
    return str(importlib.import_module("hoodie").__version__)


def check_workers(session: Any) -> None:
    """Check once for each session in local mode that workers can import this package, in the same release.

    Other sessions (a cluster, Connect) are not checked here: their tasks check it (see `checked_in_worker`).

    Raises: WorkerEnvironmentError that names the interpreter of the workers and the setting to change.
    """
    if session in _checked or not _is_local(session):
        return
    context = session.sparkContext
    # Files of addPyFile and spark.submit.pyFiles, or this path, may hold the package: only a job shows it.
    if context._python_includes or session.conf.get("spark.executorEnv.PYTHONPATH", None):
        return
    # The context reads PYSPARK_PYTHON when it starts; neither a later value nor spark.pyspark.python changes it.
    wanted = context.pythonExec
    interpreter = shutil.which(wanted)
    if interpreter != sys.executable:
        problem = "it does not exist" if interpreter is None else _problem_of(interpreter)
        if problem:
            raise WorkerEnvironmentError(f"Spark's workers run {interpreter or wanted}: {problem}; {_advice()}")
    _checked.add(session)


def checked_in_worker(work: Callable[..., Iterator[Any]]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return a function that looks for this package in the worker, and then runs `work`.

    The function names nothing of this package, so that a worker without the package, or with another release, can
    unpickle it and say what it lacks; `work` is unpickled only after that.
    """
    packed: bytes = cloudpickle.dumps(work)  # type: ignore[no-untyped-call]
    wanted = release()

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import importlib
        import pickle
        import sys

        place = f"{sys.executable} (Python {sys.version_info[0]}.{sys.version_info[1]})"
        try:
            found = importlib.import_module("hoodie").__version__
            if found != wanted:
                raise RuntimeError(f"HOODIE_WORKER: {place}: hoodie {found} is there, the program runs {wanted}")
            unpacked = pickle.loads(packed)
        except ModuleNotFoundError as error:
            raise RuntimeError(f"HOODIE_WORKER: {place}: {error}") from None
        yield from unpacked(batches)

    run.__name__ = work.__name__
    return run


def environment_error(error: Exception) -> WorkerEnvironmentError | None:
    """Return the error to raise if a job failed because its workers cannot run this package; otherwise None."""
    text = str(error)
    told = _TOLD.search(text)
    if told is not None:
        return WorkerEnvironmentError(f"Spark's workers run {told[1].strip()}; {_advice()}")
    missing = _MISSING.search(text)
    if missing is None and not _OTHER_PYTHON.search(text):
        return None
    homes = [match["home"] for match in _WORKER_FILE.finditer(text)]
    where = f" (a Python installed in {homes[0]})" if homes else ""
    problem = _other_python(text) if missing is None else f"a Python without {missing[1]}"
    return WorkerEnvironmentError(f"Spark's workers ran {problem}{where}; {_advice()}")


def _other_python(text: str) -> str:
    found = _MINOR_OF_WORKER.search(text)
    mine = ".".join(map(str, sys.version_info[:2]))
    return f"{f'Python {found[1]}' if found else 'another Python version'}, the driver Python {mine}"


def _is_local(session: Any) -> bool:
    return ".connect." not in type(session).__module__ and session.conf.get("spark.master", "").startswith("local")


def _problem_of(interpreter: str) -> str:
    """Return why an interpreter cannot run the package as this program does; empty if it can."""
    code = "import hoodie.engine; print(hoodie.__version__)"
    done = subprocess.run([interpreter, "-c", code], capture_output=True, text=True, timeout=_SECONDS_MAX, check=False)
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or ["it failed"])[-1]
    found = done.stdout.strip()
    return "" if found == release() else f"hoodie {found} is there, the program runs {release()}"


def _advice() -> str:
    return (
        f"set the environment variable PYSPARK_PYTHON={sys.executable} before the session starts, "
        "install hoodie where the workers find it, or call hoodie.ship(spark)"
    )
