"""Read the base file of a slice for a merge: its rows in pieces, without the row groups that cannot matter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.files.base_file import open_base_file
from hoodie.files.merge_results import POSITION, POSITION_FIELD, MergeResult
from hoodie.files.slice_read import SliceRead
from hoodie.files.slices import FileSlice
from hoodie.files.stored_groups import keys_in_range
from hoodie.records.change import RECORD_KEY
from hoodie.records.merging.fold import FoldRule
from hoodie.storage import Store


class BaseRows:
    """The base file of one slice; a slice may have none.

    A merge whose result has no unchanged base rows reads only the row groups that may contain a logged key.

    A row group whose statistics rule out `SliceRead.base_filter` is skipped only if the rows that match the condition
    stay the same. That is so in five cases:

    - The slice has no logged versions: rows are returned unchanged, so the rows of the group are not needed.
    - No key of a logged version is in the group's key range: no logged version changes a row of the group.
    - A logged version replaces the stored row whatever the values of the two (commit-time order, whole rows): without
      the stored row, the logged row is returned like an insert, which is also the result of the merge.
    - The condition reads only columns that are equal in all versions of a record (`base_filter_on_keys`), and all log
      rows have these columns: without the stored row, the logged row may be merged wrongly, but it does not match the
      condition either, and the caller filters it out.
    - The result is decided for each base row alone (`MergeResult.decides_rows_alone`).
    """

    def __init__(
        self, store: Store, file_slice: FileSlice, read: SliceRead, rule: FoldRule, result: MergeResult
    ) -> None:
        self._store = store
        self._base = file_slice.base_file
        self._read = read
        self._may_skip_named = (
            rule.replaces_all or (read.base_filter_on_keys and not rule.is_partial) or result.decides_rows_alone
        )
        self._result = result
        self.schema = result.base_schema
        """Schema of the rows that take part in a merge."""

    def unmerged(self) -> Iterator[pa.Table]:
        """Yield all rows, with the columns to return."""
        return self._rows(self._read.output_schema, None, is_merged=False)

    def beside(self, keys: pa.ChunkedArray | None) -> Iterator[pa.Table]:
        """Yield the rows with the columns that a merge needs; `keys` are the logged keys, None if not known."""
        return self._rows(self._read.schema_of(self._read.merged_columns), keys, is_merged=True)

    def of_group(self, parquet: pq.ParquetFile, number: int) -> Iterator[pa.Table]:
        """Yield the rows of one row group of the open base file, with the columns that a merge needs."""
        assert self._base is not None
        stored = self._read.stored
        yield from stored.base_rows(self._store, parquet, self.schema, self._base, row_groups=[number], with_keys=True)

    def _rows(self, compared: pa.Schema, keys: pa.ChunkedArray | None, *, is_merged: bool) -> Iterator[pa.Table]:
        """Yield rows; row groups are skipped if the file has the columns `compared` with the table's types."""
        if self._base is None:
            return
        stored = self._read.stored
        with open_base_file(self._store, self._base) as (parquet, source):
            groups: list[int] | None = None
            # Statistics have the names and the keys of the file.
            has_statistics = stored.are_in(self._base) and not stored.makes_keys
            if has_statistics and has_types(parquet.schema_arrow, compared):
                groups = self._useful(parquet, source, keys, is_merged=is_merged)
            if groups == []:
                return
            schema = compared
            if is_merged:
                schema = self._read.schema_of(name for name in self.schema.names if name != POSITION)
            with_keys = is_merged or self._read.with_keys
            rows = stored.base_rows(self._store, parquet, schema, self._base, row_groups=groups, with_keys=with_keys)
            is_numbered = is_merged and self._result.is_numbered
            yield from _numbered(rows, parquet.metadata, groups) if is_numbered else rows

    def _useful(
        self, parquet: pq.ParquetFile, source: pa.NativeFile, keys: pa.ChunkedArray | None, *, is_merged: bool
    ) -> list[int] | None:
        """Return the row groups to read, ascending; None for all."""
        condition = self._read.base_filter
        matching = None if condition is None else matching_row_groups(source, condition)
        if not is_merged:
            return None if matching is None else sorted(matching)
        if matching is None and self._result.has_base_rows:
            return None
        named = row_groups_with_keys(parquet, keys)
        if not self._result.has_base_rows:
            return sorted(named & matching if self._may_skip_named and matching is not None else named)
        assert matching is not None
        return sorted(matching if self._may_skip_named else matching | named)


def _numbered(
    pieces: Iterator[pa.Table], metadata: pq.FileMetaData, groups: Sequence[int] | None
) -> Iterator[pa.Table]:
    """Append the column POSITION to the pieces of the rows of these row groups."""
    counts = np.array([metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)], np.int64)
    firsts = np.cumsum(counts) - counts
    if groups is not None:
        counts, firsts = counts[groups], firsts[groups]
    ends = np.cumsum(counts)
    shifts = firsts - (ends - counts)
    start = 0
    for rows in pieces:
        numbers = np.arange(start, start + rows.num_rows)
        numbers += shifts[np.searchsorted(ends, numbers, side="right")]
        start += rows.num_rows
        yield rows.append_column(POSITION_FIELD, pa.array(numbers))


def has_types(stored: pa.Schema, wanted: pa.Schema) -> bool:
    """Return whether the file has all columns in the table's current types, so that its statistics are usable."""
    return all(
        (place := stored.get_field_index(field.name)) >= 0 and stored.field(place).type.equals(field.type)
        for field in wanted
    )


def matching_row_groups(source: pa.NativeFile, condition: pc.Expression) -> set[int]:
    """Return the row groups of a Parquet file whose statistics allow the condition."""
    # Not at the top: the module imports pandas, which is slow and which most programs do not need.
    import pyarrow.dataset as ds

    fragment = ds.ParquetFileFormat().make_fragment(source)
    return {group.id for group in fragment.subset(condition).row_groups}


def row_groups_with_keys(parquet: pq.ParquetFile, keys: pa.Array | pa.ChunkedArray | None) -> set[int]:
    """Return the row groups that may contain one of the keys, by statistics; all if keys are unknown or not stored."""
    metadata, names = parquet.metadata, parquet.schema_arrow.names
    groups = range(metadata.num_row_groups)
    if keys is None or RECORD_KEY not in names:
        return set(groups)
    place = names.index(RECORD_KEY)
    return {group for group in groups if _may_hold(metadata.row_group(group).column(place), keys)}


def _may_hold(chunk: pq.ColumnChunkMetaData, keys: pa.Array | pa.ChunkedArray) -> bool:
    count = keys_in_range(chunk, keys) if chunk.path_in_schema == RECORD_KEY else None
    return count is None or count > 0
