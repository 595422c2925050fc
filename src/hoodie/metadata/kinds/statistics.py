"""What both kinds of statistics share: their rows in file groups, their build from the data files, and their check."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import pyarrow as pa

from hoodie.engine import TaskContext
from hoodie.files.base_file import open_base_file
from hoodie.files.column_ranges import (
    empty_ranges,
    footer_ranges,
    joined_ranges,
    table_ranges,
    typed_columns,
    unknown_ranges,
)
from hoodie.files.logs.log_scan import stored_blocks
from hoodie.files.slice_read import SliceRead, slice_read
from hoodie.files.slices import BaseFile, FileSlice, LogFile
from hoodie.format.hashes.java_hash import file_group_masks
from hoodie.format.instants.commit_metadata import WriteStat
from hoodie.format.log.data_block import read_data_block
from hoodie.format.metadata_table.column_stats import STATS_FIELD, ColumnRange, StatsRow, order_of, with_decimals
from hoodie.format.metadata_table.metadata_record import RecordType
from hoodie.format.metadata_table.value_types import NULL_TYPE, ValueKind, ValueType, promoted, wider
from hoodie.format.schema.conform import conform
from hoodie.format.schema.table_schema import with_meta_fields
from hoodie.format.table.versions import TableVersion
from hoodie.metadata.data_table import DataTable
from hoodie.metadata.delta_commit import FileGroupDelta, write_base
from hoodie.metadata.kinds.partition_kind import Comparison, Difference, PartitionKind
from hoodie.metadata.paths import file_id_of
from hoodie.metadata.row_readers import StatsReader
from hoodie.storage import Store, StoreSpec, open_store
from hoodie.timeline import Timeline

Ranges = Mapping[str, Mapping[str, tuple[ColumnRange, ...]]]
"""Partition path -> file name -> ranges of its columns."""
_File = BaseFile | tuple[LogFile, ...]
_FILE_BYTES = 64 * 1024
"""Approximate bytes that are read of a base file, to choose an engine."""
_MISSING = "missing range"


class StatisticsKind(PartitionKind):
    """A kind whose rows are ranges of columns."""

    content_field = STATS_FIELD
    has_typed_rows = True
    record_type: RecordType = RecordType.COLUMN_STATS
    too_narrow: str = "wrong range"
    """How a check calls a stored range that does not cover the values."""

    def rows_of_ranges(self, ranges: Ranges) -> dict[str, StatsRow]:
        """Return the rows of these files by key, as a build writes them."""
        raise NotImplementedError

    def name_in_findings(self, row: StatsRow) -> str:
        """Return the name of what a row describes."""
        return row.name


def stats_deltas(
    kind: StatisticsKind,
    file_ids: Sequence[str],
    rows: Mapping[str, StatsRow],
    deleted: Iterable[str] = (),
    *,
    version: TableVersion,
) -> list[FileGroupDelta]:
    """Distribute rows and deleted keys over the file groups, by the hash of their keys; keys ascend in each group.

    `version` is the table's version.
    """
    gone = pa.array(sorted(deleted), pa.string())
    masks = file_group_masks(gone, len(file_ids))
    groups = _grouped_rows(rows, kind.record_type, len(file_ids), version)
    return [
        FileGroupDelta(kind.name, file_id, *group, gone.filter(mask))
        for file_id, group, mask in zip(file_ids, groups, masks, strict=True)
    ]


def _grouped_rows(
    rows: Mapping[str, StatsRow], record_type: RecordType, count: int, version: TableVersion
) -> list[tuple[pa.Array, pa.Array]]:
    """Return the keys, ascending, and the encoded values of each of `count` file groups."""
    names = sorted(rows)
    keys = pa.array(names, pa.string())
    typed = version.has_typed_statistics
    values = pa.array([rows[name].to_bytes(record_type, typed=typed) for name in names], pa.binary())
    return [(keys.filter(mask), values.filter(mask)) for mask in file_group_masks(keys, count)]


@dataclass(frozen=True, slots=True)
class _RangesTask:
    """Callable for `Engine.run`: the ranges of one file; after a log file may come the later ones of its slice."""

    store: StoreSpec
    columns: tuple[str, ...]
    read: SliceRead

    def __call__(self, file: _File, _context: TaskContext) -> tuple[ColumnRange, ...]:
        store = open_store(self.store)
        if isinstance(file, BaseFile):
            return base_file_ranges(store, file, self.columns)
        return log_file_ranges(store, file[0], self.columns, self.read, later=file[1:])


@dataclass(slots=True)
class StatisticsBuild:
    """The ranges of the files of the newest slices. Memory: those ranges, about 300 bytes for each file and column.

    While a partition is written, 1.5 KB for each file and column, as keys are sorted by hash.
    """

    columns: tuple[str, ...]
    is_check: bool = False
    """Whether rows that were rolled back by a later log file, as in version 6, are left out; a build keeps them."""
    files_read: int = 0
    _found: dict[tuple[str, str], tuple[ColumnRange, ...]] = field(default_factory=dict)
    """Partition path and file name -> ranges."""

    @property
    def counts(self) -> Mapping[str, int]:
        """The files and columns with ranges, and the files that were read for them."""
        return {"files": len(self._found), "columns": len(self.columns), "files_read": self.files_read}

    @property
    def ranges(self) -> Ranges:
        """The ranges of each file."""
        found: dict[str, dict[str, tuple[ColumnRange, ...]]] = {}
        for (path, name), several in self._found.items():
            found.setdefault(path, {})[name] = several
        return found

    def catch_up(self, table: DataTable) -> int:
        """Read the files that are new since the last call, and forget those that left; return how many were read."""
        with_later = self.is_check and table.config.version.validates_log_blocks
        files = dict(_files(table.slices(None), with_later=with_later))
        new = {place: file for place, file in files.items() if place not in self._found}
        engine = table.engine_for(
            sum(
                min(file.size_bytes, _FILE_BYTES) if isinstance(file, BaseFile) else file[0].size_bytes
                for file in new.values()
            )
        )
        read = slice_read(table.config, with_meta_fields(table.columns()))
        found = engine.run(_RangesTask(table.store.spec, self.columns, read), list(new.values()))
        self._found = {place: self._found[place] for place in files if place in self._found}
        self._found |= dict(zip(new, found, strict=True))
        self.files_read += len(new)
        return len(new)

    def prepare(self, table: DataTable, built_at: str) -> None:
        """Do nothing: the rows are small."""

    def write(self, table: DataTable, kind: PartitionKind, *, built_at: str) -> list[WriteStat]:
        """Write one base file for each file group of one of the two partitions, also for one without rows."""
        one = cast(StatisticsKind, kind)
        count = kind.file_groups(table.config.raw)
        groups = _grouped_rows(one.rows_of_ranges(self.ranges), one.record_type, count, table.config.version)
        return [
            write_base(table.store, kind.name, file_id_of(kind.file_id_prefix, number), *group, built_at)
            for number, group in enumerate(groups)
        ]


def _files(slices: Sequence[FileSlice], *, with_later: bool) -> Iterator[tuple[tuple[str, str], _File]]:
    """Yield partition path and name of each file, and the file; with a log file the later ones of its slice."""
    for found in slices:
        if found.base_file is not None:
            yield (found.partition_path, found.base_file.name), found.base_file
        for place, file in enumerate(found.log_files):
            yield (found.partition_path, file.name.name), found.log_files[place:] if with_later else (file,)


def compare_statistics(
    kinds: Sequence[PartitionKind], columns: tuple[str, ...], table: DataTable, visible: Timeline
) -> Comparison:
    """Compare stored ranges with those of the files of the newest slices.

    The differences are: a file or a partition that has values of a column and no range of it; a range that does not
    cover the values. A range that is wider than the values is none, because no query loses rows by it. Reads the
    footers of base files, their float columns, and log files. Memory: the ranges.
    """
    build = StatisticsBuild(columns, is_check=True)
    build.catch_up(table)
    several = [cast(StatisticsKind, kind) for kind in kinds]
    differences: list[Difference] = []
    for kind in several:
        rows = kind.rows_of_ranges(build.ranges)
        stored = StatsReader(table.store, kind, visible, version=table.config.version).rows_at(rows)
        for key, row in rows.items():
            differences += _differences(kind.too_narrow, kind.name_in_findings(row), row.range, stored.get(key))
    return Comparison(
        checked={"files": build.files_read, "ranges": sum(map(len, build._found.values()))},
        kinds=(_MISSING, *(kind.too_narrow for kind in several)),
        differences=differences,
    )


def _differences(kind: str, name: str, expected: ColumnRange, stored: StatsRow | None) -> Iterator[Difference]:
    """Yield a difference if no range is stored though there are values, or if a query could skip some of the values.

    A file without rows needs no range: a delete that came before a new column has none of it.
    """
    where = f"{name}, column {expected.column}"
    if stored is None and expected.values:
        yield Difference(kind=_MISSING, key=where, expected=_text(expected))
    elif stored is not None and not _covers(stored.range, expected):
        yield Difference(kind=kind, key=where, expected=_text(expected), found=_text(stored.range))


def _covers(stored: ColumnRange, expected: ColumnRange) -> bool:
    """Return whether no query can skip rows of `expected` by the stored range.

    A row keeps the type that the column had when it was written; its bounds are converted to today's type, as the
    values are. Bounds that are unknown skip nothing.
    """
    has_nulls, has_values = expected.nulls > 0, expected.values > expected.nulls
    if stored.values < expected.values or (has_nulls and not stored.nulls):
        return False
    if has_values and stored.values == stored.nulls:
        return False
    if stored.low is None or stored.high is None:
        return True
    nothing = replace(expected, low=None, high=None)
    try:
        return _bounds(joined(stored, expected)) == _bounds(joined(stored, nothing))
    except TypeError:
        return False  # values of types that have no common order


def _bounds(found: ColumnRange) -> tuple[object, ...]:
    """Return the bounds in a form in which NaN equals NaN."""
    return tuple(None if raw is None else _comparable(order_of(raw)) for raw in (found.low, found.high))


def _comparable(key: object) -> object:
    return (True, 0.0) if isinstance(key, tuple) and key[0] else key


def _text(found: ColumnRange) -> str:
    return f"[{str(found.low)[:60]}, {str(found.high)[:60]}] of {found.values} values with {found.nulls} nulls"


def joined(older: ColumnRange, newer: ColumnRange) -> ColumnRange:
    """Return the range of both, with the wider type; the bounds of the other one are converted to it.

    Files of one partition can have both types in any order, as the ones that a change of the column left as they were.
    """
    if older.type is None or newer.type is None or newer.type == NULL_TYPE:
        return older.joined(newer)
    if newer.type.kind is ValueKind.DECIMAL:
        older = with_decimals(older)
    assert older.type is not None
    wide = wider(older.type, newer.type)
    return _promoted(older, wide).joined(_promoted(newer, wide))


def _promoted(found: ColumnRange, wanted: ValueType) -> ColumnRange:
    assert found.type is not None
    low, high = promoted(found.low, found.high, found.type, wanted)
    return replace(found, type=wanted, low=low, high=high)


def base_file_ranges(store: Store, file: BaseFile, columns: Sequence[str]) -> tuple[ColumnRange, ...]:
    """Return the ranges of a base file, with the types that its columns have in the file.

    Float columns are read, because footers ignore NaN; other columns where a footer has no bounds.
    Memory: one row group of these columns.

    Raises: MissingFileError, CorruptFileError.
    """
    with open_base_file(store, file) as (parquet, _):
        types = typed_columns(columns, parquet.schema_arrow)
        groups = range(parquet.metadata.num_row_groups)
        noted = [unknown_ranges(parquet, number, types, store.uri(file.path)) for number in groups]
        return footer_ranges(parquet.metadata, types, noted)


def log_file_ranges(
    store: Store, file: LogFile, columns: Sequence[str], read: SliceRead, *, later: Sequence[LogFile] = ()
) -> tuple[ColumnRange, ...]:
    """Return the ranges of the rows of a log file, without sizes; a file without rows has ranges without values.

    The rows are those of the file's own blocks, whatever blocks other files of its slice replace; not of blocks that
    one of the `later` files of its slice rolls back, as in version 6. `read.schema` has the types of the columns. A
    column that one of the blocks lacks is left out. Memory: one block.

    Raises: CorruptFileError.
    """
    types = typed_columns(columns, read.schema)
    total: dict[str, ColumnRange] | None = None
    for block in stored_blocks(store, (file, *later), read.rule):
        if not block.block_type.holds_data or block.path != file.path:
            continue
        rows = read_data_block(block.read(store), path=store.uri(block.path))
        stored = set(rows.column_names)
        fields = [field for field in read.schema if field.name in stored]
        found = table_ranges(conform(rows, pa.schema(fields), stored=True), types)
        total = found if total is None else joined_ranges(total, found)
    return empty_ranges(types) if total is None else tuple(total.values())
