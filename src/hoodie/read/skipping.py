"""Leave file slices out of a read by the statistics of the metadata table: `partition_stats`, then `column_stats`.

docs/operations/statistics.md. A slice is left out only if the range that covers its base file and all its log files
excludes the condition: a merge takes each value from one of these files. What is not known is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from hoodie.errors import CorruptFileError, MetadataTableMissingError, SchemaMismatchError, UnsupportedError
from hoodie.files.column_ranges import COMMIT_TIME
from hoodie.files.slices import FileSlice
from hoodie.files.stored_columns import StoredColumns
from hoodie.format.filenames import name_of
from hoodie.format.metadata_table.column_stats import (
    ColumnRange,
    StatsRow,
    column_prefix,
    column_stats_key,
    partition_stats_key,
    with_decimals,
)
from hoodie.format.metadata_table.value_types import (
    NULL_TYPE,
    UNTYPED_DECIMAL,
    ValueKind,
    arrow_values,
    holds,
    rescaled,
    value_type_of,
)
from hoodie.format.table.merge_config import MergeMode
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.instants import fills_a_partition, visible_instants
from hoodie.metadata.kinds.column_stats import ColumnStatsKind
from hoodie.metadata.kinds.partition_stats import PartitionStatsKind, lacks_restored_rows
from hoodie.metadata.kinds.statistics import joined
from hoodie.metadata.row_readers import StatsReader
from hoodie.records.range_pruning import Bounds, bounded_columns, can_match
from hoodie.timeline import Action, Instant, Timeline
from hoodie.view.slices import data_table
from hoodie.view.table_view import TableView

if TYPE_CHECKING:
    from hoodie.records.condition import Condition

_LOOKED_UP_MAX: Final = 256
"""Up to this number of rows are looked up by key; otherwise all rows of a column, or of its partitions, are read."""
_PREFIXES_MAX: Final = 64
_PLACE_LENGTH: Final = 24
"""Characters of the key of a file's row that identify the column and the partition."""
_SAME_ORDER_BELOW: Final = "\ue000"
"""Texts of smaller characters have the same order by their UTF-16 units, as the JVM joins them, and by UTF-8 bytes."""
_HIDDEN_BYTES_MIN: Final = 2048
"""Least size of a column whose texts the JVM may count as nulls: footers lack bounds of 4096 bytes, both together."""
_DAY_SECONDS: Final = 86_400
_TICKS: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class SkipRequest:
    """Columns, condition and state of a read. `as_of` is a requested time; `stored`: how files differ from `schema`."""

    view: TableView
    where: Condition
    schema: pa.Schema
    stored: StoredColumns
    as_of: str | None = None


def skip_slices(request: SkipRequest, slices: Sequence[FileSlice]) -> tuple[list[FileSlice], int]:
    """Return the slices that can hold rows matching the condition, and how many the partitions' ranges left out.

    All slices are returned if the table has no statistics of the condition's columns, or if they are damaged: they are
    derived data, and a warning is issued. Reads the rows of the condition's columns.
    """
    kept, config = list(slices), request.view.config
    if not slices or not ColumnStatsKind().is_in(config):
        return kept, 0
    if request.stored.source is not None:
        return kept, 0
    try:
        types = {name: column.type for name, column in bounded_columns(request.where.tree, request.schema).items()}
    except (UnsupportedError, SchemaMismatchError):
        return kept, 0
    types = {name: data_type for name, data_type in types.items() if value_type_of(data_type) is not None}
    if not types:
        return kept, 0
    try:
        timeline = MetadataFolder(request.view.store, config).existing_timeline()
        in_partitions = _in_partitions(request, kept, types, timeline)
        in_files = _in_files(request, in_partitions, types, timeline)
    except (MetadataTableMissingError, CorruptFileError) as error:
        request.view.state.warn(f"no file is skipped by statistics, which makes reads slower: {error}")
        return kept, 0
    return in_files, len(kept) - len(in_partitions)


def _in_partitions(
    request: SkipRequest, slices: list[FileSlice], types: Mapping[str, pa.DataType], timeline: Timeline
) -> list[FileSlice]:
    """Return the slices of partitions that can match. Statistics of partitions describe the newest state only."""
    view = request.view
    is_newest = request.as_of is None and not view.completed_later and not request.stored.names
    if not PartitionStatsKind().is_in(view.config) or not is_newest:
        return slices
    if _is_later(timeline, view.timeline) or _is_ahead(timeline, view.timeline):
        return slices
    if lacks_restored_rows(data_table(view), timeline):
        view.state.warn(
            "no partition is skipped by statistics, which makes reads slower: they were made before a rollback of "
            'another writer, and lack rows that it brought back; build them again with t.index.build("column_stats")'
        )
        return slices
    paths = sorted({file_slice.partition_path for file_slice in slices})
    reader = StatsReader(
        view.store, PartitionStatsKind(), visible_instants(timeline, view.whole_timeline()), version=view.config.version
    )
    names = {*types, COMMIT_TIME}
    keys = {partition_stats_key(name, path) for name in names for path in paths}
    if len(keys) <= _LOOKED_UP_MAX:
        rows = reader.rows_at(keys)
    else:
        rows = reader.rows_below([column_prefix(name) for name in names])
    bounds = {
        name: _bounds([_of_all_files(name, path, rows) for path in paths], data_type, nulls=True)
        for name, data_type in types.items()
    }
    can = can_match(request.where.tree, request.schema, bounds, len(paths))
    kept = {path for path, is_kept in zip(paths, can.tolist(), strict=True) if is_kept}
    return [file_slice for file_slice in slices if file_slice.partition_path in kept]


def _of_all_files(name: str, partition_path: str, rows: Mapping[str, StatsRow]) -> ColumnRange | None:
    """Return the range of a column in a partition, if it covers all files; None if it is not known.

    Every file has ranges of the commit time. A file without a range of another column brought it no values.
    """
    found = rows.get(partition_stats_key(name, partition_path))
    all_files = rows.get(partition_stats_key(COMMIT_TIME, partition_path))
    if found is None or all_files is None or found.range.values < all_files.range.values:
        return None
    return found.range


def _is_later(metadata_timeline: Timeline, data_timeline: Timeline) -> bool:
    """Return whether the metadata table has delta commits that the view does not contain, completed or not.

    Their rows replace those of the partitions that they overwrite, whose older files the view still reads. The view
    contains the instants of its timeline, the archived ones, and those before its last instant that filled a partition.
    """
    last = max((instant.completion_time or "" for instant in data_timeline.completed()), default="")
    start = data_timeline.start or ""

    def is_unknown(found: Instant) -> bool:
        if fills_a_partition(found.requested_time):
            return (found.completion_time or "") > last
        return found.requested_time >= start and data_timeline.get(found.requested_time) is None

    return any(found.action is Action.DELTA_COMMIT and is_unknown(found) for found in metadata_timeline.completed())


def _is_ahead(metadata_timeline: Timeline, data_timeline: Timeline) -> bool:
    """Return whether a compaction of the metadata table may hold rows of commits that the view does not have."""
    compactions = metadata_timeline.completed().filter(lambda instant: instant.action is Action.COMMIT)
    last = compactions.latest()
    if last is None:
        return False
    deltas = metadata_timeline.completed().filter(lambda instant: instant.action is Action.DELTA_COMMIT)
    unseen = (found for found in deltas if not data_timeline.contains_or_before_start(found.requested_time))
    return any((found.completion_time or "") < last.requested_time for found in unseen)


def _in_files(
    request: SkipRequest, slices: list[FileSlice], types: Mapping[str, pa.DataType], timeline: Timeline
) -> list[FileSlice]:
    """Return the slices whose files can match together."""
    if not slices:
        return slices
    view = request.view
    reader = StatsReader(
        view.store, ColumnStatsKind(), visible_instants(timeline, view.whole_timeline()), version=view.config.version
    )
    by_name = _by_name(_rows_of_files(reader, slices, types), types)
    merges_freely = view.config.merge_rule.mode is MergeMode.CUSTOM
    bounds = {}
    for name, data_type in types.items():
        found = [
            _slice_range(name, file_slice, by_name, request.stored, merges_freely=merges_freely)
            for file_slice in slices
        ]
        bounds[name] = _bounds(found, data_type, nulls=False)
    can = can_match(request.where.tree, request.schema, bounds, len(slices))
    return [found for found, is_kept in zip(slices, can.tolist(), strict=True) if is_kept]


def _rows_of_files(
    reader: StatsReader, slices: Sequence[FileSlice], types: Mapping[str, pa.DataType]
) -> Mapping[str, StatsRow]:
    """Read the rows of the columns: of single files if they are few, of few partitions, or of all files."""
    files = [(file_slice.partition_path, name_of(path)) for file_slice in slices for path in file_slice.paths]
    if len(files) * len(types) <= _LOOKED_UP_MAX:
        return reader.rows_at({column_stats_key(name, path, file) for name in types for path, file in files})
    ordered = sorted({path for path, _ in files})
    if len(ordered) * len(types) <= _PREFIXES_MAX:
        return reader.rows_below([partition_stats_key(name, path) for name in types for path in ordered])
    return reader.rows_below([column_prefix(name) for name in types])


def _by_name(rows: Mapping[str, StatsRow], types: Mapping[str, pa.DataType]) -> dict[tuple[str, str], ColumnRange]:
    """Return ranges by the key of the column in its partition, and file name: partitions may have files of one name."""
    decimals = {name for name, data_type in types.items() if pa.types.is_decimal(data_type)}
    return {
        (key[:_PLACE_LENGTH], row.name): with_decimals(row.range) if row.range.column in decimals else row.range
        for key, row in rows.items()
    }


def _slice_range(
    name: str,
    found: FileSlice,
    by_name: Mapping[tuple[str, str], ColumnRange],
    stored: StoredColumns,
    *,
    merges_freely: bool,
) -> ColumnRange | None:
    """Return the range of a column in all files of a slice; None if it is not known.

    A merge function can make values that no file has.
    """
    if found.log_files and merges_freely:
        return None
    times = [log.name.instant_time for log in found.log_files]
    times += [found.base_file.instant_time] if found.base_file is not None else []
    if stored.names and any(stored.names_at(time) for time in times):
        return None
    place = partition_stats_key(name, found.partition_path)
    ranges = [by_name.get((place, name_of(path))) for path in found.paths]
    known = [one for one in ranges if one is not None]
    return reduce(joined, known) if known and len(known) == len(ranges) else None


def _bounds(ranges: Sequence[ColumnRange | None], data_type: pa.DataType, *, nulls: bool) -> Bounds:
    """Return bounds with the column's type; with `nulls`, every place may have nulls.

    A partition may have files that lack the column, which have no ranges: their values are null.
    """
    margin = 0
    if pa.types.is_timestamp(data_type):
        # Spark reads a time without a zone, of the column or the condition, in its session's zone: not known here.
        margin = _DAY_SECONDS * _TICKS[data_type.unit]
    ranges = [None if key_range is None else _in_scale_of(key_range, data_type) for key_range in ranges]
    trusted = [None if found is None or not _is_trusted(found, data_type) else found for found in ranges]
    lows = [None if found is None or found.low is None else _moved(found.low, -margin) for found in trusted]
    highs = [None if found is None or found.high is None else _moved(found.high, margin) for found in trusted]
    return Bounds(
        low=arrow_values(lows, data_type),
        high=arrow_values(highs, data_type),
        is_known=np.array([found is not None for found in trusted], np.bool_),
        may_be_null=np.array([nulls or key_range is None or key_range.nulls > 0 for key_range in ranges], np.bool_),
        may_have_value=np.array(
            [found is None or found.values > found.nulls or _hides_texts(found) for found in ranges], np.bool_
        ),
    )


def _moved(raw: Any, margin: int) -> Any:
    return raw if not margin else min(max(raw + margin, -(2**63)), 2**63 - 1)


def _in_scale_of(found: ColumnRange, data_type: pa.DataType) -> ColumnRange:
    """Return the range with the column's scale if its row has no types: all decimals have one scale there."""
    wanted = value_type_of(data_type)
    if wanted is None or wanted.kind is not ValueKind.DECIMAL:
        return found
    found = with_decimals(found)
    if found.type != UNTYPED_DECIMAL or found.low is None:
        return found
    low, high = rescaled(found.low, found.high, found.type, wanted)
    return replace(found, type=wanted, low=low, high=high)


def _is_trusted(found: ColumnRange, data_type: pa.DataType) -> bool:
    """Return whether the bounds hold all values of the column, whoever wrote them, and fit the column's type."""
    if found.low is None or found.high is None:
        return found.values == found.nulls and not _hides_texts(found)
    if not _has_one_order(found):
        return False
    if found.type is None:
        return False
    if found.type != NULL_TYPE and not holds(found.type, data_type):
        return False
    if found.type.is_floating:
        # The JVM writes 0.0 for row groups whose bounds are not in the footer, because they have NaN.
        return bool(found.low > 0 or found.high < 0)
    return not _hides_texts(found)


def _has_one_order(found: ColumnRange) -> bool:
    """Return whether joining made the same bounds in the order of the JVM, UTF-16 units or signed bytes, as in ours."""
    if isinstance(found.low, bytes):
        return bool(found.low == found.high)
    if isinstance(found.low, str):
        return max(f"{found.low}{found.high}", default="") < _SAME_ORDER_BELOW
    return True


def _hides_texts(found: ColumnRange) -> bool:
    """Return whether some of the nulls may be long texts, which the JVM counts as nulls."""
    is_text = found.type is None or found.type.is_text
    return is_text and found.nulls > 0 and found.uncompressed_bytes >= _HIDDEN_BYTES_MIN
