"""The files and newest file slices of a table, a few partitions at a time, so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from hoodie.files.slices import FileSlice, Listing
from hoodie.metadata.folder import MetadataFolder
from hoodie.view.listing import list_files, partition_paths
from hoodie.view.slices import list_slices, slices_of_listing
from hoodie.view.still_there import check_still_there
from hoodie.view.table_view import TableView

_T = TypeVar("_T")
_FILES_WANTED: Final = 20_000
"""Files of a part, about: each takes about 1 kB as an object."""
_FIRST_PARTITIONS: Final = 256
_GROWTH_MAX: Final = 8


def slice_parts(view: TableView, partitions: Sequence[str] | None = None) -> Iterator[list[FileSlice]]:
    """Yield the newest file slices part by part, sorted by partition path and file id; a partition is in one part.

    `partitions`: sorted partition paths; None for all. Memory: the slices of about 20,000 files, or of one partition.
    Without a metadata table the folders are listed once, and the names of all files are in memory.

    Raises: ViewOvertakenError if a clean took files of the view meanwhile; as `list_slices`.
    """

    def read(some: Sequence[str]) -> tuple[list[FileSlice], int]:
        if listing is None:
            slices = list_slices(own, some)
        else:
            # Without a metadata table no instant is known as lost.
            slices, _ = slices_of_listing(own, {path: listing[path] for path in some})
        check_still_there(own)
        own.state.metadata_table = None
        return slices, sum([1 + len(found.log_files) for found in slices])

    own, listing, paths = _prepared(view, partitions)
    yield from _in_parts(paths, read)


def file_parts(view: TableView) -> Iterator[Mapping[str, Mapping[str, int]]]:
    """Yield the files part by part: partition path -> file name -> size in bytes. Memory as for `slice_parts`."""

    def read(some: Sequence[str]) -> tuple[Mapping[str, Mapping[str, int]], int]:
        files = list_files(own, some) if listing is None else {path: listing[path] for path in some}
        own.state.metadata_table = None
        return files, sum(map(len, files.values()))

    own, listing, paths = _prepared(view, None)
    yield from _in_parts(paths, read)


def _prepared(view: TableView, partitions: Sequence[str] | None) -> tuple[TableView, Listing | None, Sequence[str]]:
    """Return a view with caches of its own, the whole listing, and the partition paths.

    The listing is None if the metadata table lists some partitions without the others; the caller drops the cache of
    the metadata table after each part, as it holds the rows of all partitions that were read.
    """
    own = replace(view, state=replace(view.state, metadata_table=None))
    if view.config.has_metadata_table and any(
        found.is_completed for found in MetadataFolder(view.store, view.config).timeline()
    ):
        return own, None, sorted(partition_paths(own)) if partitions is None else partitions
    listing = list_files(own, partitions)
    return own, listing, sorted(listing)


def _in_parts(paths: Sequence[str], read: Callable[[Sequence[str]], tuple[_T, int]]) -> Iterator[_T]:
    """Yield what `read` returns of some paths after the others; it returns also how many files they have."""
    start, count = 0, _FIRST_PARTITIONS
    while start < len(paths):
        some = paths[start : start + count]
        found, files = read(some)
        yield found
        start += len(some)
        count = max(1, min(_GROWTH_MAX * count, len(some) * _FILES_WANTED // max(files, 1)))
