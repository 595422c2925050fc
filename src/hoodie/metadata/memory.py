"""What a handle remembers of the metadata table between its operations: its timeline, and the files of its partitions.

Each use lists the names of a folder. While they are the same, the files are the same: files of the metadata table never
change. What was made of them need not be made again. Names of version 6 are used again, so its files are listed anew.
An object store lists sizes and times with the names, beside other requests (`storage.waves`): nothing is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from hoodie.format.filenames import instant_of_data_file, name_of
from hoodie.format.instants.commit_metadata import WriteStat
from hoodie.metadata.paths import METADATA_HOODIE_FOLDER, partition_folder
from hoodie.storage import FileInfo, Store
from hoodie.timeline import Layout, Timeline, TimelineReader

T = TypeVar("T")
_TIME_UNKNOWN = 0


class Files(dict[str, FileInfo]):
    """The files of a metadata partition, by path: those of all slices, visible or not. Not changed once it is made."""

    __slots__ = ("_instants", "_made", "names")

    def __init__(self, infos: Iterable[FileInfo], instants: frozenset[str] | None = None) -> None:
        super().__init__([(info.path, info) for info in infos])
        self.names = {name_of(path) for path in self}
        self._instants = instants
        self._made: tuple[object, Any] | None = None

    @property
    def instants(self) -> frozenset[str]:
        """The instants in the names of the files."""
        if self._instants is None:
            self._instants = frozenset(instant_of_data_file(path) or "" for path in self)
        return self._instants

    def and_logs(self, added: Sequence[FileInfo]) -> Files:
        """Return these files and log files of a commit."""
        new = (instant_of_data_file(info.path) or "" for info in added)
        return Files((*self.values(), *added), self.instants.union(new))

    def made_once(self, visible: Timeline, make: Callable[[], T]) -> T:
        """Return what `make` makes of these files and the visible instants, which it made before of the same.

        Only instants in the names of the files count. One result is kept, of one function.
        """
        start = visible.start or ""
        key = frozenset(
            (time, time < start, visible.contains_or_before_start(time), visible.completion_time_of(time))
            for time in self.instants
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
        self._reader = TimelineReader(store, layout, folder=METADATA_HOODIE_FOLDER)
        self.keeps_files = layout.names_completion_time and not store.spec.is_remote
        """Whether files are remembered."""
        self._files: dict[str, Files] = {}

    def timeline(self) -> Timeline:
        """Load the timeline; if its files are those of the last time, the same object is returned."""
        return self._reader.load()

    def files(self, partition: str) -> Files:
        """Return the files of a partition as they are now: those of all slices, visible or not."""
        folder = partition_folder(partition)
        if not self.keeps_files:
            return Files(self._store.list(folder))
        known = self._files.get(partition)
        if known is None or known.names != {*self._store.names(folder)}:
            known = self._files[partition] = Files(self._store.list(folder))
        return known

    def note_commit(self, logs: Iterable[WriteStat]) -> Mapping[str, Sequence[FileInfo]]:
        """Add the log files of a delta commit of this process; return them by partition.

        If other files were added or deleted meanwhile, the next `files` sees other names, and lists the folder.
        """
        added: dict[str, list[FileInfo]] = {}
        for stat in logs if self.keeps_files else ():
            partition = stat.partition_path or ""
            path = f"{partition_folder(partition)}/{name_of(stat.path or '')}"
            added.setdefault(partition, []).append(FileInfo(path, stat.file_size_bytes, _TIME_UNKNOWN))
        for partition, infos in added.items():
            known = self._files.get(partition)
            if known is not None:
                self._files[partition] = known.and_logs(infos)
        return added
