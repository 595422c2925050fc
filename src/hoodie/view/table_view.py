"""The table as of an instant: properties, timeline, commits, schema.

Loading a view takes one read of the properties and one listing of the timeline. A view never changes. The views of one
table share a cache of completed instants, which never change either.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pyarrow as pa

from hoodie.errors import InstantNotFoundError, InvalidConfigError
from hoodie.files.merged_slice import SliceRead
from hoodie.files.slice_read import slice_read
from hoodie.files.table_properties import BACKUP, KEEP_FOLDER, finish_update
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.schema.table_schema import avro_to_arrow, with_meta_fields, without_meta_fields
from hoodie.format.table.table_config import TableConfig, TableType
from hoodie.records.merging.merge import RecordMerger, check_defaults
from hoodie.storage import Store, asks_ahead, forget_answers
from hoodie.timeline import (
    Action,
    ArchivedTimeline,
    ArchiveLogs,
    Instant,
    InstantClock,
    Layout,
    State,
    TableLock,
    Timeline,
    TimelineArchive,
    layout_of,
    read_instant,
)
from hoodie.view.commit_cache import CommitFacts, sum_written
from hoodie.view.table_state import TableState, stored_archive

_SCHEMA_BATCH = 16
"""Commits whose contents are read at once in search of a schema; nearly every commit stores one."""
_WHOLE_BYTES_MAX = 64 * 1024
"""Of larger commit metadata, of about 300 files, only the facts are decoded if the caller needs no more."""


_Fact = TypeVar("_Fact")


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The table's columns without Hudi's meta columns: as Arrow, and as the Avro text that commits store."""

    arrow: pa.Schema
    avro: str


@dataclass(frozen=True, slots=True)
class TableView:
    """One state of a table.

    `timeline` holds the instants of this state. In a view of the past, `completed_later` holds the instants that
    completed afterwards; `timeline` does not contain them, and `archived_later` holds the requested times of those that
    are archived. `lock` is the table's lock under which the view was loaded.

    Methods that read the archive raise CorruptFileError if it is damaged.
    """

    state: TableState
    config: TableConfig
    layout: Layout
    timeline: Timeline
    completed_later: tuple[Instant, ...] = ()
    archived_later: frozenset[str] = frozenset()
    until: str | None = None
    """The time of a view of the past, as `as_completed_by` was given it."""
    lock: TableLock | None = field(default=None, compare=False)
    _facts: dict[Callable[[TableView], Any], Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    @classmethod
    def load(cls, state: TableState, lock: TableLock | None = None) -> TableView:
        """Load the table as it is now: one read of the properties and one listing of the timeline.

        Pass the table's `lock` if the caller holds it: changes of the table require a view that was loaded under it.
        Only properties and instants that changed since the last view of the same `state` are parsed.

        Raises: TableNotFoundError, CorruptFileError.
        """
        was_new = state.is_new
        state.ask()
        config = state.read_config()
        layout = layout_of(config)
        view = cls(state, config, layout, state.load_timeline(config, layout), lock=lock)
        if was_new and asks_ahead(state.store):
            if state.is_new:
                view.has_archived_instants()  # `ask_for_view` has requested it
            else:
                forget_answers(archive_folder(config))
        return view

    @classmethod
    @contextmanager
    def locked(
        cls, state: TableState, properties: Mapping[str, str] | None = None, *, finishes_update: bool = False
    ) -> Iterator[TableView]:
        """Hold the table's lock in a `with` block, which gets the table as it is under the lock.

        `properties`: options of the call. `finishes_update`: complete a change of the table's properties first, whose
        writer stopped before its end.

        Raises: as `load`; LockTimeoutError; InvalidConfigError for a wrong option.
        """
        with state.table_lock(properties, ahead=(("head", BACKUP),) if finishes_update else ()) as lock:
            if finishes_update:
                finish_update(state.store)
            yield cls.load(state, lock)

    def refreshed(self, lock: TableLock | None = None) -> TableView:
        """Load the same table as it is now, also from a view of the past. Arguments, cost and errors as `load`.

        A view that was loaded under a lock that is still held is refreshed under the same lock.
        """
        return TableView.load(self.state, lock or self.lock)

    def fact(self, function: Callable[[TableView], _Fact]) -> _Fact:
        """Return the result of a function of this view; each function is called once. Not for more than one thread."""
        if function not in self._facts:
            self._facts[function] = function(self)
        found: _Fact = self._facts[function]
        return found

    def with_instant(self, instant: Instant) -> TableView:
        """Return the view with an instant that this process has just begun, or completed, under the view's lock.

        The properties are those of before: what the metadata table has can be out of date.
        """
        after = Timeline.of((*self.timeline, instant))
        start = self.timeline.start or after.start
        return replace(self, timeline=replace(self.timeline, instants=after.instants, start=start))

    def with_stored(self, config: TableConfig) -> TableView:
        """Return the view with the properties that the holder of its lock has just stored; nothing is loaded again."""
        self.state.note_config(config)
        changed = replace(self, config=config)
        if _has_archive in self._facts:
            changed._facts[_has_archive] = self._facts[_has_archive]
        return changed

    @property
    def held_lock(self) -> TableLock:
        """The table's lock under which this view was loaded. Raises: RuntimeError if there is none."""
        if self.lock is None:
            raise RuntimeError(f"{self.store.uri('')}: this change requires a view that was loaded under the lock")
        return self.lock

    @property
    def store(self) -> Store:
        """The table's folder."""
        return self.state.store

    @property
    def clock(self) -> InstantClock:
        """The table's clock. All views share it, so that every new time is later than the times before."""
        clock = self.state.clock
        if clock is None:
            # Two threads must not make two clocks: both clocks would return the same times.
            with self.state.lock:
                clock = self.state.clock = self.state.clock or InstantClock(self.layout.zone)
        return clock

    def order_time(self, instant: Instant) -> str:
        """Return the time by which completed instants are ordered: the completion time.

        In version 6 it is the requested time, as for the JVM: there the completion time is the change time of a file,
        which a copy of the table does not keep.
        """
        if not self.config.version.has_completion_time_in_name:
            return instant.requested_time
        return instant.completion_time or instant.requested_time

    def as_completed_by(self, order_time: str) -> TableView:
        """Return the table as of a time (inclusive): completed instants with a later `order_time` are left out.

        It takes one read of the archive's manifest, and reads those of its files that may have later instants.
        """

        def is_later(instant: Instant) -> bool:
            return instant.is_completed and self.order_time(instant) > order_time

        archived = self.archived_writes(order_time)
        later = tuple(filter(is_later, self.timeline.instants))
        timeline = self.timeline.filter(lambda instant: not is_later(instant))
        # A commit with a savepoint can be older than the timeline's start, as archived commits are.
        writes = (instant for instant in (*archived, *later) if instant.action.writes_data)
        hidden = timeline.never_completed | {instant.requested_time for instant in writes}
        return replace(
            self,
            timeline=replace(timeline, never_completed=hidden),
            completed_later=(*archived, *self.completed_later, *later),
            archived_later=self.archived_later | {instant.requested_time for instant in archived},
            until=order_time if self.until is None else min(order_time, self.until),
        )

    def archive(self) -> ArchivedTimeline:
        """Return the archived timeline of the table; it is read when it is used."""
        return self.state.archive(self.config, self.layout)

    def stored_archive(self) -> TimelineArchive | ArchiveLogs:
        """Return the archive as the files that writers add to."""
        return stored_archive(self.store, self.config, self.layout)

    def archived_writes(self, after: str = "", until: str | None = None) -> list[Instant]:
        """Return the archived write instants with an `order_time` in `(after, until]`, sorted by it.

        An instant that is still on the active timeline of the view is left out: a writer archives instants first,
        and then deletes their files.
        """
        return [instant for instant in self.archived_instants(after, until) if instant.action.writes_data]

    def archived_instants(self, after: str = "", until: str | None = None) -> list[Instant]:
        """Return the archived instants of all actions; times as for `archived_writes`."""
        known = {instant.requested_time for instant in (*self.timeline, *self.completed_later) if instant.is_completed}
        return [found for found in self.archive().completed(after, until) if found.requested_time not in known]

    def archived_commits(self, instants: Collection[Instant]) -> Iterator[tuple[Instant, CommitMetadata]]:
        """Yield archived write instants and their commits, in no defined order. Memory: one row group of the archive.

        Raises: InstantNotFoundError if one of them is not archived.
        """
        wanted = {(instant.requested_time, instant.action.value): instant for instant in instants}
        if wanted:
            for content in self.archive().contents(instants):
                instant = wanted[content.requested_time, content.action]
                yield instant, CommitMetadata.parse(content.metadata or b"", path=f"{instant} in the archived timeline")

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """Return the metadata of a completed write instant; the cache keeps the metadata that was used last."""
        known = self.state.commits.get(instant.requested_time)
        return self._parsed(instant, self.content_of(instant)) if known is None else known

    def commit_facts(self, instant: Instant) -> CommitFacts:
        """Return the small facts of a completed write instant; they are read once.

        Of a commit that wrote very many files, the write stats are not decoded.
        """
        facts = self.state.commits.facts(instant.requested_time)
        if facts is None:
            content = self.content_of(instant)
            if len(content) <= _WHOLE_BYTES_MAX:
                return CommitFacts.of(self._parsed(instant, content))
            facts = CommitFacts.of(CommitMetadata.parse_head(content, path=self.path_of(instant)))
            self.state.commits.note_facts(instant.requested_time, facts)
        return facts

    def written_bytes(self, instant: Instant, *, rows_enough: int) -> tuple[int, int]:
        """Return the rows and bytes of base files that a completed write instant wrote, of its first files at least.

        Of a commit that wrote very many files, only so many write stats are decoded as have `rows_enough` rows.
        """
        found = self.state.commits.written.get(instant.requested_time)
        if found is None:
            metadata = self.state.commits.get(instant.requested_time)
            if metadata is None:
                content = self.content_of(instant)
                if len(content) <= _WHOLE_BYTES_MAX:
                    stats = self._parsed(instant, content).write_stats()
                else:
                    stats = CommitMetadata.iter_stats(content, path=self.path_of(instant))
            else:
                stats = metadata.write_stats()
            found = self.state.commits.written[instant.requested_time] = sum_written(stats, rows_enough=rows_enough)
        return found

    def content_of(self, instant: Instant) -> bytes:
        """Return the content of a completed instant, which a writer may have archived after the view was loaded.

        Raises: InstantNotFoundError if it was rolled back since; CorruptFileError.
        """
        with suppress(InstantNotFoundError):
            return read_instant(self.store, self.layout, instant)
        found = [known for known in self.archive().find([instant.requested_time]) if known.action is instant.action]
        for content in self.archive().contents(found):
            return content.metadata or b""
        raise InstantNotFoundError(
            f"{instant} of {self.store.uri('')} is neither on the active nor on the archived timeline: it was rolled "
            "back since the timeline was loaded; load the table again"
        )

    def pending_content(self, instant: Instant, state: State = State.REQUESTED) -> bytes:
        """Return the content of the requested or inflight file of an instant; empty if there is no such file."""
        try:
            return read_instant(self.store, self.layout, instant, state)
        except InstantNotFoundError:
            return b""

    def _parsed(self, instant: Instant, content: bytes) -> CommitMetadata:
        metadata = CommitMetadata.parse(content, path=self.path_of(instant))
        self.state.commits[instant.requested_time] = metadata
        return metadata

    def path_of(self, instant: Instant) -> str:
        """Return the path of the instant's file, for error messages."""
        name = self.layout.names(instant, instant.state)[0]
        return self.store.uri(f"{self.layout.instant_folder()}/{name}")

    def completed_writes(self) -> list[Instant]:
        """Return the completed instants that wrote data, by `order_time`."""
        instants = self.timeline.writes().completed().instants
        return sorted(instants, key=lambda instant: (self.order_time(instant), instant.requested_time))

    def has_archived_instants(self) -> bool:
        """Return whether older instants were moved out of the active timeline; at most one listing for each view."""
        if not self.state.has_archive:
            self.state.has_archive = self.fact(_has_archive)
        return self.state.has_archive

    def schema(self, *, as_of: str | None = None) -> TableSchema:
        """Return the schema of the newest commit that has a schema, else the schema that the table was created with.

        With `as_of`, only commits requested at `as_of` or before count. Before the oldest commit the schema of that
        commit is returned.

        Raises: InvalidConfigError if neither exists.
        """
        return self.fact(TableView._schema) if as_of is None else self._schema(as_of)

    def _schema(self, as_of: str | None = None) -> TableSchema:
        text = self._newest_schema(self.completed_writes(), as_of) or self._newest_archived_schema(until=as_of)
        if text is None and (as_of is not None or self.completed_later):
            known = (*self.completed_writes(), *(found for found in self.completed_later if found.action.writes_data))
            text = self._newest_schema(sorted(known, key=self.order_time, reverse=True))
        text = text or self.config.create_schema
        if text:
            where = f"{self.store.uri('')}: the table's schema"
            return TableSchema(self._with_path_fields(without_meta_fields(avro_to_arrow(text, path=where))), text)
        raise InvalidConfigError(
            f"{self.store.uri('')} has no schema: it has neither a commit nor hoodie.table.create.schema; write to it "
            "with the engine that created it, or create it with hoodie.create(path, schema)"
        )

    def _newest_schema(self, commits: Sequence[Instant], as_of: str | None = None) -> str | None:
        """Return the schema of the last of these commits that has one, of those requested at `as_of` or before."""
        for instant in reversed(commits):
            if as_of is None or instant.requested_time <= as_of:
                facts = self.commit_facts(instant)
                if facts.schema and facts.changes_schema:
                    return facts.schema
        return None

    def _newest_archived_schema(self, *, until: str | None = None) -> str | None:
        """Return the schema of the newest archived commit that stores one; `until` (inclusive) is a requested time.

        Commits that completed after the time of the view are left out.
        """
        if not self.has_archived_instants():
            return None
        hidden = self.timeline.never_completed
        found = [
            instant
            for instant in self.archived_writes()
            if instant.requested_time not in hidden and (until is None or instant.requested_time <= until)
        ]
        while found:
            batch, found = found[-_SCHEMA_BATCH:], found[:-_SCHEMA_BATCH]
            facts = {instant: CommitFacts.of(commit) for instant, commit in self.archived_commits(batch)}
            for instant in reversed(batch):
                if facts[instant].schema and facts[instant].changes_schema:
                    return facts[instant].schema
        return None

    def _with_path_fields(self, schema: pa.Schema) -> pa.Schema:
        """Append the partition columns that data files do not have; as in JVM Hudi, they are text unless stored."""
        missing = [name for name in self.config.path_fields if schema.get_field_index(name) < 0]
        return pa.schema([*schema, *(pa.field(name, pa.string()) for name in missing)], metadata=schema.metadata)

    def whole_timeline(self) -> Timeline:
        """Return all instants, also the instants that completed later: they determine which files exist."""
        if not self.completed_later:
            return self.timeline
        later = (instant for instant in self.completed_later if instant.requested_time not in self.archived_later)
        instants = Timeline.of((*self.timeline, *later)).instants
        return replace(self.timeline, instants=instants, never_completed=frozenset())

    def slice_read(self, columns: pa.Schema | None = None, merger: RecordMerger | None = None) -> SliceRead:
        """Return the options to read the newest file slices with all columns, or with these, without meta fields.

        Raises: as `table_merger` and `check_defaults`, on merge-on-read tables; as `schema`.
        """
        if self.config.table_type is TableType.MERGE_ON_READ:
            check_defaults(self.config, lambda: self.schema().avro)
        read = slice_read(self.config, with_meta_fields(columns or self.schema().arrow), merger)
        if self.config.version.validates_log_blocks:
            read = replace(read, rule=replace(read.rule, timeline=self.whole_timeline()))
        return read

    def replaced_file_ids(self, as_of: str | None = None) -> dict[str, set[str]]:
        """Return the file ids that completed replace commits replaced (as of a requested time), by partition path."""
        gone: dict[str, set[str]] = {}
        for instant in self.timeline.completed().instants:
            if instant.action is Action.REPLACE_COMMIT and (as_of is None or instant.requested_time <= as_of):
                for path, file_ids in self.commit_facts(instant).replaced.items():
                    gone.setdefault(path, set()).update(file_ids)
        return gone


def archive_folder(config: TableConfig) -> str:
    """Return the folder of the archived timeline."""
    return f"{layout_of(config).instant_folder()}/{config.archive_name}"


def _has_archive(view: TableView) -> bool:
    return any(info.name != KEEP_FOLDER for info in view.store.list(archive_folder(view.config)))
