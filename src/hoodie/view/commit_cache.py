"""A bounded cache of the metadata of completed instants, which never change while the table exists."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from hoodie.format.instants.commit_metadata import CommitMetadata, WriteOperation, WriteStat
from hoodie.format.instants.ingest_checkpoint import KEYS as INGEST_KEYS
from hoodie.format.instants.replaced_files import Findings
from hoodie.format.instants.service_metadata import CleanerPlan
from hoodie.format.instants.sink_checkpoint import CHECKPOINT_KEY, QUERY_KEY
from hoodie.format.schema.column_ids import LATEST_SCHEMA, parse_latest

if TYPE_CHECKING:
    from hoodie.timeline import Instant, Timeline

_COMMITS_KEPT = 64
"""Number of commits whose whole metadata is kept. The metadata has a write stat for each file that the commit wrote."""

_FILES_SUMMED = 256

_NO_SCHEMA_CHANGE = frozenset(
    {
        WriteOperation.COMPACT,
        WriteOperation.CLUSTER,
        WriteOperation.LOG_COMPACT,
        WriteOperation.INDEX,
        WriteOperation.DELETE_PARTITION,
    }
)


@dataclass(frozen=True, slots=True)
class CommitFacts:
    """The small part of a commit's metadata that every view needs.

    `schema` is the Avro text as stored. `changes_schema`: whether the operation can set the table's schema
    (docs/format/table.md §3.7). `replaced` are the file ids that the commit replaced, by partition path.
    `column_version` is the version of the columns' ids; None if the commit has no ids. `sink`: the entries of the extra
    metadata about batches of streams and places of ingestions.
    """

    operation_type: str | None
    schema: str | None
    changes_schema: bool
    replaced: Mapping[str, tuple[str, ...]]
    column_version: int | None
    sink: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, metadata: CommitMetadata) -> CommitFacts:
        """Return the facts of a commit; equal schema texts share one string object."""
        text = metadata.schema
        extra = metadata.extra_metadata
        ids = extra.get(LATEST_SCHEMA)
        return cls(
            metadata.operation_type,
            None if text is None else sys.intern(text),
            metadata.operation_type not in _NO_SCHEMA_CHANGE,
            metadata.partition_to_replace_file_ids or {},
            parse_latest(ids, path=f"{LATEST_SCHEMA} of a commit").version if ids else None,
            {key: extra[key] for key in (CHECKPOINT_KEY, QUERY_KEY, *INGEST_KEYS) if key in extra},
        )


def sum_written(stats: Iterable[WriteStat], *, rows_enough: int) -> tuple[int, int]:
    """Add up the rows and bytes of base files: at least `_FILES_SUMMED` files and `rows_enough` rows, if so many."""
    rows = size_bytes = 0
    for count, stat in enumerate(stats):
        if count >= _FILES_SUMMED and rows >= rows_enough:
            break
        if not stat.is_log_append:
            rows, size_bytes = rows + stat.num_writes, size_bytes + stat.file_size_bytes
    return rows, size_bytes


@dataclass(frozen=True, slots=True)
class CleanFacts:
    """The small part of a clean's plan or metadata that views and later cleans need.

    `planned_at` is the clean's requested time. `earliest` is the requested time of the earliest commit to retain; empty
    for a clean that keeps file versions. `last_completed` is the newest commit that was completed when the clean was
    planned. `extra` is the extra metadata.
    """

    planned_at: str
    earliest: str
    last_completed: str
    policy: str
    extra: Mapping[str, str]

    @classmethod
    def of_plan(cls, planned_at: str, plan: CleanerPlan) -> CleanFacts:
        """Return the facts of a plan, as if it were executed."""
        earliest = plan.earliest_instant_to_retain
        since = "" if earliest is None else earliest.timestamp
        return cls(planned_at, since, plan.last_completed_commit_timestamp, plan.policy, plan.extra_metadata or {})

    @property
    def bound(self) -> str:
        """Requested time of the oldest snapshot that still has all files after the clean.

        A clean that keeps file versions may have deleted any file slice that only snapshots before its last completed
        commit need.
        """
        return self.earliest or self.last_completed


@dataclass(frozen=True, slots=True)
class ArchivingHold:
    """What kept all instants on the active timeline when a process last planned to archive.

    `causes` are the instants and rules that can hold instants back; `commits` completed commits were active, and
    `step` further ones may change the outcome.
    """

    causes: Hashable
    commits: int
    step: int

    def holds(self, now: ArchivingHold) -> bool:
        """Return whether planning again would be in vain: `now` has the same causes and hardly more commits."""
        return self.causes == now.causes and 0 <= now.commits - self.commits < self.step


@dataclass(frozen=True, slots=True, kw_only=True)
class Savepoint:
    """A completed savepoint. `instant` is the requested time of the commit that it keeps.

    `files` are the names of base and log files by partition path; `created_at_ms` is milliseconds since the epoch.
    """

    instant: str
    user: str
    comment: str
    created_at_ms: int
    files: Mapping[str, tuple[str, ...]] = field(repr=False, hash=False)

    def to_dict(self) -> dict[str, object]:
        """Return plain values, for JSON; `files` is the number of files."""
        files = sum(map(len, self.files.values()))
        named = {"instant": self.instant, "user": self.user, "comment": self.comment}
        return {**named, "created_at_ms": self.created_at_ms, "partitions": len(self.files), "files": files}


def _is_of_another_table(before: Timeline, now: Timeline) -> bool:
    """Return whether the folder has another table than before: no completed instant of `before` is there any more.

    An adoption always has the same requested time, so that the completion times count too. It is also true of the same
    table if all its instants were archived or taken back: then what was remembered is read once more.
    """
    known = [found for found in reversed(before.instants) if found.is_completed]
    return bool(known) and not any(now.get(found.requested_time, found.action) == found for found in known)


class CommitCache:
    """Metadata of the commits used last, and the facts of all commits that were read. Thread-safe.

    Memory: the metadata of 64 commits, and the facts of every commit that was read. `cleans` maps the requested time
    of a clean to its facts; `nothing_to_clean` are the facts of the last clean that this process planned and did not
    execute, because there was nothing to delete. `archiving_hold` is what held the last archiving back, if it archived
    nothing. `savepoints` are parsed savepoints by their instants (see `view.history`). `file_schemas` maps an
    instant whose commit is archived to the schema stored in its files. `written` are the sums that writes computed.
    `found` are the files that writes replaced (see `view.superseded`).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._timeline: Timeline | None = None
        self._tables = 0
        self._forget()

    def _forget(self) -> None:
        self._recent: OrderedDict[str, CommitMetadata] = OrderedDict()
        self._facts: dict[str, CommitFacts] = {}
        self.cleans: dict[str, CleanFacts] = {}
        self.nothing_to_clean: CleanFacts | None = None
        self.archiving_hold: ArchivingHold | None = None
        self.savepoints: Mapping[Instant, Savepoint] = {}
        self.file_schemas: dict[str, pa.Schema] = {}
        self.written: dict[str, tuple[int, int]] = {}
        self.found: dict[str, Findings] = {}

    def follow(self, timeline: Timeline) -> int:
        """Return a number that changes when the folder has another table than at the last call, by its timeline now.

        Then everything is forgotten.
        """
        with self._lock:
            if self._timeline is not None and _is_of_another_table(self._timeline, timeline):
                self._forget()
                self._tables += 1
            self._timeline = timeline
            return self._tables

    def __setitem__(self, instant_time: str, metadata: CommitMetadata) -> None:
        """Store the metadata and the facts of a completed commit."""
        with self._lock:
            self._recent[instant_time] = metadata
            self._recent.move_to_end(instant_time)
            if len(self._recent) > _COMMITS_KEPT:
                self._recent.popitem(last=False)
            self._facts[instant_time] = CommitFacts.of(metadata)

    def note_facts(self, instant_time: str, facts: CommitFacts) -> None:
        """Store the facts of a completed commit without its whole metadata."""
        with self._lock:
            self._facts[instant_time] = facts

    def get(self, instant_time: str) -> CommitMetadata | None:
        """Return the metadata of a commit; None if it is not in the cache."""
        with self._lock:
            found = self._recent.get(instant_time)
            if found is not None:
                self._recent.move_to_end(instant_time)
            return found

    def facts(self, instant_time: str) -> CommitFacts | None:
        """Return the facts of a commit; None if the commit was not read before."""
        return self._facts.get(instant_time)
