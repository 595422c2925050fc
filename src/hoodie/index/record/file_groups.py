"""The file groups of the record index: the keys of each file group, and how a worker reads one.

docs/format/metadata.md §5.1. An index file group is a file group of the metadata partition `record_index`. The number
of index file groups of the global index is not stored: it is the number of file groups that are listed.

In the partitioned record index (Hudi 1.1+, docs/format/metadata.md §5.3) each data partition has separate file groups,
whose file ids contain the data partition. A data partition gets its first index file group with the first commit that
writes to it. Keys are unique in a partition only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.errors import CorruptFileError, MetadataPartitionMissingError, PartitionPathError, UnsupportedError
from hoodie.files.slices import FileSlice, latest_slices
from hoodie.format.hashes.java_hash import file_group_index
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.format.table.versions import TableVersion
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.instants import fills_a_partition, visible_instants, with_archived_logs
from hoodie.metadata.kinds.record_index import FILE_ID_PREFIX, RecordIndexKind
from hoodie.metadata.paths import METADATA_VERSION, REBUILD_ADVICE, file_id_of, partition_folder
from hoodie.metadata.slice_content import SliceContent
from hoodie.metadata.slices import newest_slices, read_slice
from hoodie.storage import FileInfo, Store
from hoodie.timeline import Timeline

_GLOBAL_FILE_ID = re.compile(rf"{FILE_ID_PREFIX}\d{{4,}}-0")


@dataclass(frozen=True, slots=True)
class IndexFileGroup:
    """One file group of the record index, with its visible file slice. Picklable.

    `files` are the listed files of the slice. A file with the same name but another modification time is a different
    file.
    """

    number: int
    file_slice: FileSlice
    files: tuple[FileInfo, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of all files of the slice."""
        return self.file_slice.size_bytes


@dataclass(frozen=True, slots=True)
class RecordIndexState:
    """The record index in one state: its file groups, by number. Picklable."""

    file_groups: tuple[IndexFileGroup, ...]

    @classmethod
    def of(cls, infos: Mapping[str, FileInfo], timeline: Timeline, *, version: TableVersion) -> RecordIndexState:
        """Return the newest slices of files, given by path. `timeline`: the visible instants of the metadata table.

        `version`: the version of the table.

        Raises: UnsupportedError if each data partition has separate file groups; CorruptFileError if a file group is
        missing; MetadataPartitionMissingError if all are.
        """
        folder = partition_folder(RECORD_INDEX)
        sizes = {info.name: info.size_bytes for info in infos.values()}
        slices = newest_slices(RECORD_INDEX, sizes, timeline, version=version)
        found = [file_slice for file_slice in slices if file_slice.file_id.startswith(FILE_ID_PREFIX)]
        for number, file_slice in enumerate(found):
            if not _GLOBAL_FILE_ID.fullmatch(file_slice.file_id):
                raise UnsupportedError(
                    f"{folder}: expected a file group of a global record index, found {file_slice.file_id} of a "
                    "partitioned record index, which this operation does not support; use JVM Hudi"
                )
            if file_slice.file_id != file_id_of(FILE_ID_PREFIX, number):
                missing = file_id_of(FILE_ID_PREFIX, number)
                raise CorruptFileError(f"file group {missing} is missing: {REBUILD_ADVICE}", path=folder)
            if not has_first_file(file_slice):
                raise CorruptFileError(
                    f"file group {file_slice.file_id} lost its base file, and the entries in it: {REBUILD_ADVICE}",
                    path=folder,
                )
        if not found:
            raise MetadataPartitionMissingError(f"all file groups are missing: {REBUILD_ADVICE}", path=folder)
        return cls(tuple(_index_file_group(number, file_slice, infos) for number, file_slice in enumerate(found)))

    @property
    def file_ids(self) -> tuple[str, ...]:
        """File ids of the file groups, by number."""
        return tuple(file_group.file_slice.file_id for file_group in self.file_groups)

    def numbers_of(self, keys: pa.StringArray) -> npt.NDArray[np.int32]:
        """Return the number of the file group of each key."""
        return file_group_index(keys, len(self.file_groups))


def has_first_file(file_slice: FileSlice) -> bool:
    """Return whether a slice has its base file, or the log file with which a partition is filled."""
    if file_slice.base_file is not None:
        return True
    return any(fills_a_partition(log.name.instant_time) for log in file_slice.log_files)


def list_index_files(store: Store) -> dict[str, FileInfo]:
    """List all files of the partition `record_index` by path: of every slice, visible or not."""
    return {info.path: info for info in store.list(partition_folder(RECORD_INDEX))}


def _index_file_group(number: int, file_slice: FileSlice, infos: Mapping[str, FileInfo]) -> IndexFileGroup:
    """Return the index file group of a slice. `infos` has the files of the slice, by path."""
    return IndexFileGroup(number, file_slice, tuple(infos[path] for path in file_slice.paths))


def read_file_group(store: Store, file_group: IndexFileGroup) -> SliceContent:
    """Parse a file group's files; files in the cache of this process are not read again.

    Memory: as `read_slice`.

    Raises: CorruptFileError if a file does not parse.
    """
    return read_slice(store, file_group.file_slice, file_group.files)


_FILE_ID: Final = re.compile(rf"{FILE_ID_PREFIX}([^-]*)-(\d{{4,}})-0")
_ESCAPED: Final = frozenset("\"#%'*/:=?\\\x7f{[]^_-") | {chr(code) for code in range(0x20)}


def partitioned_file_id(partition_path: str, number: int) -> str:
    """Return the file id of an index file group of a data partition.

    Raises: PartitionPathError if the path has a dot. The JVM fails on names of log files whose file id has a dot.

    >>> partitioned_file_id("city=sf", 0)
    'record-index-city%3Dsf-0000-0'
    """
    if "." in partition_path:
        raise PartitionPathError(
            f"partition path {partition_path!r} has a dot, which file ids of a partitioned record index cannot "
            "contain; use index='record', whose file groups cover the whole table"
        )
    escaped = "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in partition_path)
    return f"{FILE_ID_PREFIX}{escaped}-{number:04d}-0"


def partition_path_of(file_id: str) -> str | None:
    """Return the data partition of an index file group; None for file ids of another form.

    >>> partition_path_of("record-index-city%3Da%5Fb-0000-0")
    'city=a_b'
    """
    match = _FILE_ID.fullmatch(file_id)
    if match is None:
        return None
    return re.sub(r"%([0-9A-Fa-f]{2})", lambda found: chr(int(found[1], 16)), match[1])


def partitioned_state(folder: MetadataFolder, data_timeline: Timeline) -> Mapping[str, RecordIndexState]:
    """Return the visible index file groups of each data partition that has index file groups."""
    loaded = folder.existing_timeline()
    infos, timeline = folder.files(RECORD_INDEX), visible_instants(loaded, data_timeline)
    timeline = with_archived_logs(folder.store, timeline, [info.name for info in infos.values()], RecordIndexKind())
    sizes = {info.name: info.size_bytes for info in infos.values()}
    by_partition: dict[str, list[FileSlice]] = {}
    for file_slice in latest_slices({partition_folder(RECORD_INDEX): sizes}, timeline, {}, version=METADATA_VERSION):
        partition_path = partition_path_of(file_slice.file_id)
        if partition_path is not None:
            by_partition.setdefault(partition_path, []).append(file_slice)
    return {
        partition_path: RecordIndexState(
            tuple(_index_file_group(number, file_slice, infos) for number, file_slice in enumerate(found))
        )
        for partition_path, found in by_partition.items()
    }
