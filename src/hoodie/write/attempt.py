"""The attempts of one write: begin each of them, and write the same rows again after a conflict with another writer.

An attempt that meets a conflict is undone, and commits nothing. The next attempt looks up the keys again, in the table
as it is then, under a new instant. docs/operations/concurrency.md lists the conflicts that are retried.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from hoodie.commit.conflicts import known_schema
from hoodie.commit.data_commit import REBUILT_NOTE
from hoodie.commit.write_instant import WriteInstant, write_instant
from hoodie.config import concurrency
from hoodie.errors import CommitConflictError
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.format.instants.planned_replacement import PlannedReplacement
from hoodie.format.instants.service_metadata import RequestedReplaceMetadata
from hoodie.index import breaks_new_index
from hoodie.timeline import Action
from hoodie.view.table_view import TableView
from hoodie.write.mend import mend
from hoodie.write.setup import WriteSetup

T = TypeVar("T")

_FIRST_WAIT_MS_MIN: Final = 50
_FIRST_WAIT_MS_MAX: Final = 1_000
_WAIT_MS_MAX: Final = 10_000
_OVERWRITES: Final = (WriteOperation.INSERT_OVERWRITE, WriteOperation.INSERT_OVERWRITE_TABLE)
_FIXED: Final = (
    "version",
    "table_type",
    "record_key_fields",
    "partition_fields",
    "partition_field_types",
    "ordering_fields",
    "key_generator",
    "timestamp_options",
    "is_hive_style",
    "is_url_encoded",
    "has_slash_separated_dates",
    "drops_partition_columns",
    "populates_meta_fields",
    "merge_rule",
    "is_cdc_enabled",
    "cdc_logging_mode",
)
"""The fields of `TableConfig` by which the rows of a write are prepared, or from which its workers' tasks are made."""


@dataclass(slots=True)
class Retries:
    """Attempts of one write: at most `retries_max` after the first one, with a growing random wait between them.

    The wait lets other writers go on, and parts writers that meet again and again. Before the first retry it is about
    as long as the first attempt was, from 50 ms to 1 s; before each further retry twice as long, up to 10 s; times a
    random factor from 0.5 to 1.5.
    """

    retries_max: int
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random
    clock: Callable[[], float] = time.monotonic
    causes: list[str] = field(default_factory=list, init=False)
    """What other writers did, one text for each attempt that was undone."""

    @classmethod
    def of(cls, *properties: Mapping[str, str]) -> Retries:
        """Return the retries that the options ask for; the first mapping takes precedence."""
        return cls(concurrency.CONFLICT_RETRIES.get(*properties))

    def run(self, attempt: Callable[[int], T]) -> T:
        """Call `attempt` with its number from 0 until it does not meet a conflict that a retry can solve.

        Raises: CommitConflictError of the last attempt.
        """
        started, first_ms = self.clock(), 0.0
        while True:
            try:
                return attempt(len(self.causes))
            except CommitConflictError as error:
                if error.retry_cause is None or len(self.causes) >= self.retries_max:
                    if not self.causes:
                        raise
                    raise self._given_up(error) from error
                self.causes.append(error.retry_cause)
            first_ms = first_ms or min(max((self.clock() - started) * 1000, _FIRST_WAIT_MS_MIN), _FIRST_WAIT_MS_MAX)
            wait_ms = min(first_ms * 2 ** (len(self.causes) - 1), _WAIT_MS_MAX)
            self.sleep(wait_ms * (0.5 + self.random()) / 1000)

    def _given_up(self, error: CommitConflictError) -> CommitConflictError:
        """Return the error of the last attempt; a conflict that met every attempt has another advice than the first."""
        tried = f"this write was tried {len(self.causes) + 1} times"
        if error.retry_cause is None:
            return CommitConflictError(f"{error} ({tried})")
        return CommitConflictError(
            f"{error.retry_cause}; nothing was committed, and {tried} ({concurrency.CONFLICT_RETRIES.key}): let fewer "
            "writers write the same file groups at the same time, or give each writer other partitions"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the note of a write that was tried more than once."""
        if not self.causes:
            return ()
        times = "once" if len(self.causes) == 1 else f"{len(self.causes)} times"
        return (f"retried {times}: {self.causes[-1]}",)


def retries_of(setup: WriteSetup) -> Retries:
    """Return how often a write is tried again after a conflict; never here if its rows were read before."""
    return Retries(0) if setup.call.baseline is not None else Retries.of(setup.options)


@contextlib.contextmanager
def begin(
    setup: WriteSetup, operation: WriteOperation, reads: Collection[str] = (), *, partitions: Collection[str] = ()
) -> Iterator[WriteInstant]:
    """Begin an attempt: a new instant, if the table's schema and rules did not change after the setup was made.

    `reads`: as for `begin_write`. `partitions`: those that an overwrite replaces even if it has no row of them. If the
    commit finds that the metadata table is missing, the index is built after it.

    Raises: CommitConflictError if the schema, the version or another rule changed, or the index was switched.
    """
    call, action, plan = setup.call, Action.COMMIT, b""
    if operation is WriteOperation.DELETE_PARTITION:
        # Which partitions a deletion chooses is not known yet.
        action, plan = Action.REPLACE_COMMIT, RequestedReplaceMetadata().to_bytes()
    elif operation in _OVERWRITES:
        action, plan = Action.REPLACE_COMMIT, PlannedReplacement(partitions=tuple(sorted(partitions))).to_plan()
    elif setup.is_merge_on_read:
        action = Action.DELTA_COMMIT
    with write_instant(
        call.state,
        action,
        operation,
        plan,
        index=setup.index,
        baseline=call.baseline,
        engine_for=call.engine_for,
        properties=call.properties,
        reads=reads,
    ) as write:
        _check_same(setup.view, write.view)
        if call.guard is not None:
            call.guard(write.view)
            write.guard = call.guard
        write.late_entries = call.late_entries
        write.options = setup.options
        write.notes += setup.notes
        yield write
    if REBUILT_NOTE in write.notes[len(setup.notes) :]:
        try:
            write.notes += mend(call, TableView.load(call.state))[1]
        except Exception as error:  # a caller that sees an error would write the rows again
            write.notes.append(f"the indexes were not built again after this write, which is committed: {error}")


def _check_same(before: TableView, now: TableView) -> None:
    """Refuse a table that got other columns, another index, or other rules by which rows are written."""
    changed = [name for name in _FIXED if getattr(now.config, name) != getattr(before.config, name)]
    if changed:
        change = f"the properties of {now.store.uri('')} were changed ({', '.join(changed)})"
    elif known_schema(now) != known_schema(before):
        change = f"another writer changed the schema of {now.store.uri('')}"
    elif breaks_new_index(before.config, now.config):
        change = f"the index of {now.store.uri('')} was switched"
    else:
        return
    raise CommitConflictError(f"{change} while this write was prepared; nothing was committed, try again")


@contextlib.contextmanager
def not_repeated(operation: str) -> Iterator[None]:
    """Say in the error of a conflict that the operation streams its data, so that it cannot repeat the write itself.

    Raises: CommitConflictError.
    """
    try:
        yield
    except CommitConflictError as error:
        if error.retry_cause is None:
            raise
        raise CommitConflictError(
            f"{error.retry_cause}; {operation} streams its data and keeps no copy, so it is not retried: nothing was "
            "committed, call it again with the data"
        ) from error
