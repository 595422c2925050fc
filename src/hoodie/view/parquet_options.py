"""How base files of a table are written: compression, statistics, and the bloom filters that its index reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hoodie.config import Option, indexes, writes
from hoodie.files.base_file import ParquetOptions
from hoodie.format.hashes.bloom import BloomFilterType, FilterOptions
from hoodie.format.metadata_table.partition_names import BLOOM_FILTERS
from hoodie.metadata.kinds.bloom_filters import BloomFiltersKind
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.view.table_view import TableView


def asks_and_lacks(view: TableView, properties: Mapping[str, str], option: Option[bool], partition: str) -> bool:
    """Return whether `properties` set the option, and a table with rows has no such partition, also not in a build.

    The archive is looked at only if the active timeline has no write.
    """
    named = {*view.config.metadata_partitions, *view.config.metadata_partitions_inflight}
    if option.key not in properties or not option.get(properties) or partition in named:
        return False
    return bool(view.timeline.writes().completed().instants) or view.has_archived_instants()


_BLOOM_INDEXES: Final = frozenset({"bloom", "global_bloom"})
"""Values of `hoodie.index.type`, in lower case, whose look-ups read bloom filters."""


def parquet_options(
    view: TableView, properties: Mapping[str, str], range_columns: tuple[str, ...] | None
) -> ParquetOptions:
    """Return how a write or a service with these effective options writes base files.

    Raises: InvalidConfigError if an option does not parse.
    """
    codec = writes.CODEC.get(properties)
    return ParquetOptions(
        codec="none" if codec == "uncompressed" else codec,
        range_columns=range_columns,
        bloom=filter_options(properties) if has_true_filters(view, properties) else None,
    )


def has_true_filters(view: TableView, properties: Mapping[str, str]) -> bool:
    """Return whether base files get filters of their keys: an index of the table, or of this call, reads them."""
    named = {*view.config.metadata_partitions, *view.config.metadata_partitions_inflight}
    is_read = indexes.INDEX_TYPE.get(properties, view.config.raw) in _BLOOM_INDEXES
    return is_read or BLOOM_FILTERS in named or bool(filters_to_add(view, properties))


def filters_to_add(view: TableView, properties: Mapping[str, str]) -> tuple[PartitionKind, ...]:
    """Return the partition `bloom_filters` if it is to be added with the first commit of a table.

    Nothing is added to a table that has instants: a build adds the filters of its files.
    """
    named = {*view.config.metadata_partitions, *view.config.metadata_partitions_inflight}
    wanted = indexes.BLOOM_FILTERS_ENABLE.get(properties, view.config.raw) and BLOOM_FILTERS not in named
    is_new = not view.timeline.writes().completed().instants
    if not (wanted and is_new and view.config.version.has_known_metadata_table) or view.has_archived_instants():
        return ()
    return (BloomFiltersKind(),)


def lost_filters(view: TableView) -> bool:
    """Return whether the table's properties ask for the partition `bloom_filters`, and it was dropped or never built.

    A restore of the JVM drops it, as does every change that drops the whole metadata table.
    """
    return _asks_and_lacks(view, view.config.raw)


def ignores_filters_option(view: TableView, properties: Mapping[str, str]) -> bool:
    """Return whether the options of a call ask for that partition, which a table with rows gets by a build only."""
    return _asks_and_lacks(view, properties)


def _asks_and_lacks(view: TableView, properties: Mapping[str, str]) -> bool:
    is_known = view.config.version.has_known_metadata_table
    return is_known and asks_and_lacks(view, properties, indexes.BLOOM_FILTERS_ENABLE, BLOOM_FILTERS)


def filter_options(properties: Mapping[str, str]) -> FilterOptions:
    """Return the options of bloom filters. Raises: InvalidConfigError if an option does not parse."""
    return FilterOptions(
        filter_type=BloomFilterType(indexes.BLOOM_FILTER_TYPE.get(properties).upper()),
        entries=indexes.BLOOM_ENTRIES.get(properties),
        false_positive_rate=indexes.BLOOM_RATE.get(properties),
        entries_max=indexes.BLOOM_ENTRIES_MAX.get(properties),
    )
