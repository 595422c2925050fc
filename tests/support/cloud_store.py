"""A store that behaves as an object store: requests of a wave run at once, in any order; an object appears whole."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import pyarrow as pa

from hoodie.errors import HoodieError
from hoodie.metadata.paths import METADATA_FOLDER
from hoodie.storage import FileInfo, Store, StoreSpec
from hoodie.storage.memory import BufferedOutput
from hoodie.storage.waves import AsksAhead, later
from hoodie.table import Table
from tests.support.fault_store import CrashError, CrashPoint, FaultStore
from tests.support.samples import SEED

_DELAY_SECONDS = 0.002
Infos = list[FileInfo]
"""A list, in a class that has a method of this name."""


class RemoteSpec(StoreSpec):
    """The description of a `CloudStore`."""

    @property
    def is_remote(self) -> bool:
        """True: each call is a request."""
        return True


class CloudStore(AsksAhead, FaultStore):
    """A `FaultStore` of whose requests those that are sent together happen in an order drawn from `seed`."""

    def __init__(
        self,
        inner: Store,
        fail_at: int | None = None,
        *,
        seed: str,
        point: CrashPoint = CrashPoint.BEFORE,
        count_reads: bool = False,
    ) -> None:
        super().__init__(inner, fail_at, crash_point=point, count_reads=count_reads)
        self._random = random.Random(f"{SEED} {seed}")

    @property
    def spec(self) -> StoreSpec:
        return RemoteSpec(super().spec.uri)

    def run(self, act: Callable[[Table], object]) -> None:
        """Let the act run on a table in this store, to its end or until it dies."""
        self.register()
        try:
            act(Table(self))
        except (CrashError, HoodieError):  # of the release of a lock that dies in another thread
            assert self.crashed
        finally:
            self.unregister()

    def _request(self, kind: str, path: str) -> Any:
        self._wait()
        if kind.startswith("range "):
            start, length = map(int, kind.split()[1:])
            return super().read_range(path, start, length)
        calls: dict[str, Callable[[], Any]] = {
            "folders": lambda: FaultStore.folders(self, path),
            "list": lambda: self._tagged(FaultStore.list(self, path)),
            "list_all": lambda: self._tagged(FaultStore.list(self, path, recursive=True)),
            "head": lambda: FaultStore.head(self, path),
            "read": lambda: FaultStore.read(self, path),
        }
        return calls[kind]()

    def _tagged(self, infos: Infos) -> Infos:
        """Return the files with their ETags; those of data files are not needed."""
        found = []
        for info in infos:
            with suppress(FileNotFoundError):  # deleted meanwhile
                is_tagged = info.path.startswith(METADATA_FOLDER)
                found.append(info._replace(tag=self.inner.read_version(info.path)[1].e_tag) if is_tagged else info)
        return found

    def folders(self, folder: str) -> list[str]:
        return cast(list[str], self._answer("folders", folder))

    def names(self, folder: str) -> list[str]:
        return [info.name for info in self._answer("list", folder)]

    def list(self, folder: str, *, recursive: bool = False) -> list[FileInfo]:
        return cast(Infos, self._answer("list_all" if recursive else "list", folder))

    def head(self, path: str) -> FileInfo | None:
        return cast("FileInfo | None", self._answer("head", path))

    def read(self, path: str) -> bytes:
        return cast(bytes, self._answer("read", path))

    def read_range(self, path: str, start: int, length: int) -> bytes:
        return cast(bytes, self._answer(f"range {start} {length}", path))

    def move(self, source: str, target: str) -> None:
        """Copy, and delete the source later, as an object store does."""
        self._change("copy", target, lambda: self.inner.replace(target, self.inner.read(source)))
        later(self, lambda: self.delete(source))

    def open_output(self, path: str) -> pa.NativeFile:
        """Nothing appears before the writer is closed, and then all of it."""
        return BufferedOutput(lambda data: self._change("close_output", path, lambda: self._write(path, data)))

    def _change(
        self, operation: str, path: str, action: Callable[[], None], *, instead: Callable[[], None] | None = None
    ) -> None:
        self._changes(path)
        self._wait()
        super()._change(operation, path, action, instead=instead)

    def _wait(self) -> None:
        with self._lock:
            delay = self._random.random() * _DELAY_SECONDS
        time.sleep(delay)
