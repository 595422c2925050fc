"""Errors of a data source in one line: Spark shows the message of a `HoodieError` without the frames below it.

A Python process of Spark sends the text of an error to the driver, and ends. It leaves out the frames if the variable
SPARK_HIDE_TRACEBACK is set at that moment. Other errors keep their frames, as they show a fault of this package.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from hoodie.errors import HoodieError

_HIDES: Final = "SPARK_HIDE_TRACEBACK"
_SHOWS: Final = "HOODIE_TRACEBACK"
"""With this variable in the processes of Spark, errors have their frames."""


@contextmanager
def one_line() -> Iterator[None]:
    """Leave the frames of a `HoodieError` out of the message that Spark shows.

    Only for methods that Spark calls in a process of its own, which ends with the error. Raises: the same error.
    """
    try:
        yield
    except HoodieError:
        if not os.environ.get(_SHOWS):
            os.environ[_HIDES] = "1"
        raise
