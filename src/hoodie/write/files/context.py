"""What all workers of one write use and return: its facts, and the written files, index entries and counts of rows.

The facts are frozen and picklable.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from hoodie.config import writes
from hoodie.files.base_file import BaseFileWriter, ParquetOptions
from hoodie.files.logs.log_file import LogNames
from hoodie.files.merged_slice import SliceRead
from hoodie.files.slices import BaseFile
from hoodie.files.stored_columns import SAME_COLUMNS, StoredColumns
from hoodie.format.instants.commit_metadata import NULL_COMMIT, RuntimeStats, WriteStat
from hoodie.format.log.data_block import DataFormat
from hoodie.format.schema.required import Paths
from hoodie.index.record.entries import EntryStage, EntryWriter, StagedEntries
from hoodie.records.merging.merge import RecordMerger
from hoodie.storage import StoreSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSizing:
    """Sizes that place inserts, in bytes of a base file on storage."""

    max_file_bytes: int = 120 * 1024 * 1024
    small_file_bytes: int = 100 * 1024 * 1024

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> FileSizing:
        """Return the sizes that the effective options set."""
        return cls(
            max_file_bytes=writes.MAX_FILE_BYTES.get(properties),
            small_file_bytes=writes.SMALL_FILE_BYTES.get(properties),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """The options of writing log blocks. `avro_schema` has the meta fields and the columns of the rows."""

    avro_schema: str
    data_format: DataFormat
    block_bytes_max: int
    read: SliceRead
    """How stored rows are read where the merge requires them; each reader chooses the columns."""
    names: LogNames = field(default_factory=LogNames)


@dataclass(frozen=True, slots=True, kw_only=True)
class CdcOptions:
    """The options of logging change data. `schema` has the columns of the images, `avro_schema` those of the blocks."""

    schema: pa.Schema
    avro_schema: str
    block_bytes_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteContext:
    """The facts of one write that its workers share. `schema` has the data columns of the rows, without meta fields.

    `whole`: all data columns of the table, if the rows of an update have only some of them.
    """

    store: StoreSpec
    schema: pa.Schema
    merger: RecordMerger
    instant_time: str
    whole: pa.Schema | None = None
    combine: bool
    """Whether rows of the batch that have the same key are merged first."""
    merge_stored: bool
    """Whether rows are merged with the stored row of their key. If not, they are added as further rows."""
    has_automatic_keys: bool = False
    """Whether new rows get automatic keys: their staged keys lack the commit time, which is `instant_time`."""
    parquet: ParquetOptions = field(default_factory=ParquetOptions)
    sizing: FileSizing = field(default_factory=FileSizing)
    entries: EntryStage | None = None
    """Where entries of the record index are staged; None if the table has no record index."""
    stored: StoredColumns = SAME_COLUMNS
    """How the table's files differ from `schema`."""
    log: LogOptions | None = None
    """How changes are appended to log files; None for copy-on-write tables."""
    cdc: CdcOptions | None = None
    """How the changes of rewritten base files are logged; None without change data capture."""

    @property
    def file_schema(self) -> pa.Schema:
        """The data columns of base files."""
        return self.schema if self.whole is None else self.whole

    @property
    def is_partial(self) -> bool:
        """Whether the rows are those of an update: their columns replace those of stored rows; they insert nothing."""
        return self.whole is not None


@dataclass(slots=True, kw_only=True)
class RowCounts:
    """Counts of the rows of a batch that no write statistic counts; a task adds to its own."""

    ignored: int = 0
    """Rows that changed nothing: they lost against the stored row, or delete a key that the table does not have."""
    equal: int = 0
    """Rows that equal their stored row, in file groups that were not written."""
    duplicates: int = 0
    """Rows that were merged into another row of the batch with the same key."""
    undecided: int = 0
    """Rows logged for a known key; their ordering values decide at the next read whether they win."""
    unordered: int = 0
    """Ignored or undecided rows without an ordering value."""
    hidden: int = 0
    """Logged rows that reads will not show."""

    def __add__(self, other: RowCounts) -> RowCounts:
        """Return the sum of both counts."""
        return RowCounts(**{name: getattr(self, name) + getattr(other, name) for name in self.__slots__})


def stat_of(
    writer: BaseFileWriter, file_id: str, partition_path: str, started: float, older: BaseFile | None = None
) -> WriteStat:
    """Return the write statistic of a closed base file, whose rows all count as inserts.

    `started`: when the work began, by `time.monotonic`. `older`: the base file that the new one replaces.
    """
    millis = int((time.monotonic() - started) * 1000)
    return WriteStat(
        file_id=file_id,
        path=writer.path,
        prev_commit=NULL_COMMIT if older is None else older.instant_time,
        prev_base_file=None if older is None else older.name,
        num_writes=writer.rows,
        num_inserts=writer.rows,
        total_write_bytes=writer.size_bytes,
        file_size_bytes=writer.size_bytes,
        partition_path=partition_path,
        column_ranges=writer.ranges,
        runtime_stats=RuntimeStats(
            total_create_time_ms=0 if older else millis, total_upsert_time_ms=millis if older else 0
        ),
    )


@dataclass(frozen=True, slots=True)
class Written:
    """Written files, staged entries and counts; all may be empty. `nulls`: loose columns that have a null."""

    stats: tuple[WriteStat, ...] = ()
    entries: tuple[StagedEntries, ...] = ()
    counts: RowCounts = field(default_factory=RowCounts)
    nulls: Paths = frozenset()

    @classmethod
    def of(cls, stats: Iterable[WriteStat], entries: EntryWriter, counts: RowCounts) -> Written:
        """Close `entries`, and return the result of one task."""
        staged = entries.close()
        return cls(tuple(stats), () if staged is None else (staged,), counts)

    @classmethod
    def together(cls, parts: Iterable[Written]) -> Written:
        """Return the joined result of several tasks, in their order."""
        found = list(parts)
        return cls(
            tuple(stat for part in found for stat in part.stats),
            tuple(entries for part in found for entries in part.entries),
            sum((part.counts for part in found), RowCounts()),
        )
