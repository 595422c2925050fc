"""The rows of the index in HBase: row keys, and the versions of a row with the rule which of them count.

On-disk format: docs/format/hbase.md. A row key is a record key in UTF-8. A version is the cells of one time stamp: a
location of the key, with the instant of the write that stored it. It counts if its instant is committed, so that a
rollback or a restore changes nothing in HBase: the newest committed version is the location of the key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import RecordKeyError
from hoodie.index.hbase.client import Cells, Row
from hoodie.view.table_view import TableView

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
VOID: Final[Cells] = ((COMMIT_TS, NEVER), (FILE_NAME, b""), (PARTITION_PATH, b""), (DELETED_TS, b""))
"""The cells that replace a version that an earlier attempt at the same instant stored."""


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


def location_cells(instant_time: str, partition_path: str, file_id: str) -> Cells:
    """Return the cells of a location."""
    return (
        (COMMIT_TS, instant_time.encode()),
        (FILE_NAME, file_id.encode()),
        (PARTITION_PATH, partition_path.encode()),
    )


def deleted_cells(instant_time: str) -> Cells:
    """Return the cells of a version that records a delete of the key."""
    return (*VOID[:3], (DELETED_TS, instant_time.encode()))


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


BYTES_MAX: Final = 2**15 - 1
"""Length of a row key that HBase accepts (`HConstants.MAX_ROW_LENGTH`)."""
_SHOWN = 40


def row_keys(keys: pa.StringArray) -> list[bytes]:
    """Return the row keys of record keys. Memory: a Python object for each.

    Raises: RecordKeyError for a key that HBase cannot have as a row key, or that is the row of the index's identity.
    """
    binary = keys.cast(pa.binary())
    lengths = pc.binary_length(binary)
    longest = pc.max(lengths).as_py() or 0
    if longest > BYTES_MAX:
        example = keys[pc.index(lengths, longest).as_py()].as_py()
        raise RecordKeyError(
            f"a record key has {longest:,} bytes, and HBase has row keys of at most {BYTES_MAX:,}: "
            f"{example[:_SHOWN]!r}…; nothing was committed. Shorten the key, or use another index"
        )
    if pc.index(binary, IDENTITY_ROW).as_py() >= 0:
        raise RecordKeyError(f"the record key {IDENTITY_ROW.decode()!r} is the row of the HBase index's identity")
    found: list[bytes] = binary.to_pylist()
    return found


def committed_instants(view: TableView, times: Collection[str], identity: str) -> set[str]:
    """Return those of the instants that are committed in a view. Reads the archive if the active timeline lacks some.

    An instant is committed if it is completed on the active timeline, or archived. Every other instant was rolled back,
    taken back by a restore, or never completed, even if it is before the start of the active timeline. A copied table
    may lack its archive; instants older than all others count as committed: their file groups exist only if they are.
    The instant of the build of this identity counts, and the instant of no other build: `readiness.check_recorded`
    checks the build for the whole index.

    Raises: CorruptFileError if the archive is damaged.
    """
    timeline = view.timeline
    active = {write.requested_time: write for write in timeline.writes()}
    found = {time for time in times if time in active and active[time].is_completed}
    found |= {built_instant(identity)} & set(times)
    unknown = {time for time in times if time not in active and not time.startswith(_BUILT)}
    if not unknown:
        return found
    archive = view.archive()
    found |= {instant.requested_time for instant in archive.find(unknown) if instant.action.writes_data}
    known = [time for time in (archive.oldest_time(), min(active, default="")) if time]
    return found | {time for time in unknown if known and time < min(known)}
