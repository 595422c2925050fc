"""Begin, commit and undo the instant of one write."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hoodie.commit.begin import begin_write
from hoodie.commit.column_ids import column_metadata
from hoodie.commit.commit_content import commit_metadata
from hoodie.commit.conflicts import check_conflicts
from hoodie.commit.data_commit import DataCommit
from hoodie.commit.pending import PendingInstant
from hoodie.commit.rollback import RolledBack
from hoodie.commit.steps import Step, reached
from hoodie.errors import CommitConflictError, HoodieError, UnsupportedError
from hoodie.format.instants.commit_metadata import SCHEMA_KEY, CommitMetadata, WriteOperation, WriteStat
from hoodie.index import Index
from hoodie.index.session import IndexSession
from hoodie.metadata.services.context import EngineFor, local_engine
from hoodie.timeline import Action, Instant
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
    index: IndexSession
    engine_for: EngineFor
    rolled_back: tuple[RolledBack, ...] = ()
    notes: list[str] = field(default_factory=list)
    """What else happened, for the result of the write."""

    @property
    def view(self) -> TableView:
        """Return the table as it was when the write began; index look-ups and placement of inserts use it."""
        return self.pending.view

    @property
    def instant_time(self) -> str:
        """Return the requested time of the write."""
        return self.pending.instant_time

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
        is_global: bool = False,
    ) -> Instant:
        """Commit the files of `stats`, in one atomic step.

        `replaced`: file ids by partition path that this write replaces (replace commits only). `is_global`: keys are
        unique across partitions.

        Raises: CommitConflictError if another write that completed after the baseline conflicts, e.g. changed the same
            file groups. After this and every other error, nothing is committed.
        """
        extra = {**extra_metadata, **column_metadata(self.view), SCHEMA_KEY: schema}
        metadata = commit_metadata(stats, self.operation, extra, replaced)
        reached(Step.LOCATED)

        def check(now: TableView) -> None:
            check_conflicts(self.baseline, now, metadata, is_global=is_global, index=self.index.update)

        steps = DataCommit(
            instant_time=self.instant_time,
            metadata=metadata,
            index=self.index.update,
            check_conflicts=check,
            engine_for=self.engine_for,
        )
        completed = self.pending.finish(steps)
        self.notes += steps.notes
        self.view.state.commits[self.instant_time] = metadata
        return completed

    def undo(self) -> None:
        """Undo the write unless the metadata table may have it. Never raises an error.

        If the index files cannot be deleted, the instant stays pending: the next writer's rollback deletes them.
        """
        if not self.pending.is_in_metadata_table:
            try:
                self.index.update.discard()
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
    index: Index,
    baseline: TableView | None = None,
    engine_for: EngineFor = local_engine,
    properties: Mapping[str, str] | None = None,
) -> Iterator[WriteInstant]:
    """Begin a write; the body writes its files and commits it. The write uses `index`.

    `baseline`: the view from which the caller read the rows that it now writes. `plan` is the content of the requested
    file. `properties` are the options of the call.

    If the body fails before the metadata table may have the write, the write is undone without a trace. If it fails
    later, the write stays pending, and the next writer rolls it back.
    """

    def inflight(view: TableView) -> bytes:
        return CommitMetadata(operation_type=operation.value).to_bytes(view.config.version)

    begun = begin_write(state, action, plan=plan, inflight=inflight, properties=properties)
    pending = begun.pending
    write = WriteInstant(
        pending=pending,
        operation=operation,
        baseline=baseline or pending.view,
        index=IndexSession.begin(index, pending.view, pending.instant_time, engine_for),
        engine_for=engine_for,
        rolled_back=begun.rolled_back,
    )
    try:
        yield write
    except BaseException as error:
        write.undo()
        _raise_if_index_is_gone(write, error)
        raise
    finally:
        pending.end()


def _raise_if_index_is_gone(write: WriteInstant, error: BaseException) -> None:
    """Raise an error with the reason if a write failed because the record index was deleted while the write ran.

    Raises: CommitConflictError instead of `error`.
    """
    has_reason = isinstance(error, HoodieError) and not isinstance(error, UnsupportedError)
    if write.pending.is_in_metadata_table or has_reason or not isinstance(error, Exception):
        return
    is_gone = False
    with contextlib.suppress(Exception):
        is_gone = write.index.update.was_replaced_or_dropped(write.view.refreshed())
    if is_gone:
        raise CommitConflictError(
            f"the record index of {write.view.store.uri('')} was rebuilt or dropped while this write ran; nothing was "
            f"committed, try again ({error})"
        ) from error
