"""Load the active timeline of a table with one listing, and parse only new file names.

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

    def __init__(self, store: Store, layout: Layout, *, folder: str = HOODIE_FOLDER) -> None:
        """Create a reader and read nothing yet; `folder` is `.hoodie` or `.hoodie/metadata/.hoodie`."""
        self.layout = layout
        self._store = store
        self._folder = layout.instant_folder(folder)
        self._last = _Listing()

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
                # An upgrade did not rename this file: the completion time is the change time of the file.
                info = self._store.head(f"{self._folder}/{name}")
                if info is None:
                    continue
                instant = self.layout.parse(info)
            found[name] = instant
        return found


def load_timeline(store: Store, layout: Layout, *, folder: str = HOODIE_FOLDER) -> Timeline:
    """Load an active timeline once; see `TimelineReader.load`."""
    return TimelineReader(store, layout, folder=folder).load()
