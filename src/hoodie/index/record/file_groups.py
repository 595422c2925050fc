"""The file groups of the record index: the keys of each file group, and how a worker reads one.

docs/format/metadata.md §5.1. An index file group is a file group of the metadata partition `record_index`. The number
of index file groups is not stored: it is the number of file groups that are listed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.errors import CorruptFileError, MetadataPartitionMissingError, UnsupportedError
from hoodie.files.slices import FileSlice, latest_slices
from hoodie.format.hashes.java_hash import file_group_index
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.metadata.build_instants import fills_a_partition
from hoodie.metadata.kinds.record_index import FILE_ID_PREFIX
from hoodie.metadata.parsed_files import read_slice
from hoodie.metadata.places import REBUILD_ADVICE, file_id_of, partition_folder
from hoodie.metadata.slice_content import SliceContent
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
    def of(cls, infos: Mapping[str, FileInfo], timeline: Timeline) -> RecordIndexState:
        """Return the newest slices of files, given by path. `timeline`: the visible instants of the metadata table.

        Raises: UnsupportedError if each data partition has separate file groups; CorruptFileError if a file group is
        missing; MetadataPartitionMissingError if all are.
        """
        folder = partition_folder(RECORD_INDEX)
        sizes = {info.name: info.size_bytes for info in infos.values()}
        slices = latest_slices({folder: sizes}, timeline, {})
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
        return cls(tuple(index_file_group(number, file_slice, infos) for number, file_slice in enumerate(found)))

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


def index_file_group(number: int, file_slice: FileSlice, infos: Mapping[str, FileInfo]) -> IndexFileGroup:
    """Return the index file group of a slice. `infos` has the files of the slice, by path."""
    paths = [log.path for log in file_slice.log_files]
    if file_slice.base_file is not None:
        paths.insert(0, file_slice.base_file.path)
    return IndexFileGroup(number, file_slice, tuple(infos[path] for path in paths))


def read_file_group(store: Store, file_group: IndexFileGroup) -> SliceContent:
    """Parse a file group's files; files in the cache of this process are not read again.

    Memory: as `read_slice`.

    Raises:
        CorruptFileError: a file does not parse.
    """
    return read_slice(store, file_group.file_slice, file_group.files)
