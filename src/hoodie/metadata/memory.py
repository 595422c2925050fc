"""What a handle remembers of the metadata table between its operations: the timeline, and the files of partitions.

The name of every completed instant has its completion time, so equal names of the timeline's files mean that the same
instants are completed, and so that the same files are visible. Version 6 has no such names: its files are listed anew.
An object store answers a listing beside other requests (`storage.waves`), so nothing is remembered of it either.
"""

from __future__ import annotations

import threading
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

    __slots__ = ("_instants", "_made")

    def __init__(self, infos: Iterable[FileInfo], instants: frozenset[str] | None = None) -> None:
        super().__init__((info.path, info) for info in infos)
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
        if not added:
            return self
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
    """The last timeline of the metadata table, and the files of its partitions at that time. Thread-safe.

    Memory: the names of the timeline's files, and the files of the partitions that were read.
    """

    def __init__(self, store: Store, layout: Layout) -> None:
        self._store = store
        self._reader = TimelineReader(store, layout, folder=METADATA_HOODIE_FOLDER)
        self.keeps_files = layout.names_completion_time and not store.spec.is_remote
        """Whether files are remembered."""
        self._timeline: Timeline | None = None
        self._files: dict[str, Files] = {}
        self._added: tuple[frozenset[str], Mapping[str, Sequence[FileInfo]]] | None = None
        self._lock = threading.Lock()

    def timeline(self) -> Timeline:
        """Load the timeline; if its files are those of the last time, the same object is returned."""
        with self._lock:
            before = self._reader.names
            timeline = self._reader.load()
            if timeline is not self._timeline:
                added, self._added = self._added, None
                if added is not None and self._reader.names == before | added[0]:
                    self._files = {name: files.and_logs(added[1].get(name, ())) for name, files in self._files.items()}
                else:
                    self._files = {}
                self._timeline = timeline
            return timeline

    def files(self, partition: str) -> Files:
        """Return the files of a partition, by path: those of all slices, visible or not.

        Files that other writers added since for instants that are not completed may be missing.
        """
        with self._lock:
            known = self._files.get(partition)
            if known is None:
                known = Files(self._store.list(partition_folder(partition)))
                if self.keeps_files and self._timeline is not None:
                    self._files[partition] = known
            return known

    def note_commit(self, names: Iterable[str], logs: Iterable[WriteStat]) -> Mapping[str, Sequence[FileInfo]]:
        """Note a delta commit that this process completed on the last timeline; return its log files by partition.

        `names` are those of its files on the timeline.
        """
        files: dict[str, list[FileInfo]] = {}
        for stat in logs:
            partition = stat.partition_path or ""
            path = f"{partition_folder(partition)}/{name_of(stat.path or '')}"
            files.setdefault(partition, []).append(FileInfo(path, stat.file_size_bytes, _TIME_UNKNOWN))
        with self._lock:
            self._added = frozenset(names), files
        return files
