"""Delete data files that attempts at an instant announced with markers (docs/format/table.md §5.3)."""

from __future__ import annotations

from collections.abc import Collection

from hoodie.files.markers import read_markers
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
