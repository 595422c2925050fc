"""The savepoints of a table: commits whose files no service deletes (docs/format/table.md §9.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hoodie.errors import CorruptFileError
from hoodie.format.instants.service_metadata import SavepointMetadata
from hoodie.timeline import Action, Instant, read_instant
from hoodie.view.cleaned import oldest_readable_instant

if TYPE_CHECKING:
    from hoodie.view.table_view import TableView

_NAMES_KEPT = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Savepoint:
    """A completed savepoint. `instant` is the requested time of the commit that it keeps.

    `files` are the names of base and log files by partition path; `created_at_ms` is milliseconds since the epoch.
    """

    instant: str
    user: str
    comment: str
    created_at_ms: int
    files: Mapping[str, tuple[str, ...]] = field(repr=False, hash=False)

    def to_dict(self) -> dict[str, object]:
        """Return plain values, for JSON; `files` is the number of files."""
        files = sum(map(len, self.files.values()))
        named = {"instant": self.instant, "user": self.user, "comment": self.comment}
        return {**named, "created_at_ms": self.created_at_ms, "partitions": len(self.files), "files": files}


def savepointed_instants(view: TableView) -> tuple[str, ...]:
    """Return the requested times of the commits that have a completed savepoint, in ascending order."""
    completed = view.whole_timeline().completed()
    return tuple(found.requested_time for found in completed if found.action is Action.SAVEPOINT)


def savepoints(view: TableView) -> tuple[Savepoint, ...]:
    """Return the completed savepoints in the order of their commits; one read for each that was not read before.

    Memory: the names of the files of all savepoints; at most 100,000 of them stay in memory for later calls.

    Raises: CorruptFileError if a savepoint does not parse.
    """
    found = (view.timeline.get(time, Action.SAVEPOINT) for time in savepointed_instants(view))
    saved = {instant: read_savepoint(view, instant) for instant in found if instant is not None}
    kept, names = dict[Instant, Savepoint](), 0
    for instant, savepoint in saved.items():
        names += sum(map(len, savepoint.files.values()))
        if names <= _NAMES_KEPT:
            kept[instant] = savepoint
    view.state.commits.savepoints = kept
    return tuple(saved.values())


def readable_savepoints(view: TableView, before: str | None = None) -> tuple[str, ...]:
    """Return the commits with a savepoint that are older than `before`; their snapshots stay readable behind cleans.

    `before` is a requested time; by default the oldest readable instant. Raises: as `oldest_readable_instant`.
    """
    bound = oldest_readable_instant(view) if before is None else before
    return tuple(time for time in savepointed_instants(view) if time < bound)


def read_savepoint(view: TableView, instant: Instant) -> Savepoint:
    """Return a completed savepoint; it is read if `savepoints` did not read it. Raises: CorruptFileError."""
    known = view.state.commits.savepoints.get(instant)
    if known is not None:
        return known
    content = read_instant(view.store, view.layout, instant)
    path = view.path_of(instant)
    if not content:
        raise CorruptFileError(
            f"expected the files of the savepoint, found 0 bytes: its writer died. Delete it with "
            f"t.delete_savepoint('{instant.requested_time}'), and create it again",
            path=path,
        )
    saved = SavepointMetadata.parse(content, path=path)
    return Savepoint(
        instant=instant.requested_time,
        user=saved.savepointed_by,
        comment=saved.comments,
        created_at_ms=saved.savepointed_at,
        files={name: part.savepoint_data_file for name, part in saved.partition_metadata.items()},
    )
