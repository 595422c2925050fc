"""Temporary local files of one process, for data that does not fit in memory.

They are never in a table's folder, and processes never share them.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa


@contextlib.contextmanager
def scratch_folder(parent: str | None = None) -> Iterator[str]:
    """Create a scratch folder, and yield its absolute path. It is deleted with all its files at the end.

    `parent` is an existing local folder; None means the system's temporary folder (`TMPDIR`).
    """
    with tempfile.TemporaryDirectory(prefix="hoodie-", dir=parent, ignore_cleanup_errors=True) as root:
        yield root


def scratch_output(path: str) -> pa.NativeFile:
    """Open a streaming writer of a new scratch file by its absolute path; its folder is made."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    return pa.OSFile(path, mode="wb")


def scratch_input(path: str) -> pa.NativeFile:
    """Open a random-access reader of a scratch file that was written and closed."""
    return pa.OSFile(path, mode="rb")
