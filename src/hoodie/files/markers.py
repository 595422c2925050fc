"""Marker files: a write creates one before each data file, so that the rollback of a dead write finds its files.

On-disk format: docs/format/table.md §5.3. This package writes direct markers and reads both kinds.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from hoodie.files.named_paths import named_data_file
from hoodie.format.filenames import MARKER_TYPE_NAME, BaseFileName, IoType, marker_name, parse_data_file, parse_marker
from hoodie.storage import Store

TEMP_FOLDER = ".hoodie/.temp"


@dataclass(frozen=True, slots=True)
class Marker:
    """A data file that an instant wrote or was about to write; `path` is relative to the base path."""

    path: str
    io_type: IoType


def marker_folder(instant_time: str) -> str:
    """Return the folder of an instant's markers."""
    return f"{TEMP_FOLDER}/{instant_time}"


def write_marker(store: Store, instant_time: str, path: str, io_type: IoType) -> None:
    """Write the marker of a data file; must return before the first byte of the data file is written."""
    store.create(f"{marker_folder(instant_time)}/{marker_name(path, io_type)}", b"")


def read_markers(store: Store, instant_time: str) -> list[Marker] | None:
    """Return all data files with a marker of an instant; None if there is no marker folder: list the files instead.

    Raises: CorruptFileError if a marker names another path than a data file of the table: rollbacks delete what
        markers name.
    """
    folder = marker_folder(instant_time)
    files = store.list(folder, recursive=True)
    if not files:
        return None
    names = [info.path.removeprefix(folder + "/") for info in files]
    if MARKER_TYPE_NAME in names:
        names = [
            line
            for info in files
            if info.name.startswith("MARKERS") and info.name != MARKER_TYPE_NAME
            for line in store.read(info.path).decode("utf-8").splitlines()
        ]
    parsed = (parse_marker(name) for name in names)
    where = store.uri(folder)
    markers = {Marker(named_data_file(store, path, by=where), kind) for path, kind in filter(None, parsed)}
    return sorted(markers, key=lambda marker: marker.path)


def delete_markers(store: Store, instant_time: str) -> None:
    """Delete the marker folder of an instant, if it exists."""
    store.delete_folder(marker_folder(instant_time))


def delete_marked_files(store: Store, instant_time: str, *, keep: Collection[str] = ()) -> int:
    """Delete the files that markers of the instant announce; return how many markers name a file to delete.

    `keep` are paths relative to the base path; their files are not deleted. The markers are not deleted either. The
    caller deletes them last, so that this call can be repeated.
    """
    paths = [marker.path for marker in read_markers(store, instant_time) or [] if marker.path not in keep]
    for path in paths:
        store.delete(path)
    return len(paths)


def files_of_instant(store: Store, instant_time: str, *, with_logs: bool = True) -> list[str]:
    """List the table's folders, and return the data files whose names contain the instant. Costs a listing of all.

    Without `with_logs` only base files. In version 6 log files that have the instant of a compaction in their names are
    of the commits after it.
    """
    return [
        info.path
        for info in store.list("", recursive=True)
        if not info.path.startswith(".hoodie/") and is_file_of(info.name, instant_time, with_logs=with_logs)
    ]


def is_file_of(name: str, instant_time: str, *, with_logs: bool) -> bool:
    """Return whether the name of a data file contains the instant; arguments as for `files_of_instant`."""
    parsed = parse_data_file(name)
    return (
        parsed is not None and parsed.instant_time == instant_time and (with_logs or isinstance(parsed, BaseFileName))
    )
