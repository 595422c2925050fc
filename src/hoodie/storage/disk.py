"""The system calls by which a local store changes files, one method each, so that tests can replace them.

Errors of the system become one sentence: the answer of the system, the file, and what to do.
"""

from __future__ import annotations

import errno
import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from hoodie.errors import StorageError

_NOT_SUPPORTED = frozenset(
    {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV, errno.EINVAL}
)
_AT_FDCWD = -100
_RENAME_NOREPLACE = 1  # Linux
_RENAME_EXCL = 4  # macOS
_ADVICE = {
    errno.EACCES: "give this user access to it, or choose another folder",
    errno.EPERM: "give this user access to it, or choose another folder",
    errno.ENOTDIR: "a file or a broken link is in the place of a folder",
    errno.EROFS: "mount the file system for writing, or choose another folder",
    errno.ENOSPC: "free some space and try again",
    errno.EDQUOT: "free some space and try again",
    errno.ENAMETOOLONG: "use shorter partition values, or another partition column",
    errno.ELOOP: "replace the symbolic links by the folders themselves",
}


class Disk:
    """System calls on absolute paths. All but `open_stream` return when the call has returned; none is retried."""

    def make_folder(self, path: str) -> None:
        """Make one folder. Raises: FileExistsError; FileNotFoundError if its parent is missing."""
        os.mkdir(path)

    def create_empty(self, path: str) -> None:
        """Create an empty file. Raises: FileExistsError."""
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))

    def write_new(self, path: str, data: bytes) -> None:
        """Create a file with these bytes. It is incomplete until the call returns. Raises: FileExistsError."""
        with open(path, "xb") as file:
            file.write(data)

    def link(self, source: str, target: str) -> None:
        """Give the file a second name. Raises: FileExistsError; OSError if the file system has no hard links."""
        os.link(source, target)

    def rename_new(self, source: str, target: str) -> None:
        """Rename the file. Raises: FileExistsError if `target` exists; OSError if the system has no such call."""
        call = _exclusive_rename()
        if call is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), source, None, target)
        code = call(os.fsencode(source), os.fsencode(target))
        if code:
            raise OSError(code, os.strerror(code), source, None, target)

    def rename(self, source: str, target: str) -> None:
        """Rename the file; an existing `target` is replaced."""
        os.replace(source, target)

    def unlink(self, path: str) -> None:
        """Remove the name of a file or link. Raises: FileNotFoundError."""
        os.unlink(path)

    def remove_folder(self, path: str) -> None:
        """Remove an empty folder. Raises: FileNotFoundError; OSError if it is not empty."""
        os.rmdir(path)

    def sync_file(self, path: str) -> None:
        """Return when the file's bytes survive a power failure."""
        _sync(path, os.O_RDONLY)

    def sync_folder(self, path: str) -> None:
        """Return when the names in the folder survive a power failure."""
        _sync(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))

    def open_stream(self, path: str, closed: Callable[[], None]) -> pa.NativeFile:
        """Open a streaming writer that truncates the file; `closed` is called once, after the file was closed."""
        return _Stream(path, closed)


class _Stream(pa.OSFile):  # type: ignore[misc]
    """A file of Arrow that calls `closed` when it is closed. Arrow writes to it without a call of Python."""

    def __new__(cls, path: str, closed: Callable[[], None]) -> _Stream:
        return super().__new__(cls, path, "wb")  # type: ignore[no-any-return]

    def __init__(self, path: str, closed: Callable[[], None]) -> None:
        self._on_close = closed

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if not self.closed:
            super().close()
            self._on_close()


def is_unsupported(error: OSError) -> bool:
    """Return whether the error of `link` or `rename_new` means that the file system does not have the call."""
    return error.errno in _NOT_SUPPORTED


def _sync(path: str, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@functools.cache
def _exclusive_rename() -> Callable[[bytes, bytes], int] | None:
    """Return the system's rename that replaces nothing (it returns an errno, or 0), or None if it has no such call."""
    import ctypes

    try:
        library = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            function, before, between, flags = library.renamex_np, (), (), _RENAME_EXCL
        else:
            function, before, between, flags = library.renameat2, (_AT_FDCWD,), (_AT_FDCWD,), _RENAME_NOREPLACE
    except (OSError, AttributeError):
        return None

    def call(source: bytes, target: bytes) -> int:
        done = function(*before, source, *between, target, ctypes.c_uint(flags))
        return ctypes.get_errno() if done else 0

    return call


def explanation(where: str, error: OSError) -> StorageError:
    """Return the error to raise instead of the system's; `where` is the file or folder."""
    advice = _ADVICE.get(error.errno or 0, "check the disk and try again")
    what = os.strerror(error.errno) if error.errno else " ".join(str(error).split())
    return StorageError(f"{where}: {what}; {advice}", error.errno)


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Raise `StorageError` instead of the system's errors, except for missing and existing files.

    For streaming writers, because Arrow writes without a call of the store.
    """
    try:
        yield
    except (StorageError, FileNotFoundError, FileExistsError):
        raise
    except OSError as error:
        raise explanation(where, error) from error
