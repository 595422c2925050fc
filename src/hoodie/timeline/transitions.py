"""Change the state of an instant: create its requested, inflight and completed files, and delete them.

On-disk format: docs/format/table.md §2.1.
"""

from __future__ import annotations

from collections.abc import Callable

from hoodie.errors import CommitConflictError
from hoodie.storage import Store
from hoodie.timeline.instant import Action, Instant, State
from hoodie.timeline.layout import Layout
from hoodie.timeline.zone import instant_time_of_ms

CreateFile = Callable[[str, bytes], None]
"""Creates a file of a path with all its bytes, in one atomic step."""


def create_requested(
    store: Store,
    layout: Layout,
    requested_time: str,
    action: Action,
    content: bytes = b"",
    *,
    create: CreateFile | None = None,
) -> Instant:
    """Create the requested file. The instant is pending afterwards. `create`: as for `create_completed`.

    Raises: CommitConflictError if the file exists: another writer uses the same requested time.
    """
    _create(store, layout, layout.requested_name(requested_time, action), content, create)
    return Instant(requested_time=requested_time, action=action, state=State.REQUESTED)


def create_inflight(store: Store, layout: Layout, requested_time: str, action: Action, content: bytes = b"") -> Instant:
    """Create the inflight file. Afterwards the instant may write data files. A savepoint has no requested file.

    Raises: CommitConflictError if the file exists: another writer, running or dead, executes the same instant.
    """
    _create(store, layout, layout.inflight_name(requested_time, action), content)
    return Instant(requested_time=requested_time, action=action, state=State.INFLIGHT)


def create_completed(
    store: Store,
    layout: Layout,
    requested_time: str,
    action: Action,
    content: bytes,
    *,
    completion_time: str,
    create: CreateFile | None = None,
) -> Instant:
    """Create the completed file. Readers count the instant as committed from this step on.

    `create` creates the file; pass `TableLock.create_last`, so that a writer that lost the lock cannot. By default the
    store creates it.

    Call it under the table's lock, with a completion time that `InstantClock` returned under the same lock. The
    returned instant has the completed action (a compaction completes as `commit`). Layout 1 stores no completion time:
    the returned completion time is the file's change time, and `completion_time` is ignored.

    Raises:
        CommitConflictError: the file exists; another writer completed the instant.
        ValueError: the completion time is not later than the requested time, or a write has no content.
    """
    completed_as = action.completed_as
    if completion_time <= requested_time:
        raise ValueError(f"completion time {completion_time} is not later than the requested time {requested_time}")
    if not content and completed_as.writes_data:
        raise ValueError(f"a completed {completed_as} needs its commit metadata: readers refuse an empty file")
    name = layout.completed_names(requested_time, action, completion_time)[0]
    _create(store, layout, name, content, create)
    if completion_time not in name:
        info = store.head(f"{layout.instant_folder()}/{name}")
        completion_time = completion_time if info is None else instant_time_of_ms(info.modified_ms, layout.zone)
    return Instant(
        requested_time=requested_time, action=completed_as, state=State.COMPLETED, completion_time=completion_time
    )


def delete_instant_files(store: Store, layout: Layout, requested_time: str, action: Action, *states: State) -> None:
    """Delete the instant's files of `states`, the highest state first; missing files are skipped.

    A process that stops in the middle leaves the instant in a lower state, never a completed instant without its plan.
    `action` is the requested or the completed action. Deleting a completed file takes one listing.
    """
    instants = layout.instant_folder()
    if State.COMPLETED in states:
        for info in store.list(instants):
            found = layout.parse(info)
            if (
                found is not None
                and found.is_completed
                and found.requested_time == requested_time
                and found.action is action.completed_as
            ):
                store.delete(info.path)
    for state in (State.INFLIGHT, State.REQUESTED):
        if state in states:
            for name in layout.names(_any_start(requested_time, action), state):
                store.delete(f"{instants}/{name}")


def _any_start(requested_time: str, action: Action) -> Instant:
    """Return an instant whose pending files may have every name that is possible for `action`."""
    completed = action.completed_as is action
    return Instant(requested_time=requested_time, action=action, state=State.COMPLETED if completed else State.INFLIGHT)


def _create(store: Store, layout: Layout, name: str, content: bytes, create: CreateFile | None = None) -> None:
    path = f"{layout.instant_folder()}/{name}"
    try:
        (create or store.create)(path, content)
    except FileExistsError as error:
        raise CommitConflictError(
            f"{store.uri(path)} exists: another writer created this state of the instant. Load the timeline again; "
            "if that writer does not run any more, roll the instant back"
        ) from error
