"""Rules for paths relative to a table's base path, for the file names that a listing skips, and spellings of URIs."""

from __future__ import annotations

import os
from typing import Final

from hoodie.errors import PartitionPathError

TEMPORARY_PREFIX = ".tmp-"
"""Prefix of the names of half-written files. The JVM does not read such a file as a log file or an instant."""

OBJECT_SCHEMES = frozenset({"s3", "s3a", "s3n", "gs", "gcs", "az", "adl", "azure", "abfs", "abfss"})
"""The schemes of tables in an object store."""

_GLOB_CHARACTERS: Final = frozenset("\\{}[]*?")
_NO_NAMES = frozenset({"", ".", ".."})
_LOCKS = (".hoodie/lock", ".hoodie/.locks/takeover-")
_VOLATILE = (*_LOCKS, ".hoodie/.locks/prepared-", ".hoodie/.heartbeat/", ".hoodie/.temp/stage-")
"""Beginnings of the paths of files that only a running writer needs: they are of no use after a power failure."""


def checked_path(path: str) -> str:
    """Return `path` if it is inside the table's folder.

    Raises:
        PartitionPathError: the path is absolute or empty, or has an empty, `.` or `..` component or a NUL character.
    """
    if "\0" in path or not _NO_NAMES.isdisjoint(path.split("/")):
        raise PartitionPathError(
            f"{path!r} is not a path inside the table's folder: expected components joined by '/', none of them "
            "empty, '.' or '..'. If the path comes from a partition value, change that value or turn on url-encoding"
        )
    return path


def checked_folder(folder: str) -> str:
    """Return `folder` if it is inside the table's folder; `""` is the base path.

    Raises:
        PartitionPathError: as `checked_path`.
    """
    return checked_path(folder) if folder else folder


def checked_deletable(folder: str) -> str:
    """Return `folder` if it may be deleted with all its content.

    Raises:
        PartitionPathError: as `checked_path`, or the folder is the base path: the partition path of a
            non-partitioned table is `""`, and deleting that partition must never delete the table.
    """
    if not folder:
        raise PartitionPathError("refusing to delete the table's base path: name the folders below it one by one")
    return checked_path(folder)


def join(folder: str, name: str) -> str:
    """Return the path of `name` in `folder`; `""` is the base path."""
    return f"{folder}/{name}" if folder else name


def is_listed(name: str) -> bool:
    """Return whether a listing contains the file: it skips Hadoop checksum sidecars and half-written files."""
    return name[:1] != "." or not (name.endswith(".crc") or name.startswith(TEMPORARY_PREFIX))


def is_temporary(name: str) -> bool:
    """Return whether the file is half-written: a running process finishes it, a dead one does not."""
    return name.startswith(TEMPORARY_PREFIX)


def sidecar_name(name: str) -> str:
    """Return the name of the checksum file that Hadoop's local file system stores in the same folder as `name`."""
    return f".{name}.crc"


def is_volatile(path: str) -> bool:
    """Return whether the file matters only while its writer runs: locks, heartbeats and staged rows."""
    return path.startswith(_VOLATILE)


def is_never_empty(path: str) -> bool:
    """Return whether the file must have all its bytes even after a power failure, if its name is left: a lock.

    The name of a file may be stored before its bytes. An empty lock file would count as the lock of a running JVM.
    """
    return path.startswith(_LOCKS)


def literal_path(path: str) -> str:
    """Escape the glob characters of Hadoop in a path or URI, so that Spark reads exactly this path.

    >>> print(literal_path("/lake/a[1].parquet"))
    /lake/a\\[1\\].parquet
    """
    return "".join(f"\\{char}" if char in _GLOB_CHARACTERS else char for char in path)


def native_scheme(scheme: str) -> str:
    """Return the scheme of an object store's own client: `s3a` and `s3n` are Hadoop's names of `s3`."""
    return {"s3a": "s3", "s3n": "s3", "gcs": "gs"}.get(scheme, scheme)


def one_spelling(uri: str) -> str:
    """Return the same text for the paths and URIs that lead to one folder; local links are followed."""
    scheme, separator, rest = uri.partition("://")
    if separator and scheme != "file":
        return f"{native_scheme(scheme)}://{rest.rstrip('/')}"
    return os.path.realpath(uri.removeprefix("file://").removeprefix("file:"))
