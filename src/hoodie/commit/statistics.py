"""The column statistics of a commit: the ranges that its tasks noted, and the columns that the table indexes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from hoodie.files.slice_read import slice_read
from hoodie.files.slices import BaseFile, LogFile
from hoodie.files.stored_ranges import base_file_ranges, log_file_ranges
from hoodie.format.filenames import BaseFileName, LogFileName, name_of
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteOperation, WriteStat
from hoodie.format.metadata_table.column_stats import ColumnRange
from hoodie.format.metadata_table.partition_names import COLUMN_STATS
from hoodie.format.schema.table_schema import avro_to_arrow, with_meta_fields, without_meta_fields
from hoodie.metadata.definitions import write_definition
from hoodie.metadata.kinds.column_stats import ColumnStatsKind
from hoodie.view.slices import list_slices
from hoodie.view.statistics import has_statistics, indexed_columns, written_columns
from hoodie.view.table_view import TableView

Ranges = Mapping[str, Mapping[str, tuple[ColumnRange, ...]]]
"""Partition path -> file name -> ranges of its columns."""
_REPLACING: Final = frozenset(
    operation.value
    for operation in (
        WriteOperation.INSERT_OVERWRITE,
        WriteOperation.INSERT_OVERWRITE_TABLE,
        WriteOperation.DELETE_PARTITION,
    )
)


def commit_ranges(now: TableView, metadata: CommitMetadata) -> Ranges:
    """Return the ranges of the commit's files; empty if the table has no column statistics.

    Call it under the table's lock. A file whose ranges its task did not note is read: its write began before the table
    had statistics, or had them for these columns. Columns that the commit adds are added to the index definition.

    Raises: as `base_file_ranges`, `log_file_ranges`.
    """
    stored = indexed_columns(now)
    if stored is None:
        return {}
    schema = _schema(now, metadata)
    columns = written_columns(now, schema, stored=stored) or ()
    _define(now, stored, columns)
    known = frozenset(columns)
    found: dict[str, dict[str, tuple[ColumnRange, ...]]] = {}
    for stat in metadata.write_stats():
        name = name_of(stat.path or "")
        wanted = tuple(range_ for range_ in _ranges(now, stat, columns, schema) if range_.column in known)
        found.setdefault(stat.partition_path or "", {})[name] = wanted
    return found


def replaced_partitions(now: TableView, metadata: CommitMetadata) -> frozenset[str]:
    """Return the partitions of which the commit replaces all file groups."""
    replaced = metadata.partition_to_replace_file_ids or {}
    if metadata.operation_type not in _REPLACING or not has_statistics(now):
        return frozenset()
    left = {
        found.partition_path
        for found in list_slices(now, tuple(replaced))
        if found.file_id not in replaced[found.partition_path]
    }
    return frozenset(replaced) - left


def _ranges(now: TableView, stat: WriteStat, columns: tuple[str, ...], schema: pa.Schema) -> tuple[ColumnRange, ...]:
    noted = stat.column_ranges
    is_whole = noted is not None and (stat.is_log_append or {*columns} <= {found.column for found in noted})
    if noted is not None and is_whole:
        return noted
    path, name = stat.partition_path or "", name_of(stat.path or "")
    base, log = BaseFileName.parse(name), LogFileName.parse(name)
    if base is not None:
        file = BaseFile(path, name, base.file_id, base.instant_time, stat.file_size_bytes)
        return base_file_ranges(now.store, file, columns)
    assert log is not None, name
    read = slice_read(now.config, with_meta_fields(schema))
    return log_file_ranges(now.store, LogFile(path, log, stat.file_size_bytes), columns, read)


def _schema(now: TableView, metadata: CommitMetadata) -> pa.Schema:
    """Return the table's columns after the commit, without meta columns."""
    if metadata.schema is None:
        return now.schema().arrow
    return without_meta_fields(avro_to_arrow(metadata.schema, path=f"{now.store.uri('')}: the commit's schema"))


def _define(now: TableView, stored: tuple[str, ...], columns: tuple[str, ...]) -> None:
    """Add new columns to the index definition, before rows of them are written; no column leaves it."""
    before = set(stored)
    new = [name for name in columns if name not in before]
    if new:
        now.held_lock.ensure_held()
        write_definition(now.store, COLUMN_STATS, ColumnStatsKind((*stored, *new)).definition)
