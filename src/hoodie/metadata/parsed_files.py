"""A cache of the parsed files of metadata partitions that readers look keys up in, for all tables of this process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from hoodie.files.slices import FileSlice
from hoodie.format.hfile import HFileReader
from hoodie.metadata.slice_content import LogContent, SliceContent, assembled
from hoodie.metadata.slice_reader import WHOLE_BYTES_MAX, open_base, read_log
from hoodie.storage import FileInfo, Store, StoreSpec

CACHE_BYTES_MAX = 256 * 1024 * 1024
"""Maximum bytes of parsed files that a process keeps."""


def read_slice(store: Store, file_slice: FileSlice, files: Sequence[FileInfo]) -> SliceContent:
    """Parse the files of a slice; files in the cache of this process are not read again.

    `files` are the listed files of the slice, the base file first. Memory: the files. Up to `CACHE_BYTES_MAX` of them
    stay in the cache.

    Raises:
        CorruptFileError: a file does not parse.
    """
    rest = list(files)
    base: HFileReader | None = None
    if file_slice.base_file is not None:
        base = _kept.get(store, rest.pop(0), open_base)
    logs: Sequence[LogContent] = [_kept.get(store, info, _parse_log) for info in rest]
    return assembled(file_slice, base, logs)


def _parse_log(store: Store, info: FileInfo) -> LogContent:
    return read_log(store, info.path)


class _ParsedFiles:
    """A cache of the parsed files that this process used last. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: OrderedDict[tuple[StoreSpec, FileInfo], tuple[Any, int]] = OrderedDict()
        self._bytes = 0

    def get(self, store: Store, info: FileInfo, parse: Callable[[Store, FileInfo], Any]) -> Any:
        """Return the parsed file, from the cache or by `parse`."""
        key = (store.spec, info)
        with self._lock:
            if key in self._files:
                self._files.move_to_end(key)
                return self._files[key][0]
        parsed = parse(store, info)
        with self._lock:
            if key not in self._files:
                self._files[key] = parsed, _held_bytes(parsed, info)
                self._bytes += self._files[key][1]
            while self._bytes > CACHE_BYTES_MAX and len(self._files) > 1:
                _, (_, dropped_bytes) = self._files.popitem(last=False)
                self._bytes -= dropped_bytes
        return parsed


def _held_bytes(parsed: HFileReader | LogContent, info: FileInfo) -> int:
    """Return the bytes that a file takes in memory: at most 8 MiB of a base file; a log file and its parsed columns."""
    if isinstance(parsed, HFileReader):
        return min(info.size_bytes, WHOLE_BYTES_MAX)
    return info.size_bytes + sum(block.held_bytes for block in parsed.blocks)


_kept = _ParsedFiles()
