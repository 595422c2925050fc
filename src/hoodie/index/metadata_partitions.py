"""The metadata partitions that the index of a table needs."""

from __future__ import annotations

from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.index.selection import RECORD_INDEXES, table_index
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.metadata.record_index.kind import RecordIndexKind
from hoodie.view.table_view import TableView


def partitions_to_add(view: TableView) -> tuple[PartitionKind, ...]:
    """The metadata partitions that a table gets with its first commit, for the sake of its index.

    A table that has instants gets none: its rows would be missing in them. An index build adds them.

    Raises: as `index_name`.
    """
    config = view.config
    index = table_index(config)
    if RECORD_INDEX in config.metadata_partitions or index not in RECORD_INDEXES:
        return ()
    if view.timeline.instants or view.has_archived_instants():
        return ()
    return (RecordIndexKind(is_partitioned=index == "partitioned_record"),)
