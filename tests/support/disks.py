"""Doubles of the system calls of a local store: they die, fail, let another act, or forget what was not synced."""

from __future__ import annotations

import os
import random
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from hoodie.storage import LocalStore, StoreSpec
from hoodie.storage.disk import Disk
from hoodie.storage.memory import BufferedOutput
from tests.support.fault_store import SCHEME, Call, CrashError, register, unregister

_LONG_AGO = 1_700_000_000
"""The machine needs a while to start again, so heartbeats have stopped."""

Act = Callable[[], None]


class CountingDisk(Disk):
    """The calls of a disk, listed in `calls`. A streamed file is two calls: it is opened, and written at its end.

    Subclasses decide in `_run` what a call does.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._system = Disk()
        self._lock = threading.RLock()

    def _run(self, call: Call, act: Act, half: Act | None = None) -> None:
        """Do the call; `half` does a part of it, for calls that can be stopped in the middle."""
        self.calls.append(call)
        act()

    def make_folder(self, path: str) -> None:
        """Make one folder."""
        self._run(Call("make_folder", path), lambda: self._system.make_folder(path))

    def create_empty(self, path: str) -> None:
        """Create an empty file."""
        self._run(Call("create_empty", path), lambda: self._system.create_empty(path))

    def write_new(self, path: str, data: bytes) -> None:
        """Create a file with these bytes."""
        half = data[: len(data) // 2]
        self._run(
            Call("write_new", path),
            lambda: self._system.write_new(path, data),
            lambda: self._system.write_new(path, half),
        )

    def link(self, source: str, target: str) -> None:
        """Give the file a second name."""
        self._run(Call("link", target), lambda: self._system.link(source, target))

    def rename_new(self, source: str, target: str) -> None:
        """Rename the file, unless `target` exists."""
        self._run(Call("rename_new", target), lambda: self._system.rename_new(source, target))

    def rename(self, source: str, target: str) -> None:
        """Rename the file."""
        self._run(Call("rename", target), lambda: self._system.rename(source, target))

    def unlink(self, path: str) -> None:
        """Remove the name of a file; only files that exist are counted."""
        if not os.path.lexists(path):
            raise FileNotFoundError(path)
        self._run(Call("unlink", path), lambda: self._system.unlink(path))

    def remove_folder(self, path: str) -> None:
        """Remove an empty folder."""
        self._run(Call("remove_folder", path), lambda: self._system.remove_folder(path))

    def sync_file(self, path: str) -> None:
        """Pretend to sync: the disk of a test does not lose power."""
        self._run(Call("sync_file", path), lambda: None)

    def sync_folder(self, path: str) -> None:
        """Pretend to sync."""
        self._run(Call("sync_folder", path), lambda: None)

    def open_stream(self, path: str, closed: Callable[[], None]) -> pa.NativeFile:
        """Open a streaming writer that keeps its bytes until it is closed."""
        self._run(Call("open_stream", path), lambda: _write(path, b""))

        def deliver(data: bytes) -> None:
            half = data[: len(data) // 2]
            self._run(Call("write_stream", path), lambda: _write(path, data), lambda: _write(path, half))
            closed()

        return BufferedOutput(deliver)


def _write(path: str, data: bytes) -> None:
    Path(path).write_bytes(data)


class DyingDisk(CountingDisk):
    """The process dies at call `number`, after half of it if it has halves; later calls do nothing."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def _run(self, call: Call, act: Act, half: Act | None = None) -> None:
        with self._lock:
            self.calls.append(call)
            if len(self.calls) == self._number and half is not None:
                half()
            if len(self.calls) >= self._number:
                raise CrashError(f"simulated process death at system call {self._number}: {self.calls[-1]}")
            act()


class FailingDisk(CountingDisk):
    """Call `number`, and later calls up to `last`, raise the system's error `code`; the process lives on."""

    def __init__(self, code: int, number: int, *, last: int | None = None) -> None:
        super().__init__()
        self._code = code
        self._failing = range(number, (last or number) + 1)

    def _run(self, call: Call, act: Act, half: Act | None = None) -> None:
        with self._lock:
            self.calls.append(call)
            if len(self.calls) in self._failing:
                raise OSError(self._code, os.strerror(self._code), call.path)
        act()


class PausingDisk(CountingDisk):
    """Before call `number`, something else happens, once: another writer acts while this one is stopped."""

    def __init__(self, number: int, meanwhile: Act) -> None:
        super().__init__()
        self._number = number
        self._meanwhile = meanwhile

    def _run(self, call: Call, act: Act, half: Act | None = None) -> None:
        with self._lock:
            self.calls.append(call)
            pauses = len(self.calls) == self._number
        if pauses:
            self._meanwhile()
        act()


class DiskWithoutLinks(CountingDisk):
    """A file system without hard links, and, if `rename_code` is given, without a rename that replaces nothing."""

    def __init__(self, code: int, rename_code: int | None = None) -> None:
        super().__init__()
        self._code = code
        self._rename_code = rename_code

    def link(self, source: str, target: str) -> None:
        """Refuse."""
        raise OSError(self._code, os.strerror(self._code), target)

    def rename_new(self, source: str, target: str) -> None:
        """Refuse, or rename the file, unless `target` exists."""
        if self._rename_code is not None:
            raise OSError(self._rename_code, os.strerror(self._rename_code), target)
        super().rename_new(source, target)


@dataclass
class _File:
    synced: bytes | None


@dataclass
class _Folder:
    names: dict[str, _File | _Folder] = field(default_factory=dict)
    synced: dict[str, _File | _Folder] = field(default_factory=dict)


class ForgetfulDisk(CountingDisk):
    """A disk that loses power: `survivors` writes what was synced to another folder.

    Names survive if their folder was synced after they were made or removed, and bytes if their file was synced after
    they were written. What was not synced survives or not, as `chance` (0: never) and the seed decide, each for itself.
    All that `root` holds at the beginning is synced. The power fails at call `number`, or when the test says so.
    """

    def __init__(self, root: Path, number: int | None = None) -> None:
        super().__init__()
        self._root = root
        self._number = number
        self._tree = self._load(root)

    def _load(self, path: Path) -> _Folder:
        names: dict[str, _File | _Folder] = {
            entry.name: self._load(entry) if entry.is_dir() else _File(entry.read_bytes()) for entry in path.iterdir()
        }
        return _Folder(names, dict(names))

    def _run(self, call: Call, act: Act, half: Act | None = None) -> None:
        with self._lock:
            self.calls.append(call)
            if self._number is not None and len(self.calls) >= self._number:
                raise CrashError(f"simulated power failure at system call {self._number}: {call}")
            act()
            self._note(call)

    def _note(self, call: Call) -> None:
        name = Path(call.path).name
        match call.operation:
            case "make_folder":
                self._parent(call.path).names[name] = _Folder()
            case "create_empty" | "write_new" | "open_stream":
                self._parent(call.path).names[name] = _File(None)
            case "unlink" | "remove_folder":
                del self._parent(call.path).names[name]
            case "sync_file":
                file = self._parent(call.path).names[name]
                assert isinstance(file, _File)
                file.synced = Path(call.path).read_bytes()
            case "sync_folder":
                folder = self._folder(call.path)
                folder.synced = dict(folder.names)

    def link(self, source: str, target: str) -> None:
        """Give the file a second name."""
        with self._lock:
            super().link(source, target)
            self._parent(target).names[Path(target).name] = self._parent(source).names[Path(source).name]

    def rename(self, source: str, target: str) -> None:
        """Rename the file."""
        with self._lock:
            super().rename(source, target)
            self._parent(target).names[Path(target).name] = self._parent(source).names.pop(Path(source).name)

    def _parent(self, path: str) -> _Folder:
        return self._folder(str(Path(path).parent))

    def _folder(self, path: str) -> _Folder:
        found = self._tree
        for name in Path(path).relative_to(self._root).parts:
            child = found.names[name]
            assert isinstance(child, _Folder)
            found = child
        return found

    def survivors(self, target: Path, *, seed: int = 0, chance: float = 0.0) -> None:
        """Write what a power failure now would leave into the folder `target`."""
        with self._lock:
            _restore(self._tree, self._root, target, random.Random(seed), chance)


def _restore(folder: _Folder, live: Path, target: Path, chooser: random.Random, chance: float) -> None:
    target.mkdir(parents=True)
    for name in sorted(folder.names.keys() | folder.synced.keys()):
        old, new = folder.synced.get(name), folder.names.get(name)
        node = new if old is not new and chooser.random() < chance else old
        if isinstance(node, _Folder):
            _restore(node, live / name, target / name, chooser, chance)
        elif node is not None:
            data = node.synced or b""
            if node is new and chooser.random() < chance:
                data = (live / name).read_bytes()
            (target / name).write_bytes(data)
            os.utime(target / name, (_LONG_AGO, _LONG_AGO))


class DoubleStore(LocalStore):
    """A local store on a double; workers of this process open the same object."""

    def __init__(self, root: Path, disk: CountingDisk, *, durable: bool = False) -> None:
        super().__init__(root, durable=durable, disk=disk)
        self.disk = disk
        self._own_uri = f"{SCHEME}{uuid.uuid4().hex}+{root}"

    @property
    def spec(self) -> StoreSpec:
        """The description with which this process finds this object."""
        return StoreSpec(self._own_uri)

    def as_durable(self) -> DoubleStore:
        """Return this store, which is durable from now on."""
        self._durable = True
        return self


@contextmanager
def local_double(root: Path, disk: CountingDisk, *, durable: bool = False) -> Iterator[DoubleStore]:
    """Open a local store on a double for the body."""
    store = DoubleStore(root, disk, durable=durable)
    register(store)
    try:
        yield store
    finally:
        unregister(store)
