"""Check that Spark's Python workers can import this package, before a job runs or from the error of a job.

A worker runs the interpreter that the variable PYSPARK_PYTHON named when the session started, otherwise `python3` of
PATH. In a virtual environment that is not activated this is often another interpreter.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from typing import Any
from weakref import WeakSet

from hoodie.errors import UnsupportedError

_SECONDS_MAX = 60
_checked: WeakSet[Any] = WeakSet()
_MISSING = re.compile(r"No module named '(hoodie|pyarrow|numpy)[.\w]*'")
_WORKER_FILE = re.compile(r'File "(?P<home>[^"]*?)/lib/python[\d.]+/')
_OTHER_VERSION = re.compile(r"PYTHON_VERSION_MISMATCH|different version")


def check_workers(session: Any) -> None:
    """Check once for each session in local mode that workers can import this package.

    Other sessions (a cluster, Connect) are not checked here: `missing_package` recognises the error of their jobs.

    Raises: UnsupportedError that names the interpreter of the workers and the setting to change.
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
        problem = "it does not exist" if interpreter is None else _import_error(interpreter)
        if problem:
            raise UnsupportedError(f"Spark's workers run {interpreter or wanted}: {problem}; {_advice()}")
    _checked.add(session)


def missing_package(error: Exception) -> UnsupportedError | None:
    """Return the error to raise if a job failed because its workers lack this package; otherwise None."""
    text = str(error)
    missing = _MISSING.search(text)
    if missing is None and not _OTHER_VERSION.search(text):
        return None
    homes = [match["home"] for match in _WORKER_FILE.finditer(text)]
    where = f" (a Python installed in {homes[0]})" if homes else ""
    problem = "another Python version than the driver" if missing is None else f"a Python without {missing[1]}"
    return UnsupportedError(f"Spark's workers ran {problem}{where}; {_advice()}")


def _is_local(session: Any) -> bool:
    return ".connect." not in type(session).__module__ and session.conf.get("spark.master", "").startswith("local")


def _import_error(interpreter: str) -> str:
    """Return why an interpreter cannot import the package; empty if it can."""
    done = subprocess.run(
        [interpreter, "-c", "import hoodie.engine"], capture_output=True, text=True, timeout=_SECONDS_MAX, check=False
    )
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["it failed"])[-1]


def _advice() -> str:
    return (
        f"set the environment variable PYSPARK_PYTHON={sys.executable} before the session starts, "
        "or install hoodie where the workers find it"
    )
