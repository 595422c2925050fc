"""What one write knows: frozen, picklable, handed to every worker."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from hoodie.files.base_file import ParquetOptions
from hoodie.files.merged_slice import SliceRead
from hoodie.format.log.data_block import DataFormat
from hoodie.index.record import EntryStage
from hoodie.records.merging.merge import RecordMerger
from hoodie.storage import StoreSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSizing:
    """Sizes that place inserts; all in bytes of a base file as it lies on storage."""

    max_file_bytes: int = 120 * 1024 * 1024
    small_file_bytes: int = 100 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """How log blocks are written. `avro_schema` has the meta fields and the columns of the rows."""

    avro_schema: str
    data_format: DataFormat
    block_bytes_max: int
    read: SliceRead
    """How stored rows are read where they are needed; its columns are chosen by who reads."""
    is_partial: bool = False
    """Whether rows have some of the table's columns only, which overlay those of the stored row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteContext:
    """Facts of one write that its workers share. `schema` has the data columns that it writes, no meta columns."""

    store: StoreSpec
    schema: pa.Schema
    merger: RecordMerger
    instant_time: str
    combine: bool
    """Whether rows of one key in the batch are merged first."""
    merge_stored: bool
    """Whether rows are merged with the stored row of their key, as opposed to added beside it."""
    parquet: ParquetOptions = field(default_factory=ParquetOptions)
    sizing: FileSizing = field(default_factory=FileSizing)
    entries: EntryStage | None = None
    """Where entries of the record index are staged, if the table has one."""
    log: LogOptions | None = None
    """How changes are appended to logs; None on copy-on-write tables."""
