"""The options for reading a file slice: columns, merge rule, instant, and the filter to skip row groups."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.files.logs.log_scan import CommitRecords, ScanRule
from hoodie.files.stored_columns import SAME_COLUMNS, StoredColumns
from hoodie.format.avro.schema import OPERATION_FIELD
from hoodie.format.table.merge_config import MergeMode
from hoodie.format.table.table_config import TableConfig, TableType
from hoodie.records.change import IS_DELETED, RECORD_KEY
from hoodie.records.merging.merge import RecordMerger, fitted_merger, table_merger
from hoodie.records.sql import letters  # noqa: F401  (registers functions that a filter of another process names)
from hoodie.timeline import layout_of

_MEMORY_BYTES: Final = 128 * 1024 * 1024
_ALL_BLOCKS: Final = ScanRule()


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRead:
    """Options for reading the slices of one table. Picklable if the merger's function is picklable.

    `schema` is the table schema, meta columns included; `columns` are the columns to return, in order. `stored` is how
    files differ from the schema; `with_keys`: record keys that no file stores are made of other columns. A logged row
    is a delete if the text of `delete_field` equals `delete_marker`. `rule` decides which log blocks count. Its
    `timeline` is set if the instant of each block must be checked (version 6), and `older` for a snapshot of the past:
    a table that was upgraded may have log files of version 6.

    `base_filter` is a condition by which row groups of the base file are skipped: the caller needs only base rows that
    match it, but rows that do not match may be returned too. It reads only columns in `columns`. With
    `base_filter_on_keys`, each of these columns has one value per record key: record key fields, and partition columns
    whose values are in the path.

    `memory_bytes` bounds the logged versions held in memory; more are spilled to files in `spill_folder`, by default
    the system's temporary folder.
    """

    schema: pa.Schema
    columns: tuple[str, ...]
    merger: RecordMerger
    stored: StoredColumns = SAME_COLUMNS
    with_keys: bool = False
    delete_field: str | None = None
    delete_marker: str | None = None
    rule: ScanRule = _ALL_BLOCKS
    base_filter: pc.Expression | None = None
    base_filter_on_keys: bool = False
    spill_folder: str | None = None
    memory_bytes: int = _MEMORY_BYTES

    @property
    def output_schema(self) -> pa.Schema:
        """Schema of the returned rows."""
        return self.schema_of(self.columns)

    def schema_of(self, names: Iterable[str]) -> pa.Schema:
        """Return the schema of these columns, in their order."""
        return pa.schema([self.schema.field(name) for name in names])

    @property
    def merged_columns(self) -> tuple[str, ...]:
        """Columns that the merge reads from both sides: returned columns, record key, ordering fields; in schema order.

        A merge function may read all columns of the schema.
        """
        if self.merger.mode is MergeMode.CUSTOM:
            return tuple(self.schema.names)
        needed = {RECORD_KEY, *self.columns, *self.merger.logged_ordering}
        return tuple(name for name in self.schema.names if name in needed)

    @property
    def delete_columns(self) -> tuple[str, ...]:
        """Columns of logged rows that mark a row as a delete; blocks need not have them."""
        own = () if self.delete_field is None else (self.delete_field,)
        return (IS_DELETED, OPERATION_FIELD, *own)


def slice_read(config: TableConfig, schema: pa.Schema, merger: RecordMerger | None = None) -> SliceRead:
    """Return the options to read file slices of a table with all columns of `schema`, which includes the meta columns.

    `merger` is the table's merger, if the caller already has it. On copy-on-write tables nothing is merged, whatever
    the merge rule is.

    Raises: as `table_merger`, on merge-on-read tables; as `fitted_merger`.
    """
    if merger is None:
        is_merged = config.table_type is TableType.MERGE_ON_READ
        merger = table_merger(config) if is_merged else RecordMerger(MergeMode.COMMIT_TIME_ORDERING)
    merger = fitted_merger(merger, schema, config)
    rule = config.merge_rule
    return SliceRead(
        schema=schema,
        columns=tuple(schema.names),
        merger=merger,
        delete_field=rule.delete_field,
        delete_marker=rule.delete_marker,
        rule=ScanRule(commits=CommitRecords(layout_of(config), history_path=config.history_path)),
    )
