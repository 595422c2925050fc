"""The file groups of the partitioned record index (Hudi 1.1+): each data partition has separate file groups.

docs/format/metadata.md §5.3. The file id of an index file group contains its data partition. A data partition gets its
first index file group with the first commit that writes to it. Keys are unique in a partition only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from hoodie.errors import PartitionPathError
from hoodie.files.slices import FileSlice, latest_slices
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.index.record.file_groups import RecordIndexState, index_file_group, list_index_files
from hoodie.metadata.archived_logs import with_archived_logs
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.kinds.record_index import FILE_ID_PREFIX, RecordIndexKind
from hoodie.metadata.places import partition_folder
from hoodie.metadata.visible_instants import visible_instants
from hoodie.timeline import Timeline

_FILE_ID: Final = re.compile(rf"{FILE_ID_PREFIX}([^-]*)-(\d{{4,}})-0")
_ESCAPED: Final = frozenset("\"#%'*/:=?\\\x7f{[]^_-") | {chr(code) for code in range(0x20)}


def partitioned_file_id(partition_path: str, number: int) -> str:
    """Return the file id of an index file group of a data partition.

    Raises:
        PartitionPathError: the path has a dot. The JVM fails on names of log files whose file id has a dot.

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
    infos = list_index_files(folder.store)
    timeline = visible_instants(folder.existing_timeline(), data_timeline)
    timeline = with_archived_logs(folder.store, timeline, [info.name for info in infos.values()], RecordIndexKind())
    sizes = {info.name: info.size_bytes for info in infos.values()}
    by_partition: dict[str, list[FileSlice]] = {}
    for file_slice in latest_slices({partition_folder(RECORD_INDEX): sizes}, timeline, {}):
        partition_path = partition_path_of(file_slice.file_id)
        if partition_path is not None:
            by_partition.setdefault(partition_path, []).append(file_slice)
    return {
        partition_path: RecordIndexState(
            tuple(index_file_group(number, file_slice, infos) for number, file_slice in enumerate(found))
        )
        for partition_path, found in by_partition.items()
    }
