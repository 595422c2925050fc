"""Completion of an instant that wrote data files: a write, a compaction, a log compaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hoodie.commit.attempt_files import delete_marked_files
from hoodie.commit.commit_content import commit_to_metadata_table
from hoodie.commit.exclusive import check_no_exclusive_service
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.index.api import IndexUpdate
from hoodie.metadata.services.context import EngineFor, local_engine
from hoodie.view.table_view import TableView


def _no_check(now: TableView) -> None:
    """Nothing that other writers do conflicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCommit:
    """What a commit of data files does under the table's lock; see `Completion`.

    `metadata` names the files that it adds. `check_conflicts` refuses what other writers completed meanwhile; it runs
    after the index update was brought up to date. `index`: what the commit tells the record index; None if no record
    changes its file group. `engine_for` runs the metadata table's services that are due.
    """

    instant_time: str
    metadata: CommitMetadata
    index: IndexUpdate | None = None
    check_conflicts: Callable[[TableView], None] = _no_check
    engine_for: EngineFor = local_engine

    def check(self, now: TableView) -> None:
        """Refuse conflicts, and delete files of task attempts that failed: a marker names them, no result does.

        Raises: CommitConflictError; UnsupportedError if a service that excludes all others is pending.
        """
        check_no_exclusive_service(now)
        if self.index is not None:
            self.index.refresh(now, self.metadata)
        self.check_conflicts(now)
        reported = {stat.path or "" for stat in self.metadata.write_stats()}
        delete_marked_files(now.store, self.instant_time, keep=reported)

    def update_metadata_table(self, now: TableView) -> None:
        """Add the files, and the index entries that were written for them."""
        stats = () if self.index is None else self.index.stats
        commit_to_metadata_table(now, self.instant_time, self.metadata, stats, self.engine_for)

    def content(self, now: TableView) -> bytes:
        """The commit metadata, as the table's version stores it."""
        return self.metadata.to_bytes(now.config.version)
