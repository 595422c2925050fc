"""Move completed instants from the active timeline to its archive, for the data table and for the metadata table.

docs/format/table.md §2.7, §9.6. Call it under the table's lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hoodie.engine.packing import measured_chunks
from hoodie.format.instants.archive import ArchivedInstant
from hoodie.storage import FileInfo, Store
from hoodie.timeline.archive import ArchiveLimits, Fence
from hoodie.timeline.archived import archive_of
from hoodie.timeline.instant import Action, Instant, State
from hoodie.timeline.layout import Layout

_BATCH_BYTES = 32 * 1024 * 1024
_KEEPS_PLAN = {
    Action.CLEAN: (Action.CLEAN,),
    Action.COMMIT: (Action.COMPACTION,),
    Action.DELTA_COMMIT: (Action.LOG_COMPACTION,),
    Action.REPLACE_COMMIT: (Action.REPLACE_COMMIT, Action.CLUSTERING),
}


def archive_instants(
    store: Store,
    layout: Layout,
    instants: Sequence[Instant],
    *,
    archive_name: str = "history",
    limits: ArchiveLimits | None = None,
    fence: Fence | None = None,
) -> None:
    """Move completed instants, the oldest of a timeline, to its archive.

    The instants are added to the archive first. Then their files are deleted from the active timeline, the oldest
    first. A reader therefore sees the instants as completed at any moment, also after a crash. Repeating is safe.
    `fence` is the lock: a writer that lost it stops before the next step that others see.

    Memory: the contents of instants with files of at most 32 MiB, and a merge of the archive.

    Raises: CommitConflictError if another process changes the archive at the same time; CorruptFileError.
    """
    files = _files_of(store, layout, instants)
    archive = archive_of(store, layout, name=archive_name)
    moved = [instant for instant in instants if files[instant]]
    # Each batch is one file of the archive.
    for batch in measured_chunks(moved, _BATCH_BYTES, lambda found: sum(info.size_bytes for _, info in files[found])):
        archive.append([_archived(store, instant, files[instant]) for instant in batch], fence)
        if fence is not None:
            fence.ensure_held()
        # Delete pending files first: an instant that has only pending files would be read as pending again.
        store.delete_all([info.path for instant in batch for found, info in files[instant] if not found.is_completed])
        for instant in batch:
            for found, info in files[instant]:
                if found.is_completed:
                    store.delete(info.path)
        archive.compact(limits, fence)


def _files_of(
    store: Store, layout: Layout, instants: Sequence[Instant]
) -> dict[Instant, list[tuple[Instant, FileInfo]]]:
    """Return the files of each instant, each with the instant parsed from its name."""
    found: dict[Instant, list[tuple[Instant, FileInfo]]] = {instant: [] for instant in instants}
    by_key = {(instant.requested_time, instant.action.completed_as): instant for instant in instants}
    for info in store.list(layout.instant_folder()):
        parsed = layout.parse(info)
        if parsed is not None:
            instant = by_key.get((parsed.requested_time, parsed.action.completed_as))
            if instant is not None:
                found[instant].append((parsed, info))
    return found


def _archived(store: Store, instant: Instant, files: Iterable[tuple[Instant, FileInfo]]) -> ArchivedInstant:
    """Return the archive's row of an instant: its completed content, and its plan if its action has one."""
    contents = {(found.action, found.state): info for found, info in files}
    completed = contents.get((instant.action, State.COMPLETED))
    plan: bytes | None = None
    for action in _KEEPS_PLAN.get(instant.action, ()):
        states = (State.REQUESTED, State.INFLIGHT) if instant.action is Action.REPLACE_COMMIT else (State.REQUESTED,)
        for state in states:
            info = contents.get((action, state))
            if info is not None and info.size_bytes:
                plan = store.read(info.path)
    return ArchivedInstant(
        requested_time=instant.requested_time,
        completion_time=instant.completion_time or instant.requested_time,
        action=instant.action.value,
        metadata=None if completed is None else store.read(completed.path),
        plan=plan,
    )
