"""Listings of the data table, read from the partition `files` (docs/format/metadata.md §3.8, §4.3)."""

from __future__ import annotations

from collections.abc import Callable, Collection

from hoodie.errors import CorruptFileError
from hoodie.format.hfile import HFileReader
from hoodie.format.metadata_table.metadata_record import ALL_PARTITIONS_KEY
from hoodie.metadata.kinds.files import (
    FileList,
    FilesKind,
    apply_blocks,
    base_rows,
    check_first_rows,
    key_of,
    partition_path_of,
)
from hoodie.metadata.places import REBUILD_ADVICE, partition_folder
from hoodie.metadata.slice_content import SliceContent
from hoodie.metadata.slice_reader import SliceReader
from hoodie.storage import Store
from hoodie.timeline import Timeline

WantedPartitions = Collection[str] | Callable[[Collection[str]], Collection[str]]
"""Partition paths, or a function that chooses them among the paths of all partitions."""
_KIND = FilesKind()


class FilesListing:
    """Reads listings; files and base file rows are parsed once per object. Not thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reader = SliceReader(store)
        self._base_rows: dict[str, FileList] = {}
        self._base: HFileReader | None = None

    def read(self, visible: Timeline, partitions: WantedPartitions | None = None) -> dict[str, dict[str, int]]:
        """Read the listing of all partitions of the data table, or of exactly `partitions`; unknown ones are empty.

        The list of all partitions is not read if `partitions` are paths.

        `visible` holds the visible instants of the metadata table.

        Raises:
            CorruptFileError: a file does not parse, or the partition `files` does not exist.
        """
        content = self._content(visible)
        if partitions is None or callable(partitions):
            listed = self._rows(content, {ALL_PARTITIONS_KEY}).get(ALL_PARTITIONS_KEY, {})
            known = [partition_path_of(key) for key, size_bytes in listed.items() if size_bytes is not None]
            partitions = known if partitions is None else partitions(known)
        rows = self._rows(content, {key_of(path) for path in partitions})
        return {
            path: {name: size for name, size in rows.get(key_of(path), {}).items() if size is not None}
            for path in sorted(partitions)
        }

    def _content(self, visible: Timeline) -> SliceContent:
        contents = self._reader.read(_KIND, visible)
        if len(contents) != 1:
            raise CorruptFileError(
                f"expected one file group, found {len(contents)}: {REBUILD_ADVICE}",
                path=self._store.uri(partition_folder(_KIND.name)),
            )
        check_first_rows(contents[0])
        return contents[0]

    def _rows(self, content: SliceContent, keys: Collection[str]) -> dict[str, FileList]:
        """Return the merged rows of these keys. Base file rows are decoded once; the few log blocks at every call."""
        if content.base is not self._base:
            # Compare objects and not names: the first files of a metadata table that was built anew have the old names.
            self._base_rows, self._base = {}, content.base
        missing = set(keys) - self._base_rows.keys()
        for key, record in base_rows(content, missing):
            self._base_rows[key] = dict(record.files)
        rows = {key: dict(self._base_rows[key]) for key in keys if key in self._base_rows}
        apply_blocks(rows, content.blocks, content, set(keys))
        return rows
