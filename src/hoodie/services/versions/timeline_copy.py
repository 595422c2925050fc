"""Copy a timeline and its archive into the form of another table version, beside the old one.

No reader sees the copy until `hoodie.properties` names the new version: version 6 has its instants in `.hoodie`, later
versions in `.hoodie/timeline`. A copy can be repeated. docs/format/table.md §2.1 to §2.3, §2.6, §2.7 and §8.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, TypeVar

from hoodie.engine import LocalEngine
from hoodie.errors import CorruptFileError, InvalidConfigError
from hoodie.files.table_properties import KEEP_FOLDER
from hoodie.format.instants.archive import ArchivedInstant
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.instants.service_metadata import RequestedReplaceMetadata
from hoodie.format.table.table_config import TableConfig
from hoodie.storage import FileInfo, Store
from hoodie.timeline import (
    Action,
    Fence,
    Instant,
    State,
    Timeline,
    archive_of,
    instant_time_of_ms,
    layout_of,
    ms_of_instant_time,
)
from hoodie.view.table_view import TableView, archive_folder

_T = TypeVar("_T")
_R = TypeVar("_R")
_THREADS: Final = 16
_AT_ONCE: Final = 256
"""Files that are read and written side by side, and archived instants of one file of the archive."""
_COMMITS: Final = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})


def instant_files(store: Store, config: TableConfig) -> list[FileInfo]:
    """Return the instant files of the active timeline in the form of these properties; the table may have another form.

    A name that both forms have belongs to the folder in which it is.
    """
    layout = layout_of(config)
    return [info for info in store.list(layout.instant_folder()) if layout.parse_name(info.name) is not None]


def forget_timeline(store: Store, config: TableConfig, *, keep: Iterable[str] = ()) -> None:
    """Delete the timeline and the archive in the form of these properties; `keep`: paths of instant files that stay."""
    kept = frozenset(keep)
    store.delete_all([info.path for info in instant_files(store, config) if info.path not in kept])
    store.delete_folder(archive_folder(config))


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """What was copied: checksums of the new files by their paths, and the numbers of instants."""

    checksums: Mapping[str, int]
    instants: int
    archived: int


def copy_timeline(view: TableView, target: TableConfig, fence: Fence) -> Copied:
    """Make the timeline in the form of `target` equal to the view's timeline, whose instants are all completed.

    What an earlier attempt left in the place of the copy is deleted or overwritten. Call it under the table's lock.
    Memory: the contents of 256 files.

    Raises: CorruptFileError for an instant that does not parse.
    """
    store, layout = view.store, view.layout
    ends = completion_times(view)
    files = ((info, found) for info in instant_files(store, view.config) if (found := layout.parse_name(info.name)))

    def copied(item: tuple[FileInfo, Instant]) -> tuple[str, int]:
        info, found = item
        path, content = _in_form_of(store, info, found, target, ends)
        store.replace(path, content)
        if found.is_completed and not target.version.has_completion_time_in_name:
            # The change time of a completed file of version 6 is its completion time, where the storage can set one.
            with contextlib.suppress(InvalidConfigError):  # the reserved times of bootstraps
                store.set_modified_ms(path, ms_of_instant_time(ends[found.requested_time, found.action], layout.zone))
        return path, zlib.crc32(content)

    checksums: dict[str, int] = dict(_side_by_side(copied, files))
    fence.ensure_held()
    forget_timeline(store, target, keep=checksums)
    store.replace(f"{archive_folder(target)}/{KEEP_FOLDER}", b"")
    return Copied(checksums=checksums, instants=len(view.timeline), archived=_copy_archive(view, target, ends, fence))


def check_files(store: Store, copied: Copied) -> None:
    """Read the new instant files back and compare them with what was written. Raises: CorruptFileError."""

    def check(item: tuple[str, int]) -> None:
        path, checksum = item
        if zlib.crc32(store.read(path)) != checksum:
            raise CorruptFileError("expected the bytes that were written, found others", path=store.uri(path))

    for _ in _side_by_side(check, iter(copied.checksums.items())):
        pass


def completion_times(view: TableView) -> dict[tuple[str, Action], str]:
    """Return the completion times of the completed instants, archived ones too, by requested time and action.

    In version 6 it is the change time of the completed file, which most copies of a table lose, and readers go by
    requested times. So a change time counts only if it is before the request of the next write. Else the instant
    counts as completed a millisecond after its request: the order of the writes stays, and so does each snapshot.
    """
    archived = view.archived_instants()
    instants = sorted((*archived, *view.timeline.completed()), key=lambda found: found.requested_time)
    if view.config.version.has_completion_time_in_name:
        return {(i.requested_time, i.action): i.completion_time or i.requested_time for i in instants}
    found: dict[tuple[str, Action], str] = {}
    bound = ""
    for instant in reversed(instants):
        time, end = instant.requested_time, instant.completion_time or ""
        is_credible = time < end and (not bound or end < bound)
        found[time, instant.action] = end if is_credible else _just_after(view, time)
        bound = time if instant.action.writes_data else bound
    return found


def _just_after(view: TableView, requested_time: str) -> str:
    zone = view.layout.zone
    try:
        return instant_time_of_ms(ms_of_instant_time(requested_time, zone) + 1, zone)
    except InvalidConfigError:  # the reserved times of bootstraps, 00000000000001
        return f"{int(requested_time) + 1:0{len(requested_time)}d}"


def _in_form_of(
    store: Store, info: FileInfo, found: Instant, target: TableConfig, ends: Mapping[tuple[str, Action], str]
) -> tuple[str, bytes]:
    """Return the path and the content that an instant file has in the form of `target`."""
    layout, content = layout_of(target), store.read(info.path)
    time, action = found.requested_time, found.action
    if found.is_completed:
        name = layout.completed_names(time, action, ends[time, action])[0]
    else:
        action = _pending_action(store, info, found, content)
        name = (layout.requested_name if found.state is State.REQUESTED else layout.inflight_name)(time, action)
    if content and action.completed_as in _COMMITS and found.state is not State.REQUESTED:
        content = _commit(store, info, found, content, target)
    elif action in (Action.COMMIT, Action.DELTA_COMMIT):
        # An upgrade by the JVM fills requested files with empty commits; Hudi 0.15 expects none and fails on Avro.
        content = b""
    elif action is Action.CLEAN and found.state is State.INFLIGHT and target.version.inflight_clean_has_plan:
        content = _requested(store, info)
    return f"{layout.instant_folder()}/{name}", content


def _pending_action(store: Store, info: FileInfo, found: Instant, content: bytes) -> Action:
    """Return the action of a pending file. In version 6 a clustering has the name of a replace commit."""
    if found.action is not Action.REPLACE_COMMIT:
        return found.action
    if found.state is State.INFLIGHT:
        content = _requested(store, info)
    is_plan = bool(content) and RequestedReplaceMetadata.parse(content, path=store.uri(info.path)).clustering_plan
    return Action.CLUSTERING if is_plan else found.action


def _requested(store: Store, inflight: FileInfo) -> bytes:
    """Return the content of the requested file beside an inflight file; empty if there is none."""
    try:
        return store.read(f"{inflight.path.removesuffix('inflight')}requested")
    except FileNotFoundError:
        return b""


def _commit(store: Store, info: FileInfo, found: Instant, content: bytes, target: TableConfig) -> bytes:
    """Return commit metadata in the form of `target`; other content of an inflight file is returned as it is."""
    try:
        metadata = CommitMetadata.parse(content, path=store.uri(info.path))
    except CorruptFileError:
        if found.is_completed:
            raise
        return content
    if found.is_completed and found.action is Action.REPLACE_COMMIT and metadata.partition_to_replace_file_ids is None:
        metadata = replace(metadata, partition_to_replace_file_ids={})
    return metadata.to_bytes(target.version)


def _copy_archive(view: TableView, target: TableConfig, ends: Mapping[tuple[str, Action], str], fence: Fence) -> int:
    """Copy the archived instants into an empty archive, with these completion times; return their number."""
    archive = archive_of(view.store, layout_of(target), name=target.archive_name)
    seen: set[tuple[str, str]] = set()

    def first_of_each() -> Iterator[ArchivedInstant]:
        for found in view.archive().all_contents():
            key = found.requested_time, found.action
            if key not in seen:
                seen.add(key)
                end = ends.get((found.requested_time, Action(found.action)))
                yield found if end is None else replace(found, completion_time=end)

    for batch in _batches(first_of_each(), _AT_ONCE):
        archive.append(batch, fence)
        archive.compact(None, fence)
    return len(seen)


def _side_by_side(function: Callable[[_T], _R], items: Iterable[_T]) -> Iterator[_R]:
    """Yield the results of the function, in order; requests to storage go out together."""
    engine = LocalEngine(_THREADS)
    for batch in _batches(iter(items), _AT_ONCE):
        yield from engine.run(lambda item, _: function(item), batch)


def _batches(items: Iterator[_T], size: int) -> Iterator[Sequence[_T]]:
    while batch := list(islice(items, size)):
        yield batch


def timeline_differences(old: Timeline, new: Timeline) -> list[str]:
    """Name the instants that only one of two timelines has, or that differ in their state."""

    def facts(timeline: Timeline) -> set[tuple[str, str, str]]:
        return {(i.requested_time, i.action.completed_as.value, i.state.name.lower()) for i in timeline}

    return [f"{time}.{action} ({state})" for time, action, state in sorted(facts(old) ^ facts(new))]
