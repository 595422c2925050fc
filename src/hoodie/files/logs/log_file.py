"""Write log files: the blocks that one delta commit appends to one file group.

On-disk format: docs/format/table.md §4.
"""

from __future__ import annotations

import contextlib

from hoodie.format.log.log_block import LogBlock
from hoodie.storage import Store


class LogFileWriter:
    """Writes the blocks of one new log file. Memory: one block. Use as a context manager.

    After an error in it, an unfinished file remains, which is found by its marker.
    """

    def __init__(self, store: Store, path: str) -> None:
        self.path = path
        self.size_bytes = 0
        self.blocks = 0
        self._sink = store.open_output(path)

    def write(self, block: LogBlock) -> None:
        """Append a block."""
        content = block.to_bytes()
        self._sink.write(content)
        self.size_bytes += len(content)
        self.blocks += 1

    def __enter__(self) -> LogFileWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._sink.close()
        else:
            with contextlib.suppress(Exception):
                self._sink.close()
