"""A store that fails from a chosen call on: tests stop a writer at every step and check the files that it left."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

import pyarrow as pa

from hoodie.errors import InvalidConfigError
from hoodie.storage import FileInfo, FileVersion, Store, StoreSpec
from hoodie.storage.memory import BufferedOutput
from hoodie.storage.opening import register_store

SCHEME = "fault+"
"""`StoreSpec.is_private` knows it: only this process can open such a store."""
_T = TypeVar("_T")
_REGISTERED: dict[str, Store] = {}


class CrashError(RuntimeError):
    """The process is simulated to be dead: no storage call has any effect any more.

    It is not a `HoodieError`, so that no code catches it as a `HoodieError` and continues.
    """


class CrashPoint(Enum):
    """What the failing call does before it fails."""

    BEFORE = "before"
    """Nothing. A streaming writer leaves the first half of its bytes."""

    AFTER = "after"
    """Everything: the caller stops before it receives the result."""


@dataclass(frozen=True, slots=True)
class Call:
    """One counted storage call: the method (`close_output` for closing a streaming writer) and its path."""

    operation: str
    path: str


class FaultStore:
    """A store (see `Store`) that fails at counted call `fail_at` (the first call is 1) and at every later call.

    Only calls that change something are counted; with `count_reads` all calls are. A streaming writer is counted when
    it is opened and again when it is closed. `calls` lists the counted calls: a first run with `fail_at=None` returns
    the number of possible crash points. Memory: all bytes of a streamed file, so use it for small test tables.
    """

    def __init__(
        self,
        inner: Store,
        fail_at: int | None = None,
        *,
        count_reads: bool = False,
        crash_point: CrashPoint = CrashPoint.BEFORE,
    ) -> None:
        """Wrap `inner`; with `fail_at=None` calls are only counted."""
        self.inner = inner
        self.calls: list[Call] = []
        self._fail_at = fail_at
        self._count_reads = count_reads
        self._crash_point = crash_point
        self._crashed = False
        self._lock = threading.Lock()
        self._uri = f"{SCHEME}{uuid.uuid4().hex}+{inner.spec.uri}"

    def __repr__(self) -> str:
        return f"FaultStore({self.inner!r}, fail_at={self._fail_at}, calls={len(self.calls)})"

    @property
    def crashed(self) -> bool:
        """Whether the simulated process is dead."""
        return self._crashed

    def register(self) -> StoreSpec:
        """Make `open_store(self.spec)` in this process return this object; return the spec."""
        register(self)
        return self.spec

    def unregister(self) -> None:
        """Undo `register`."""
        unregister(self)

    @property
    def spec(self) -> StoreSpec:
        """The description with which this process finds this object after `register`."""
        return StoreSpec(self._uri)

    def uri(self, path: str) -> str:
        """Return the absolute path or URI of the file in the inner store; never counted."""
        return self.inner.uri(path)

    def folders(self, folder: str) -> list[str]:
        return self._read("folders", folder, lambda: self.inner.folders(folder))

    def names(self, folder: str) -> list[str]:
        return self._read("names", folder, lambda: self.inner.names(folder))

    def list(self, folder: str, *, recursive: bool = False) -> list[FileInfo]:
        return self._read("list", folder, lambda: self.inner.list(folder, recursive=recursive))

    def temporary_files(self) -> tuple[FileInfo, ...]:
        return self._read("temporary_files", "", self.inner.temporary_files)

    def head(self, path: str) -> FileInfo | None:
        return self._read("head", path, lambda: self.inner.head(path))

    def read(self, path: str) -> bytes:
        return self._read("read", path, lambda: self.inner.read(path))

    def read_range(self, path: str, start: int, length: int) -> bytes:
        return self._read("read_range", path, lambda: self.inner.read_range(path, start, length))

    def create(self, path: str, data: bytes) -> None:
        self._change("create", path, lambda: self.inner.create(path, data))

    def replace(self, path: str, data: bytes) -> None:
        self._change("replace", path, lambda: self.inner.replace(path, data))

    def refresh(self, path: str, expected: bytes) -> bool:
        """Call the inner store; not counted, because a thread calls it at any time."""
        if self._crashed:
            raise self._error("refresh", path)
        return self.inner.refresh(path, expected)

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self._change("set_modified_ms", path, lambda: self.inner.set_modified_ms(path, modified_ms))

    def read_version(self, path: str) -> tuple[bytes, FileVersion]:
        return self._read("read_version", path, lambda: self.inner.read_version(path))

    def replace_version(self, path: str, data: bytes, version: FileVersion | None) -> FileVersion | None:
        written: list[FileVersion | None] = []
        self._change("replace_version", path, lambda: written.append(self.inner.replace_version(path, data, version)))
        return written[0]

    def move(self, source: str, target: str) -> None:
        self._change("move", target, lambda: self.inner.move(source, target))

    def delete(self, path: str) -> None:
        self._change("delete", path, lambda: self.inner.delete(path))

    def delete_all(self, paths: Sequence[str]) -> None:
        """Call the inner store for one file after the other: a process may die in the middle."""
        for path in paths:
            self.delete(path)

    def delete_folder(self, folder: str) -> None:
        self._change("delete_folder", folder, lambda: self.inner.delete_folder(folder))

    def open_input(self, path: str) -> pa.NativeFile:
        """Call the inner store; reads through the returned file are not counted."""
        return self._read("open_input", path, lambda: self.inner.open_input(path))

    def open_output(self, path: str) -> pa.NativeFile:
        """Call the inner store; a writer that fails at its close leaves the first half of its bytes."""
        self._change("open_output", path, lambda: self._write(path, b""))
        return BufferedOutput(lambda data: self._close_output(path, data))

    def as_durable(self) -> FaultStore:
        """Return this store, whose inner store is durable from now on."""
        self.inner = self.inner.as_durable()
        return self

    def check_links(self, paths: Iterable[str]) -> None:
        """Call the inner store; never counted."""
        self.inner.check_links(paths)

    def check_writable(self) -> None:
        """Call the inner store; never counted."""
        self.inner.check_writable()

    def _close_output(self, path: str, data: bytes) -> None:
        self._change(
            "close_output",
            path,
            lambda: self._write(path, data),
            instead=lambda: self._write(path, data[: len(data) // 2]),
        )

    def _write(self, path: str, data: bytes) -> None:
        with self.inner.open_output(path) as file:
            file.write(data)

    def _read(self, operation: str, path: str, action: Callable[[], _T]) -> _T:
        if self._crashed or (self._count_reads and self._dies_at(operation, path)):
            raise self._error(operation, path)
        return action()

    def _change(
        self, operation: str, path: str, action: Callable[[], None], *, instead: Callable[[], None] | None = None
    ) -> None:
        """Run `action`, or fail before it (after running `instead`) or after it."""
        was_dead = self._crashed
        if was_dead or self._dies_at(operation, path):
            if self._crash_point is CrashPoint.AFTER and not was_dead:
                action()
            elif instead is not None:
                instead()
            raise self._error(operation, path)
        action()

    def _dies_at(self, operation: str, path: str) -> bool:
        """Count the call; return whether it fails."""
        with self._lock:
            self.calls.append(Call(operation, path))
            if self._fail_at is not None and len(self.calls) >= self._fail_at:
                self._crashed = True
            return self._crashed

    def _error(self, operation: str, path: str) -> CrashError:
        return CrashError(f"simulated process death at call {len(self.calls)}: {operation}({path!r})")


def register(store: Store) -> None:
    """Make `open_store(store.spec)` in this process return this object; the URI of its spec begins with `SCHEME`."""
    _REGISTERED[store.spec.uri] = store


def unregister(store: Store) -> None:
    """Undo `register`."""
    _REGISTERED.pop(store.spec.uri, None)


def _registered(spec: StoreSpec) -> Store:
    found = _REGISTERED.get(spec.uri)
    if found is None:
        raise InvalidConfigError(f"{spec.uri!r} is not registered in this process: call FaultStore.register() first")
    return found


register_store(SCHEME, _registered)
