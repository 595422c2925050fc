"""The active timeline of a table: its instants, each in its highest state, and the times of new instants.

On-disk format: docs/format/table.md §2.1, §2.2 and §5.1.
"""

from __future__ import annotations

import contextlib
import html
import itertools
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter

from hoodie.arguments import check_arguments, shown
from hoodie.display import html_rows
from hoodie.errors import CorruptFileError, InstantNotFoundError, InvalidConfigError
from hoodie.format.instants.service_metadata import RequestedReplaceMetadata
from hoodie.format.table.table_config import TimelineZone
from hoodie.storage import FileInfo, Store
from hoodie.timeline.instant import Action, Instant, State
from hoodie.timeline.layout import Layout
from hoodie.timeline.zone import instant_time_of_ms, next_instant_time

_requested_time = attrgetter("requested_time")
_SHOWN_MAX = 20
"""Instants that a notebook shows."""


@dataclass(frozen=True, slots=True, repr=False)
class Timeline:
    """Instants sorted by requested time, one per requested time and action (a savepoint shares its commit's time).

    `start` is the requested time of the first write instant, in any state, that has no savepoint; if all have one, of
    the last. It refers to the whole active timeline; filtered timelines keep it. Older instants are archived, and all
    archived instants are completed. (A savepoint can keep its commit in the active timeline while later commits are
    archived.)

    `archived` maps requested times of archived write instants to completion times; it contains only the instants that
    were looked up: those before `start` whose completion time matters, and those after it (JVM Hudi can delete a
    savepoint whose later commits are archived: then `start` is its commit). `never_completed` contains times before
    `start` that were looked up and are not in the archive.
    """

    instants: tuple[Instant, ...] = ()
    start: str | None = None
    archived: Mapping[str, str] = field(default_factory=dict, hash=False)
    never_completed: frozenset[str] = frozenset()
    _parts: dict[str, Timeline] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The timelines that `completed`, `pending` and `writes` returned."""

    @classmethod
    def of(cls, instants: Iterable[Instant]) -> Timeline:
        """Build the timeline of these instants, in any order; of several states of one instant the highest is kept."""
        highest: dict[tuple[str, Action], Instant] = {}
        for instant in instants:
            key = (instant.requested_time, instant.action.completed_as)
            if key not in highest or instant.state >= highest[key].state:
                highest[key] = instant
        ordered = tuple([highest[key] for key in sorted(highest)])
        saved = {i.requested_time for i in ordered if i.action is Action.SAVEPOINT}
        writes = [i.requested_time for i in ordered if i.action.writes_data]
        # With savepoints only, older instants that are not here are archived too.
        start = next((time for time in writes if time not in saved), writes[-1] if writes else None)
        return cls(ordered, start)

    def __repr__(self) -> str:
        completed = sum(instant.is_completed for instant in self.instants)
        newest = f", newest {self.instants[-1]}" if self.instants else ""
        return f"Timeline({completed} completed, {len(self.instants) - completed} pending{newest})"

    def _repr_html_(self) -> str:
        """Return an HTML table of the newest instants, for notebooks."""
        rows = [
            (instant.requested_time, instant.action.value, instant.state.name.lower(), instant.completion_time or "")
            for instant in self.instants[: -_SHOWN_MAX - 1 : -1]
        ]
        return f"<p>{html.escape(repr(self))}</p>" + html_rows(("instant", "action", "state", "completed at"), rows)

    def __iter__(self) -> Iterator[Instant]:
        return iter(self.instants)

    def __len__(self) -> int:
        return len(self.instants)

    def filter(self, keep: Callable[[Instant], bool]) -> Timeline:
        """Return the timeline of the instants for which `keep` returns True."""
        if not callable(keep) or isinstance(keep, type):
            _refuse(keep)
        return self._with(tuple(filter(keep, self.instants)))

    def completed(self) -> Timeline:
        """Return the timeline of the completed instants."""
        return self._part("completed", lambda instant: instant.state is State.COMPLETED)

    def pending(self) -> Timeline:
        """Return the timeline of the pending (requested or inflight) instants."""
        return self._part("pending", lambda instant: instant.state is not State.COMPLETED)

    def writes(self) -> Timeline:
        """Return the timeline of the instants that add or remove data files."""
        return self._part("writes", lambda instant: instant.action.writes_data)

    def _part(self, name: str, keep: Callable[[Instant], bool]) -> Timeline:
        known = self._parts.get(name)
        if known is None:
            known = self._parts[name] = self._with(tuple(filter(keep, self.instants)))
        return known

    def _with(self, instants: tuple[Instant, ...]) -> Timeline:
        return Timeline(instants, self.start, self.archived, self.never_completed)

    def latest(self) -> Instant | None:
        """Return the instant with the greatest requested time; None for an empty timeline."""
        return self.instants[-1] if self.instants else None

    def get(self, requested_time: str, action: Action | None = None) -> Instant | None:
        """Return the instant with this requested time; None if there is none.

        Without `action`, a savepoint is returned only if no other instant has this time. `action` may be the requested
        or the completed action. Takes O(log n).
        """
        if not isinstance(requested_time, str) or not isinstance(action, Action | None):
            raise _wrong_arguments(requested_time, action)
        found: Instant | None = None
        for index in range(bisect_left(self.instants, requested_time, key=_requested_time), len(self.instants)):
            instant = self.instants[index]
            if instant.requested_time != requested_time:
                break
            if action is not None and instant.action.completed_as is not action.completed_as:
                continue
            if instant.action is not Action.SAVEPOINT:
                return instant
            found = instant
        return found

    def contains_or_before_start(self, requested_time: str) -> bool:
        """Return whether the instant's files are committed: it is completed here, or archived (before `start`)."""
        if not isinstance(requested_time, str):
            raise _wrong_arguments(requested_time)
        if self.start is not None and requested_time < self.start:
            return requested_time not in self.never_completed
        instant = self.get(requested_time)
        return requested_time in self.archived if instant is None else instant.is_completed

    def is_missing(self, requested_time: str) -> bool:
        """Return whether an instant after `start` is not here, and was not looked up in the archive."""
        if not isinstance(requested_time, str):
            raise _wrong_arguments(requested_time)
        return (
            self.start is not None
            and self.start < requested_time
            and self.get(requested_time) is None
            and requested_time not in self.never_completed
            and requested_time not in self.archived
        )

    def completion_time_of(self, requested_time: str) -> str | None:
        """Return the completion time; None if the instant is not completed, or is archived but not in `archived`."""
        instant = self.get(requested_time)
        return self.archived.get(requested_time) if instant is None else instant.completion_time


@check_arguments
def _refuse(keep: Callable[[Instant], bool]) -> None:
    """Refuse what is no function, in the words of all public methods. Raises: InvalidConfigError."""


def _wrong_arguments(requested_time: object, action: object = None) -> InvalidConfigError:
    # Plain checks in the methods above: they are called for each file, and the decorator costs microseconds.
    return InvalidConfigError(
        f"requested_time: expected the requested time of an instant as text, and an Action or None, found "
        f"{shown(requested_time)} and {shown(action)}; write for example '20261125120000000'"
    )


def read_instant(store: Store, layout: Layout, instant: Instant, state: State | None = None) -> bytes:
    """Read the instant's file of `state`, by default of its present state. Files of pending states are often empty.

    Raises:
        InstantNotFoundError: the file does not exist, or not any more.
        CorruptFileError: the file of a completed write is empty.
    """
    state = instant.state if state is None else state
    paths = [f"{layout.instant_folder()}/{name}" for name in layout.names(instant, state)]
    for path in paths:
        try:
            content = store.read(path)
        except FileNotFoundError:
            continue
        if not content and state is State.COMPLETED and instant.action.writes_data:
            raise CorruptFileError(
                f"expected the commit metadata of the completed {instant.action}, found 0 bytes: its writer or the "
                "disk failed while the file was written. Delete this file, so that the instant is pending again, "
                "and roll the instant back",
                path=store.uri(path),
            )
        return content
    raise InstantNotFoundError(
        f"{instant} has no {state.name.lower()} file: expected {' or '.join(store.uri(path) for path in paths)}. "
        "If the instant was archived or rolled back meanwhile, load the timeline again"
    )


@dataclass(frozen=True, slots=True)
class _Listing:
    """The files of one listing, each with its instant; None for a file that is not an instant file.

    The key of a file is its name. If names contain no completion times (version 6), size and change time are part of
    the key, so that a changed file is parsed again. A file that an upgrade did not rename is keyed by its name too: its
    change time is read once, as completed instants do not change.
    """

    instants: dict[str | FileInfo, Instant | None] = field(default_factory=dict)
    timeline: Timeline = field(default_factory=Timeline)


class TimelineReader:
    """Loads one active timeline any number of times. Thread-safe.

    Memory: the file names of the last listing and their instants.
    """

    def __init__(self, store: Store, layout: Layout) -> None:
        """Create a reader and read nothing yet."""
        self.layout = layout
        self._store = store
        self._folder = layout.instant_folder()
        self._last = _Listing()

    @property
    def last(self) -> Timeline:
        """The timeline of the last `load`; empty before the first one."""
        return self._last.timeline

    def load(self) -> Timeline:
        """Return the present timeline; empty if the folder is missing.

        It takes one listing and reads no file. Files of the last listing are not parsed again; if no file was added or
        removed, the same `Timeline` object is returned.
        """
        last = self._last
        by_name = self.layout.names_completion_time
        found = self._by_name(last) if by_name else self._by_change_time(last)
        if found.keys() == last.instants.keys():
            return last.timeline
        timeline = Timeline.of([instant for instant in found.values() if instant is not None])
        self._last = _Listing(found, timeline)
        return timeline

    def _by_change_time(self, last: _Listing) -> dict[str | FileInfo, Instant | None]:
        known = last.instants
        infos = self._store.list(self._folder)
        return {info: known[info] if info in known else self._parsed(info) for info in infos}

    def _parsed(self, info: FileInfo) -> Instant | None:
        """Return the instant of a file. A pending clustering has the name of a replace commit, but another plan."""
        instant = self.layout.parse(info)
        if instant is None or instant.is_completed or instant.action is not Action.REPLACE_COMMIT:
            return instant
        with contextlib.suppress(InstantNotFoundError, CorruptFileError):
            content = read_instant(self._store, self.layout, instant, State.REQUESTED)
            if content and RequestedReplaceMetadata.parse(content, path=str(instant)).clustering_plan is not None:
                return replace(instant, action=Action.CLUSTERING)
        return instant

    def _by_name(self, last: _Listing) -> dict[str | FileInfo, Instant | None]:
        found: dict[str | FileInfo, Instant | None] = {}
        parse = self.layout.name_parser
        for name in self._store.names(self._folder):
            if name in last.instants:
                found[name] = last.instants[name]
                continue
            instant = parse(name)
            if instant is not None and instant.state is State.COMPLETED and instant.completion_time is None:
                # An upgrade did not rename this file: the completion time is the change time of the file.
                info = self._store.head(f"{self._folder}/{name}")
                if info is None:
                    continue
                instant = self.layout.parse(info)
            found[name] = instant
        return found


def load_timeline(store: Store, layout: Layout) -> Timeline:
    """Load an active timeline once; see `TimelineReader.load`."""
    return TimelineReader(store, layout).load()


class InstantClock:
    """A clock whose instant times are strictly increasing. Thread-safe.

    Each time is also greater than all times of the timeline that is passed to `next_time`. If that timeline was loaded
    under the table's lock, times increase across writers too, even if another machine's clock is ahead or summer time
    ends.
    """

    def __init__(self, zone: TimelineZone = TimelineZone.LOCAL, *, now_ms: Callable[[], int] | None = None) -> None:
        """Create a clock; `zone` is `hoodie.table.timeline.timezone`, `now_ms` returns milliseconds since the epoch."""
        self._zone = zone
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        self._last = ""
        self._lock = threading.Lock()

    def next_time(self, timeline: Timeline | None = None) -> str:
        """Return a time greater than all requested and completion times of `timeline` and all times returned before.

        Takes O(instants). Pass the whole active timeline, not a filtered timeline.

        Raises: InvalidConfigError if the timeline contains a time that is greater than now and is not a valid date.
        """
        times = ((found.requested_time, found.completion_time or "") for found in timeline or ())
        known = max(itertools.chain.from_iterable(times), default="")
        with self._lock:
            floor = max(known, self._last)
            now = instant_time_of_ms(self._now_ms(), self._zone)
            self._last = now if now > floor else next_instant_time(floor)
            return self._last
