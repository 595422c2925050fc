"""The metadata partitions that the index of a table needs."""

from __future__ import annotations

from hoodie.index.selection import table_index
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.view.table_view import TableView


def partitions_to_add(view: TableView) -> tuple[PartitionKind, ...]:
    """The metadata partitions that a table gets with its first commit, for the sake of its index.

    A table that has instants gets none: its rows would be missing in them. An index build adds them.

    Raises: as `index_kind`.
    """
    wanted = table_index(view.config).metadata_partition
    if wanted is None or wanted.name in view.config.metadata_partitions:
        return ()
    if view.timeline.instants or view.has_archived_instants():
        return ()
    return (wanted,)
