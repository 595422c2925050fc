"""Tables on a local (or mounted) file system.

Safe against the death of the process at any point. Like the JVM writer it does not call fsync, so after a power
failure the last files may be missing or short.
"""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from hoodie.storage.api import FileInfo, StoreSpec
from hoodie.storage.paths import (
    TEMPORARY_PREFIX,
    checked_deletable,
    checked_folder,
    checked_path,
    is_listed,
    join,
    sidecar_name,
)

_T = TypeVar("_T")
_LINK_UNSUPPORTED = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})


class LocalStore:
    """A table's folder on a local file system (see `Store`).

    Not built on an object-store library: those percent-encode names, and a Hudi name must reach the disk as it is.
    """

    def __init__(self, base_path: str | os.PathLike[str]) -> None:
        """Open the folder; it need not exist yet. A relative path is taken from the working directory."""
        self._root = Path(os.path.normpath(Path(base_path).absolute()))

    def __repr__(self) -> str:
        return f"LocalStore({str(self._root)!r})"

    @property
    def spec(self) -> StoreSpec:
        """How to open this store in another process of this machine."""
        return StoreSpec(str(self._root))

    def uri(self, path: str) -> str:
        """`file://` and the path as it is, not percent-encoded: what Hadoop and Spark expect."""
        return f"file://{self._folder(path)}"

    def folders(self, folder: str) -> list[str]:
        """Paths of the folders directly in `folder`, sorted; empty folders count."""
        return sorted(join(folder, e.name) for e in self._entries(checked_folder(folder)) if e.is_dir())

    def names(self, folder: str) -> list[str]:
        """Names of the files directly in `folder`, sorted; a missing folder is empty."""
        entries = self._entries(checked_folder(folder))
        return sorted(entry.name for entry in entries if is_listed(entry.name) and not entry.is_dir())

    def list(self, folder: str, *, recursive: bool = False) -> list[FileInfo]:
        """Files directly in `folder` (or anywhere below it), sorted by path; a missing folder is empty."""
        found: list[FileInfo] = []
        pending = [checked_folder(folder)]
        while pending:
            current = pending.pop()
            for entry in self._entries(current):
                path = join(current, entry.name)
                if entry.is_dir():
                    if recursive:
                        pending.append(path)
                elif is_listed(entry.name):
                    info = _file_info(path, entry.stat)
                    if info is not None:
                        found.append(info)
        found.sort(key=lambda info: info.path)
        return found

    def head(self, path: str) -> FileInfo | None:
        """Size and change time of one file, or None if it does not exist or is a folder."""
        target = self._file(path)
        return None if target.is_dir() else _file_info(path, target.stat)

    def read(self, path: str) -> bytes:
        """The whole file."""
        return self._file(path).read_bytes()

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Bytes `[start, start + length)`; shorter only at the end of the file."""
        with self._file(path).open("rb") as file:
            file.seek(start)
            return file.read(length)

    def create(self, path: str, data: bytes) -> None:
        """Create the file with all its bytes in one atomic step; `FileExistsError` if it is there.

        Where the file system has no hard links, a reader may see the file grow; it is still made only once.
        """
        target = self._file(path)
        self._with_parent(target, lambda: _create_file(target, data))

    def replace(self, path: str, data: bytes) -> None:
        """Create or overwrite the file in one atomic step."""
        target = self._file(path)
        self._with_parent(target, lambda: _replace_file(target, data))

    def delete(self, path: str) -> None:
        """Delete the file and its checksum sidecar; a missing one is fine."""
        target = self._file(path)
        _delete_sidecar(target)
        target.unlink(missing_ok=True)

    def delete_folder(self, folder: str) -> None:
        """Delete the folder and all below it; a missing one is fine."""
        target = self._folder(checked_deletable(folder))
        while target.exists():
            try:
                shutil.rmtree(target)
            except FileNotFoundError:
                continue  # somebody else deletes here as well: look again what is left

    def open_input(self, path: str) -> pa.NativeFile:
        """Random-access reader. Not memory-mapped: a truncated file must raise, not kill the process."""
        return pa.OSFile(str(self._file(path)), mode="rb")

    def open_output(self, path: str) -> pa.NativeFile:
        """Streaming writer on the final name; the file is whole once it is closed without an error."""
        target = self._file(path)

        def opened() -> pa.NativeFile:
            _delete_sidecar(target)
            return pa.OSFile(str(target), mode="wb")

        return self._with_parent(target, opened)

    def _file(self, path: str) -> Path:
        return Path(self._root, checked_path(path))

    def _folder(self, folder: str) -> Path:
        return Path(self._root, checked_folder(folder))

    def _entries(self, folder: str) -> Iterator[os.DirEntry[str]]:
        try:
            entries = os.scandir(self._folder(folder))
        except (FileNotFoundError, NotADirectoryError):
            return
        with entries:
            yield from entries

    @staticmethod
    def _with_parent(target: Path, action: Callable[[], _T]) -> _T:
        """Run `action`; where the folder of `target` is missing, make it and try again."""
        try:
            return action()
        except FileNotFoundError:
            target.parent.mkdir(parents=True, exist_ok=True)
            return action()


def _file_info(path: str, stat: Callable[[], os.stat_result]) -> FileInfo | None:
    """Facts of a file, or None if it went away since it was listed."""
    try:
        status = stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return FileInfo(path, status.st_size, status.st_mtime_ns // 1_000_000)


def _create_file(target: Path, data: bytes) -> None:
    if not data:
        # An empty file is whole the moment it exists: no temporary file needed.
        _create_exclusively(target, data)
        return
    if target.exists():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    temporary = _write_temporary(target, data)
    try:
        _delete_sidecar(target)
        target.hardlink_to(temporary)
    except FileExistsError:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
    except OSError as error:
        if error.errno not in _LINK_UNSUPPORTED:
            raise
        _create_exclusively(target, data)
    finally:
        temporary.unlink(missing_ok=True)


def _create_exclusively(target: Path, data: bytes) -> None:
    with target.open("xb") as file:
        # A sidecar left by a deleted file of this name would fail the JVM's checksum.
        _delete_sidecar(target)
        file.write(data)


def _replace_file(target: Path, data: bytes) -> None:
    temporary = _write_temporary(target, data)
    try:
        # First the sidecar: a file without one is fine for the JVM, one with another file's checksum is not.
        _delete_sidecar(target)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _write_temporary(target: Path, data: bytes) -> Path:
    temporary = target.with_name(f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}")
    try:
        temporary.write_bytes(data)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _delete_sidecar(target: Path) -> None:
    target.with_name(sidecar_name(target.name)).unlink(missing_ok=True)
