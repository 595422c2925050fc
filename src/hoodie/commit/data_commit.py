"""Complete an instant that wrote data files: a write, a compaction, a log compaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from hoodie.commit.column_ids import store_column_history
from hoodie.commit.metadata_table import build_metadata_table_anew, commit_to_metadata_table, drop_lost_partitions
from hoodie.commit.pending import Completion
from hoodie.commit.writable import check_no_exclusive_service
from hoodie.engine import EngineFor, local_engine
from hoodie.errors import MetadataPartitionMissingError, MetadataTableMissingError
from hoodie.files.markers import delete_marked_files
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.index.api import IndexUpdate
from hoodie.metadata.kinds.registry import Collect
from hoodie.view.table_view import TableView

REBUILT_NOTE: Final = "the metadata table was missing and was built anew from the files in storage"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCommit(Completion):
    """The steps of a commit of data files under the table's lock.

    `metadata` names the files that the commit adds; `collect` reads what the metadata partitions need of them.
    `check_conflicts` raises an error if another writer completed a conflicting change; it runs after the index update
    was refreshed. `index` is the commit's update of the record index; None if no record changes its file group.
    `engine_for` chooses the engine of the metadata table's services that are due.
    """

    instant_time: str
    metadata: CommitMetadata
    collect: Collect
    check_conflicts: Callable[[TableView], None]
    index: IndexUpdate | None = None
    engine_for: EngineFor = local_engine
    notes: list[str] = field(default_factory=list)
    """What else the commit did, for the caller's result."""

    def check(self, now: TableView) -> None:
        """Refuse conflicts, and delete files of failed task attempts: a marker names them, but no write statistic.

        Raises: CommitConflictError; UnsupportedError if an exclusive service is pending.
        """
        check_no_exclusive_service(now)
        if self.index is not None:
            self.index.refresh(now, self.metadata)
        self.check_conflicts(now)
        reported = {path for stat in self.metadata.write_stats() for path in stat.sizes}
        delete_marked_files(now.store, self.instant_time, keep=reported)

    def update_metadata_table(self, now: TableView) -> None:
        """Add the files to the metadata table, and the index entries that were written for them.

        If columns have ids, their history is stored first. A metadata table that is missing is built anew, without a
        record index: the entries of earlier writes are missing too. Statistics without a file group are dropped.
        """
        store_column_history(now, self.instant_time, self.metadata)
        stats = () if self.index is None else self.index.stats
        try:
            commit_to_metadata_table(now, self.instant_time, self.metadata, stats, self.engine_for, self.collect)
        except MetadataPartitionMissingError:
            now, dropped = drop_lost_partitions(now)
            commit_to_metadata_table(now, self.instant_time, self.metadata, stats, self.engine_for, self.collect)
            self.notes.extend(dropped)
        except MetadataTableMissingError:
            now = build_metadata_table_anew(now)
            commit_to_metadata_table(now, self.instant_time, self.metadata, (), self.engine_for, self.collect)
            self.notes.append(REBUILT_NOTE)

    def content(self, now: TableView) -> bytes:
        return self.metadata.to_bytes(now.config.version)
