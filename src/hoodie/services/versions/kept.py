"""The timeline of the old version, which an upgrade or downgrade keeps: `t.drop_old_timeline`, and a check of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from hoodie.commit.call import Call
from hoodie.errors import CommitConflictError
from hoodie.files.table_properties import update_table_config
from hoodie.format.table import table_keys as keys
from hoodie.format.table.table_config import TableConfig
from hoodie.format.table.versions import TableVersion
from hoodie.progress import PhaseTimes
from hoodie.results import ServiceResult
from hoodie.services.versions.timeline_copy import forget_timeline, instant_files
from hoodie.storage import FileInfo
from hoodie.timeline import Instant, layout_of
from hoodie.view.table_view import TableView

MOVE: Final = "hoodie.python.version.move"
"""The property that names an unfinished move, or one whose old timeline is kept: `6-8 copying`, `6-8 kept <time>`."""
COPYING: Final = "copying"
KEPT: Final = "kept"
DROP_OLD: Final = "drop old timeline"


def drop_old_timeline(call: Call, *, dry_run: bool) -> ServiceResult:
    """Delete the timeline that the last upgrade or downgrade kept. Readers and writers do not use it.

    Raises: CommitConflictError if a writer of the old version wrote to it after the move: its rows are not in the
        table. Nothing is deleted then.
    """
    times = PhaseTimes()
    if dry_run:
        return _old_timeline(call.load(), times, dry_run=True)
    with TableView.locked(call.state, call.properties) as view, times.phase("delete"):
        result = _old_timeline(view, times)
        if (old := _kept(view)) is not None:
            view.held_lock.ensure_held()
            forget_timeline(view.store, old[0])
            update_table_config(view.store, {MOVE: None})
    return replace(result, seconds=times.seconds())


def _old_timeline(view: TableView, times: PhaseTimes, *, dry_run: bool = False) -> ServiceResult:
    """Count the files of the old timeline. Raises: as `drop_old_timeline`."""
    old = _kept(view)
    if old is None:
        return ServiceResult(operation=DROP_OLD, dry_run=dry_run, notes=("no old timeline is kept",))
    config, moved_at = old
    files = instant_files(view.store, config)
    later = _later_among(files, config, moved_at)
    if later:
        raise CommitConflictError(
            f"{view.store.uri('')}: expected no instant of version {config.version.value} after the move at "
            f"{moved_at}, found {later[0].requested_time}: a writer still writes that version, and its rows are "
            "not in the table. Stop it, write these rows again, and delete its instant files"
        )
    return ServiceResult(
        operation=DROP_OLD, counts={"files_deleted": len(files)}, seconds=times.seconds(), dry_run=dry_run
    )


def written_after_move(view: TableView) -> list[Instant]:
    """Return the instants of the kept timeline that began after the move, oldest first; one listing if there is one."""
    old = _kept(view)
    return [] if old is None else _later_among(instant_files(view.store, old[0]), *old)


def _later_among(files: Iterable[FileInfo], config: TableConfig, moved_at: str) -> list[Instant]:
    """Return the instants of these files of a kept timeline that began after the move, oldest first."""
    parsed = (layout_of(config).parse_name(info.name) for info in files)
    later = {found.requested_time: found for found in parsed if found and found.requested_time > moved_at}
    return [later[time] for time in sorted(later)]


def _kept(view: TableView) -> tuple[TableConfig, str] | None:
    """Return the form of the timeline that is kept, and the time of the move; None if none is."""
    names, _, rest = view.config.raw.get(MOVE, "").partition(" ")
    state, _, moved_at = rest.partition(" ")
    first, _, second = names.partition("-")
    own = view.config.version
    other = first if state == KEPT else second
    if not other.isdigit() or TableVersion.of(int(other)).layout_version == own.layout_version:
        return None
    version = TableVersion.of(int(other))
    stored = {keys.VERSION: other, keys.LAYOUT_VERSION: str(version.layout_version)}
    return view.config.with_changes(**stored), moved_at or "9"
