"""A pending instant of the data table: begin it, stay its owner, complete it under the table's lock, or undo it.

The order of the steps is docs/format/table.md §9.1. Everything that changes a table goes through here: writes,
compactions, index builds, rollbacks. What differs between them is handed in as a `Completion`.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Protocol

from hoodie.commit.attempt_files import delete_marked_files
from hoodie.commit.steps import Step, reached
from hoodie.errors import CommitConflictError, InstantNotFoundError
from hoodie.files.markers import delete_markers
from hoodie.timeline import (
    Action,
    Instant,
    State,
    create_completed,
    create_inflight,
    create_requested,
    delete_instant_files,
    read_instant,
)
from hoodie.timeline.heartbeat import Heartbeat
from hoodie.timeline.lock import TableLock
from hoodie.view.table_view import TableView


class Completion(Protocol):
    """What completes an instant. All methods run under the table's lock, with the table as it is then."""

    def check(self, now: TableView) -> None:
        """Refuse to complete if what happened since the instant began forbids it. Raises: CommitConflictError."""
        ...

    def update_metadata_table(self, now: TableView) -> None:
        """Write what the instant changes to the metadata table, before the instant completes."""
        ...

    def content(self, now: TableView) -> bytes:
        """Content of the completed file."""
        ...


@dataclass(slots=True, kw_only=True)
class PendingInstant:
    """An instant between its requested and its completed file, owned by this process.

    `view` is the table as it was when the instant began. `token` is the content of the inflight file where that names
    the owner: the owner of an inflight file with other content is another process. `keeps_plan`: the instant is a
    planned table service, whose plan stays on the timeline when an attempt at it is undone.
    """

    view: TableView
    instant: Instant
    heartbeat: Heartbeat | None = None
    token: bytes | None = None
    keeps_plan: bool = False
    is_in_metadata_table: bool = False
    """Whether the metadata table may have the instant. Then only a rollback can take it back."""
    _has_ended: bool = False

    @classmethod
    def start(cls, view: TableView, action: Action, plan: bytes = b"", content: bytes = b"") -> PendingInstant:
        """Put a new instant on the timeline, requested with `plan` and inflight with `content`.

        Call it under the table's lock. The heartbeat starts before the inflight file exists. If it fails, the timeline
        has no trace of the instant.

        Raises: CommitConflictError if another process takes the same time.
        """
        requested = request(view, action, plan)
        pending = cls(view=view, instant=requested)
        try:
            reached(Step.REQUESTED)
            pending.heartbeat, pending.instant = _start(view, requested, content)
        except BaseException:
            pending.undo()
            raise
        return pending

    @classmethod
    def claim(cls, view: TableView, instant: Instant, token: bytes = b"") -> PendingInstant:
        """Take a planned table service, which waits or was left by a dead process. Call it under the table's lock.

        `token` names this process, or is empty. It goes into a new inflight file, which replaces the one of an earlier
        attempt.

        Raises: CommitConflictError if another process takes the instant at the same time.
        """
        heartbeat, begun = _start(view, instant, token)
        return cls(view=view, instant=begun, heartbeat=heartbeat, token=token or None, keeps_plan=True)

    @classmethod
    def resume(cls, view: TableView, instant: Instant) -> PendingInstant:
        """Take an instant that begins and ends under one hold of the table's lock: it needs no heartbeat.

        The inflight file is created if a process died before it did so.
        """
        if instant.state is State.REQUESTED:
            instant = create_inflight(view.store, view.layout, instant.requested_time, instant.action)
        return cls(view=view, instant=instant)

    @property
    def instant_time(self) -> str:
        """Requested time of the instant."""
        return self.instant.requested_time

    def ensure_mine(self, now: TableView) -> None:
        """Refuse to go on if another process took the instant for dead. Call it under the table's lock.

        Raises: CommitConflictError.
        """
        if self.heartbeat is not None:
            self.heartbeat.ensure_fresh()
        found = now.timeline.get(self.instant_time)
        if found is None or found.is_completed or not self._owns(now, found):
            raise CommitConflictError(
                f"{self.instant} of {now.store.uri('')} was taken for dead: it was rolled back, or is another's now; "
                "nothing was committed, try again"
            )

    def finish(self, completion: Completion) -> Instant:
        """Complete the instant under the table's lock, in one atomic step.

        Raises: CommitConflictError if another process owns the instant or `completion` finds a conflict; then, as after
            every other error here, the instant is not completed.
        """
        completed: Instant | None = None
        try:
            with TableLock(self.view.store):
                completed = self.complete(self.view.refreshed(), completion)
        except Exception:
            # The instant is complete: the next writer removes a lock file that could not be deleted.
            if completed is None:
                raise
        self.end()
        with contextlib.suppress(Exception):
            delete_markers(self.view.store, self.instant_time)
        return completed

    def complete(self, now: TableView, completion: Completion) -> Instant:
        """The steps of `finish` under a lock that the caller holds; `now` is the table, loaded under that lock."""
        self.ensure_mine(now)
        completion.check(now)
        reached(Step.CHECKED)
        content = completion.content(now)
        self.is_in_metadata_table = True
        completion.update_metadata_table(now)
        reached(Step.TOLD)
        return create_completed(
            now.store,
            now.layout,
            self.instant_time,
            self.instant.action,
            content,
            completion_time=now.clock.next_time(now.timeline),
        )

    def undo(self) -> None:
        """Take the instant back unless the metadata table may have it, and end the heartbeat. Never fails.

        The error that led here is the one to raise; what cannot be undone now is left to the next writer's rollback.
        """
        if not self.is_in_metadata_table:
            with contextlib.suppress(Exception):
                self._undo_attempt()
        self.end()

    def end(self) -> None:
        """End the heartbeat. Never fails; a second call does nothing if the first one succeeded."""
        if self.heartbeat is not None and not self._has_ended:
            with contextlib.suppress(Exception):
                self.heartbeat.stop()
                self._has_ended = True

    def _undo_attempt(self) -> None:
        if not self.keeps_plan:
            self._delete_attempt(State.INFLIGHT, State.REQUESTED)
            return
        with TableLock(self.view.store):
            now = self.view.refreshed()
            found = now.timeline.get(self.instant_time)
            if found is not None and not found.is_completed and self._owns(now, found):
                self._delete_attempt(State.INFLIGHT)

    def _delete_attempt(self, *states: State) -> None:
        """Delete data files, then the instant's files, then the markers that name the data files."""
        store = self.view.store
        delete_marked_files(store, self.instant_time)
        delete_instant_files(store, self.view.layout, self.instant_time, self.instant.action, *states)
        delete_markers(store, self.instant_time)

    def _owns(self, now: TableView, found: Instant) -> bool:
        return self.token is None or inflight_content(now, found) == self.token


def request(view: TableView, action: Action, plan: bytes = b"") -> Instant:
    """Put a new instant on the timeline. Call it under the table's lock, with a view that was loaded under it.

    Raises: CommitConflictError if another writer took the same time.
    """
    requested_time = view.clock.next_time(view.timeline)
    return create_requested(view.store, view.layout, requested_time, action, plan)


def _start(view: TableView, instant: Instant, content: bytes) -> tuple[Heartbeat, Instant]:
    """Start the heartbeat, then create the inflight file, in place of the one of an earlier attempt."""
    requested_time, action = instant.requested_time, instant.action
    heartbeat = Heartbeat(view.store, requested_time)
    heartbeat.start()
    try:
        if instant.state is State.INFLIGHT:
            delete_instant_files(view.store, view.layout, requested_time, action, State.INFLIGHT)
        return heartbeat, create_inflight(view.store, view.layout, requested_time, action, content)
    except BaseException:
        with contextlib.suppress(Exception):
            heartbeat.stop()
        raise


def inflight_content(view: TableView, instant: Instant) -> bytes | None:
    """Content of an instant's inflight file; None if there is none."""
    try:
        return read_instant(view.store, view.layout, instant, State.INFLIGHT)
    except InstantNotFoundError:
        return None
