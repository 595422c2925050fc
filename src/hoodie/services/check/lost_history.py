"""Give up what is lost of the history: instants without any file, and damaged files of the archived timeline.

Called by `accept_loss`. Neither needs a commit: the metadata table and the archive are published anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hoodie.commit.call import Call
from hoodie.display import counted
from hoodie.files.base_file import open_base_file
from hoodie.files.slices import BaseFile
from hoodie.format.filenames import BaseFileName, instant_of_data_file, name_of
from hoodie.services.indexing.rebuild import rebuild
from hoodie.timeline import HOODIE_FOLDER
from hoodie.view.table_view import TableView


@dataclass(frozen=True)
class LostHistory:
    """What is given up: the data files of each lost instant, and whether files of the archive are."""

    instants: dict[str, list[str]]
    archive: tuple[str, ...]

    @classmethod
    def find(cls, view: TableView, paths: Sequence[str]) -> LostHistory:
        """Find the lost instants that the paths name, and the paths of the archive; one listing of the table."""
        archive = view.stored_archive()
        of_archive = tuple(path for path in paths if path == archive.folder or path.startswith(f"{archive.folder}/"))
        times = {instant_of_data_file(path) or "" for path in paths if path not in of_archive}
        times = {time for time in times if time and view.timeline.is_missing(time)}
        times -= {found.requested_time for found in view.archive().find(times)} if times else set()
        instants: dict[str, list[str]] = {time: [] for time in sorted(times)}
        for info in view.store.list("", recursive=True) if times else ():
            time = instant_of_data_file(name_of(info.path)) or ""
            if time in instants and info.path.partition("/")[0] != HOODIE_FOLDER:
                instants[time].append(info.path)
        if view.config.may_have_slice_logs:
            # A log file of version 6 has the instant of its slice in its name: others may have written it.
            instants = {t: found for t, found in instants.items() if all(map(BaseFileName.parse, map(name_of, found)))}
        return cls({time: found for time, found in instants.items() if found}, of_archive)

    def names(self, path: str) -> bool:
        """Return whether a path is given up here."""
        return path in self.archive or any(path in found for found in self.instants.values())

    def files(self) -> int:
        """Return the number of files."""
        return len(self.archive) + sum(map(len, self.instants.values()))

    def notes(self, view: TableView) -> list[str]:
        """Say what is lost; reads the footers of the base files."""
        notes = []
        for time, paths in self.instants.items():
            rows = sum(_rows(view, path) for path in paths)
            notes.append(
                f"the instant {time} is given up: {counted(len(paths), 'files')}, whose base files have "
                f"{counted(rows, 'rows')}; earlier versions of their file groups count again"
            )
        if self.archive:
            notes.append("the instants in damaged files of the archived timeline are not known any more")
        return notes

    def give_up(self, call: Call) -> None:
        """Build the metadata table without the lost instants, then delete their files; publish the archive anew.

        A call that dies leaves orphaned files, which a repair deletes.
        """
        if self.archive:
            with TableView.locked(call.state) as view:
                view.stored_archive().give_up_damaged(view.held_lock)
        if self.instants:
            rebuild(call)
            with TableView.locked(call.state) as view:
                for time, paths in self.instants.items():
                    for path in paths if view.timeline.is_missing(time) else ():
                        view.held_lock.ensure_held()
                        view.store.delete(path)


def _rows(view: TableView, path: str) -> int:
    name = BaseFileName.parse(name_of(path))
    if name is None:
        return 0
    file = BaseFile(path.rpartition("/")[0], name.name, name.file_id, name.instant_time, 0)
    with open_base_file(view.store, file) as (parquet, _):
        return int(parquet.metadata.num_rows)
