"""The columns of a table that have statistics (docs/format/metadata.md §3.11, §4.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from hoodie.config import indexes
from hoodie.errors import InstantNotFoundError
from hoodie.files.column_ranges import META_COLUMNS, typed_columns
from hoodie.format.instants.service_metadata import IndexPlan
from hoodie.format.metadata_table.partition_names import BLOOM_FILTERS, COLUMN_STATS, PARTITION_STATS
from hoodie.format.schema.table_schema import with_meta_fields
from hoodie.metadata.kinds.column_stats import ColumnStatsKind, statistics_columns
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.metadata.kinds.partition_stats import PartitionStatsKind
from hoodie.timeline import Action, Instant, State, read_instant
from hoodie.view.parquet_options import asks_and_lacks
from hoodie.view.table_view import TableView

STATISTICS: Final = (COLUMN_STATS, PARTITION_STATS)
"""Names of the metadata partitions with statistics."""
_BUILT: Final = (*STATISTICS, BLOOM_FILTERS)
OUR_BUILD: Final = "hoodie.python.statistics"
"""In the extra metadata of the plan of a build by this library. On disk: do not change."""


def has_statistics(view: TableView) -> bool:
    """Return whether the table has column statistics that this release maintains."""
    return indexed_columns(view) is not None


def indexed_columns(view: TableView) -> tuple[str, ...] | None:
    """Return the columns of the table's statistics; None if it has none that this release maintains. One read."""
    return statistics_columns(view.store) if COLUMN_STATS in view.config.metadata_partitions else None


def written_columns(
    view: TableView,
    schema: pa.Schema,
    properties: Mapping[str, str] | None = None,
    *,
    stored: tuple[str, ...] | None = None,
) -> tuple[str, ...] | None:
    """Return the columns whose ranges a write stores; None if the table has no statistics.

    `schema` has the columns after the write, without meta columns. The columns are those of the index definition, and
    columns that the write adds to the table. A column that the table has and the definition lacks is left out: the
    statistics of its partitions would not cover the earlier files. `properties` are options of the call, for the first
    write of a table. `stored`: `indexed_columns`, if the caller has them.
    """
    stored = indexed_columns(view) if stored is None else stored
    if stored is None:
        wanted = statistics_to_add(view, properties or {})
        return wanted[0].columns if wanted and isinstance(wanted[0], ColumnStatsKind) else None
    known = typed_columns(stored, with_meta_fields(schema))
    found = [name for name in stored if name in known]
    if indexes.COLUMN_STATS_COLUMNS.get(view.config.raw):
        return tuple(found)
    before = {*view.schema().arrow.names, *found}
    free = indexes.COLUMN_STATS_COLUMNS_MAX.get(view.config.raw) + len(META_COLUMNS) - len(found)
    new = [name for name in typed_columns(schema.names, schema) if name not in before]
    return (*found, *new[: max(free, 0)])


def statistics_to_add(view: TableView, properties: Mapping[str, str]) -> tuple[PartitionKind, ...]:
    """Return the statistics partitions to add with the first commit of a table, `column_stats` first.

    Nothing is added to a table that has instants: a build adds statistics to it.
    """
    asked = {**view.config.raw, **properties}
    is_new = not view.timeline.writes().completed().instants and COLUMN_STATS not in view.config.metadata_partitions
    if not (is_new and view.config.version.has_typed_statistics and indexes.COLUMN_STATS_ENABLE.get(asked)):
        return ()
    if view.has_archived_instants():
        return ()
    return statistics_kinds(view, asked)


def statistics_kinds(view: TableView, properties: Mapping[str, str]) -> tuple[PartitionKind, ...]:
    """Return the kinds of new statistics of a table: `column_stats`, and `partition_stats` if it has partitions."""
    columns = chosen_columns(view.schema().arrow, properties)
    kinds: list[PartitionKind] = [ColumnStatsKind(columns)]
    if view.config.partition_fields and indexes.PARTITION_STATS_ENABLE.get(properties):
        kinds.append(PartitionStatsKind())
    return tuple(kinds)


def chosen_columns(schema: pa.Schema, properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the meta columns with statistics, then the listed columns, or the first columns of the schema."""
    listed = indexes.COLUMN_STATS_COLUMNS.get(properties)
    found = list(typed_columns(listed or schema.names, schema))
    if not listed:
        found = found[: indexes.COLUMN_STATS_COLUMNS_MAX.get(properties)]
    return (*META_COLUMNS, *(name for name in found if name not in META_COLUMNS))


def lost_statistics(view: TableView) -> bool:
    """Return whether the table's properties ask for column statistics, and another writer dropped them."""
    return asks_and_lacks(view, view.config.raw, indexes.COLUMN_STATS_ENABLE, COLUMN_STATS)


def ignores_statistics_option(view: TableView, properties: Mapping[str, str]) -> bool:
    """Return whether the options of a call ask for column statistics, which a table with rows gets by a build only."""
    is_known = view.config.version.has_typed_statistics
    return is_known and asks_and_lacks(view, properties, indexes.COLUMN_STATS_ENABLE, COLUMN_STATS)


def built_of_files(view: TableView, instant: Instant) -> tuple[str, ...]:
    """Return the metadata partitions that a pending instant of this library builds from data files; empty for others.

    They are those of statistics, and `bloom_filters`.

    Raises: CorruptFileError if the plan does not parse.
    """
    if instant.action is not Action.INDEXING:
        return ()
    try:
        content = read_instant(view.store, view.layout, instant, State.REQUESTED)
    except InstantNotFoundError:
        return ()
    plan = IndexPlan.parse(content, path=str(instant)) if content else IndexPlan()
    ours = [info for info in plan.index_partition_infos if (info.extra_metadata or {}).get(OUR_BUILD) == "true"]
    return tuple(name for info in ours if (name := info.metadata_partition_path) in _BUILT)


def outdated_statistics(view: TableView) -> frozenset[str]:
    """Return the statistics partitions that writes do not keep up to date, and must drop."""
    named = {*view.config.metadata_partitions} & {COLUMN_STATS, PARTITION_STATS}
    return frozenset(named) if named and not has_statistics(view) else frozenset()
