"""Loads the active timeline of a table: one listing, of which only new file names are parsed.

On-disk format: docs/format/table.md §2.1 and §5.1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hoodie.storage import FileInfo, Store
from hoodie.timeline.instant import Instant
from hoodie.timeline.layout import HOODIE_FOLDER, Layout
from hoodie.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class _Listing:
    """The files of one listing with the instants that they stand for; None for a file that is no instant file.

    Files are known by name. If names do not tell completion times (version 6), they are known by size and change time
    too, so that a changed file is parsed again.
    """

    instants: dict[str | FileInfo, Instant | None] = field(default_factory=dict)
    timeline: Timeline = field(default_factory=Timeline)


class TimelineReader:
    """Loads one active timeline any number of times. Threads can share it.

    Memory: the file names of the last listing and their instants.
    """

    def __init__(self, store: Store, layout: Layout, *, folder: str = HOODIE_FOLDER) -> None:
        """`folder` is `.hoodie`, or `.hoodie/metadata/.hoodie`. Nothing is read yet."""
        self.layout = layout
        self._store = store
        self._folder = layout.instant_folder(folder)
        self._last = _Listing()

    def load(self) -> Timeline:
        """The timeline as it is now; no file is read. An absent folder is an empty timeline.

        It takes one listing. Files of the last listing are not parsed again; if there are no others, the same timeline
        is returned.
        """
        last = self._last
        by_name = self.layout.names_completion_time
        found = self._by_name(last) if by_name else self._by_change_time(last)
        if found.keys() == last.instants.keys():
            return last.timeline
        timeline = Timeline.of(instant for instant in found.values() if instant is not None)
        self._last = _Listing(found, timeline)
        return timeline

    def _by_change_time(self, last: _Listing) -> dict[str | FileInfo, Instant | None]:
        known = last.instants
        infos = self._store.list(self._folder)
        return {info: known[info] if info in known else self.layout.parse(info) for info in infos}

    def _by_name(self, last: _Listing) -> dict[str | FileInfo, Instant | None]:
        found: dict[str | FileInfo, Instant | None] = {}
        for name in self._store.names(self._folder):
            if name in last.instants:
                found[name] = last.instants[name]
                continue
            instant = self.layout.parse_name(name)
            if instant is not None and instant.is_completed and instant.completion_time is None:
                # An instant that an upgrade left as it was: its completion time is the change time of the file.
                info = self._store.head(f"{self._folder}/{name}")
                if info is None:
                    continue
                instant = self.layout.parse(info)
            found[name] = instant
        return found


def load_timeline(store: Store, layout: Layout, *, folder: str = HOODIE_FOLDER) -> Timeline:
    """Load an active timeline once; as `TimelineReader.load`."""
    return TimelineReader(store, layout, folder=folder).load()
