"""Begin, commit and undo the instant of one write."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hoodie.commit.begin import begin_write
from hoodie.commit.column_ids import column_metadata
from hoodie.commit.conflicts import (
    OwnWrite,
    check_conflicts,
    policy_metadata,
    raise_if_deleted_since,
    refuse_changed,
    refuse_hidden_columns,
    refuse_marked,
)
from hoodie.commit.data_commit import DataCommit
from hoodie.commit.metadata_table import commit_metadata
from hoodie.commit.pending import FollowUp, PendingInstant
from hoodie.commit.rollback import RolledBack
from hoodie.commit.steps import Step, reached
from hoodie.config import clustering, concurrency, writes
from hoodie.engine import EngineFor, local_engine
from hoodie.errors import CommitConflictError, HoodieError, MissingFileError, UnsupportedError
from hoodie.format.instants.commit_metadata import SCHEMA_KEY, CommitMetadata, WriteOperation, WriteStat
from hoodie.format.schema.table_schema import without_columns
from hoodie.index import Index
from hoodie.index.index_write import IndexWrite
from hoodie.metadata.kinds.registry import collected
from hoodie.timeline import Action, Instant
from hoodie.view.pending_plans import FileGroup
from hoodie.view.slices import data_table
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView


@dataclass(slots=True, kw_only=True)
class WriteInstant:
    """A write between its begin and its commit.

    `baseline` is the view from which the rows of the write were prepared: `view`, or an earlier view if the caller read
    rows before the write began. Commits after the baseline can conflict. `index`: the indexes that the write uses.
    """

    pending: PendingInstant
    operation: WriteOperation
    baseline: TableView
    index: IndexWrite
    engine_for: EngineFor
    rolled_back: tuple[RolledBack, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    """The effective options of the write: those of the call, and those that the table stores."""
    notes: list[str] = field(default_factory=list)
    """What else happened, for the result of the write."""
    guard: Callable[[TableView], None] | None = None
    """Raises an error under the table's lock if the table must not get the write."""
    late_entries: Callable[[TableView], Mapping[str, str]] | None = None
    """Returns further entries of the extra metadata, under the table's lock."""

    @property
    def view(self) -> TableView:
        """Return the table as it was when the write began; index look-ups and placement of inserts use it."""
        return self.pending.view

    @property
    def instant_time(self) -> str:
        """Return the requested time of the write."""
        return self.pending.instant_time

    @property
    def completed_view(self) -> TableView | None:
        """Return the table with the committed write; None before the commit."""
        return self.pending.completed_view

    @property
    def action(self) -> Action:
        """Return the action of the write on the timeline."""
        return self.pending.instant.action

    def commit(
        self,
        stats: Iterable[WriteStat],
        *,
        schema: str,
        extra_metadata: Mapping[str, str],
        replaced: Mapping[str, Sequence[str]] | None = None,
        columns: Mapping[str, str] | None = None,
        is_global: bool = False,
        follow_up: FollowUp | None = None,
    ) -> Instant:
        """Commit the files of `stats`, in one atomic step.

        `replaced`: file ids by partition path that this write replaces (replace commits only). `columns`: entries with
        the ids of the columns, if the write changes them. `is_global`: keys are unique across partitions.

        Raises: CommitConflictError if another write that completed after the baseline conflicts, e.g. changed the same
            file groups. After this and every other error, nothing is committed.
        """
        policy = policy_metadata(self.operation, writes.INSERT_DUP_POLICY.get(self.options))
        ids = column_metadata(self.view) if columns is None else columns
        extra = {**extra_metadata, **policy, **ids, **self.index.commit_entries}
        extra[SCHEMA_KEY] = without_columns(schema, self.view.config.path_fields)
        metadata = commit_metadata(stats, self.operation, extra, replaced)
        reached(Step.LOCATED)

        own = OwnWrite(
            metadata=metadata,
            index=self.index,
            is_global=is_global,
            appends_meet=self._appends_meet,
            is_bucketed=self.index.places_rows,
            refuses_clustered=clustering.CLUSTER_UPDATES.get(self.options) == "reject",
        )

        def check(now: TableView) -> None:
            if self.guard is not None:
                self.guard(now)
            if self.late_entries is not None:
                extra.update(self.late_entries(now))  # `metadata` has this mapping
            check_conflicts(self.baseline, now, own)
            refuse_hidden_columns(now, self.instant_time, extra[SCHEMA_KEY])

        with collected(data_table(self.view), metadata) as collect:
            steps = DataCommit(
                instant_time=self.instant_time,
                metadata=metadata,
                collect=collect,
                index=self.index,
                check_conflicts=check,
                engine_for=self.engine_for,
            )

            def after(now: TableView) -> TableView:
                self.view.state.commits[self.instant_time] = metadata
                is_current = now.config is now.state.last_config()
                return follow_up(now) if follow_up is not None and is_current else now

            completed = self.pending.finish(steps, after)
        self.notes += steps.notes
        return completed

    def refuse_early(self, planned: Mapping[FileGroup, bool]) -> None:
        """Refuse to write files if other writers change, or changed, the same file groups, and the options ask for it.

        `planned` are the file groups that the write is about to change, and whether it only appends to their log files.
        Raises: CommitConflictError.
        """
        if not planned or not concurrency.EARLY_CONFLICTS.get(self.options):
            return
        refuse_marked(self.view, self.instant_time, planned.keys())
        if concurrency.EARLY_COMMIT_CONFLICTS.get(self.options):
            refuse_changed(self.baseline, self.view.refreshed(), planned)

    @property
    def _appends_meet(self) -> bool:
        """Whether appends of this write and of others to one file group do not conflict.

        Rows that were computed from rows of an older read would override the rows of the other write.
        """
        is_non_blocking = concurrency.CONCURRENCY_MODE.get(self.options) == concurrency.NON_BLOCKING
        return is_non_blocking and self.baseline is self.view

    def undo(self) -> None:
        """Undo the write unless the metadata table may have it. Never raises an error.

        If the index files cannot be deleted, the instant stays pending: the next writer's rollback deletes them.
        """
        if not self.pending.is_in_metadata_table:
            try:
                self.index.discard()
            except Exception:
                self.pending.end()
                return
        self.pending.undo()


@contextlib.contextmanager
def write_instant(
    state: TableState,
    action: Action,
    operation: WriteOperation,
    plan: bytes = b"",
    *,
    index: Index | None,
    baseline: TableView | None = None,
    engine_for: EngineFor = local_engine,
    properties: Mapping[str, str] | None = None,
    requested_time: str | None = None,
    reads: Collection[str] = (),
) -> Iterator[WriteInstant]:
    """Begin a write; the body writes its files and commits it. The write uses `index`; None if it looks up no keys.

    `baseline`: the view from which the caller read the rows that it now writes. `plan` is the content of the requested
    file. `properties` are the options of the call. `requested_time`: a time that the format reserves for this write.
    `reads`: as for `begin_write`.

    If the body fails before the metadata table may have the write, the write is undone without a trace. If it fails
    later, or the write began log files of version 6, it stays pending, and the next writer rolls it back.
    """

    def inflight(view: TableView) -> bytes:
        # The JVM parses a replace commit's inflight file when it rolls it back by listing, and needs the replaced ids.
        replaced: dict[str, tuple[str, ...]] | None = {} if action is Action.REPLACE_COMMIT else None
        metadata = CommitMetadata(operation_type=operation.value, partition_to_replace_file_ids=replaced)
        return metadata.to_bytes(view.config.version)

    pending, rolled_back = begin_write(
        state, action, plan=plan, inflight=inflight, properties=properties, requested_time=requested_time, reads=reads
    )
    try:
        index_write = IndexWrite.begin(index, pending.view, pending.instant_time, engine_for, properties or {})
    except BaseException:
        pending.undo()
        raise
    write = WriteInstant(
        pending=pending,
        operation=operation,
        baseline=baseline or pending.view,
        index=index_write,
        engine_for=engine_for,
        rolled_back=rolled_back,
    )
    try:
        yield write
    except BaseException as error:
        write.undo()
        _raise_if_index_is_gone(write, error)
        # A clean deletes the file slices that newer ones replaced: other writes changed the same file groups.
        if not write.pending.is_in_metadata_table and isinstance(error, MissingFileError):
            raise_if_deleted_since(write.view, error)
        raise
    finally:
        pending.end()


def _raise_if_index_is_gone(write: WriteInstant, error: BaseException) -> None:
    """Raise CommitConflictError instead of `error` if a write failed because the record index was deleted meanwhile."""
    has_reason = isinstance(error, HoodieError) and not isinstance(error, UnsupportedError)
    if write.pending.is_in_metadata_table or has_reason or not isinstance(error, Exception):
        return
    is_gone = False
    with contextlib.suppress(Exception):
        is_gone = write.index.was_replaced_or_dropped(write.view.refreshed())
    if is_gone:
        raise CommitConflictError(
            f"the record index of {write.view.store.uri('')} was rebuilt or dropped while this write ran; nothing was "
            f"committed, try again ({error})"
        ) from error
