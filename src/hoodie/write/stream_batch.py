"""Write each batch of a stream once, also after a death at any moment.

The commit of a batch names the batch (format/instants/sink_checkpoint.py). A batch that a completed commit names, or a
later one of the same stream, is not written again. That is checked before the write, and again under the table's lock,
so only one of two attempts of a batch commits. docs/streaming.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

from hoodie.commit.call import Call
from hoodie.config.writes import STREAM_IDENTIFIER
from hoodie.errors import BatchWrittenError, HoodieWarning, InvalidConfigError, StreamCheckpointError
from hoodie.format.instants.sink_checkpoint import SinkCheckpoint
from hoodie.read.changes import last_undo
from hoodie.timeline import Action, Instant
from hoodie.view.table_view import TableView
from hoodie.write.bulk_insert import bulk_insert, insert_overwrite
from hoodie.write.indexed import delete, insert, upsert
from hoodie.write.result import WriteResult

T = TypeVar("T")
_ARCHIVED_READ: Final = 64
"""Archived commits that are read at once."""
OPERATIONS: Final[Mapping[str, Callable[[Call, Any], WriteResult]]] = {
    "upsert": upsert,
    "insert": insert,
    "bulk_insert": bulk_insert,
    "delete": delete,
    "insert_overwrite": insert_overwrite,
    "insert_overwrite_table": partial(insert_overwrite, whole_table=True),
}
"""The operations of a stream, by name."""


def check_operation(operation: str) -> None:
    """Raises: InvalidConfigError for an operation that a stream does not have."""
    if operation not in OPERATIONS:
        raise InvalidConfigError(f"operation={operation!r}: a stream takes one of {', '.join(OPERATIONS)}")


def write_batch(
    call: Call, data: Any, operation: str, batch_id: int, *, identifier: str | None = None, query: str | None = None
) -> WriteResult | None:
    """Write a batch of a stream, unless a commit has it; then return None.

    `identifier`: name of the stream; None: the option of the call or of the table. `query`: id of the query.

    Warns: HoodieWarning if a batch is left out that a commit of an unknown query has, and if a restore or a rollback
    took back batches before this one. Raises: as the operation; InvalidConfigError; StreamCheckpointError if the
    commits are of another query, which numbers its batches anew.
    """
    check_operation(operation)
    view = call.load()
    name = identifier or STREAM_IDENTIFIER.get(call.properties, view.config.raw)
    batch = SinkCheckpoint(identifier=name, batch=batch_id, query=query)
    rule = _Once(batch)
    call = replace(call, extra_metadata={**call.extra_metadata, **batch.entries()}, guard=rule.refuse_written)
    try:
        rule.refuse_written(view)
        if rule.gap is not None:
            _warn_of_gap(view, batch, *rule.gap)
        return OPERATIONS[operation](call, data)
    except BatchWrittenError as error:
        reason = str(error)
    if rule.is_in_doubt:
        warnings.warn(reason, HoodieWarning, stacklevel=3)
    return None


@dataclass(slots=True)
class _Once:
    """The rule for one batch."""

    batch: SinkCheckpoint
    gap: tuple[str, int] | None = None
    """After the first check: the order time and the batch of the newest commit, if batches behind it are missing."""
    is_in_doubt: bool = False
    """Whether a batch was left out because of a commit whose query is not known."""
    _checked_until: str = ""
    """No commit that completed until this time has the batch, so later checks, under the lock, are short.

    Always empty in version 6.
    """

    def refuse_written(self, view: TableView) -> None:
        """Raises: BatchWrittenError if a commit has the batch; StreamCheckpointError."""
        own = self.batch
        newest = newest_entry(
            view, lambda extra, path: SinkCheckpoint.of(extra, own.identifier, path=path), after=self._checked_until
        )
        if newest is None or newest[1].batch < own.batch:
            if self.gap is None and not self._checked_until:
                self.gap = _gap(view, own, newest)
            if view.config.version.has_completion_time_in_name:
                # Else requested times order the commits: an earlier one can complete later.
                self._checked_until = max((view.order_time(done) for done in view.completed_writes()), default="")
            return
        instant, found = newest
        said = (
            f"batch {own.batch} of the stream {own.identifier!r}: commit {instant.requested_time} has batch "
            f"{found.batch}"
        )
        if own.query is None or own.query == found.query:
            raise BatchWrittenError(f"{said}, so it is not written again")
        if found.query is None and found.batch == own.batch:
            self.is_in_doubt = True
            raise BatchWrittenError(
                f"{said}, of a query that is not known, so it is not written again. That is right if this stream went "
                "on from the checkpoint of that query"
            )
        other = "an unknown query" if found.query is None else f"query {found.query}"
        raise StreamCheckpointError(
            f"{said}, of {other}, and query {own.query} numbers its batches anew: expected that this stream goes on "
            "from the checkpoint of that query. Nothing was written. Start the stream with that checkpoint, or give it "
            "a name of its own (identifier=): it then writes all its batches, also rows that the earlier query wrote"
        )


def _gap(
    view: TableView, batch: SinkCheckpoint, newest: tuple[Instant, SinkCheckpoint] | None
) -> tuple[str, int] | None:
    """Return `_Once.gap`: a query of Spark commits each batch, empty ones too, so none lacks a commit."""
    if newest is None:
        return ("", -1) if batch.batch > 0 and batch.query is not None else None
    instant, found = newest
    is_next = found.batch + 1 == batch.batch
    return None if is_next or found.query != batch.query else (view.order_time(instant), found.batch)


def _warn_of_gap(view: TableView, batch: SinkCheckpoint, after: str, last: int) -> None:
    """Warn if a restore or a rollback since `after` explains that the batches between `last` and this one are missing.

    Numbers of a stream without Spark may have gaps of their own.
    """
    undo = last_undo(view, after)
    if undo is None:
        return
    query = "" if batch.query is None else f" of query {batch.query}"
    missing = f"batch {last + 1}" if last + 2 == batch.batch else f"batches {last + 1} to {batch.batch - 1}"
    warnings.warn(
        f"batch {batch.batch} of the stream {batch.identifier!r}{query}: the table has no commit of {missing}, and "
        f"{undo.action.value} {undo.requested_time} took commits back. The stream goes on from its checkpoint, and "
        f"does not send {missing} again. If these rows are needed, stop the stream, and start it with a new checkpoint "
        "and another name (identifier=), so that it writes all its batches again",
        HoodieWarning,
        stacklevel=4,
    )


def newest_entry(
    view: TableView, parse: Callable[[Mapping[str, str], str], T | None], *, after: str = ""
) -> tuple[Instant, T] | None:
    """Return the newest completed commit for which `parse` finds an entry, and the entry; None without one.

    `parse` gets the entries of a commit, and a name of the commit for errors. `after` (exclusive): a completion time;
    older commits do not count. The archived timeline is read if no active commit has an entry, from its newest commits
    on; and where savepoints keep old commits active, so that archived ones can be newer.

    Raises: as `parse`; CorruptFileError if the archive is damaged.
    """
    active = None
    for instant in reversed(view.completed_writes()):
        if view.order_time(instant) <= after:
            break
        found = parse(view.commit_facts(instant).sink, view.path_of(instant))
        if found is not None:
            active = (instant, found)
            break
    has_savepoints = any(instant.action is Action.SAVEPOINT for instant in view.timeline)
    if (active is not None and not has_savepoints) or not view.has_archived_instants():
        return active
    return _newest_archived(view, parse, after if active is None else view.order_time(active[0])) or active


def _newest_archived(
    view: TableView, parse: Callable[[Mapping[str, str], str], T | None], after: str
) -> tuple[Instant, T] | None:
    left = list(view.archived_writes(after))
    while left:
        some, left = left[-_ARCHIVED_READ:], left[:-_ARCHIVED_READ]
        extra = {instant: commit.extra_metadata for instant, commit in view.archived_commits(some)}
        for instant in reversed(some):
            found = parse(extra[instant], f"{instant} in the archived timeline")
            if found is not None:
                return instant, found
    return None
