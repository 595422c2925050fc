"""What a handle remembers of the metadata table between its operations: its timeline, and the files of its partitions.

Each use lists a folder again. While paths, sizes and times are those of the last time, the files are, and what was made
of them need not be made again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from hoodie.format.filenames import instant_of_data_file
from hoodie.metadata.paths import partition_folder
from hoodie.storage import FileInfo, Store
from hoodie.timeline import Layout, Timeline, TimelineReader

T = TypeVar("T")


class Files(dict[str, FileInfo]):
    """The files of a metadata partition, by path: those of all slices, visible or not. Not changed once it is made."""

    __slots__ = ("_instants", "_made", "infos")

    def __init__(self, infos: Iterable[FileInfo]) -> None:
        self.infos = [*infos]
        super().__init__([(info.path, info) for info in self.infos])
        self._instants: frozenset[str] | None = None
        self._made: tuple[object, Any] | None = None

    def made_once(self, visible: Timeline, make: Callable[[], T]) -> T:
        """Return what `make` makes of these files and the visible instants, which it made before of the same.

        Only instants in the names of the files count. One result is kept, of one function.
        """
        if self._instants is None:
            self._instants = frozenset(instant_of_data_file(path) or "" for path in self)
        start = visible.start or ""
        key = frozenset(
            (time, time < start, visible.contains_or_before_start(time), visible.completion_time_of(time))
            for time in self._instants
        )
        made = self._made
        if made is None or made[0] != key:
            made = self._made = key, make()
        found: T = made[1]
        return found


class FolderMemory:
    """The last timeline of the metadata table, and the last files of its partitions. Thread-safe.

    Memory: the names of the timeline's files, and the files of the partitions that were read.
    """

    def __init__(self, store: Store, layout: Layout) -> None:
        """Create a memory; nothing is read."""
        self._store = store
        self._reader = TimelineReader(store, layout)
        self._files: dict[str, Files] = {}

    def timeline(self) -> Timeline:
        """Load the timeline; if its files are those of the last time, the same object is returned."""
        return self._reader.load()

    def files(self, partition: str) -> Files:
        """List a partition; if its files are those of the last time, the same object is returned."""
        infos, known = self._store.list(partition_folder(partition)), self._files.get(partition)
        if known is None or known.infos != infos:
            known = self._files[partition] = Files(infos)
        return known
