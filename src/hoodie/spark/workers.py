"""Check that Spark's Python workers can run this package, and raise errors of Spark jobs as errors of this package.

A worker runs the interpreter that the variable PYSPARK_PYTHON named when the session started, otherwise `python3` of
PATH. In a virtual environment that is not activated this is often another interpreter. It is checked before a job runs,
in its tasks, or from the error of a job.

Spark has classes for errors of the caller's plan, such as an analysis error or a division by zero. These stay as they
are. A job that Spark aborts has no such class: it is py4j's error in a classic session, and one of the base classes in
a Connect session.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import Any, Final
from weakref import WeakSet

from pyspark import cloudpickle

from hoodie import errors
from hoodie.errors import HoodieError, JobFailedError, WorkerEnvironmentError

_SECONDS_MAX = 60
_checked: WeakSet[Any] = WeakSet()
_TOLD = re.compile(r"RuntimeError: HOODIE_WORKER: (.*)")
_MISSING = re.compile(r"No module named '((?:hoodie|pyarrow|numpy|obstore|fastavro|isal|sqlglot)\b)[.\w]*'")
_WORKER_FILE = re.compile(r'File "(?P<home>[^"]*?)/lib/python[\d.]+/')
_OTHER_PYTHON = re.compile(r"PYTHON_VERSION_MISMATCH|Python in worker has different version")
_MINOR_OF_WORKER = re.compile(r"different version:? ['\"]?(\d+\.\d+)")
_BASES: Final = frozenset({"SparkException", "SparkConnectException", "SparkConnectGrpcException", "UnknownException"})
"""PySpark's classes for errors that have no class of their own."""
_ABORTED = re.compile(r"Job aborted due to ")
_STACK = re.compile(r"(Driver stacktrace:|JVM stacktrace:|Traceback |at [\w.$]+\()")
_HEAD = re.compile(r"^(An error occurred while calling \S+\.)?[\s:]*(\([\w.$]+\)|[\w.$]+(Exception|Error):)?\s*")
_REASON_MAX = 1_000


def release() -> str:
    """Return the release of this package that the program has imported."""
    return str(sys.modules["hoodie"].__version__)


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


def _environment_error(error: Exception) -> WorkerEnvironmentError | None:
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


@contextmanager
def errors_of_jobs() -> Iterator[None]:
    """Raise errors of the Spark jobs in the body as errors of ours, where they are not errors of the caller's plan.

    Raises: the first HoodieError of a worker with its own type; WorkerEnvironmentError if the workers cannot run this
        package; JobFailedError if Spark aborted the job, or cannot be reached.
    """
    try:
        yield
    except Exception as error:
        own = None if isinstance(error, HoodieError) else _as_ours(error)
        if own is None:
            raise
        raise own from error


def _as_ours(error: Exception) -> HoodieError | None:
    kind = type(error)
    library = kind.__module__.partition(".")[0]
    if library not in ("py4j", "pyspark"):
        return None
    own = _of_worker(error) or _environment_error(error)
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
    told = str(error)
    aborted = _ABORTED.search(told)  # it may be the cause of the error, behind a stack trace
    told = told if aborted is None else told[aborted.start() :]
    lines = takewhile(lambda line: not _STACK.match(line), map(str.strip, told.splitlines()))
    text = " ".join(line for line in lines if line)
    return (_HEAD.sub("", text, count=1) or type(error).__name__)[:_REASON_MAX]
