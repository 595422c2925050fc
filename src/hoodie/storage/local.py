"""Tables on a local (or mounted) file system.

The process may stop at any point without leaving a half-written file that readers take for a complete file. Like the
JVM writer, the store does not call fsync: after a power failure the last files may be missing or short.
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

    It uses no object-store library: such libraries percent-encode names, and Hudi stores names without encoding.
    """

    def __init__(self, base_path: str | os.PathLike[str]) -> None:
        """Open the folder; it may be missing. A relative path is relative to the working directory."""
        self._root = Path(os.path.normpath(Path(base_path).absolute()))

    def __repr__(self) -> str:
        return f"LocalStore({str(self._root)!r})"

    @property
    def spec(self) -> StoreSpec:
        """The description with which another process of this machine opens this store."""
        return StoreSpec(str(self._root))

    def uri(self, path: str) -> str:
        """Return `file://` and the path without percent-encoding, as Hadoop and Spark expect."""
        return f"file://{self._folder(path)}"

    def folders(self, folder: str) -> list[str]:
        """Return the paths of the folders directly in `folder`, sorted; empty folders are included."""
        return sorted(join(folder, e.name) for e in self._entries(checked_folder(folder)) if e.is_dir())

    def names(self, folder: str) -> list[str]:
        """Return the names of the files directly in `folder`, sorted; none for a missing folder."""
        entries = self._entries(checked_folder(folder))
        return sorted(entry.name for entry in entries if is_listed(entry.name) and not entry.is_dir())

    def list(self, folder: str, *, recursive: bool = False) -> list[FileInfo]:
        """Return the files directly in `folder` (or anywhere below it), sorted by path; none for a missing folder."""
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
        """Return size and change time of one file, or None if it does not exist or is a folder."""
        target = self._file(path)
        return None if target.is_dir() else _file_info(path, target.stat)

    def read(self, path: str) -> bytes:
        """Return the content of the file."""
        return self._file(path).read_bytes()

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Return the bytes `[start, start + length)`; fewer only at the end of the file."""
        with self._file(path).open("rb") as file:
            file.seek(start)
            return file.read(length)

    def create(self, path: str, data: bytes) -> None:
        """Create the file with all its bytes in one atomic step. Raises `FileExistsError` if the file exists.

        If the file system has no hard links, a reader may see an incomplete file; still only one writer creates it.
        """
        target = self._file(path)
        self._with_parent(target, lambda: _create_file(target, data))

    def replace(self, path: str, data: bytes) -> None:
        """Create or overwrite the file in one atomic step."""
        target = self._file(path)
        self._with_parent(target, lambda: _replace_file(target, data))

    def delete(self, path: str) -> None:
        """Delete the file and its checksum sidecar; does nothing for a missing file."""
        target = self._file(path)
        _delete_sidecar(target)
        target.unlink(missing_ok=True)

    def delete_folder(self, folder: str) -> None:
        """Delete the folder and everything below it; does nothing if it does not exist."""
        target = self._folder(checked_deletable(folder))
        while target.exists():
            try:
                shutil.rmtree(target)
            except FileNotFoundError:
                continue  # another process deletes here too: delete the remaining files

    def open_input(self, path: str) -> pa.NativeFile:
        """Open a random-access reader. Not memory-mapped: a truncated file must raise an error, not end the process."""
        return pa.OSFile(str(self._file(path)), mode="rb")

    def open_output(self, path: str) -> pa.NativeFile:
        """Open a streaming writer on the final name; the file is complete once it is closed without an error."""
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
        """Run `action`; if the folder of `target` is missing, create the folder and run `action` again."""
        try:
            return action()
        except FileNotFoundError:
            target.parent.mkdir(parents=True, exist_ok=True)
            return action()


def _file_info(path: str, stat: Callable[[], os.stat_result]) -> FileInfo | None:
    """Return path, size and change time of a file, or None if it was deleted after the listing."""
    try:
        status = stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return FileInfo(path, status.st_size, status.st_mtime_ns // 1_000_000)


def _create_file(target: Path, data: bytes) -> None:
    if not data:
        # An empty file is complete as soon as it exists: no temporary file is needed.
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
        # With the sidecar of a deleted file of this name, the JVM's checksum test of the new file would fail.
        _delete_sidecar(target)
        file.write(data)


def _replace_file(target: Path, data: bytes) -> None:
    temporary = _write_temporary(target, data)
    try:
        # Delete the sidecar first: the JVM reads a file without a sidecar, but not a file with a wrong checksum.
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
