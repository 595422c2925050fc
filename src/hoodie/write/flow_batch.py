"""Write a batch of an ingestion together with the place behind it, in one commit.

The batch was planned from the place of the newest commit that has one. The commit is refused if another commit with a
place came in between, so of two jobs that read the same rows only one writes them. docs/ingest/README.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hoodie.commit.call import Call
from hoodie.errors import BatchWrittenError
from hoodie.format.instants.ingest_checkpoint import IngestCheckpoint, has_names
from hoodie.view.table_view import TableView
from hoodie.write.result import WriteResult
from hoodie.write.stream_batch import OPERATIONS, newest_entry


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPlace:
    """The checkpoint of the newest commit that has one, and the requested time of that commit.

    Both are None if no commit has a checkpoint. `unnamed`: then, of an ingestion with a name, the place of one without;
    and `nothing_until`: no commit that completed until this time has a checkpoint, so that later searches are short.
    """

    instant: str | None = None
    checkpoint: IngestCheckpoint | None = None
    unnamed: str | None = None
    nothing_until: str = ""


def stored_place(view: TableView, name: str | None, before: StoredPlace | None = None) -> StoredPlace:
    """Return where the ingestion `name` (None: the only one of its table) goes on.

    `before`: the result of an earlier search. Raises: CorruptFileError if the entries of a commit do not parse.
    """
    since = "" if before is None else before.nothing_until
    found = newest_entry(view, lambda extra, path: IngestCheckpoint.of(extra, name, path=path), after=since)
    if found is not None:
        return StoredPlace(instant=found[0].requested_time, checkpoint=found[1])
    other = None if name is None else newest_entry(view, _unnamed, after=since)
    if other is not None:
        return StoredPlace(unnamed=other[1].place)
    if not view.config.version.has_completion_time_in_name:
        return StoredPlace()  # requested times order the commits: an earlier one can complete later
    return StoredPlace(nothing_until=max((view.order_time(done) for done in view.completed_writes()), default=since))


def _unnamed(extra: Mapping[str, str], path: str) -> IngestCheckpoint | None:
    return None if has_names(extra) else IngestCheckpoint.of(extra, path=path)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowBatch:
    """A batch of the ingestion `name`, planned from `planned_from`, with the checkpoint behind it.

    `check` raises an error under the table's lock, after all rows were read, if the batch must not be committed.
    """

    name: str | None
    planned_from: StoredPlace
    checkpoint: IngestCheckpoint
    check: Callable[[], None] = field(default=lambda: None)

    def refuse_other(self, view: TableView) -> None:
        """Raises: BatchWrittenError if another commit with a place was made since the batch was planned."""
        now, then = stored_place(view, self.name, self.planned_from), self.planned_from
        # The commit of a flow with a name repeats the places of the others. In version 6 the newest commit has the
        # latest requested time, and can have completed while this batch was read.
        by_instant = self.name is None or not view.config.version.has_completion_time_in_name
        if (now.instant != then.instant) if by_instant else (now.checkpoint != then.checkpoint):
            what = f"commit {now.instant}" if now.instant else "a rollback or a restore"
            raise BatchWrittenError(
                f"{view.store.uri('')}: {what} changed the place of this ingestion while a batch from "
                f"{self.planned_from.instant or 'the start'} was read; the batch is not written, it is planned again"
            )

    def entries(self, view: TableView) -> Mapping[str, str]:
        """Return the entries of the commit, under the table's lock. Raises: as `check`."""
        self.check()
        if self.name is None:
            return self.checkpoint.entries()
        others = newest_entry(view, lambda extra, _path: extra if has_names(extra) else None)
        return self.checkpoint.entries(self.name, others[1] if others else {})


def write_flow_batch(call: Call, data: Any, operation: str, batch: FlowBatch) -> WriteResult:
    """Write the batch. Raises: as the operation; BatchWrittenError; as `FlowBatch.check`."""
    return OPERATIONS[operation](replace(call, guard=batch.refuse_other, late_entries=batch.entries), data)
