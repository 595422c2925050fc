"""The kind `column_stats`: the range of each column in each file (docs/format/metadata.md §3.11, §4.4).

The key of a row contains the file's name, so that a row never changes. It is deleted when its file is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from hoodie.config import indexes
from hoodie.errors import CorruptFileError, SchemaMismatchError
from hoodie.files.column_ranges import META_COLUMNS, leaf_type, typed_columns
from hoodie.files.slice_read import slice_read
from hoodie.files.slices import BaseFile, written_file
from hoodie.format.filenames import name_of
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteStat
from hoodie.format.metadata_table.column_stats import ColumnRange, StatsRow, column_prefix, column_stats_key
from hoodie.format.metadata_table.partition_names import COLUMN_STATS
from hoodie.format.metadata_table.value_types import is_read_without_type
from hoodie.format.schema.table_schema import META_FIELDS, avro_to_arrow, with_meta_fields, without_meta_fields
from hoodie.format.table.call_options import effective_options
from hoodie.format.table.versions import TableVersion
from hoodie.metadata.changes import MetadataChanges
from hoodie.metadata.data_table import DataTable
from hoodie.metadata.definitions import read_definition, write_definitions
from hoodie.metadata.delta_commit import FileGroupDelta
from hoodie.metadata.kinds.partition_kind import Comparison, PartitionKind
from hoodie.metadata.kinds.statistics import (
    Ranges,
    StatisticsBuild,
    StatisticsKind,
    base_file_ranges,
    compare_statistics,
    log_file_ranges,
    stats_deltas,
)
from hoodie.metadata.row_readers import StatsReader
from hoodie.storage import Store
from hoodie.timeline import Timeline

_TYPED: Final = "V2"
_UNTYPED: Final = "V1"
"""Index versions: rows with the type of their values, and older rows without. On disk: do not change."""
_COLUMNS: Final = "sourceFields"


@dataclass(frozen=True, slots=True)
class ColumnStatsKind(StatisticsKind):
    """The kind `column_stats`; `columns` and `is_typed` are those of a new partition, meta columns first."""

    columns: tuple[str, ...] = ()
    is_typed: bool = True
    is_defined: bool = True
    """Whether an index definition names the columns; readers of version 6 expect all columns."""
    name = COLUMN_STATS
    file_id_prefix = "col-stats-"
    groups_option = indexes.COLUMN_STATS_FILE_GROUPS
    subject = "column statistics"
    switch = indexes.COLUMN_STATS_ENABLE
    readers_need_definition = True
    differs = "statistics-differ"
    lost_note = (
        "the column statistics are missing, so reads open more files: another writer dropped them, or a rollback or a "
        "restore that died; build them with "
        't.index.build("column_stats"), or give them up with t.index.drop("column_stats")'
    )
    ignored_note = (
        f"{indexes.COLUMN_STATS_ENABLE.key}=true adds column statistics to a table without rows only, and this table "
        'has rows: build them with t.index.build("column_stats")'
    )

    @property
    def definition(self) -> Mapping[str, Any] | None:
        """The index definition, as the JVM stores it; readers learn the columns from it."""
        if not self.is_defined:
            return None
        return {
            "indexName": self.name,
            "indexType": self.name,
            "indexFunction": self.name,
            _COLUMNS: list(self.columns),
            "indexOptions": {},
            "version": _TYPED if self.is_typed else _UNTYPED,
        }

    def wanted(self, table: DataTable, options: Mapping[str, str]) -> ColumnStatsKind | None:
        """Return the kind with the columns that the options choose (see `PartitionKind.wanted`)."""
        is_wanted = PartitionKind.wanted(self, table, options) is not None and not _is_misread(table)
        return _chosen(table, options) if is_wanted else None

    def is_outdated(self, table: DataTable) -> bool:
        """Return whether this release does not maintain the index definition."""
        return maintained_columns(table) is None

    def collect(self, table: DataTable, commit: CommitMetadata, ahead: Any) -> Ranges:
        """Return the ranges of the commit's files; empty if the table has no column statistics.

        A file whose ranges its task did not note is read: its write began before the table had statistics, or had them
        for these columns. Columns that the commit adds are added to the index definition.

        Raises: as `base_file_ranges`, `log_file_ranges`.
        """
        stored = indexed_columns(table)
        if stored is None:
            return {}
        schema = _columns_after(table, commit)
        columns = written_columns(table, schema, stored=stored) or ()
        _define(table, stored, columns)
        known = frozenset(columns)
        found: dict[str, dict[str, tuple[ColumnRange, ...]]] = {}
        for stat in commit.write_stats():
            name = name_of(stat.path or "")
            wanted = tuple(range_ for range_ in _ranges(table, stat, columns, schema) if range_.column in known)
            found.setdefault(stat.partition_path or "", {})[name] = wanted
        return found

    def rows_of(self, changes: MetadataChanges, table: DataTable, visible: Timeline) -> Sequence[FileGroupDelta]:
        """Make a row for each column of each new file, and delete those of deleted files."""
        rows = self.rows_of_ranges(changes.collected.get(self.name) or {})
        version = table.config.version
        columns = (maintained_columns(table) or ()) if changes.files_deleted else ()
        deleted = {
            column_stats_key(column, path, name)
            for path, names in changes.files_deleted.items()
            for column in columns
            for name in names
            if name not in changes.files_added.get(path, ())
        }
        if not rows and not deleted:
            return ()
        file_ids = StatsReader(table.store, self, visible, version=version).file_ids
        return stats_deltas(self, file_ids, rows, deleted, version=version)

    def rows_of_ranges(self, ranges: Ranges) -> dict[str, StatsRow]:
        """Return a row for each column of each file, by key."""
        return {
            column_stats_key(found.column, path, name): StatsRow(name=name, range=found)
            for path, files in ranges.items()
            for name, several in files.items()
            for found in several
        }

    def settings(self, table: DataTable) -> tuple[str, ...] | None:
        """Return the columns that an earlier build was given; None if they are the default.

        The default of an earlier schema is the beginning of today's. Columns that the table lacks now are left out.
        """
        try:
            stored = indexed_columns(table)
        except CorruptFileError:
            return None
        default = _chosen(table, table.config.raw).columns
        if stored is None or default[: len(stored)] == stored:
            return None
        known = typed_columns(stored, table.columns())
        return tuple(name for name in stored if name in known and name not in META_COLUMNS) or None

    def with_columns(self, table: DataTable, columns: Sequence[str] | None) -> ColumnStatsKind:
        """Return the kind with these columns, by default those of the options, or those of an earlier build.

        Raises: SchemaMismatchError if the table does not have one of the columns, or its type or its history allow no
            statistics.
        """
        if _is_misread(table):
            names = ", ".join(sorted(table.moved_columns()))
            raise SchemaMismatchError(
                f"{table.store.uri('')}: older files have the columns {names} under other names: "
                "Hudi 0.15 would skip these files by statistics of columns; build none in this version"
            )
        options = table.config.raw
        if columns is None and not indexes.COLUMN_STATS_COLUMNS.get(options):
            columns = self.settings(table)
        if columns is None:
            return _chosen(table, options)
        chosen = _chosen(table, {**options, indexes.COLUMN_STATS_COLUMNS.key: ",".join(columns)})
        _check_columns([name for name in columns if name not in chosen.columns], table)
        return chosen

    def build(self, followers: Sequence[PartitionKind], held: ExitStack, table: DataTable) -> StatisticsBuild:
        """Read the footers of the base files and the rows of the log files of the newest file slices."""
        return StatisticsBuild(self.columns)

    def compare(self, followers: Sequence[PartitionKind], table: DataTable, visible: Timeline) -> Comparison:
        """Compare the ranges of all files of the newest slices, and of their partitions, with the files."""
        columns, version = indexed_columns(table) or (), table.config.version
        if not _names_columns(table):
            # Options of the writers name the columns, and are not stored.
            reader = StatsReader(table.store, self, visible, version=version)
            stored = {row.range.column for row in reader.rows_below(list(map(column_prefix, columns))).values()}
            columns = tuple(name for name in columns if name in stored)
        return compare_statistics((self, *followers), columns, table, visible)


def statistics_columns(store: Store, version: TableVersion) -> tuple[str, ...] | None:
    """Return the columns that have statistics; None if the table has no statistics that this release maintains.

    `version` is the table's version. Raises: CorruptFileError if the index definitions do not parse.
    """
    definition = read_definition(store, COLUMN_STATS)
    # Hudi 1.0 stores no index version.
    maintained = (_TYPED,) if version.has_typed_statistics else (_UNTYPED, None)
    if definition is None or definition.get("version") not in maintained:
        return None
    columns = definition.get(_COLUMNS)
    return tuple(map(str, columns)) if isinstance(columns, list) else None


def maintained_columns(table: DataTable) -> tuple[str, ...] | None:
    """Return the same for a table, also in version 6: all columns, unless a later release stored a definition."""
    if not _names_columns(table):
        return _every_column(_in_files(table, table.columns()), table.config.raw)
    return statistics_columns(table.store, table.config.version)


def indexed_columns(table: DataTable) -> tuple[str, ...] | None:
    """Return the columns of the table's statistics; None if it has none that this release maintains. One read."""
    if COLUMN_STATS not in table.config.metadata_partitions:
        return None
    return maintained_columns(table)


def written_columns(
    table: DataTable,
    schema: pa.Schema,
    options: Mapping[str, str] | None = None,
    *,
    stored: tuple[str, ...] | None = None,
) -> tuple[str, ...] | None:
    """Return the columns whose ranges a write stores; None if the table has no statistics.

    `schema` has the columns after the write, without meta columns. The columns are those of the index definition, and
    columns that the write adds to the table. A column that the table has and the definition lacks is left out: the
    statistics of its partitions would not cover the earlier files. So is a renamed column. `options` are those of the
    call, for the first write of a table. `stored`: `indexed_columns`, if the caller has them.
    """
    schema = _in_files(table, schema)
    stored = indexed_columns(table) if stored is None else stored
    if stored is None:
        added = ColumnStatsKind().wanted(table, effective_options(table.config, options or {}))
        return None if added is None else added.columns
    if not _names_columns(table):
        return _every_column(schema, table.config.raw)
    known = typed_columns(stored, with_meta_fields(schema))
    found = [name for name in stored if name in known]
    if indexes.COLUMN_STATS_COLUMNS.get(table.config.raw):
        return tuple(found)
    earlier = {*_in_files(table, table.columns()).names}
    if earlier - {*schema.names}:  # columns were renamed or dropped, so that a new name may be an old column
        return tuple(found)
    before = {*table.columns().names, *found}
    free = indexes.COLUMN_STATS_COLUMNS_MAX.get(table.config.raw) + len(META_COLUMNS) - len(found)
    new = [name for name in _indexable(schema.names, schema, table.config.version) if name not in before]
    return (*found, *new[: max(free, 0)])


def _chosen(table: DataTable, options: Mapping[str, str]) -> ColumnStatsKind:
    """Return the kind with the meta columns, then the listed columns, or the first columns of the table."""
    version, schema = table.config.version, _in_files(table, table.columns())
    if not version.has_index_definitions:
        return ColumnStatsKind(_every_column(schema, options), is_typed=False, is_defined=False)
    listed = indexes.COLUMN_STATS_COLUMNS.get(options)
    found = _indexable(listed or schema.names, schema, version)
    if not listed:
        found = found[: indexes.COLUMN_STATS_COLUMNS_MAX.get(options)]
    columns = (*META_COLUMNS, *(name for name in found if name not in META_COLUMNS))
    return ColumnStatsKind(columns, version.has_typed_statistics)


def _check_columns(unused: Sequence[str], table: DataTable) -> None:
    """Refuse columns that a build was given and that get no statistics. Those of the partition path need none.

    Raises: SchemaMismatchError.
    """
    schema, where = table.columns(), table.store.uri("")
    for name in unused:
        if name in table.moved_columns():
            raise SchemaMismatchError(
                f"column {name!r} of {where}: older files have it under another name, or another column under this "
                "one: JVM Hudi would skip files by its statistics; omit it"
            )
        found = leaf_type(name, schema)
        if found is None:
            raise SchemaMismatchError(f"column {name!r}: expected a column of {where}: {', '.join(schema.names)}")
        if name not in table.config.path_fields:
            raise SchemaMismatchError(
                f"column {name!r} of {where} has the type {found}, whose values have no statistics in tables of "
                f"version {table.config.version.value}: omit it"
            )


def _in_files(table: DataTable, schema: pa.Schema) -> pa.Schema:
    """Return the columns that all data files have; those of the partition path need no statistics.

    JVM Hudi finds ranges by the names of today, and takes a file without a range for a file without values: columns
    that older files have under another name get none.
    """
    others = {*table.config.path_fields, *table.moved_columns()}
    return pa.schema([child for child in schema if child.name not in others])


def _is_misread(table: DataTable) -> bool:
    """Return whether statistics would mislead Hudi 0.15, which expects ranges of every column."""
    return not table.config.version.has_index_definitions and bool(table.moved_columns())


def _names_columns(table: DataTable) -> bool:
    """Return whether an index definition names the columns; in version 6 only a later release stores one."""
    return table.config.version.has_index_definitions or read_definition(table.store, COLUMN_STATS) is not None


def _every_column(schema: pa.Schema, options: Mapping[str, str]) -> tuple[str, ...]:
    """Return all meta columns, then the listed columns, or all: Hudi 0.15 takes a column without a range for nulls."""
    listed = indexes.COLUMN_STATS_COLUMNS.get(options)
    return (*META_FIELDS, *typed_columns(listed or schema.names, schema))


def _indexable(columns: Iterable[str], schema: pa.Schema, version: TableVersion) -> list[str]:
    """Return the columns whose type has statistics in tables of the version, which JVM readers understand."""
    types = typed_columns(columns, schema)
    return [name for name, found in types.items() if version.has_typed_statistics or is_read_without_type(found)]


def _ranges(table: DataTable, stat: WriteStat, columns: tuple[str, ...], schema: pa.Schema) -> tuple[ColumnRange, ...]:
    noted = stat.column_ranges
    is_whole = noted is not None and (stat.is_log_append or {*columns} <= {found.column for found in noted})
    if noted is not None and is_whole:
        return noted
    file = written_file(stat)
    if isinstance(file, BaseFile):
        return base_file_ranges(table.store, file, columns)
    assert file is not None, stat.path
    return log_file_ranges(table.store, file, columns, slice_read(table.config, with_meta_fields(schema)))


def _columns_after(table: DataTable, commit: CommitMetadata) -> pa.Schema:
    """Return the table's columns after the commit, without meta columns."""
    if commit.schema is None:
        return table.columns()
    return without_meta_fields(avro_to_arrow(commit.schema, path=f"{table.store.uri('')}: the commit's schema"))


def _define(table: DataTable, stored: tuple[str, ...], columns: tuple[str, ...]) -> None:
    """Add new columns to the index definition, before rows of them are written; no column leaves it."""
    before = set(stored)
    new = [name for name in columns if name not in before]
    if new and _names_columns(table):
        table.ensure_held()
        definition = ColumnStatsKind((*stored, *new), table.config.version.has_typed_statistics).definition
        assert definition is not None
        write_definitions(table.store, {COLUMN_STATS: definition})
