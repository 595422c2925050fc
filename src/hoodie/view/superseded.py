"""Files of an earlier state that are gone, although writes after it say that they read them: they were lost.

A listing does not show that a file was lost: the older file of its group looks like the newest one then. A write names
the base file that it replaces, and the plan of a service all files that it reads. So the writes after a state show
which files the state has, of the file groups that they changed; no other file can have lost its place in the listing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from hoodie.engine import LocalEngine, TaskContext
from hoodie.errors import CorruptFileError, InstantNotFoundError
from hoodie.files.slices import FileSlice, join_path
from hoodie.format.filenames import BaseFileName, LogFileName, name_of, parse_data_file
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteOperation
from hoodie.timeline import Instant
from hoodie.view.pending_plans import FileGroup, input_files
from hoodie.view.table_view import TableView

_PLANNED = frozenset({WriteOperation.COMPACT, WriteOperation.LOG_COMPACT, WriteOperation.CLUSTER})


@dataclass(frozen=True, slots=True)
class Replaced:
    """What a write found in a file group that it changed: the names of the files that it is known to have read.

    `is_ended`: the write replaced the whole file group; its newest files were there, even if they are not named.
    """

    group: FileGroup
    base: BaseFileName | None
    logs: tuple[LogFileName, ...] = ()
    is_ended: bool = False


def replaced_by(commit: CommitMetadata, read: Iterable[tuple[str, str]] = ()) -> Iterator[Replaced]:
    """Yield what a write found; `read` are the partition paths and names of the files in the plan of a service."""
    for stat in commit.write_stats():
        group = (stat.partition_path or "", stat.file_id or "")
        base = _base(stat.prev_base_file or stat.base_file or "")
        if base is not None and base.file_id == stat.file_id:
            yield Replaced(group, base)
    planned: dict[FileGroup, list[BaseFileName | LogFileName]] = {}
    for path, text in read:
        name = parse_data_file(text)
        if name is not None:
            planned.setdefault((path, name.file_id), []).append(name)
    for group, names in planned.items():
        bases = (name for name in names if isinstance(name, BaseFileName))
        yield Replaced(group, next(bases, None), tuple(name for name in names if isinstance(name, LogFileName)))
    for path, file_ids in (commit.partition_to_replace_file_ids or {}).items():
        yield from (Replaced((path, file_id), None, is_ended=True) for file_id in file_ids)


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
    found = {(one.partition_path, one.file_id): one for one in slices}
    gone, lost, ended, written = view.replaced_file_ids(as_of), set[str](), set[FileGroup](), set[FileGroup]()
    for groups, was in _read(view, [one for one in later if one.requested_time not in view.archived_later]):
        written |= groups
        for one in was:
            path, file_id = one.group
            if (partitions is None or path in partitions) and file_id not in gone.get(path, ()):
                lost |= {join_path(path, name) for name in _lacking(view, found.get(one.group), one, as_of)}
                ended |= {one.group} if one.is_ended else set()
    # A group that one of the writes began has no file in the state.
    ended -= found.keys() | written
    return sorted(lost | (_newest_files(view, ended, as_of) if ended else set()))


def _base(text: str) -> BaseFileName | None:
    return BaseFileName.parse(name_of(text))


def _read(view: TableView, writes: Sequence[Instant]) -> list[tuple[frozenset[FileGroup], tuple[Replaced, ...]]]:
    """Return the file groups that each write wrote, and what it found. Nothing is known of writes that are gone."""

    def read(instant: Instant, _context: TaskContext) -> tuple[frozenset[FileGroup], tuple[Replaced, ...]]:
        read: list[tuple[str, str]] = []
        try:
            commit = view.commit_metadata(instant)
            if commit.operation_type in _PLANNED:
                with suppress(CorruptFileError):
                    files = input_files(view, instant)
                    read = [(path, name) for path, names in files.items() for name in sorted(names)]
        except (CorruptFileError, InstantNotFoundError):
            return frozenset(), ()
        groups = frozenset((stat.partition_path or "", stat.file_id or "") for stat in commit.write_stats())
        return groups, tuple(replaced_by(commit, read))

    return LocalEngine().run(read, list(writes))


def _lacking(view: TableView, found: FileSlice | None, was: Replaced, as_of: str | None) -> Iterator[str]:
    """Yield the names of the files of `was` that the state has and its slice lacks.

    A slice with a newer base file has the rows of the older files. In version 6 the name of a log file does not show
    which write made it.
    """
    base = None if found is None else found.base_file
    if was.base is not None and _is_visible(view, was.base.instant_time, as_of):
        is_older = base is None or base.instant_time < was.base.instant_time
        yield from [was.base.name] if is_older else []
    has = set() if found is None else {name_of(path) for path in found.paths}
    is_same = base is None or (was.base is not None and base.instant_time <= was.base.instant_time)
    if is_same and not view.config.may_have_slice_logs:
        for log in was.logs:
            wrote = view.timeline.get(log.instant_time)
            is_seen = wrote is not None and wrote.is_completed and (as_of is None or log.instant_time <= as_of)
            if is_seen and not log.is_cdc and log.name not in has:
                yield log.name


def _is_visible(view: TableView, time: str, as_of: str | None) -> bool:
    return view.timeline.contains_or_before_start(time) and (as_of is None or time <= as_of)


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
