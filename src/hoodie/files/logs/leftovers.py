"""Tell damaged log files of completed instants from the files that failed attempts at a write left behind.

docs/format/table.md §4.7.
"""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.format.filenames import LogFileName, name_of
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteStat
from hoodie.storage import Store, StoreSpec
from hoodie.timeline import HOODIE_FOLDER, Layout, TimelineArchive, load_timeline, read_instant

_known: dict[tuple[StoreSpec, str, str], bool] = {}
"""Answers of earlier calls by table, folder of the timeline and log file; completed instants do not change."""


@dataclass(frozen=True, slots=True)
class CommitRecords:
    """Where the commits of a table record which rows each log file has (table versions 8 and 9). Picklable.

    `layout` is the layout of the timeline in `folder`; `history_path` is the folder of its archive. The timeline is
    read only for files that look damaged, once for each such file of a completed instant.
    """

    layout: Layout
    folder: str = HOODIE_FOLDER
    history_path: str = "history"

    def expect_content(self, store: Store, name: LogFileName) -> bool:
        """Return whether the log file must be whole: its instant recorded rows or deletes in it.

        A task that fails or is stopped may leave a log file with the instant in its name and torn or no blocks. The
        commit does not list such a file, or lists it without rows. If the commit is not found, the result is True.

        Raises:
            CorruptFileError: the commit does not parse.
        """
        file = (store.spec, self.folder, name.name)
        if file not in _known:
            content = self._commit(store, name.instant_time)
            if content is None:
                return True
            stats = CommitMetadata.parse(content, path=name.instant_time).write_stats()
            _known[file] = any(_has_records(s) for s in stats if name_of(s.path or "") == name.name)
        return _known[file]

    def _commit(self, store: Store, requested_time: str) -> bytes | None:
        instant = load_timeline(store, self.layout, folder=self.folder).get(requested_time)
        if instant is not None:
            return read_instant(store, self.layout, instant, folder=self.folder) if instant.is_completed else None
        archive = TimelineArchive.of(store, self.layout, folder=self.folder, history_path=self.history_path)
        return next((found.metadata for found in archive.instants(requested_time) if found.metadata), None)


def _has_records(stat: WriteStat) -> bool:
    return any((stat.num_writes, stat.num_deletes, stat.num_inserts, stat.num_update_writes, stat.total_log_records))
