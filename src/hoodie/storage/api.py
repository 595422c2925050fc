"""The one door to a file system: what every store does, and how a worker re-opens one.

All paths are relative to the table's base path, use `/`, and never start or end with it. `""` is the base path itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file: path relative to the base path, size in bytes, last change in epoch milliseconds."""

    path: str
    size_bytes: int
    modified_ms: int

    @property
    def name(self) -> str:
        """The last component of the path."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """What a worker needs to open the same store again: plain, picklable, hashable."""

    uri: str
    options: tuple[tuple[str, str], ...] = ()

    @property
    def is_private(self) -> bool:
        """Whether only this process reaches the store: in memory, or a test double."""
        return self.uri.startswith(("memory://", "fault+"))


class Store(Protocol):
    """A table's folder. Thread-safe. Missing files raise `FileNotFoundError`."""

    @property
    def spec(self) -> StoreSpec:
        """How to open this store in another process."""
        ...

    def uri(self, path: str) -> str:
        """The absolute path or URI of a file, as Spark and other engines take it."""
        ...

    def folders(self, folder: str) -> list[str]:
        """Paths of the folders directly in `folder`, sorted; a missing folder has none."""
        ...

    def names(self, folder: str) -> list[str]:
        """Names of the files directly in `folder`, sorted; for less than `list` where sizes are asked one by one."""
        ...

    def list(self, folder: str, *, recursive: bool = False) -> list[FileInfo]:
        """Files directly in `folder` (or anywhere below it), sorted by path; a missing folder is empty.

        Checksum sidecars (`.*.crc`) and half-written temporary files are left out.
        """
        ...

    def head(self, path: str) -> FileInfo | None:
        """Size and change time of one file, or None if it does not exist."""
        ...

    def read(self, path: str) -> bytes:
        """The whole file."""
        ...

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Bytes `[start, start + length)`; shorter only at the end of the file."""
        ...

    def create(self, path: str, data: bytes) -> None:
        """Create the file with all its bytes in one atomic step; `FileExistsError` if it is there."""
        ...

    def replace(self, path: str, data: bytes) -> None:
        """Create or overwrite the file in one atomic step."""
        ...

    def delete(self, path: str) -> None:
        """Delete the file; a missing one is fine."""
        ...

    def delete_folder(self, folder: str) -> None:
        """Delete the folder and all below it; a missing one is fine."""
        ...

    def open_input(self, path: str) -> pa.NativeFile:
        """Random-access reader (for Parquet)."""
        ...

    def open_output(self, path: str) -> pa.NativeFile:
        """Streaming writer (for Parquet); the file is whole once it is closed without an error."""
        ...
