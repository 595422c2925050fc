"""Make the metadata table fit to be written: built if it is missing, without partitions we cannot keep up to date."""

from __future__ import annotations

from hoodie import config as options
from hoodie.files.table_properties import update_table_config
from hoodie.format.table import table_keys as keys
from hoodie.index import PARTITIONED_RECORD, table_index
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.initialise import drop_partitions, initialise, initialise_record_index
from hoodie.metadata.kinds.files_partition import PARTITION as FILES
from hoodie.metadata.record_index.partition import PARTITION as RECORD_INDEX
from hoodie.metadata.table import MAINTAINED
from hoodie.view.listing import list_from_storage
from hoodie.view.table_view import TableView


def ready_metadata_table(view: TableView) -> TableView:
    """Build what is missing and drop what would go stale; call it under the table's lock, before a write.

    Index partitions of other writers that this release does not maintain would make them miss rows: the next JVM
    writer builds them again. A table that finds records by the record index gets it with its first commit.
    """
    config = view.config
    kept = set(config.metadata_partitions) & MAINTAINED if config.has_metadata_table else set()
    wanted = kept | {FILES}
    if _wants_record_index(view):
        wanted.add(RECORD_INDEX)
    if wanted == set(config.metadata_partitions) and not config.metadata_partitions_inflight:
        return view
    if FILES not in kept:
        listing = list_from_storage(view.store, config, view.timeline)
        initialise(view.store, config, listing, clock=view.clock, data_timeline=view.timeline)
    if RECORD_INDEX in wanted - kept:
        is_partitioned = table_index(config) is PARTITIONED_RECORD
        initialise_record_index(
            MetadataFolder(view.store, config),
            # Data partitions get buckets of their own when they are first written to.
            buckets=0 if is_partitioned else options.RECORD_INDEX_BUCKETS_MIN.get(config.raw),
            is_partitioned=is_partitioned,
            clock=view.clock,
            data_timeline=view.timeline,
        )
    partitions = ",".join(sorted(wanted))
    update_table_config(view.store, {keys.METADATA_PARTITIONS: partitions, keys.METADATA_PARTITIONS_INFLIGHT: ""})
    gone = {*config.metadata_partitions, *config.metadata_partitions_inflight} - wanted
    if gone:
        drop_partitions(view.store, gone)
    view.state.metadata_table = None
    return TableView.load(view.state)


def _wants_record_index(view: TableView) -> bool:
    """Whether the table is to have a record index, and has no rows yet that would have to be in it."""
    config = view.config
    if RECORD_INDEX in config.metadata_partitions or table_index(config).metadata_partition != RECORD_INDEX:
        return False
    return not view.timeline.instants and not view.has_archived_instants()
