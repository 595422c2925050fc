"""Find and delete the data files of attempts at an instant, by their markers or names (docs/format/table.md §5.3)."""

from __future__ import annotations

from collections.abc import Collection

from hoodie.files.markers import read_markers
from hoodie.format.filenames import instant_of_data_file
from hoodie.storage import Store


def delete_marked_files(store: Store, instant_time: str, *, keep: Collection[str] = ()) -> int:
    """Delete the files that markers of the instant announce; return how many markers name a file to delete.

    `keep` are paths relative to the base path; their files are not deleted. The markers are not deleted either. The
    caller deletes them last, so that this call can be repeated.
    """
    paths = [marker.path for marker in read_markers(store, instant_time) or [] if marker.path not in keep]
    for path in paths:
        store.delete(path)
    return len(paths)


def files_of_instant(store: Store, instant_time: str) -> list[str]:
    """List the table's folders, and return the data files whose names contain the instant. Costs a listing of all."""
    return [
        info.path
        for info in store.list("", recursive=True)
        if not info.path.startswith(".hoodie/") and instant_of_data_file(info.path) == instant_time
    ]
