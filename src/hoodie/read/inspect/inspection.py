"""`Table.inspect`: the reports of a table, one method for each; the command line prints the same rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hoodie.arguments import check_methods
from hoodie.errors import InvalidConfigError
from hoodie.read.history import instant_content
from hoodie.read.index_entries import entry_changes, first_entries
from hoodie.read.inspect.files import checked_slices, files_of_group, table_files, table_partitions, table_slices
from hoodie.read.inspect.waiting import Findings
from hoodie.read.report import report_schema
from hoodie.read.times import When
from hoodie.timeline import Action, LockOptions
from hoodie.timeline.locks.inspection import found_locks
from hoodie.view.table_view import TableView

LOCKS_SCHEMA = report_schema("provider string, place string, is_ours bool, holder string?, written time?, until time?")


@check_methods
@dataclass(frozen=True, slots=True, repr=False)
class Inspection:
    """Describe a table as of one view.

    Row counts come from commit metadata. They are null for files of archived instants, and for log files of table
    version 6, because their names do not contain the instant that wrote them. The row count of a log file is the number
    of rows that it adds or changes; deletes are not counted.

    Raises: ViewOvertakenError from `files`, `slices`, `partitions` and `statistics` if a clean deleted files of the
    view meanwhile; `table.inspect` describes the table anew.
    """

    view: TableView
    _findings: Callable[[TableView], Findings]

    def __repr__(self) -> str:
        return (
            f"Inspection of {self.view.store.uri('')}: files(), slices(), partitions(), statistics(), index(), locks()"
        )

    def files(self) -> pa.Table:
        """List every committed base file and log file; `is_current` marks the files of the latest slices.

        The rows are sorted by partition path, file id and instant.
        """
        return table_files(self.view)

    def file_group(self, file_id: str) -> pa.Table:
        """List the committed files of one file group, oldest first, with operation and completion of their instants.

        The rows are empty if no file has the id.
        """
        return files_of_group(self.view, file_id)

    def slices(self, partition: str | None = None, *, limit: int | None = None, offset: int = 0) -> pa.Table:
        """List the latest file slice of every file group, or of those of one partition path.

        The rows are sorted by partition path and file id; `limit` of them are returned from row `offset` on. Memory:
        these rows, and the slices of some partitions.
        """
        return table_slices(self.view, partition, limit=limit, offset=offset)

    def partitions(self, *, sort: str = "name", limit: int | None = None, offset: int = 0) -> pa.Table:
        """List the partitions that have files: file groups, rows of base files, bytes and log files.

        Only the latest file slices are counted. `latest_instant` is the newest instant that wrote one of the files.
        `sort`: by `name`, or by `bytes` with the largest first; of these rows, `limit` are returned from row `offset`
        on. Memory: these rows, and the slices of some partitions.

        Raises: InvalidConfigError for another `sort`.
        """
        return table_partitions(self.view, sort=sort, limit=limit, offset=offset)

    def summary(self) -> Mapping[str, Any]:
        """Return name, type, keys, properties and columns of the table, its newest commit and its findings.

        No data file is opened, and no folder of data is listed; of the commits one is read. Values of secret properties
        are `***`. What cannot be read is a finding.
        """
        from hoodie.read.inspect.summary import summary

        return summary(self.view, lambda: self._findings(self.view))

    def sizes(self) -> Mapping[str, Any]:
        """Return numbers and bytes of the latest files, a histogram of their sizes, and how the partitions differ.

        Memory: the slices of some partitions. Raises: as `files`.
        """
        from hoodie.read.inspect.sizes import table_sizes

        return table_sizes(self.view)

    def backlog(self, limit: int = 200) -> pa.Table:
        """List the file slices with the most bytes in log files, the largest first, and the cost of compacting each.

        Memory: the slices of some partitions, and `limit` rows. Raises: as `files`.
        """
        from hoodie.read.inspect.sizes import log_backlog

        return log_backlog(self.view, limit)

    def timeline(
        self, limit: int = 200, *, before: str | None = None, archived: bool = False, metadata: bool = False
    ) -> pa.Table:
        """List the newest instants with their effects, as `Table.history`, by requested time, newest first.

        `before`: only instants requested before this time; the time of the last row begins the next page. `archived`:
        with archived instants. `metadata`: the instants of the metadata table. Only commits of the rows are read.

        Raises: CorruptFileError if the archive is damaged; a damaged commit has its error in the column `problem`.
        """
        from hoodie.read.inspect.timelines import timeline_page

        return timeline_page(self.view, limit, before, archived=archived, metadata=metadata)

    def waits(self) -> pa.Table:
        """List what waits: pending plans, dead and running writes, log files; each with the command that carries it on.

        Raises: CorruptFileError, StorageError if the findings of the timeline cannot be read.
        """
        from hoodie.read.inspect.waiting import waits

        return waits(self.view, self._findings(self.view))

    def growth(self, days: int = 30) -> pa.Table:
        """List what the commits of the last days added: one row a day (UTC) with commits, oldest first.

        Raises: CorruptFileError if the archive is damaged; a damaged commit is a note.
        """
        from hoodie.read.inspect.commits import growth

        return growth(self.view, days)

    def writers(self, limit: int = 200) -> pa.Table:
        """List who wrote the newest commits of the active timeline, by their extra metadata."""
        from hoodie.read.inspect.commits import writers

        return writers(self.view, limit)

    def flows(self) -> pa.Table:
        """List the newest place of each ingestion and stream that writes the table, the most recent first."""
        from hoodie.read.inspect.commits import flows

        return flows(self.view)

    def schemas(self) -> pa.Table:
        """List the schemas that commits of the active timeline stored, newest first, with their differences.

        Raises: CorruptFileError if a schema does not parse.
        """
        from hoodie.read.inspect.commits import schemas

        return schemas(self.view)

    def metadata(self) -> pa.Table:
        """List the partitions of the metadata table: file groups, files, bytes, newest instant and compaction."""
        from hoodie.read.inspect.metadata_partitions import metadata_partitions

        return metadata_partitions(self.view)

    def changed(self, instant: str, limit: int = 200) -> pa.Table:
        """List at most `limit` rows that a completed write changed: key, before and after it.

        Raises: InstantNotFoundError without such a write; UnsupportedError for a table without meta fields.
        """
        from hoodie.read.inspect.record_versions import changed_rows

        return changed_rows(self.view, instant, limit)

    def record(self, key: str, versions: int = 5) -> Mapping[str, Any]:
        """Return the row of a record key, where it is, and at most `versions` of its states, newest first.

        In a table with several key columns a key is a text like `a:1,b:2`.

        Raises: UnsupportedError for a table without meta fields; as `Table.read_keys`.
        """
        from hoodie.read.inspect.record_versions import record_versions

        return record_versions(self.view, key, versions)

    def locks(self, properties: Mapping[str, str] | None = None) -> pa.Table:
        """List the table's locks: provider, place, is_ours, holder, written, until.

        `is_ours`: writers of this library use this provider, by these `properties` and those of the table. `holder` is
        null if the lock is free; `until`: when the lock ends without a renewal, if that is known. A lock of the JVM in
        another place than the table's folder, or in a ZooKeeper that no option names, cannot be seen.

        Raises: LockTimeoutError if ZooKeeper is used and cannot be reached; InvalidConfigError.
        """
        found = found_locks(
            self.view.store, LockOptions.of(properties or {}, self.view.state.lock_options, self.view.config.raw)
        )
        rows = [
            {
                "provider": lock.provider.rpartition(".")[2],
                "place": lock.place,
                "is_ours": lock.is_ours,
                "holder": lock.holder,
                "written": lock.written_ms,
                "until": lock.until_ms,
            }
            for lock in found
        ]
        return pa.Table.from_pylist(rows, schema=LOCKS_SCHEMA)

    def statistics(self) -> pa.Table:
        """List the statistics of every column of every base file of the latest slices.

        The statistics are rows, nulls, minimum and maximum (as strings), and bytes on disk. They come from the Parquet
        footers, one small read for each file. A bound that the footer does not contain is null.
        """
        from hoodie.read.inspect.statistics import column_statistics

        slices = checked_slices(self.view)
        return column_statistics(self.view.store, [found.base_file for found in slices if found.base_file is not None])

    def index(self, as_of: When | None = None, *, limit: int | None = None) -> pa.Table:
        """List the entries of the record index: key, partition_path, file_id, instant, bucket.

        `bucket` is the number of the index file group. The rows are sorted by bucket and key. `as_of`: an instant
        (inclusive); None for the newest commit. At most `limit` entries are returned.
        `hoodie.read.index_entries.stream_entries` returns all entries as a stream.

        Raises: UnsupportedError without a record index, or if the index no longer stores its state as of that instant.
        """
        return first_entries(self.view, limit, as_of=as_of)

    def index_changes(self, since: When | None, until: When | None = None) -> pa.Table:
        """List the record index changes of the commits that completed in `(since, until]`, commit by commit.

        Columns: key, change (`put` or `delete`), partition_path, file_id, instant of the commit.

        Raises: UnsupportedError without a record index, or if the index no longer stores these changes.
        """
        return entry_changes(self.view, since, until)

    def instant(self, requested_time: str, *, action: str | None = None) -> Mapping[str, Any]:
        """Return the content of one instant as plain Python values; see `hoodie.read.history.instant_content`.

        `times` are those of its states: requested, inflight and completed; None if not known. `action` chooses between
        a commit and its savepoint.

        Raises: InstantNotFoundError; InvalidConfigError for an unknown action; CorruptFileError.
        """
        from hoodie.read.inspect.timelines import state_times

        if action is not None and action not in list(Action):
            raise InvalidConfigError(f"action={action!r}: expected one of {', '.join(Action)}")
        content = instant_content(self.view, requested_time, None if action is None else Action(action))
        return {**content, "times": state_times(self.view, content)}
