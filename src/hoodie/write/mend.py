"""Mend a table before a write: what a restore by the JVM, a crash, or a person took away from it.

All of it is derived from the data, so that no row can be lost: the metadata table, its partitions, the record index.
"""

from __future__ import annotations

from hoodie.commit.begin import prepare_table
from hoodie.commit.call import Call, Wait
from hoodie.commit.data_commit import REBUILT_NOTE
from hoodie.commit.metadata_table import lost_partitions
from hoodie.commit.rollback import dead_writes
from hoodie.config import indexes
from hoodie.errors import MetadataPartitionMissingError, MetadataTableMissingError
from hoodie.index import RECORD, index_of_view, lost_record_index
from hoodie.index.record.building.plan import pending_indexing
from hoodie.index.record.state import record_index_of_write
from hoodie.services.indexing.rebuild import build_lost_index, finish_dead_build, give_up_lost, rebuild_listing
from hoodie.timeline import Action
from hoodie.view.table_view import TableView

_Notes = tuple[str, ...]


def mend(call: Call, view: TableView, *, looks_up: bool = False) -> tuple[TableView, _Notes]:
    """Mend what is broken of the table; return the table after that, and notes about it.

    Mended are metadata partitions that a restore by the JVM emptied, a record index that is missing although the
    properties require one, and builds whose process died. If the write looks up keys, also a metadata table or a record
    index whose files are missing, or which the rollback of a dead write drops: the look-up uses the answer that is read
    here. Other writes notice that when they commit. Their commit builds the metadata table anew, and `mend` is called
    again after it.

    An index that cannot be built now is no error: the notes say why, and keys are looked up in the data files.
    """
    notes: _Notes = ()
    before, after = ((_dead_writes,), (_missing_files,)) if looks_up else ((), ())
    for step in (*before, _emptied_partitions, _lost_index, *after):
        done = step(call, view)
        if done is not None:
            notes, view = (*notes, *done), view.refreshed()
    return view, notes


def _dead_writes(call: Call, view: TableView) -> _Notes | None:
    """Roll back the dead writes of a table with a record index; None if there are none.

    The rollback may drop the metadata table. In the begin of the write that would be too late: its keys are staged.
    """
    if index_of_view(view) is not RECORD or not _has_dead_writes(view):
        return None
    with call.state.table_lock(call.properties) as lock:
        return tuple(done.note for done in prepare_table(call.state, lock, call.properties)[1])


def _has_dead_writes(view: TableView) -> bool:
    pending = view.timeline.pending().instants
    return any(found.action is Action.ROLLBACK for found in pending) or bool(pending and dead_writes(view))


def _emptied_partitions(call: Call, view: TableView) -> _Notes | None:
    """Drop the metadata partitions that a restore by the JVM emptied; None if there are none.

    They are looked for only if the active timeline has a restore.
    """
    restored = any(found.action is Action.RESTORE for found in view.timeline.completed())
    if not restored or not view.config.has_metadata_table:
        return None
    try:
        return give_up_lost(call.state) if lost_partitions(view) else None
    except MetadataTableMissingError:
        return None  # the look-up finds that too, else the commit


def _lost_index(call: Call, view: TableView) -> _Notes | None:
    """End dead builds, and build a record index that is missing; None if there is nothing to do."""
    if lost_record_index(view) is None and not pending_indexing(view):
        return None
    return (*finish_dead_build(call.state), *_index_again(call))


def _missing_files(call: Call, view: TableView) -> _Notes | None:
    """Build a metadata table or a record index anew whose files are missing; None if the index can be read."""
    if index_of_view(view) is not RECORD:
        return None
    try:
        view.fact(record_index_of_write)  # `RecordIndex.key_stage` uses it
        return None
    except MetadataTableMissingError:
        done = (*rebuild_listing(call.state), REBUILT_NOTE)
    except MetadataPartitionMissingError:
        done = give_up_lost(call.state)
    return (*done, *_index_again(call))


def _index_again(call: Call) -> _Notes:
    """Build a record index that is missing, if its size allows it; return notes about it."""
    bytes_max = indexes.INDEX_REBUILD_BYTES_MAX.get(call.properties, call.state.last_config().raw)
    wanted = Call(state=call.state, engine=call.engine, properties=call.properties, wait=Wait(0.0))
    return build_lost_index(wanted, bytes_max=bytes_max)
