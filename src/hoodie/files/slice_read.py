"""How a file slice is read: the columns, the merge rule, the point in time, and what may be skipped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.files.logs.log_scan import ScanRule
from hoodie.format.avro.schema import OPERATION_FIELD
from hoodie.format.table.merge_config import MergeMode, PartialUpdateMode
from hoodie.records.change import IS_DELETED, RECORD_KEY
from hoodie.records.merging.fold import FoldRule
from hoodie.records.merging.merge import RecordMerger
from hoodie.timeline import Timeline

_MEMORY_BYTES: Final = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRead:
    """How the slices of one table are read. Picklable when the merger's function is.

    `schema` is the table's, meta columns included; `columns` are the ones to return, in order. A logged row is a delete
    when the text of `delete_field` equals `delete_marker`. `latest_instant` (inclusive): blocks of later instants do
    not count. `timeline` is given where the writers of blocks must be checked one by one (version 6), else None.

    `base_filter` is a condition that base rows must meet to be of use, for row groups to be skipped by; rows that do
    not meet it may come out all the same. It reads columns among `columns` only. With `base_filter_on_keys` all of them
    have one value for each record key: record key fields, and partition columns where the path tells their values.

    `memory_bytes` bounds the logged rows held in memory; what is more goes to files in `spill_folder`, by default the
    system's temporary folder.
    """

    schema: pa.Schema
    columns: tuple[str, ...]
    merger: RecordMerger
    delete_field: str | None = None
    delete_marker: str | None = None
    partial_update_mode: PartialUpdateMode | None = None
    unavailable_value: str | None = None
    latest_instant: str | None = None
    timeline: Timeline | None = None
    base_filter: pc.Expression | None = None
    base_filter_on_keys: bool = False
    spill_folder: str | None = None
    memory_bytes: int = _MEMORY_BYTES

    @property
    def output_schema(self) -> pa.Schema:
        """Schema of the rows that come out."""
        return pa.schema([self.schema.field(name) for name in self.columns])

    @property
    def scan_rule(self) -> ScanRule:
        """Which blocks count."""
        return ScanRule(latest_instant=self.latest_instant, timeline=self.timeline)

    @property
    def fold_rule(self) -> FoldRule:
        """Which version of a record counts, blocks with some of the columns left aside."""
        return FoldRule(self.merger, self.partial_update_mode, self.unavailable_value)

    @property
    def merged_columns(self) -> tuple[str, ...]:
        """Columns that the merge needs of both sides: the ones to return, the key, and what decides; schema order.

        A merge function may look at all of them.
        """
        if self.merger.mode is MergeMode.CUSTOM:
            return tuple(self.schema.names)
        needed = {RECORD_KEY, *self.columns, *self.merger.ordering_columns}
        return tuple(name for name in self.schema.names if name in needed)

    @property
    def delete_columns(self) -> tuple[str, ...]:
        """Columns of logged rows that say whether the row is a delete; blocks need not have them."""
        own = () if self.delete_field is None else (self.delete_field,)
        return (IS_DELETED, OPERATION_FIELD, *own)
