"""The base file's side of a merge: its rows in pieces, without the row groups that are certainly of no use."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.files.base_file import parquet_file, stored_rows
from hoodie.files.slice_read import SliceRead
from hoodie.files.slices import FileSlice
from hoodie.records.change import RECORD_KEY
from hoodie.records.merging.fold import FoldRule, mode_replaces_all
from hoodie.storage import Store


class BaseRows:
    """The base file of one slice; a slice may have none.

    A row group whose statistics rule out `SliceRead.base_filter` is skipped only where that changes no row that meets
    the condition:

    - No log entry: the rows come out as they are, so that those of the group are not missed.
    - No key of a log entry lies in the group's key range: the same, the entries meet none of its rows.
    - A logged version replaces the stored one whatever their values (commit-time order, whole rows): who asks gets the
      logged row as if it were an insert, which is what the merge makes of the two.
    - The condition is on columns that are the same in all versions of a record (`base_filter_on_keys`), and log rows
      have all of them: what a logged row becomes without its stored one does not matter, since it cannot meet the
      condition either, and is left out by who asks.
    """

    def __init__(self, store: Store, file_slice: FileSlice, read: SliceRead, rule: FoldRule) -> None:
        self._store = store
        self._base = file_slice.base_file
        self._read = read
        skips_named = mode_replaces_all(rule) or (read.base_filter_on_keys and not rule.is_partial)
        self._may_skip_named = skips_named
        self.schema = pa.schema([read.schema.field(name) for name in read.merged_columns])
        """Schema of the rows that take part in a merge."""

    def unmerged(self) -> Iterator[pa.Table]:
        """All rows, with the columns to return."""
        return self._rows(self._read.output_schema, None)

    def beside(self, keys: pa.ChunkedArray | None) -> Iterator[pa.Table]:
        """The rows with the columns that a merge needs; `keys` are those of the log entries, None if not known."""
        return self._rows(self.schema, keys, is_merged=True)

    def _rows(self, schema: pa.Schema, keys: pa.ChunkedArray | None, *, is_merged: bool = False) -> Iterator[pa.Table]:
        if self._base is None:
            return
        path = self._base.path
        with self._store.open_input(path) as source:
            parquet = parquet_file(self._store, path, source)
            groups: list[int] | None = None
            if self._read.base_filter is not None and _has_types(parquet.schema_arrow, schema):
                groups = self._useful(parquet, source, keys, is_merged=is_merged)
            if groups != []:
                yield from stored_rows(parquet, schema, where=self._store.uri(path), row_groups=groups)

    def _useful(
        self, parquet: pq.ParquetFile, source: pa.NativeFile, keys: pa.ChunkedArray | None, *, is_merged: bool
    ) -> list[int]:
        # Not at the top: the module imports pandas, which is slow and which most programs do without.
        import pyarrow.dataset as ds

        fragment = ds.ParquetFileFormat().make_fragment(source)
        useful = {group.id for group in fragment.subset(self._read.base_filter).row_groups}
        if is_merged and not self._may_skip_named:
            useful |= {number for number in range(parquet.metadata.num_row_groups) if _may_hold(parquet, number, keys)}
        return sorted(useful)


def _has_types(stored: pa.Schema, wanted: pa.Schema) -> bool:
    """Whether the file's statistics fit the condition: it has all columns in the table's current types."""
    return all(field.name in stored.names and stored.field(field.name).type.equals(field.type) for field in wanted)


def _may_hold(parquet: pq.ParquetFile, group: int, keys: pa.ChunkedArray | None) -> bool:
    """Whether one of the keys may be in a row group, by the statistics of the key column; keys not known may be."""
    if keys is None:
        return True
    found = parquet.metadata.row_group(group).column(parquet.schema_arrow.names.index(RECORD_KEY))
    if found.path_in_schema != RECORD_KEY or not found.is_stats_set or not found.statistics.has_min_max:
        return True
    low, high = found.statistics.min, found.statistics.max
    return bool(pc.any(pc.and_(pc.greater_equal(keys, low), pc.less_equal(keys, high))).as_py())
