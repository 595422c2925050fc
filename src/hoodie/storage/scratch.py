"""Temporary local files of one process, for data that does not fit in memory.

They are never in a table's folder, and processes never share them.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa


class ScratchFolder:
    """A folder on the local disk that only this process uses."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def uri(self) -> str:
        """Return `file://` and the path without percent-encoding, as Hadoop and Spark expect."""
        return f"file://{self._root}"

    def folder(self, name: str) -> ScratchFolder:
        """Create a folder in this one and return it."""
        (self._root / name).mkdir()
        return ScratchFolder(self._root / name)

    def open_output(self, name: str) -> pa.NativeFile:
        """Open a streaming writer of a new file."""
        return pa.OSFile(str(self._root / name), mode="wb")

    def open_input(self, name: str) -> pa.NativeFile:
        """Open a random-access reader of a file that was written and closed."""
        return pa.OSFile(str(self._root / name), mode="rb")


def scratch_output(path: str) -> pa.NativeFile:
    """Open a streaming writer of a new scratch file by its absolute path; its folder is made."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    return pa.OSFile(path, mode="wb")


def scratch_input(path: str) -> pa.NativeFile:
    """Open a random-access reader of a scratch file by its absolute path."""
    return pa.OSFile(path, mode="rb")


@contextlib.contextmanager
def scratch_root(parent: str | None = None) -> Iterator[str]:
    """Create a folder as `scratch_folder`, and yield its absolute path."""
    with tempfile.TemporaryDirectory(prefix="hoodie-", dir=parent, ignore_cleanup_errors=True) as root:
        yield root


@contextlib.contextmanager
def scratch_folder(parent: str | None = None) -> Iterator[ScratchFolder]:
    """Create a scratch folder. It is deleted with all its files when the context ends, also after an error.

    `parent` is an existing local folder; None means the system's temporary folder (`TMPDIR`).
    """
    with scratch_root(parent) as root:
        yield ScratchFolder(Path(root))
