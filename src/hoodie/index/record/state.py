"""The record index in a view of its table: its kind, and the files that are visible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hoodie.config import INDEX_TYPE_KEY
from hoodie.errors import MetadataTableMissingError
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.index.record.file_groups import RecordIndexState
from hoodie.index.record.history import IndexHistory
from hoodie.index.record.partition_file_groups import partitioned_state
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.kinds.record_index import is_partitioned_record_index
from hoodie.view.table_view import TableView

GLOBAL_TYPE: Final = "RECORD_INDEX"
"""`hoodie.index.type` of a table whose record index covers the whole table."""
PARTITIONED_TYPE: Final = "RECORD_LEVEL_INDEX"
"""`hoodie.index.type` of a table whose record index has index file groups for each data partition."""


def has_record_index(view: TableView) -> bool:
    """Return whether the table has a record index, global or partitioned."""
    return RECORD_INDEX in view.config.metadata_partitions


def record_index(view: TableView, *, as_of: str | None = None) -> RecordIndexState | None:
    """Return the index file groups of the global record index; None if the table has no global record index.

    `as_of` is a requested time (inclusive); without it, the state of the view is returned.

    Raises: UnsupportedError if the files of that state do not exist any more.
    """
    found = index_history(view)
    return None if found is None else found.state(as_of=as_of)


def partitioned_index(view: TableView) -> Mapping[str, RecordIndexState] | None:
    """Return the index file groups of each data partition; None if the table has no partitioned record index."""
    if not has_partitioned_index(view):
        return None
    return partitioned_state(MetadataFolder(view.store, view.config), view.whole_timeline())


def record_index_if_there(view: TableView) -> RecordIndexState | None:
    """Return the same as `record_index`, but None if the whole metadata table is missing.

    A write that began without it goes on: its commit builds the metadata table anew.
    """
    try:
        return record_index(view)
    except MetadataTableMissingError:
        return None


def partitioned_index_if_there(view: TableView) -> Mapping[str, RecordIndexState] | None:
    """Return the same as `partitioned_index`, but None if the whole metadata table is missing."""
    try:
        return partitioned_index(view)
    except MetadataTableMissingError:
        return None


def has_partitioned_index(view: TableView) -> bool:
    """Return whether the record index is partitioned. Reads the index definitions only if no type is stored."""
    if not _is_readable(view):
        return False
    stored = view.config.raw.get(INDEX_TYPE_KEY, "").upper()
    if stored in (GLOBAL_TYPE, PARTITIONED_TYPE):
        return stored == PARTITIONED_TYPE
    return is_partitioned_record_index(view.store)


def index_history(view: TableView) -> IndexHistory | None:
    """Return the history of the global record index in this view; None if the table has no such index."""
    if not _is_readable(view) or has_partitioned_index(view):
        return None
    later = frozenset(instant.requested_time for instant in view.completed_later)
    return IndexHistory(MetadataFolder(view.store, view.config), view.whole_timeline(), later)


def _is_readable(view: TableView) -> bool:
    return has_record_index(view) and view.config.version.value >= 8
