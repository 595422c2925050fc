"""The partitions of the metadata table: how many files they have, and how new they are."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa

from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.instants import fills_a_partition, visible_instants
from hoodie.metadata.paths import partition_folder
from hoodie.metadata.slices import newest_slices
from hoodie.read.report import report_schema
from hoodie.storage import together
from hoodie.timeline import Timeline
from hoodie.view.table_view import TableView

METADATA_SCHEMA = report_schema(
    "partition string, file_groups int64, files int64, log_files int64, bytes int64, newest_instant string?, "
    "newest_compaction string?, is_inflight bool"
)


def metadata_partitions(view: TableView) -> pa.Table:
    """Return the metadata partitions that the properties name, sorted by name; none without a metadata table.

    The files are those of the newest file slices, which readers use. `newest_compaction` is the instant of the newest
    base file; None before the first compaction. `is_inflight`: the partition is built now, or its build was abandoned.
    A missing metadata table has partitions without files.

    One listing of the metadata table's timeline, and one of each partition.
    """
    config = view.config
    names = sorted({*config.metadata_partitions, *config.metadata_partitions_inflight})
    if not names:
        return METADATA_SCHEMA.empty_table()
    folder = MetadataFolder(view.store, config)
    visible = visible_instants(folder.timeline(), view.timeline)
    rows = together(view.store, *(partial(_row, view, visible, name) for name in names))
    return pa.Table.from_pylist(rows, schema=METADATA_SCHEMA)


def _row(view: TableView, visible: Timeline, name: str) -> dict[str, Any]:
    sizes = {info.name: info.size_bytes for info in view.store.list(partition_folder(name))}
    slices = newest_slices(name, sizes, visible, version=view.config.version)
    bases = [found.base_file.instant_time for found in slices if found.base_file is not None]
    logs = [log.name.instant_time for found in slices for log in found.log_files]
    return {
        "partition": name,
        "file_groups": len(slices),
        "files": len(bases) + len(logs),
        "log_files": len(logs),
        "bytes": sum(found.size_bytes for found in slices),
        "newest_instant": max([*bases, *logs], default=None),
        "newest_compaction": max((time for time in bases if not fills_a_partition(time)), default=None),
        "is_inflight": name in view.config.metadata_partitions_inflight,
    }
