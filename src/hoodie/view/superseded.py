"""Files of an earlier state that are gone, although writes after it say that they read them: they were lost.

A listing does not show that a file was lost: the older file of its group looks like the newest one then. A write names
the base file that it replaces, and the plan of a service all files that it reads. So the writes after a state show
which files the state has in the file groups that they changed. An append to a log file names no file in later versions
than 6: there the newest rows need the same files, until the next compaction names them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress

from hoodie.engine import LocalEngine, TaskContext
from hoodie.errors import CorruptFileError, InstantNotFoundError
from hoodie.files.slices import FileSlice, join_path
from hoodie.format.filenames import name_of
from hoodie.format.instants.commit_metadata import REARRANGING
from hoodie.format.instants.replaced_files import Findings, Replaced, found_by
from hoodie.timeline import Instant
from hoodie.view.pending_plans import FileGroup, input_files
from hoodie.view.table_view import TableView

_FILES_KEPT = 100_000


def lost_before(
    view: TableView,
    slices: Collection[FileSlice],
    later: Sequence[Instant],
    *,
    partitions: Collection[str] | None = None,
    as_of: str | None = None,
) -> list[str]:
    """Return the paths of the files that a state has and `slices`, the slices of it that exist, lack; sorted.

    It is the state of the view, as of a requested time (inclusive) if there is one. `later` are the writes that
    completed after it; `partitions`: those of the slices, None for all. It takes a read of each of the writes, several
    at once, and one of the plan of a service. What archived writes did is not known, nor what one did whose file does
    not parse.
    """
    found = {one.group: one for one in slices}
    gone, lost, ended, written = view.replaced_file_ids(as_of), set[str](), set[FileGroup](), set[FileGroup]()
    for write in _read(view, [one for one in later if one.requested_time not in view.archived_later]):
        written |= write.groups
        for one in write.replaced:
            path, file_id = one.group
            if (partitions is None or path in partitions) and file_id not in gone.get(path, ()):
                lost |= {join_path(path, name) for name in _lacking(view, found.get(one.group), one, as_of)}
                ended |= {one.group} if one.is_ended else set()
    # A group that one of the writes began has no file in the state.
    ended -= found.keys() | written
    return sorted(lost | (_newest_files(view, ended, as_of) if ended else set()))


def _read(view: TableView, writes: Sequence[Instant]) -> list[Findings]:
    """Return what each write found. Nothing is known of writes that are gone.

    Memory: what was read stays in memory for later calls, up to 100,000 files of all writes.
    """
    known = view.state.commits.found

    def read(instant: Instant, _context: TaskContext) -> Findings:
        files: list[tuple[str, str]] = []
        try:
            commit = view.commit_metadata(instant)
            if commit.operation_type in REARRANGING:
                with suppress(CorruptFileError):
                    planned = input_files(view, instant)
                    files = [(path, name) for path, names in planned.items() for name in sorted(names)]
        except (CorruptFileError, InstantNotFoundError):
            return Findings()
        return found_by(commit, files)

    new = [one for one in writes if one.requested_time not in known]
    found = dict(zip(new, LocalEngine().run(read, new), strict=True)) if new else {}
    every = [found[one] if one in found else known[one.requested_time] for one in writes]
    kept = sum(map(len, known.values()))
    for instant, one in found.items():
        kept += len(one)
        if kept <= _FILES_KEPT:
            known[instant.requested_time] = one
    return every


def _lacking(view: TableView, found: FileSlice | None, was: Replaced, as_of: str | None) -> Iterator[str]:
    """Yield the names of the files of `was` that the state has and its slice lacks.

    A slice with a newer base file has the rows of the older files. In version 6 the name of a log file does not show
    which write made it.
    """
    base = None if found is None else found.base_file
    if was.base is not None and (base is None or base.instant_time < was.base.instant_time):
        time = was.base.instant_time
        if view.timeline.contains_or_before_start(time) and (as_of is None or time <= as_of):
            yield was.base.name
    has = set() if found is None else {name_of(path) for path in found.paths}
    is_same = base is None or (was.base is not None and base.instant_time <= was.base.instant_time)
    if is_same and not view.config.may_have_slice_logs:
        for log in was.logs:
            wrote = view.timeline.get(log.instant_time)
            is_seen = wrote is not None and wrote.is_completed and (as_of is None or log.instant_time <= as_of)
            if is_seen and not log.is_cdc and log.name not in has:
                yield log.name


def _newest_files(view: TableView, groups: Collection[FileGroup], as_of: str | None) -> set[str]:
    """Return the newest file of each group that a write of the active timeline recorded; reads writes until all are."""
    left, found = set(groups), set[str]()
    for instant in reversed(view.completed_writes()):
        if not left:
            break
        if as_of is None or instant.requested_time <= as_of:
            for stat in view.commit_metadata(instant).write_stats():
                group = (stat.partition_path or "", stat.file_id or "")
                if group in left and stat.path:
                    left.discard(group)
                    found.add(stat.path)
    return found
