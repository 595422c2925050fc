"""Rules for paths relative to a table's base path, and which file names a listing leaves out."""

from __future__ import annotations

from hoodie.errors import PartitionPathError

TEMPORARY_PREFIX = ".tmp-"
"""Names of half-written files begin so. The JVM takes them neither for a log file nor for an instant."""


def checked_path(path: str) -> str:
    """Return `path` if it stays inside the table's folder.

    Raises:
        PartitionPathError: it is absolute, empty, or has an empty, `.` or `..` component or a NUL character.
    """
    if "\0" in path or any(part in ("", ".", "..") for part in path.split("/")):
        raise PartitionPathError(
            f"{path!r} is not a path inside the table's folder: expected components joined by '/', none of them "
            "empty, '.' or '..'. If it comes from a partition value, change that value or turn on url-encoding"
        )
    return path


def checked_folder(folder: str) -> str:
    """Return `folder` if it stays inside the table's folder; `""` is the base path itself.

    Raises:
        PartitionPathError: as `checked_path`.
    """
    return checked_path(folder) if folder else folder


def checked_deletable(folder: str) -> str:
    """Return `folder` if it may be deleted with all its content.

    Raises:
        PartitionPathError: as `checked_path`, or it is the base path: the partition path of an unpartitioned
            table is `""`, and must never erase the table.
    """
    if not folder:
        raise PartitionPathError("refusing to delete the table's base path: name the folders below it one by one")
    return checked_path(folder)


def join(folder: str, name: str) -> str:
    """Path of `name` in `folder`, where `""` is the base path."""
    return f"{folder}/{name}" if folder else name


def is_listed(name: str) -> bool:
    """Whether a listing shows the file: neither a Hadoop checksum sidecar nor a half-written file."""
    return not name.startswith(".") or not (name.endswith(".crc") or name.startswith(TEMPORARY_PREFIX))


def sidecar_name(name: str) -> str:
    """Name of the checksum file that Hadoop's local file system keeps beside `name`."""
    return f".{name}.crc"
