"""Let Spark's Python workers run this package, and raise errors of Spark jobs as errors of this package.

A worker runs the interpreter that the variable PYSPARK_PYTHON named when the session started, otherwise `python3` of
PATH. In a virtual environment that is not activated this is often another interpreter. In local mode, jobs of this
package then run the interpreter of the program. Elsewhere their tasks look for the package, or the error of a job
shows that it is missing.

Spark has classes for errors of the caller's plan, such as an analysis error or a division by zero. These stay as they
are. A job that Spark aborts has no such class: it is py4j's error in a classic session, and one of the base classes in
a Connect session.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Any, Final
from weakref import WeakKeyDictionary

from pyspark import SparkFiles, cloudpickle
from pyspark.sql import functions as F

from hoodie import errors
from hoodie.errors import HoodieError, JobFailedError, WorkerEnvironmentError

_SECONDS_MAX = 60
_lacking: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()
"""Whether the workers of a session in local mode cannot run this package."""
_swapping = threading.RLock()
_REPORT = re.compile(r"RuntimeError: HOODIE_WORKER: (.*)")
_MISSING = re.compile(r"No module named '((?:hoodie|pyarrow|numpy|obstore|fastavro|isal|sqlglot)\b)[.\w]*'")
_SENT: Final = ("hoodie", "fastavro", "sqlglot")
"""Packages that `hoodie.ship` sends."""
_ABSENT = re.compile(r'Cannot run program "([^"]+)"')
_OTHER_PYTHON = re.compile(r"PYTHON_VERSION_MISMATCH|Python in worker has different version")
_MINOR_OF_WORKER = re.compile(r"different version:? ['\"]?(\d+\.\d+)")
_BASES: Final = frozenset({"SparkException", "SparkConnectException", "SparkConnectGrpcException", "UnknownException"})
"""PySpark's classes for errors that have no class of their own."""
_ABORTED = re.compile(r"Job aborted due to ")
_STACK = re.compile(r"(Driver stacktrace:|JVM stacktrace:|Traceback |at [\w.$]+\()")
_HEAD = re.compile(r"^(An error occurred while calling \S+\.)?[\s:]*(\([\w.$]+\)|[\w.$]+(Exception|Error):)?\s*")
_REASON_MAX = 1_000


def is_connect(session: Any) -> bool:
    """Return whether a session is one of Spark Connect."""
    return ".connect." in type(session).__module__


def release() -> str:
    """Return the release of this package that the program has imported."""
    return str(sys.modules["hoodie"].__version__)


@contextmanager
def own_python(session: Any) -> Iterator[None]:
    """Let the functions and rows that the body gives to Spark run in this program's interpreter, if that is needed.

    It is needed in a classic session in local mode whose workers cannot run this package; it is found out once a
    session. Functions of other code keep the interpreter of the session.
    """
    if session not in _lacking:
        is_local = not is_connect(session) and session.conf.get("spark.master", "").startswith("local")
        _lacking[session] = is_local and _lacks_package(session)
    if not _lacking[session]:
        yield
        return
    context = session.sparkContext
    with _swapping:
        # PySpark reads this attribute when it wraps a function. PYSPARK_PYTHON has no effect after the start.
        configured, context.pythonExec = context.pythonExec, sys.executable
        try:
            yield
        finally:
            context.pythonExec = configured


def checked_in_worker(work: Callable[..., Iterator[Any]]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return a function that looks for this package in the worker, and then runs `work`.

    The function refers to no module of this package, so that a worker without the package, or with another release,
    can unpickle it and report what it lacks; `work` is unpickled only after that.
    """
    packed: bytes = cloudpickle.dumps(work)  # type: ignore[no-untyped-call]
    wanted = release()

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pickle
        import sys

        place = f"{sys.executable} (Python {sys.version_info[0]}.{sys.version_info[1]})"
        try:
            found = __import__("hoodie").__version__  # the package of the worker
            if found != wanted:
                raise RuntimeError(f"HOODIE_WORKER: {place}: hoodie {found} is there, the program runs {wanted}")
            unpacked = pickle.loads(packed)
        except ModuleNotFoundError as error:
            raise RuntimeError(f"HOODIE_WORKER: {place}: {error}") from None
        yield from unpacked(batches)

    run.__name__ = work.__name__
    return run


def _environment_error(error: Exception, session: Any) -> WorkerEnvironmentError | None:
    """Return the error to raise if a job failed because its workers cannot run this package; otherwise None."""
    text = str(error)
    report, missing = _REPORT.search(text), _MISSING.search(text)
    by_ship = missing is not None and missing[1] in _SENT
    if report is not None:
        by_ship = by_ship or "hoodie" in report[1].partition(": ")[2]
        return WorkerEnvironmentError(f"Spark's workers run {report[1].strip()}; {_advice(by_ship=by_ship)}")
    absent = _ABSENT.search(text)
    if absent is not None:
        return WorkerEnvironmentError(f"Spark's workers cannot start {absent[1]}; {_advice(by_ship=False)}")
    if missing is None and not _OTHER_PYTHON.search(text):
        return None
    ran = _interpreter_of(session)
    problem = _other_python(text) if missing is None else f"a Python without {missing[1]}"
    return WorkerEnvironmentError(f"Spark's workers ran {ran and f'{ran}, '}{problem}; {_advice(by_ship=by_ship)}")


def _interpreter_of(session: Any) -> str:
    """Return the interpreter of a worker; empty if it runs no function of this Python. pyarrow is not needed there."""
    try:
        ask = F.udf(lambda _: __import__("sys").executable, useArrow=False)
        return str(session.range(1).select(ask("id")).first()[0])
    except Exception:
        return ""


def _other_python(text: str) -> str:
    found = _MINOR_OF_WORKER.search(text)
    mine = ".".join(map(str, sys.version_info[:2]))
    return f"{f'Python {found[1]}' if found else 'another Python version'}, the driver Python {mine}"


def _lacks_package(session: Any) -> bool:
    context = session.sparkContext
    # Only a job shows what this path has.
    if session.conf.get("spark.executorEnv.PYTHONPATH", None):
        return False
    interpreter = shutil.which(context.pythonExec)
    if interpreter == sys.executable:
        return False
    # Files of addPyFile and spark.submit.pyFiles may hold the package.
    sent = [f"{SparkFiles.getRootDirectory()}/{name}" for name in context._python_includes]
    return interpreter is None or not _runs_package(interpreter, sent)


def _runs_package(interpreter: str, path: Sequence[str]) -> bool:
    """Return whether an interpreter with these folders and zips in its path can run this release of the package."""
    code = "import hoodie.engine; print(hoodie.__version__)"
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([*path, os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [interpreter, "-c", code], capture_output=True, text=True, timeout=_SECONDS_MAX, check=False, env=variables
    )
    return done.returncode == 0 and done.stdout.strip() == release()


def _advice(*, by_ship: bool) -> str:
    return (
        f"install hoodie {release()} for that interpreter, or set the environment variable PYSPARK_PYTHON, before the "
        "session starts, to an interpreter of the workers' machines that has it"
        + (", or call hoodie.ship(spark)" if by_ship else "")
        + " (docs/deploy.md)"
    )


@contextmanager
def errors_of_jobs(session: Any) -> Iterator[None]:
    """Raise errors of the Spark jobs in the body as errors of ours, where they are not errors of the caller's plan.

    Raises: the first HoodieError of a worker with its own type; WorkerEnvironmentError if the workers cannot run this
        package; JobFailedError if Spark aborted the job, or cannot be reached.
    """
    try:
        yield
    except Exception as error:
        own = None if isinstance(error, HoodieError) else _as_ours(error, session)
        if own is None:
            raise
        raise own from error


def _as_ours(error: Exception, session: Any) -> HoodieError | None:
    kind = type(error)
    library = kind.__module__.partition(".")[0]
    if library not in ("py4j", "pyspark"):
        return None
    own = _of_worker(error) or _environment_error(error, session)
    if own is not None or (library == "pyspark" and kind.__name__ not in _BASES):
        return own
    return JobFailedError(f"Spark did not complete a job of this call: {reason(error)}")


def _of_worker(error: Exception) -> HoodieError | None:
    """Find the HoodieError that a worker raised in the message of Spark's error; None if there is none."""
    match = re.search(r"hoodie\.errors\.(\w+): (.*)", str(error))
    kind = getattr(errors, match[1], None) if match else None
    if match is None or not isinstance(kind, type) or not issubclass(kind, HoodieError):
        return None
    found = kind.__new__(kind)
    Exception.__init__(found, match[2])
    return found


def reason(error: Exception) -> str:
    """Return Spark's reason without stack traces, on one line."""
    message = str(error)
    aborted = _ABORTED.search(message)  # it may be the cause of the error, behind a stack trace
    message = message if aborted is None else message[aborted.start() :]
    lines = takewhile(lambda line: not _STACK.match(line), map(str.strip, message.splitlines()))
    text = " ".join(line for line in lines if line)
    return (_HEAD.sub("", text, count=1) or type(error).__name__)[:_REASON_MAX]
