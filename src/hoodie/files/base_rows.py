"""Read the base file of a slice for a merge: its rows in pieces, without the row groups that cannot matter."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.files.base_file import open_base_file
from hoodie.files.slice_read import SliceRead
from hoodie.files.slices import FileSlice
from hoodie.records.change import RECORD_KEY
from hoodie.records.merging.fold import FoldRule, mode_replaces_all
from hoodie.storage import Store


class BaseRows:
    """The base file of one slice; a slice may have none.

    A row group whose statistics rule out `SliceRead.base_filter` is skipped only if the rows that match the condition
    stay the same. That is so in four cases:

    - The slice has no logged versions: rows are returned unchanged, so the rows of the group are not needed.
    - No key of a logged version is in the group's key range: no logged version changes a row of the group.
    - A logged version replaces the stored row whatever the values of the two (commit-time order, whole rows): without
      the stored row, the logged row is returned like an insert, which is also the result of the merge.
    - The condition reads only columns that are equal in all versions of a record (`base_filter_on_keys`), and all log
      rows have these columns: without the stored row, the logged row may be merged wrongly, but it does not match the
      condition either, and the caller filters it out.
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
        """Yield all rows, with the columns to return."""
        return self._rows(self._read.output_schema, None)

    def beside(self, keys: pa.ChunkedArray | None) -> Iterator[pa.Table]:
        """Yield the rows with the columns that a merge needs; `keys` are the logged keys, None if not known."""
        return self._rows(self.schema, keys, is_merged=True)

    def _rows(self, schema: pa.Schema, keys: pa.ChunkedArray | None, *, is_merged: bool = False) -> Iterator[pa.Table]:
        if self._base is None:
            return
        stored = self._read.stored
        # Statistics have the names and the keys of the file.
        may_skip = self._read.base_filter is not None and stored.are_in(self._base) and not stored.makes_keys
        with open_base_file(self._store, self._base) as (parquet, source):
            groups: list[int] | None = None
            if may_skip and _has_types(parquet.schema_arrow, schema):
                groups = self._useful(parquet, source, keys, is_merged=is_merged)
            if groups != []:
                yield from stored.base_rows(
                    self._store, parquet, schema, self._base, row_groups=groups, with_keys=is_merged
                )

    def _useful(
        self, parquet: pq.ParquetFile, source: pa.NativeFile, keys: pa.ChunkedArray | None, *, is_merged: bool
    ) -> list[int]:
        # Not at the top: the module imports pandas, which is slow and which most programs do not need.
        import pyarrow.dataset as ds

        fragment = ds.ParquetFileFormat().make_fragment(source)
        useful = {group.id for group in fragment.subset(self._read.base_filter).row_groups}
        if is_merged and not self._may_skip_named:
            useful |= {number for number in range(parquet.metadata.num_row_groups) if _may_hold(parquet, number, keys)}
        return sorted(useful)


def _has_types(stored: pa.Schema, wanted: pa.Schema) -> bool:
    """Return whether the file has all columns in the table's current types, so that its statistics are usable."""
    return all(field.name in stored.names and stored.field(field.name).type.equals(field.type) for field in wanted)


def _may_hold(parquet: pq.ParquetFile, group: int, keys: pa.ChunkedArray | None) -> bool:
    """Return whether a row group may contain one of the keys, by its key statistics; true if keys are not known."""
    if keys is None:
        return True
    found = parquet.metadata.row_group(group).column(parquet.schema_arrow.names.index(RECORD_KEY))
    if found.path_in_schema != RECORD_KEY or not found.is_stats_set or not found.statistics.has_min_max:
        return True
    low, high = found.statistics.min, found.statistics.max
    return bool(pc.any(pc.and_(pc.greater_equal(keys, low), pc.less_equal(keys, high))).as_py())
