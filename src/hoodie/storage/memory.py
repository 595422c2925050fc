"""A store in the memory of this process, for tests and experiments."""

from __future__ import annotations

import hashlib
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hoodie.storage.api import ExistingFileError, FileInfo, FileVersion, Store, StoreSpec
from hoodie.storage.paths import checked_deletable, checked_folder, checked_path, is_listed, is_temporary

SCHEME = "memory://"


@dataclass(frozen=True, slots=True)
class _Content:
    """Bytes and change time (epoch milliseconds) by path; all stores of one name share them."""

    files: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)


_CONTENTS: dict[str, _Content] = {}
_CONTENTS_LOCK = threading.Lock()


class MemoryStore(Store):
    """A table's folder held in a dict (see `Store`). Stores of the same name in one process share their files.

    As in an object store, folders exist only as parts of the paths of files.
    """

    def __init__(self, name: str | None = None, *, now_ms: Callable[[], int] | None = None) -> None:
        """Open the folder called `name`; without a name, a new folder with a unique name."""
        self._name = name if name is not None else uuid.uuid4().hex
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        with _CONTENTS_LOCK:
            self._content = _CONTENTS.setdefault(self._name, _Content())

    def __repr__(self) -> str:
        return f"MemoryStore({self._name!r})"

    @property
    def spec(self) -> StoreSpec:
        """The description with which this process opens this store again."""
        return StoreSpec(f"{SCHEME}{self._name}")

    def uri(self, path: str) -> str:
        """Return `memory://name/path`; other engines cannot open it."""
        return f"{SCHEME}{self._name}/{checked_folder(path)}".rstrip("/")

    def folders(self, folder: str) -> list[str]:
        prefix = _prefix(folder)
        with self._content.lock:
            below = [path[len(prefix) :] for path in self._content.files if path.startswith(prefix)]
        return sorted({prefix + rest.partition("/")[0] for rest in below if "/" in rest})

    def list(self, folder: str, *, recursive: bool = False) -> list[FileInfo]:
        prefix = _prefix(folder)
        with self._content.lock:
            found = [
                FileInfo(path, len(data), modified_ms)
                for path, (data, modified_ms) in self._content.files.items()
                if path.startswith(prefix) and (recursive or "/" not in path[len(prefix) :])
            ]
        return sorted((info for info in found if is_listed(info.name)), key=lambda info: info.path)

    def temporary_files(self) -> tuple[FileInfo, ...]:
        """Return the files with a name of a half-written file; this store itself writes none."""
        with self._content.lock:
            found = [FileInfo(path, len(data), at) for path, (data, at) in self._content.files.items()]
        return tuple(sorted((info for info in found if is_temporary(info.name)), key=lambda info: info.path))

    def head(self, path: str) -> FileInfo | None:
        found = self._content.files.get(checked_path(path))
        return None if found is None else FileInfo(path, len(found[0]), found[1])

    def read(self, path: str) -> bytes:
        found = self._content.files.get(checked_path(path))
        if found is None:
            raise FileNotFoundError(self.uri(path))
        return found[0]

    def read_range(self, path: str, start: int, length: int) -> bytes:
        return self.read(path)[start : start + length]

    def keep(self, path: str, value: Any) -> None:
        """Keep a value of this process under a path, which is no file."""
        self._content.kept[path] = value

    def create(self, path: str, data: bytes) -> None:
        with self._content.lock:
            if checked_path(path) in self._content.files:
                raise ExistingFileError(self.uri(path))
            self.replace(path, data)

    def replace(self, path: str, data: bytes) -> None:
        with self._content.lock:
            self._content.files[checked_path(path)] = (bytes(data), self._now_ms())

    def refresh(self, path: str, expected: bytes) -> bool:
        with self._content.lock:
            found = self._content.files.get(checked_path(path))
            if found is None or found[0] != expected:
                return False
            self.replace(path, expected)
            return True

    def read_version(self, path: str) -> tuple[bytes, FileVersion]:
        """Return the content of the file, and its MD5 sum as in S3."""
        data = self.read(path)
        return data, _version(data)

    def replace_version(self, path: str, data: bytes, version: FileVersion | None) -> FileVersion | None:
        with self._content.lock:
            found = self._content.files.get(checked_path(path))
            if (None if found is None else _version(found[0])) != version:
                return None
            self.replace(path, data)
            return _version(data)

    def move(self, source: str, target: str) -> None:
        with self._content.lock:
            self.replace(target, self.read(source))
            self.delete(source)

    def delete(self, path: str) -> None:
        with self._content.lock:
            self._content.files.pop(checked_path(path), None)

    def delete_folder(self, folder: str) -> None:
        prefix = _prefix(checked_deletable(folder))
        with self._content.lock:
            for path in [path for path in self._content.files if path.startswith(prefix)]:
                del self._content.files[path]

    def open_input(self, path: str) -> pa.NativeFile:
        return pa.BufferReader(self.read(path))

    def open_output(self, path: str) -> pa.NativeFile:
        """Open a streaming writer; as in an object store, the file exists once the writer is closed."""
        return BufferedOutput(lambda data: self.replace(path, data))

    def check_links(self, paths: Iterable[str]) -> None:
        """Do nothing: there are no links."""

    def check_writable(self) -> None:
        """Do nothing: files are created in one step."""

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Set the change time of the file."""
        with self._content.lock:
            self._content.files[path] = (self.read(path), modified_ms)


def kept_value(name: str, path: str) -> Any:
    """Return the value that the store of this name keeps under a path; None if there is none."""
    with _CONTENTS_LOCK:
        found = _CONTENTS.get(name)
    return None if found is None else found.kept.get(path)


@contextmanager
def memory_folder() -> Iterator[str]:
    """Yield the name of a new store; its files are dropped at the end."""
    name = uuid.uuid4().hex
    try:
        yield name
    finally:
        with _CONTENTS_LOCK:
            _CONTENTS.pop(name, None)


class BufferedOutput(pa.BufferOutputStream):  # type: ignore[misc]
    """A stream that keeps all bytes in memory and passes them to `deliver` when it is closed.

    Arrow writes to it without a call of Python.
    """

    def __new__(cls, deliver: Callable[[bytes], None]) -> BufferedOutput:
        return super().__new__(cls)  # type: ignore[no-any-return]

    def __init__(self, deliver: Callable[[bytes], None]) -> None:
        self._deliver: Callable[[bytes], None] | None = deliver

    def close(self) -> None:
        """Pass the bytes to `deliver`; a second call does nothing."""
        deliver, self._deliver = self._deliver, None
        if deliver is not None:
            deliver(self.getvalue().to_pybytes())


def _version(data: bytes) -> FileVersion:
    return FileVersion(hashlib.md5(data, usedforsecurity=False).hexdigest())


def _prefix(folder: str) -> str:
    return f"{checked_folder(folder)}/" if folder else ""
