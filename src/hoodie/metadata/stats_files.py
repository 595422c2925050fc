"""Write the base files of metadata partitions that are built from data files."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from hoodie.format.instants.commit_metadata import RuntimeStats, WriteStat
from hoodie.format.metadata_table.column_stats import StatsRow
from hoodie.format.metadata_table.metadata_record import RecordType
from hoodie.metadata.delta_log import base_file_to_bytes
from hoodie.metadata.folder import base_name
from hoodie.metadata.kinds.column_stats import grouped_rows
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.metadata.places import file_id_of, partition_folder
from hoodie.storage import Store


def write_stats_files(
    store: Store, kind: PartitionKind, rows: Mapping[str, StatsRow], *, groups: int, built_at: str
) -> list[WriteStat]:
    """Write one base file for each of `groups` file groups, also for one without rows; a retry writes the same files.

    Readers do not see the files until the build completes. Memory: the rows, and the files.
    """
    record_type = RecordType.COLUMN_STATS if kind.definition is not None else RecordType.PARTITION_STATS
    return [
        write_group_file(store, kind, number, keys, values, built_at=built_at)
        for number, (keys, values) in enumerate(grouped_rows(rows, record_type, groups))
    ]


def write_group_file(
    store: Store, kind: PartitionKind, number: int, keys: pa.Array, values: pa.Array, *, built_at: str
) -> WriteStat:
    """Write the base file of one file group in a build; `keys` ascend. A retry writes the same file."""
    file_id = file_id_of(kind.file_id_prefix, number)
    name = base_name(file_id, built_at)
    data = base_file_to_bytes(keys, values)
    store.replace(f"{partition_folder(kind.name)}/{name}", data)
    return WriteStat(
        file_id=file_id,
        path=f"{kind.name}/{name}",
        num_writes=len(keys),
        num_inserts=len(keys),
        total_write_bytes=len(data),
        file_size_bytes=len(data),
        partition_path=kind.name,
        runtime_stats=RuntimeStats(),
    )
