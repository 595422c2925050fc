"""The interface of all stores, and the description with which a worker opens a store again.

All paths are relative to the table's base path. They use `/`, and never start or end with `/`. `""` is the base path.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import pyarrow as pa

from hoodie.errors import StorageError
from hoodie.format.filenames import name_of
from hoodie.storage.options import shown


class FileInfo(NamedTuple):
    """One file: path relative to the base path, size in bytes, last change in epoch milliseconds."""

    path: str
    size_bytes: int
    modified_ms: int
    tag: str | None = None
    """The ETag in an object store: a file of another content has another one. None elsewhere."""

    @property
    def name(self) -> str:
        """The last component of the path, which is the file name."""
        return name_of(self.path)


_LOCAL_NAME_BYTES_MAX = 255
_LOCAL_PATH_BYTES_MAX = 4095
_KEY_BYTES_MAX = 1024
"""S3, GCS and Azure agree on about this length of a key."""
_FILE_NAME_BYTES = 255
"""Kept free for the longest file name and the folder of markers."""


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """All that a worker needs to open the same store again; picklable and hashable."""

    uri: str
    options: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        """Show the names of all options, and the values of those that are never secret."""
        options = "".join(f", {shown(name, value)}" for name, value in self.options)
        return f"StoreSpec({self.uri!r}{options})"

    @property
    def is_private(self) -> bool:
        """Whether only this process can open the store: a store in memory, or a test double."""
        return self.uri.startswith(("memory://", "fault+"))

    @property
    def is_remote(self) -> bool:
        """Whether the folder is in an object store, where each call is a request over a network."""
        return not self.is_private and "://" in self.uri and not self.uri.startswith("file:")

    @property
    def folder_limits(self) -> tuple[int, int]:
        """The greatest bytes of a folder's name, and of its path below the table; file names fit beside the path.

        A local disk limits each name and the whole path, an object store only the key.
        """
        is_local = "://" not in self.uri or self.uri.startswith("file:")
        path_bytes_max = (_LOCAL_PATH_BYTES_MAX if is_local else _KEY_BYTES_MAX) - len(self.uri.encode())
        path_bytes_max = max(1, path_bytes_max - _FILE_NAME_BYTES)
        return (_LOCAL_NAME_BYTES_MAX if is_local else path_bytes_max), path_bytes_max


@dataclass(frozen=True, slots=True)
class FileVersion:
    """What identifies one version of an object: its ETag, and its generation where the service has one."""

    e_tag: str | None
    version: str | None = None

    @property
    def tag(self) -> str | None:
        """The ETag without quotes, which Azure has in the answer to a put but not in a listing; None if empty."""
        return (self.e_tag or "").strip('"') or None


class UnsyncedError(StorageError):
    """The call did all that it had to do, but a power failure may undo it: a durable store could not sync a folder."""


class ExistingFileError(StorageError, FileExistsError):
    """A file that a call was to create exists: another process has created it."""

    def __init__(self, where: str) -> None:
        """Name the file."""
        super().__init__(
            f"{where} exists: expected no file of this name, because this call creates it; another process has created "
            "it. Nothing was changed: load the table again, and run the operation again",
            errno.EEXIST,
        )

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the message, so that the error of a worker reaches the driver complete."""
        return StorageError, (str(self), self.errno)


class Store(Protocol):
    """A table's folder. Thread-safe. Reading a missing file raises `FileNotFoundError`.

    A method with content is for stores that have no better one.
    """

    @property
    def spec(self) -> StoreSpec:
        """The description with which another process opens this store."""

    def uri(self, path: str) -> str:
        """Return the absolute path or URI of a file in the form that Spark and other engines accept."""

    def folders(self, folder: str) -> list[str]:
        """Return the paths of the folders directly in `folder`, sorted; none for a missing folder."""

    def names(self, folder: str) -> list[str]:
        """Return the names of the files directly in `folder`, sorted.

        Cheaper than `list` in stores that need one call per file for its size.
        """
        return [info.name for info in self.list(folder)]

    def list(self, folder: str, *, recursive: bool = False) -> list[FileInfo]:
        """Return the files directly in `folder` (or anywhere below it), sorted by path; none for a missing folder.

        Checksum sidecars (`.*.crc`) and half-written temporary files are skipped.
        """

    def temporary_files(self) -> tuple[FileInfo, ...]:
        """Return the half-written temporary files of the whole folder, which `list` skips; sorted by path.

        Processes that died left them, or processes that run are writing them. Costs a listing of all folders.
        """

    def head(self, path: str) -> FileInfo | None:
        """Return size and change time of one file, or None if it does not exist."""

    def read(self, path: str) -> bytes:
        """Return the content of the file."""

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Return the bytes `[start, start + length)`; fewer only at the end of the file."""

    def create(self, path: str, data: bytes) -> None:
        """Create the file with all its bytes in one atomic step.

        A file that this call created counts as created, even if the answer was lost and the client repeated the call.
        Raises: ExistingFileError if another call created the file.
        """

    def replace(self, path: str, data: bytes) -> None:
        """Create or overwrite the file in one atomic step."""

    def refresh(self, path: str, expected: bytes) -> bool:
        """Renew the change time of the file if its content is `expected`; return whether it was.

        A file of another content is never changed, and a missing file is not created: another process may have deleted
        or replaced the file at any moment before the call.
        """

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Set the change time of a file (epoch milliseconds). In object stores it cannot be set; nothing is done."""

    def read_version(self, path: str) -> tuple[bytes, FileVersion]:
        """Return the content of the file and the version that was read. Raises: UnsupportedError on local disks."""

    def replace_version(self, path: str, data: bytes, version: FileVersion | None) -> FileVersion | None:
        """Replace the file if it still is `version` (None: if it does not exist); return its new version.

        Returns None if the file is another version: then nothing was changed. If the answer was lost and the client
        repeated the call, the file that the first one wrote is no other version. Raises: UnsupportedError on local
        disks.
        """

    def move(self, source: str, target: str) -> None:
        """Give the file `source` the name `target`; `target` appears in one atomic step, with all its bytes.

        Raises `FileNotFoundError` if `source` does not exist at that step; then `target` does not appear. So a process
        that deletes `source` can prevent the step. An existing `target` is overwritten: the caller chooses a name that
        no other process uses. `source` may remain: if the process dies, or the storage refuses to delete it after the
        step. After any other error the step may have been done: its answer may be lost (`UnsyncedError`: it was).
        """

    def delete(self, path: str) -> None:
        """Delete the file; does nothing if it does not exist."""

    def delete_all(self, paths: Sequence[str]) -> None:
        """Delete the files, with few requests where the storage can; missing files are skipped.

        After an error some of them may be deleted.
        """
        for path in paths:
            self.delete(path)

    def delete_folder(self, folder: str) -> None:
        """Delete the folder and everything below it; does nothing if it does not exist."""

    def open_input(self, path: str) -> pa.NativeFile:
        """Open a random-access reader (for Parquet)."""

    def open_output(self, path: str) -> pa.NativeFile:
        """Open a streaming writer (for Parquet); the file is complete once it is closed without an error."""

    def as_durable(self) -> Store:
        """Return a store of the same folder whose calls return when a power failure cannot undo what they wrote.

        This store, if its service keeps what it acknowledged, or its files end with the process.
        """
        return self

    def check_links(self, paths: Iterable[str]) -> None:
        """Refuse files that symbolic links lead out of the table's folder; for engines that open files by URI.

        Raises: PartitionPathError.
        """

    def check_writable(self) -> None:
        """Refuse a store in which tables cannot be created safely; nothing is left there.

        Raises: StorageError, UnsupportedError.
        """
