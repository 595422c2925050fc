"""Begin a pending instant of the data table, keep its ownership, and complete it under the table's lock or undo it.

The order of the steps is docs/format/table.md §9.1. Every instant that completes uses this module: writes, compactions,
index builds, rollbacks. The steps in which they differ are passed as a `Completion`.

The inflight file of a planned service names its executor. It is commit metadata with the owner's text, because the JVM
reads it when it rolls the service back by listing.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from hoodie.commit.metadata_table import take_back_metadata
from hoodie.commit.steps import Step, reached
from hoodie.config.concurrency import LOCK_WAIT_MS
from hoodie.errors import CommitConflictError, CorruptFileError, InstantNotFoundError
from hoodie.files.markers import delete_marked_files, delete_markers, files_of_instant, marker_folder
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteOperation
from hoodie.format.table.versions import TableVersion
from hoodie.metadata.table import MetadataTable
from hoodie.storage import ask, forget_answers, later, together
from hoodie.timeline import (
    Action,
    Instant,
    State,
    TableLock,
    create_completed,
    create_inflight,
    create_requested,
    delete_heartbeat,
    delete_instant_files,
    read_instant,
)
from hoodie.timeline.heartbeat import Heartbeat
from hoodie.timeline.locks.last_step import OUTCOME_NOT_KNOWN
from hoodie.view.ahead import ask_for_columns, ask_for_view
from hoodie.view.pending_plans import marked_logs, pending_rollbacks, rolled_back_logs
from hoodie.view.table_view import TableView

EXECUTOR: Final = "hoodie.python.executor"
_AVRO: Final = b"Obj\x01"
OPERATIONS: Final = {
    Action.COMPACTION: WriteOperation.COMPACT,
    Action.LOG_COMPACTION: WriteOperation.LOG_COMPACT,
    Action.CLUSTERING: WriteOperation.CLUSTER,
}
"""The operation in the commit of each action with a plan."""


def executor_content(action: Action, text: bytes, version: TableVersion) -> bytes:
    """Return the content of the inflight file of a planned service; `text` names its executor."""
    metadata = CommitMetadata(
        operation_type=OPERATIONS[action].value,
        extra_metadata={EXECUTOR: text.decode()},
        # With replaced file ids, though none, it is written as the metadata of a replace commit.
        partition_to_replace_file_ids={} if action is Action.CLUSTERING else None,
    )
    return metadata.to_bytes(version)


def executor_text(content: bytes) -> bytes:
    """Return the text that names the executor; empty if the content names none, as content of a JVM.

    Earlier releases stored the text of compactions as it is. In version 6 the metadata is JSON.
    """
    is_avro = content.startswith(_AVRO)
    if not is_avro and EXECUTOR.encode() not in content:
        return content
    try:
        metadata = CommitMetadata.parse(content, path="the inflight file of a planned service")
    except CorruptFileError:
        return b""
    return metadata.extra_metadata.get(EXECUTOR, "").encode()


_FRESH_SECONDS: Final = 1.0
"""An older look at the lock is not used before the metadata table changes."""
_CLEAR_WAIT_MS = 5_000
"""How long a writer that lost its instant waits for the lock to delete its files; this is not urgent."""


FollowUp = Callable[[TableView], TableView]
"""What follows a completed instant under its lock: it gets the table, and returns the table after what it did."""


class Completion:
    """The steps that complete an instant. All methods run under the table's lock; `now` was loaded under it."""

    def check(self, now: TableView) -> None:
        """Refuse to complete if a change since the instant began conflicts with it. Raises: CommitConflictError.

        By default none does.
        """

    def update_metadata_table(self, now: TableView) -> None:
        """Write the instant's changes to the metadata table, before the instant completes; by default it has none."""

    def content(self, now: TableView) -> bytes:
        """Return the content of the completed file."""
        raise NotImplementedError


@dataclass(slots=True, kw_only=True)
class PendingInstant:
    """An instant between its requested and its completed file, owned by this process.

    `view` is the table as it was when the instant began. `token` is the content of the inflight file if that content
    names the owner; if the file has other content, another process owns the instant. `keeps_plan`: the instant is a
    planned table service, and undoing an attempt keeps the plan on the timeline. (An index build is cancelled by its
    service instead.)
    """

    view: TableView
    instant: Instant
    heartbeat: Heartbeat | None = None
    token: bytes | None = None
    keeps_plan: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    """Options of the call, among them those of the table's lock."""
    is_in_metadata_table: bool = False
    """Whether the metadata table may have the instant. Then only a rollback can remove it."""
    completed_view: TableView | None = None
    """The table with the completed instant, as `finish` left it, without the lock; after `finish_under` with it."""
    _has_ended: bool = False
    _is_completed: bool = False
    _asked_at: float = 0.0
    """When `finish` requested the check of the lock before the metadata table changes; monotonic seconds."""

    @classmethod
    def start(
        cls,
        view: TableView,
        action: Action,
        plan: bytes = b"",
        content: bytes = b"",
        *,
        is_token: bool = False,
        properties: Mapping[str, str] | None = None,
        requested_time: str | None = None,
    ) -> PendingInstant:
        """Create a new instant on the timeline, requested with `plan` and inflight with `content`.

        `is_token`: `content` names this process, and another process may take the instant over with its own content.
        `requested_time`: a time that the format reserves for the instant; None for the next time of the clock.
        Call it under the table's lock. The heartbeat starts before the inflight file exists. If an error is raised, the
        instant is undone; if that fails too, the next writer rolls it back.

        Raises: CommitConflictError if another process creates an instant of the same time.
        """
        requested = request(view, action, plan, requested_time)
        pending = cls(
            view=view, instant=requested, token=content if is_token else None, properties=dict(properties or {})
        )
        try:
            reached(Step.REQUESTED)
            pending.heartbeat, pending.instant = _start(view, requested, content)
        except BaseException:
            pending.undo()
            raise
        return pending

    @classmethod
    def claim(
        cls, view: TableView, instant: Instant, token: bytes, properties: Mapping[str, str] | None = None
    ) -> PendingInstant:
        """Claim a planned table service. Call it under the table's lock, when no live process owns the instant.

        `token` names this process. It is stored in a new inflight file, which replaces the inflight file of an earlier
        attempt.

        Raises: CommitConflictError if another process claims the instant at the same time.
        """
        heartbeat, begun = _start(view, instant, token)
        return cls(
            view=view,
            instant=begun,
            heartbeat=heartbeat,
            token=token,
            keeps_plan=True,
            properties=dict(properties or {}),
        )

    @classmethod
    def resume(cls, view: TableView, instant: Instant) -> PendingInstant:
        """Resume an instant that this process completes while it holds the table's lock; it requires no heartbeat.

        The inflight file is created if it is missing because a process died before it created the file.
        """
        if instant.state is State.REQUESTED:
            instant = create_inflight(view.store, view.layout, instant.requested_time, instant.action)
        return cls(view=view, instant=instant)

    @property
    def instant_time(self) -> str:
        """Requested time of the instant."""
        return self.instant.requested_time

    def ensure_mine(self, now: TableView) -> None:
        """Refuse to continue if another process rolled the instant back or claimed it. Call it under the table's lock.

        A rollback of it that has only begun counts: it may have deleted files, and is executed to its end.

        Raises: CommitConflictError.
        """
        self._ensure_fresh()
        # By action too: a savepoint has the time of its commit.
        found = now.timeline.get(self.instant_time, self.instant.action)
        if found is None or found.is_completed or self._is_being_rolled_back(now) or not self._owns(now, found):
            raise self._lost(now)

    def finish(self, completion: Completion, follow_up: FollowUp | None = None) -> Instant:
        """Complete the instant under the table's lock, in one atomic step.

        `follow_up` runs while the lock is still held. It raises no error.

        Raises: CommitConflictError if another process owns the instant or `completion` finds a conflict. After this and
            every other error, the instant is not completed, unless the message calls the outcome unknown.
        """
        store, state = self.view.store, self.view.state
        inflight = ("read", self._inflight_path(self.view))
        wave = (("list_all", marker_folder(self.instant_time)), *[inflight] * (1 if self.token is None else 2))
        lock = state.table_lock(self.properties, ahead=wave)
        with lock:
            ask_for_view(state, metadata_timelines=1)
            lock.ask()
            self._asked_at = time.monotonic()
            now = self.view.refreshed(lock)
            try:
                completed = self.complete(now, completion)
            except BaseException:
                if self.is_in_metadata_table:
                    # Under the lock: the next writer of this process finds no running writer, and rolls it back.
                    self.end()
                raise
            completed_at = time.monotonic()
            now = now.with_instant(completed)
            if follow_up is not None:
                now = follow_up(now)
            self.completed_view = replace(now, lock=None)
            is_certain, *_ = together(store, partial(_was_held, lock), self.end, self._delete_markers)
        forget_answers()
        if not is_certain and not lock.was_held_at(completed_at):
            self._confirm(now)
        return completed

    def finish_under(self, now: TableView, completion: Completion) -> Instant:
        """Complete the instant, as `finish`, under a lock that the caller holds since the instant began.

        `now` is the table with the pending instant, under that lock.
        """
        completed = self.complete(now, completion)
        self.completed_view = now.with_instant(completed)
        later(now.store, self.end)
        return completed

    def ask(self, now: TableView) -> None:
        """Send the requests ahead with which `finish_under` begins (see `storage.ask`)."""
        ask(now.store, *[("read", self._inflight_path(now))] * (1 if self.token is None else 2))
        now.held_lock.ask()
        ask_for_columns(now, metadata_timelines=1)
        self._asked_at = time.monotonic()

    def complete(self, now: TableView, completion: Completion) -> Instant:
        """Run the steps of `finish` under a lock that the caller holds; `now` was loaded under that lock.

        A process may be stopped between any two steps, for so long that another one takes the lock over and rolls the
        instant back. What then holds is in docs/decisions/0014-fencing.md.
        """
        self.ensure_mine(now)
        completion.check(now)
        reached(Step.CHECKED)
        content, lock = completion.content(now), now.held_lock
        self._forget_old_answers()
        lock.ensure_held()
        self.ensure_pending(now)
        lock.prepare(content)
        self.is_in_metadata_table = True
        lock.plan_next(partial(self._ask_last, now, content))
        completion.update_metadata_table(now)
        reached(Step.RECORDED)
        self._forget_old_answers()
        lock.ask_next()
        self.ensure_pending(now)
        completed = create_completed(
            now.store,
            now.layout,
            self.instant_time,
            self.instant.action,
            content,
            completion_time=now.clock.next_time(now.timeline),
            create=lock.create_last,
        )
        self._is_completed = True
        return completed

    def _forget_old_answers(self) -> None:
        if time.monotonic() - self._asked_at > _FRESH_SECONDS:
            forget_answers()

    def _ask_last(self, now: TableView, content: bytes) -> None:
        """Send the requests of the checks before the completed file."""
        self._asked_at = time.monotonic()  # the second look may wait until the content is prepared
        ask(now.store, ("read", self._inflight_path(now)))
        now.held_lock.ask_if_held(content)

    def undo(self) -> None:
        """Undo the instant unless the metadata table may have it, and end the heartbeat. Never raises an error.

        A write of version 6 that began log files stays pending: the next writer rolls it back.
        The caller raises the error that caused the undo. If a step of the undo fails, the next writer rolls the instant
        back; the plan of a table service waits for its next executor.
        """
        with contextlib.suppress(Exception):
            if self.is_in_metadata_table:
                self._clear_if_rolled_back()
            else:
                self._undo_attempt()
        self.end()

    def end(self) -> None:
        """End the heartbeat. Never raises an error; a second call does nothing if the first one succeeded.

        The heartbeat file of an instant that the metadata table may have, and that is not completed, stays until it is
        rolled back or claimed again. Without it, a write that began later would prove that the instant had completed
        (`view.lost_instants`); and this process may have lost the lock, and the file may be the next owner's.
        """
        if self.heartbeat is not None and not self._has_ended:
            with contextlib.suppress(Exception):
                if self.is_in_metadata_table and not self._is_completed:
                    self.heartbeat.abandon()
                else:
                    self.heartbeat.stop()
                self._has_ended = True

    def _delete_markers(self) -> None:
        with contextlib.suppress(Exception):
            delete_markers(self.view.store, self.instant_time)

    def _inflight_path(self, view: TableView) -> str:
        layout = view.layout
        return f"{layout.instant_folder()}/{layout.names(self.instant, State.INFLIGHT)[0]}"

    def _undo_attempt(self) -> None:
        if not self.keeps_plan:
            store = self.view.store
            if inflight_content(self.view, self.instant) is None:
                # The rollback deleted the markers of files that this process wrote after it.
                for path in files_of_instant(store, self.instant_time):
                    store.delete(path)
            if self.view.config.version.log_name_has_base_instant and marked_logs(self.view, self.instant_time):
                # Without the lock, a rollback could begin at any moment and list the log files, which must then stay.
                return
            self._delete_attempt(State.INFLIGHT)
            self.end()
            # Last: without this file another writer whose clock is behind may begin an instant of the same time, and
            # its files, markers and heartbeat have the same names.
            delete_instant_files(store, self.view.layout, self.instant_time, self.instant.action, State.REQUESTED)
            return
        with self.view.state.table_lock(self.properties) as lock:
            now = self.view.refreshed(lock)
            found = now.timeline.get(self.instant_time)
            if found is not None and not found.is_completed and self._owns(now, found):
                if self.instant.action is Action.CLUSTERING:
                    # Its index files are written before its delta commit. They go before the inflight file, which
                    # shows the next executor that there may be something to take back.
                    take_back_metadata(now, self.instant_time)
                self._delete_attempt(State.INFLIGHT, keep=self._logs_of_rollback(now))
                # Under the lock: later the heartbeat file may belong to the next owner.
                self.end()

    def _clear_if_rolled_back(self) -> None:
        """Delete what this process wrote after another one had rolled the instant back: no later rollback would."""
        with self.view.state.table_lock({**self.properties, LOCK_WAIT_MS.key: str(_CLEAR_WAIT_MS)}) as lock:
            now = self.view.refreshed(lock)
            start = now.timeline.start
            if now.timeline.get(self.instant_time) is None and start is not None and start < self.instant_time:
                metadata_table = MetadataTable.open(now.store, now.config)
                if metadata_table is not None:
                    metadata_table.take_back(self.instant_time)
                self._delete_attempt(keep=self._logs_of_rollback(now))
                self.end()
                delete_heartbeat(now.store, self.instant_time)  # the rollback did, but the thread may have renewed it

    def _ensure_fresh(self) -> None:
        if self.heartbeat is not None:
            self.heartbeat.ensure_fresh()

    def ensure_pending(self, now: TableView) -> None:
        """Refuse to continue if another process rolled the instant back or claimed it, by its inflight file."""
        self._ensure_fresh()
        found = inflight_content(now, self.instant)
        if found is None or self.token not in (None, found):
            raise self._lost(now)

    def _confirm(self, before: TableView) -> None:
        """Check a completed instant whose writer did not find after the last step that it still held the lock.

        Raises: CommitConflictError if another writer changed the table meanwhile, or the table cannot be loaded.
        """
        try:
            with self.view.state.table_lock(self.properties) as lock:
                now = self.view.refreshed(lock)
        except Exception as error:
            raise CommitConflictError(
                f"this process lost the table's lock, or could not read it, while {self.instant} of "
                f"{before.store.uri('')} completed, and cannot load the table to see what became of it ({error}). "
                f"{OUTCOME_NOT_KNOWN}"
            ) from error
        known = {(instant.requested_time, instant.state) for instant in before.timeline.instants}
        others = [
            instant
            for instant in now.timeline.instants
            if instant.requested_time != self.instant_time
            and (instant.requested_time, instant.state) not in known
            and (instant.is_completed or instant.action is Action.ROLLBACK)
        ]
        found = now.timeline.get(self.instant_time)
        if found is None or not found.is_completed or others:
            raise CommitConflictError(
                f"another process deleted the table's lock while {self.instant} of {now.store.uri('')} completed, and "
                f"changed the table ({', '.join(map(str, others[:3])) or 'the instant is gone'}). {OUTCOME_NOT_KNOWN}"
            )

    def _lost(self, now: TableView) -> CommitConflictError:
        return CommitConflictError(
            f"{self.instant} of {now.store.uri('')} does not belong to this process any more: another process "
            "found no fresh heartbeat, and rolled the instant back or claimed it; nothing was committed, try again"
        )

    def _delete_attempt(self, *states: State, keep: Collection[str] = ()) -> None:
        """Delete data files but those to keep, then the instant's files, then the markers that name the data files."""
        store = self.view.store
        delete_marked_files(store, self.instant_time, keep=keep)
        delete_instant_files(store, self.view.layout, self.instant_time, self.instant.action, *states)
        delete_markers(store, self.instant_time)

    def _logs_of_rollback(self, now: TableView) -> set[str]:
        """Return the log files of version 6 that another process's rollback of the instant lists. Under the lock."""
        if not now.config.version.log_name_has_base_instant:
            return set()
        is_there = now.timeline.get(self.instant_time, self.instant.action) is not None
        if is_there and not self._is_being_rolled_back(now):
            return set()
        return rolled_back_logs(now, self.instant_time)

    def _is_being_rolled_back(self, now: TableView) -> bool:
        """Return whether a pending rollback names the instant. Rollbacks of a savepoint's commit do not count."""
        return self.instant.action.writes_data and any(pending_rollbacks(now, self.instant_time))

    def _owns(self, now: TableView, found: Instant) -> bool:
        return self.token is None or inflight_content(now, found) == self.token


def complete_again(now: TableView, instant: Instant, content: bytes, completion_time: str) -> None:
    """Create the lost completed file of an instant that had completed; `now` was loaded under the table's lock."""
    create_completed(
        now.store,
        now.layout,
        instant.requested_time,
        instant.action,
        content,
        completion_time=completion_time,
        create=now.held_lock.create_last,
    )


def request(view: TableView, action: Action, plan: bytes = b"", requested_time: str | None = None) -> Instant:
    """Create a requested instant on the timeline. Call it under the table's lock, with a view that was loaded under it.

    `requested_time`: as for `PendingInstant.start`.

    Raises: CommitConflictError if another writer created an instant of the same time.
    """
    chosen = requested_time or view.clock.next_time(view.timeline)
    return create_requested(view.store, view.layout, chosen, action, plan)


def request_last(view: TableView, action: Action, plan: bytes) -> Instant:
    """Create a requested rollback or restore, as `request`, unless this process lost the lock after `view` was loaded.

    The next holder of the lock may have completed an instant that the plan takes back, or later ones: it found no plan.

    Raises: CommitConflictError.
    """
    chosen, create = view.clock.next_time(view.timeline), view.held_lock.create_last
    return create_requested(view.store, view.layout, chosen, action, plan, create=create)


def delete_pending_files(view: TableView, requested_time: str, action: Action) -> None:
    """Delete the inflight and the requested file of an instant; a missing file is skipped."""
    delete_instant_files(view.store, view.layout, requested_time, action, State.INFLIGHT, State.REQUESTED)


def _start(view: TableView, instant: Instant, content: bytes) -> tuple[Heartbeat, Instant]:
    """Start the heartbeat and create the inflight file; it replaces the inflight file of an earlier attempt."""
    requested_time, action = instant.requested_time, instant.action
    heartbeat = Heartbeat(view.store, requested_time)
    begin = partial(create_inflight, view.store, view.layout, requested_time, action, content)
    try:
        if instant.state is State.INFLIGHT:
            heartbeat.start()
            delete_instant_files(view.store, view.layout, requested_time, action, State.INFLIGHT)
            return heartbeat, begin()
        return heartbeat, together(view.store, heartbeat.start, begin)[1]
    except BaseException:
        with contextlib.suppress(Exception):
            heartbeat.stop()
        raise


def _was_held(lock: TableLock) -> bool:
    """Release the lock; return whether it was held. If it cannot be read, it may be lost."""
    with contextlib.suppress(Exception):
        return lock.release()
    return False


def inflight_content(view: TableView, instant: Instant) -> bytes | None:
    """Return the content of an instant's inflight file; None if there is no inflight file."""
    try:
        return read_instant(view.store, view.layout, instant, State.INFLIGHT)
    except InstantNotFoundError:
        return None
