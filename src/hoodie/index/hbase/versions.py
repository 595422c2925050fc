"""The versions of an index row: the locations of a key, each with the instant of the write that stored it.

On-disk format: docs/format/hbase.md. A version is the cells of one time stamp. It counts if its instant is committed,
so that a rollback or a restore changes nothing in HBase: the newest committed version is the location of the key.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from hoodie.index.hbase.client import Cells, Row

COMMIT_TS: Final = b"commit_ts"
FILE_NAME: Final = b"file_name"
PARTITION_PATH: Final = b"partition_path"
DELETED_TS: Final = b"deleted_ts"
"""Instant of the write that deleted the key; the other three columns are those of the JVM's HBase index."""
NEVER: Final = b"99991231235959999"
"""Instant of versions that are no location: it is never on a timeline, so that a JVM takes their keys as unknown."""
IDENTITY_ROW: Final = b"\x00hoodie.index.hbase"
"""Key of the row that has the identity of the index and the table to which it belongs."""
IDENTITY: Final = b"id"
OWNER: Final = b"table"

_BUILT: Final = "0000"
_VOID: Final[Cells] = ((COMMIT_TS, NEVER), (FILE_NAME, b""), (PARTITION_PATH, b""), (DELETED_TS, b""))


@dataclass(frozen=True, slots=True)
class Version:
    """One version: the instant of its write, and the partition path and file id; None if the write deleted the key."""

    instant_time: str
    location: tuple[str, str] | None


def built_instant(identity: str) -> str:
    """Return the instant of the versions that the build of this identity stores: it is before every real one.

    So every later write replaces them, also a clustering that was planned before the build. Versions of other builds,
    whose tasks may still run, do not count.
    """
    return f"{_BUILT}{int.from_bytes(hashlib.blake2b(identity.encode(), digest_size=5).digest(), 'big'):013d}"


def is_built(instant_time: str) -> bool:
    """Return whether a build stored the versions of this instant."""
    return instant_time.startswith(_BUILT)


def location_cells(instant_time: str, partition_path: str, file_id: str) -> Cells:
    """Return the cells of a location."""
    return (
        (COMMIT_TS, instant_time.encode()),
        (FILE_NAME, file_id.encode()),
        (PARTITION_PATH, partition_path.encode()),
    )


def deleted_cells(instant_time: str) -> Cells:
    """Return the cells of a version that says that its write deleted the key."""
    return (*_VOID[:3], (DELETED_TS, instant_time.encode()))


def void_cells() -> Cells:
    """Return the cells that replace a version that an earlier attempt at the same instant stored."""
    return _VOID


def versions_of(row: Row) -> list[Version]:
    """Return the versions of a row by the instants of their writes, the newest first."""
    by_stamp: dict[int, dict[bytes, bytes]] = {}
    for cell in row.columnValues or ():
        by_stamp.setdefault(cell.timestamp, {})[cell.qualifier] = cell.value
    # Of two rounds of a build, which store one instant, the later one counts.
    found = [version for _, cells in sorted(by_stamp.items(), reverse=True) if (version := _version(cells)) is not None]
    return sorted(found, key=lambda version: version.instant_time, reverse=True)


def _version(cells: dict[bytes, bytes]) -> Version | None:
    deleted, commit = cells.get(DELETED_TS), cells.get(COMMIT_TS)
    if deleted:
        return Version(deleted.decode(), None)
    if not commit or commit == NEVER or FILE_NAME not in cells:
        return None
    return Version(commit.decode(), (cells.get(PARTITION_PATH, b"").decode(), cells[FILE_NAME].decode()))
