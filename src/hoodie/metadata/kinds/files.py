"""The metadata partition `files`: the files of each data partition (docs/format/metadata.md §3.8, §4.3)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFileError
from hoodie.format.hfile import HFileReader
from hoodie.format.metadata_table.metadata_record import (
    ALL_PARTITIONS_KEY,
    NON_PARTITIONED_KEY,
    FileListRecord,
    RecordType,
    metadata_schema,
    with_file_name,
)
from hoodie.format.metadata_table.partition_names import FILES
from hoodie.format.table.versions import TableVersion
from hoodie.metadata.changes import MetadataChanges
from hoodie.metadata.data_table import DataTable, FilesByPartition
from hoodie.metadata.delta_commit import FileGroupDelta
from hoodie.metadata.instants import fills_a_partition
from hoodie.metadata.kinds.partition_kind import InitialRows, PartitionKind
from hoodie.metadata.paths import REBUILD_ADVICE, file_id_of, partition_folder
from hoodie.metadata.slice_content import SliceContent
from hoodie.metadata.slices import SliceReader
from hoodie.storage import FileInfo, Store
from hoodie.timeline import Timeline

_SMALL_BYTES = 16 * 1024
"""A base file of up to this size is decoded whole and kept: seeking in its few blocks costs as much each time."""

FileList = dict[str, int | None]
"""File name -> size in bytes; None if the newest row deletes the file."""


@dataclass(frozen=True, slots=True)
class FilesKind(PartitionKind):
    """The kind `files`: merging two rows of one key unites their files; newer deletions win, of sizes the greater."""

    name = FILES
    file_id_prefix = "files-"

    def file_groups(self, properties: Mapping[str, str]) -> int:
        """Return 1: the partition always has one file group."""
        return 1

    def initialise(self, table: DataTable, file_ids: Sequence[str]) -> Sequence[InitialRows]:
        """List the committed files. The row of all partitions is written even if there is no data partition."""
        keys, values = rows_to_columns(rows_of_listing(table.list_files()))
        return (InitialRows(file_ids[0], keys, values),)

    def rows_of(self, changes: MetadataChanges, table: DataTable, visible: Timeline) -> Sequence[FileGroupDelta]:
        """Make one row for each data partition whose files change, and one for the list of partitions."""
        keys, values = rows_to_columns(changed_rows(changes))
        deleted = pa.array(deleted_keys_of(changes), pa.string())
        return (FileGroupDelta(self.name, file_id_of(self.file_id_prefix, 0), keys, values, deleted),)

    def compact(self, content: SliceContent, *, file_name: str) -> tuple[pa.Array, pa.Array]:
        """Merge a file slice into its next base file, which has every existing file and no deletions."""
        check_first_rows(content)
        touched = {key for block in content.blocks for key in block.keys.cast(pa.string()).to_pylist()}
        copied = _copied_rows(content, touched, file_name)
        rows = merge(content, None if copied is None else touched)
        merged = {key: live for key, row in rows.items() if (live := _live(key, row)) is not None}
        keys, values = rows_to_columns(merged, file_name=file_name)
        if copied is None:
            return keys, values
        keys, values = pa.concat_arrays([copied[0], keys.cast(pa.binary())]), pa.concat_arrays([copied[1], values])
        order = pc.sort_indices(keys)
        return keys.take(order), values.take(order)


def check_first_rows(content: SliceContent) -> None:
    """Refuse a file slice that lost its base file: the rows of all earlier instants would be missing.

    A slice without base file has its first rows in a log block of the instant that filled the partition.

    Raises: CorruptFileError.
    """
    if content.base is None and not any(
        fills_a_partition(found.instant_time) and len(found) for found in content.blocks
    ):
        raise CorruptFileError(
            f"file group {content.file_slice.file_id} lost its base file: {REBUILD_ADVICE}",
            path=partition_folder(FILES),
        )


def merge(content: SliceContent, keys: Collection[str] | None = None) -> dict[str, FileList]:
    """Merge all rows of a slice, or the rows of `keys`: key -> names and sizes. Deleted keys are absent."""
    rows = {key: dict(record.files) for key, record in base_rows(content, keys)}
    apply_blocks(rows, content, keys)
    return rows


def _copied_rows(
    content: SliceContent, touched: Collection[str], file_name: str
) -> tuple[pa.BinaryArray, pa.BinaryArray] | None:
    """Return the rows of the base file that no log block has, as rows of the base file `file_name`.

    They are not decoded: most partitions do not change between two compactions. None if this release writes rows in
    another form.
    """
    base, file = content.base, content.file_slice.base_file
    if base is None or file is None or content.base_schema_json != metadata_schema():
        return None
    keys, values = base.entries()
    others = pc.invert(pc.is_in(keys, value_set=pa.array(sorted(touched), pa.string()).cast(keys.type)))
    copied = with_file_name(values.filter(others), file.name, file_name)
    return None if copied is None else (keys.filter(others), copied)


def base_rows(content: SliceContent, keys: Collection[str] | None = None) -> Iterator[tuple[str, FileListRecord]]:
    """Yield the rows of the slice's base file: all rows, or the rows of `keys` that exist."""
    base = content.base
    if base is None:
        return
    schema, path = content.base_schema_json, content.file_slice.file_id
    if keys is None:
        names, values = base.entries()
        names = names.cast(pa.string())
    else:
        names = pa.array(sorted(keys, key=str.encode), pa.string())
        file = content.file_slice.base_file
        if file is not None and file.size_bytes <= _SMALL_BYTES:
            all_keys, all_values = base.entries()  # which the reader keeps
            values = all_values.take(pc.index_in(names.cast(all_keys.type), value_set=all_keys))
        else:
            values = base.get_many(names)
    for key, value in zip(names.to_pylist(), values.to_pylist(), strict=True):
        if value is not None:
            yield key, FileListRecord.parse(value, schema_json=schema, path=path)


def apply_blocks(rows: dict[str, FileList], content: SliceContent, keys: Collection[str] | None = None) -> None:
    """Apply the row blocks of a slice, oldest first, to `rows` in place; with `keys`, to these rows only."""
    path = content.file_slice.file_id
    for block in content.blocks:
        names = block.keys.cast(pa.string()).to_pylist()
        values = [None] * len(names) if block.values is None else block.values.to_pylist()
        for key, value in zip(names, values, strict=True):
            if keys is not None and key not in keys:
                continue
            if value is None:
                rows.pop(key, None)
            else:
                newer = FileListRecord.parse(value, schema_json=block.schema_json, path=path)
                _unite(rows.setdefault(key, {}), newer.files)


def _unite(row: FileList, newer: Mapping[str, int | None]) -> None:
    """Unite a row with a newer row. Newer deletions win. Of two sizes the greater counts: log files may have grown."""
    for name, size_bytes in newer.items():
        if size_bytes is None:
            if name in row:
                del row[name]
            else:
                # The file is not in the rows so far; keep the deletion, as an older file slice may have the file.
                row[name] = None
        else:
            row[name] = max(size_bytes, row.get(name) or 0)


def _live(key: str, row: FileList) -> FileList | None:
    """Return the row without its deletions; None for the row of a data partition that has no file any more."""
    live: FileList = {name: size for name, size in row.items() if size is not None}
    return live if live or key == ALL_PARTITIONS_KEY else None


def key_of(partition_path: str) -> str:
    """Return the key of a data partition's row."""
    return partition_path or NON_PARTITIONED_KEY


def partition_path_of(key: str) -> str:
    """Return the data partition of a row's key."""
    return "" if key == NON_PARTITIONED_KEY else key


def changed_rows(changes: MetadataChanges) -> dict[str, FileList]:
    """Return the rows of one delta commit; empty if no file is added or deleted and no partition is dropped."""
    rows: dict[str, FileList] = {}
    for partition_path, names in changes.files_deleted.items():
        if names and partition_path not in changes.partitions_dropped:
            rows.setdefault(key_of(partition_path), {}).update(dict.fromkeys(names))
    partitions: FileList = {}
    for partition_path, sizes in changes.files_added.items():
        if sizes:
            rows.setdefault(key_of(partition_path), {}).update(sizes)
            partitions[key_of(partition_path)] = 0
    partitions |= {key_of(path): None for path in changes.partitions_dropped if not changes.files_added.get(path)}
    if partitions:
        rows[ALL_PARTITIONS_KEY] = partitions
    return rows


def deleted_keys_of(changes: MetadataChanges) -> list[str]:
    """Return the keys of the rows to delete: dropped partitions that get no file in the same instant."""
    return sorted(
        (key_of(path) for path in changes.partitions_dropped if not changes.files_added.get(path)), key=str.encode
    )


def rows_of_listing(listing: FilesByPartition) -> dict[str, FileList]:
    """Return the rows of a new partition `files`. The row of all partitions exists even if it is empty."""
    rows: dict[str, FileList] = {key_of(path): dict(sizes) for path, sizes in listing.items() if sizes}
    rows[ALL_PARTITIONS_KEY] = {key_of(path): 0 for path in listing}
    return rows


def rows_to_columns(rows: Mapping[str, FileList], *, file_name: str | None = None) -> tuple[pa.Array, pa.Array]:
    """Return the keys, ascending by their UTF-8 bytes, and the encoded values."""
    keys = sorted(rows, key=str.encode)
    kinds = [RecordType.PARTITION_LIST if key == ALL_PARTITIONS_KEY else RecordType.FILE_LIST for key in keys]
    records = [FileListRecord(kind, rows[key]) for kind, key in zip(kinds, keys, strict=True)]
    values = [record.to_bytes(file_name=file_name) for record in records]
    return pa.array(keys, pa.string()), pa.array(values, pa.binary())


WantedPartitions = Collection[str] | Callable[[Collection[str]], Collection[str]]
"""Partition paths, or a function that chooses them among the paths of all partitions."""
_KIND = FilesKind()


_ROWS_KEPT_MAX = 1 << 20
"""Rows of the base file that are kept, found or missing. More of them are forgotten."""


class FilesListing:
    """Reads listings; files and base file rows are parsed once per object. Not thread-safe."""

    def __init__(
        self, store: Store, version: TableVersion, *, files: Callable[[str], Mapping[str, FileInfo]] | None = None
    ) -> None:
        """Create a reader; nothing is read. `files` as for `SliceReader`."""
        self._store = store
        self._reader = SliceReader(store, version, files=files)
        self._base_rows: dict[str, FileList | None] = {}
        self._base: HFileReader | None = None

    def read(self, visible: Timeline, partitions: WantedPartitions | None = None) -> dict[str, dict[str, int]]:
        """Read the listing of all partitions of the data table, or of exactly `partitions`; unknown ones are empty.

        The list of all partitions is not read if `partitions` are paths.

        `visible` holds the visible instants of the metadata table.

        Raises: CorruptFileError if a file does not parse, or the partition `files` does not exist.
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
        if missing:
            found = {key: dict(record.files) for key, record in base_rows(content, missing)}
            if len(self._base_rows) > _ROWS_KEPT_MAX:
                self._base_rows = {key: row for key, row in self._base_rows.items() if key in keys}
            self._base_rows |= {key: found.get(key) for key in missing}
        rows = {key: dict(known) for key in keys if (known := self._base_rows[key]) is not None}
        apply_blocks(rows, content, set(keys))
        return rows
