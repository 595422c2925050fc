"""Errors of Spark jobs that this package runs: an error of ours that a worker raised, or Spark's reason to end the job.

Spark has classes for errors of the caller's plan, such as an analysis error or a division by zero. These stay as they
are. A job that Spark aborts has no such class: it is py4j's error in a classic session, and one of the base classes in
a Connect session.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import Final

from hoodie import errors
from hoodie.errors import HoodieError, JobFailedError
from hoodie.spark.workers import environment_error

_BASES: Final = frozenset({"SparkException", "SparkConnectException", "SparkConnectGrpcException", "UnknownException"})
"""PySpark's classes for errors that have no class of their own."""
_ABORTED = re.compile(r"Job aborted due to ")
_STACK = re.compile(r"(Driver stacktrace:|JVM stacktrace:|Traceback |at [\w.$]+\()")
_HEAD = re.compile(r"^(An error occurred while calling \S+\.)?[\s:]*(\([\w.$]+\)|[\w.$]+(Exception|Error):)?\s*")
_REASON_MAX = 1_000


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
    own = _of_worker(error) or environment_error(error)
    if own is not None or (library == "pyspark" and kind.__name__ not in _BASES):
        return own
    return JobFailedError(f"Spark did not complete a job of this call: {_reason(error)}")


def _of_worker(error: Exception) -> HoodieError | None:
    """Find the HoodieError that a worker raised in the message of Spark's error; None if there is none."""
    match = re.search(r"hoodie\.errors\.(\w+): (.*)", str(error))
    kind = getattr(errors, match[1], None) if match else None
    if match is None or not isinstance(kind, type) or not issubclass(kind, HoodieError):
        return None
    found = kind.__new__(kind)
    Exception.__init__(found, match[2])
    return found


def _reason(error: Exception) -> str:
    """Return Spark's reason without stack traces, on one line."""
    told = str(error)
    aborted = _ABORTED.search(told)  # it may be the cause of the error, behind a stack trace
    told = told if aborted is None else told[aborted.start() :]
    lines = takewhile(lambda line: not _STACK.match(line), map(str.strip, told.splitlines()))
    text = " ".join(line for line in lines if line)
    return (_HEAD.sub("", text, count=1) or type(error).__name__)[:_REASON_MAX]
