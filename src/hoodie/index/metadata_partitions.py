"""The metadata partitions that the index of a table needs."""

from __future__ import annotations

from hoodie.index.selection import table_index
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.view.table_view import TableView


def partitions_to_add(view: TableView) -> tuple[PartitionKind, ...]:
    """Return the metadata partitions to add with the first commit of a table, because its index needs them.

    Nothing is added to a table that has instants: entries of its existing rows would be missing. An index build adds
    the partition to such a table.

    Raises: as `index_kind`.
    """
    if view.timeline.instants or view.has_archived_instants():
        # Not asked first: a table service works on a table whose index this release lacks.
        return ()
    wanted = table_index(view.config).metadata_partition
    if wanted is None or wanted.name in view.config.metadata_partitions:
        return ()
    return (wanted,)
