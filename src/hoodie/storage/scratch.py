"""Scratch files of one process: what does not fit memory for a while. Never in a table's folder, never shared."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa


class ScratchFolder:
    """A folder of our own on the local disk."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def open_output(self, name: str) -> pa.NativeFile:
        """Streaming writer of a new file."""
        return pa.OSFile(str(self._root / name), mode="wb")

    def open_input(self, name: str) -> pa.NativeFile:
        """Random-access reader of a file that was closed."""
        return pa.OSFile(str(self._root / name), mode="rb")


@contextlib.contextmanager
def scratch_folder(parent: str | None = None) -> Iterator[ScratchFolder]:
    """A new scratch folder, deleted with all it holds when the context ends, by an error too.

    `parent` is an existing local folder; None stands for the system's temporary folder (`TMPDIR`).
    """
    with tempfile.TemporaryDirectory(prefix="hoodie-", dir=parent, ignore_cleanup_errors=True) as root:
        yield ScratchFolder(Path(root))
