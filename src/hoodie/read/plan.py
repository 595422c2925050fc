"""Plan a read: the file slices as of an instant, pruned by the partitions and keys that the condition allows.

Tables that this release would read incorrectly are refused here. `explain` counts the slices that a plan leaves out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.commit.writable import target_of_restore
from hoodie.display import Result, size_text
from hoodie.errors import HoodieError, InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.files.merged_slice import SliceRead
from hoodie.files.slice_read import slice_read
from hoodie.files.slices import BaseFile, FileSlice
from hoodie.files.stored_columns import SAME_COLUMNS, StoredColumns
from hoodie.format.schema.arrow_types import type_at
from hoodie.format.schema.table_schema import with_meta_fields
from hoodie.format.table.table_config import BaseFileFormat
from hoodie.index import INDEXES, rows_follow_columns
from hoodie.metadata.kinds.files import WantedPartitions
from hoodie.read.chosen_columns import WHOLE, Path, chosen_columns, returned_schema
from hoodie.read.key_holders import FILTERED_KEYS_MAX, BucketHolders, KeyHolders, holders_of, holders_where
from hoodie.read.partition_pruning import PartitionPruning
from hoodie.read.times import When, view_as_of
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.records.keys.key_generator import table_key_generator
from hoodie.records.keys.partition_path import DEFAULT_PARTITION
from hoodie.records.merging.merge import check_defaults
from hoodie.timeline import Action
from hoodie.view.ahead import ask_for_columns
from hoodie.view.columns import stored_columns
from hoodie.view.slices import list_slices
from hoodie.view.still_there import check_still_there
from hoodie.view.table_view import TableView

if TYPE_CHECKING:
    from hoodie.records.condition import Condition

SNAPSHOT = "snapshot"
READ_OPTIMIZED = "read_optimized"
COMMIT_TIME = "_hoodie_commit_time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Numbers of file slices that a condition left out of a read, in the order in which they are left out."""

    by_record_index: int = 0
    by_partition_path: int = 0
    by_bucket: int = 0
    by_partition_stats: int = 0
    by_column_stats: int = 0


_SKIPPED_BY: Final = MappingProxyType(
    {
        "skipped_by_record_index": "by the keys in the record index",
        "skipped_by_partition_path": "by partition",
        "skipped_by_bucket": "by the bucket of the keys",
        "skipped_by_partition_stats": "by the column ranges of their partition",
        "skipped_by_column_stats": "by the column ranges of their files",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReadExplained(Result):
    """The files that a read opens: `file_slices` of the table's `all_file_slices`; others are left out by `skipped`.

    `size_bytes`: the files of these slices. Row groups and rows are left out later.
    """

    all_file_slices: int
    file_slices: int
    size_bytes: int
    skipped: Skipped = field(default_factory=Skipped)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        facts = asdict(self)
        skipped = facts.pop("skipped")
        return {**facts, **{f"skipped_{name}": count for name, count in skipped.items()}}

    def __str__(self) -> str:
        found = self.to_dict()
        reasons = [f"{count:,} {_SKIPPED_BY[name]}" for name, count in found.items() if name in _SKIPPED_BY and count]
        left_out = f"; left out: {', '.join(reasons)}" if reasons else ""
        size = size_text(self.size_bytes)
        return f"reads {self.file_slices:,} of {self.all_file_slices:,} file slices, {size}{left_out}"

    def facts(self) -> Mapping[str, object]:
        return {name.replace("_", " "): value for name, value in self.to_dict().items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPlan:
    """A planned read: file slices, columns and a condition.

    `schema` is the table schema with meta columns. `columns` are the columns to return, in order; `paths` are the
    fields of them to return in their place, if fields of structs are chosen. `as_of` is a
    requested time (inclusive) that limits the commits of `view` whose rows are read; None for all of them. `instants`:
    only rows that one of these commits wrote are returned; None for all rows. `keys`: only rows with these record keys
    (and these partition paths, if `keys` has that column) are returned; None for all rows.
    """

    view: TableView
    schema: pa.Schema
    slices: tuple[FileSlice, ...]
    columns: tuple[str, ...]
    where: Condition | None
    as_of: str | None = None
    instants: frozenset[str] | None = None
    keys: pa.Table | None = None
    paths: tuple[Path, ...] = WHOLE
    stored: StoredColumns = SAME_COLUMNS
    skipped: Skipped = field(default_factory=Skipped)
    """How many slices the condition left out, after a look-up in the record index."""
    kind: str = SNAPSHOT
    """The query type."""
    listed: int | None = None
    """The number of the table's file slices; None if not all of them were listed."""
    listed_by_partition: bool = False
    """Whether the condition chose the partitions to list. Otherwise a look-up in the record index may have done it."""

    @property
    def files(self) -> tuple[BaseFile, ...]:
        """Base files that hold all rows of their slice, with the table's columns: an engine may read them alone."""
        return tuple(found.base_file for found in self.slices if found.base_file is not None and self._is_plain(found))

    @property
    def merged(self) -> tuple[FileSlice, ...]:
        """Slices that `SliceScan` must read: rows of log files are merged, columns of files get their current names."""
        return tuple(file_slice for file_slice in self.slices if not self._is_plain(file_slice))

    @property
    def logged(self) -> tuple[FileSlice, ...]:
        """The slices of `merged` whose base file an engine may read alone, if it leaves out the superseded rows."""
        return tuple(
            file_slice
            for file_slice in self.slices
            if file_slice.base_file is not None
            and file_slice.log_files
            and self.stored.are_in(file_slice.base_file)
            and not self.stored.makes_keys
        )

    @property
    def has_logs(self) -> bool:
        """Whether the scan has a slice with log files."""
        return any(file_slice.log_files for file_slice in self.slices)

    def _is_plain(self, found: FileSlice) -> bool:
        return found.base_file is not None and not found.log_files and self.stored.are_in(found.base_file)

    def needed_columns(self) -> tuple[str, ...]:
        """Return the names of the columns to return, then of the columns that decide which rows match.

        Raises: UnsupportedError for a condition that only Spark can evaluate.
        """
        names = list(self.columns)
        if self.where is not None:
            compared = self.where.columns(self.schema)
            names += [name for name in self.schema.names if name in compared]
        names += [COMMIT_TIME] if self.instants is not None else []
        names += self.keys.column_names if self.keys is not None else []
        return tuple(dict.fromkeys(names))

    def needed_paths(self) -> tuple[Path, ...]:
        """Return the fields of `needed_columns` that suffice; `WHOLE` if no field of a struct is chosen."""
        compared = () if self.where is None or not self.paths else self.where.paths(self.schema)
        return (*self.paths, *compared)

    def slice_read(self, columns: Sequence[str], *, in_utc: bool) -> SliceRead:
        """Return the rules by which slices with log files are read; `columns` must include those of the condition.

        `in_utc` as in `Condition.row_group_filter`.

        Raises: UnsupportedError for a table with a merge rule that only JVM Hudi supports; InvalidConfigError if the
        table's merge function is not registered in this program.
        """
        config = self.view.config
        check_defaults(config, lambda: self.view.schema(as_of=self.as_of).avro)
        coarse, on_keys = self._base_filter(in_utc)
        read = slice_read(config, self.schema)
        rule = replace(
            read.rule,
            latest_instant=self.as_of,
            timeline=self.view.timeline if config.version.validates_log_blocks else None,
            older=self.view.timeline if self.view.until is not None else None,
        )
        return replace(
            read,
            columns=tuple(columns),
            stored=self.stored,
            rule=rule,
            base_filter=coarse,
            base_filter_on_keys=on_keys,
        )

    def _base_filter(self, in_utc: bool) -> tuple[pc.Expression | None, bool]:
        """Return a filter of base rows for row groups, and whether it is a filter on keys.

        A filter on keys matches either all rows of a key or none.
        """
        on_keys = None
        if self.keys is not None and self.keys.num_rows <= FILTERED_KEYS_MAX:
            on_keys = pc.field(RECORD_KEY).isin(pc.unique(self.keys[RECORD_KEY]))
        try:
            coarse = None if self.where is None else self.where.row_group_filter(self.schema, in_utc=in_utc)
        except (UnsupportedError, SchemaMismatchError):
            coarse = None
        if coarse is None or self.where is None:
            return on_keys, on_keys is not None
        config = self.view.config
        # Stored keys of several fields may be made of different texts, where another writer did not refuse these.
        fields = config.record_key_fields
        has_texts = any(pa.types.is_string(type_at(self.schema, name)) for name in fields)
        same = {RECORD_KEY, *(fields if len(fields) == 1 or not has_texts else ())}
        # Several partition values, for example null and the empty string, have the default partition as their path.
        if rows_follow_columns(self.view, as_of=self.as_of) and not any(
            DEFAULT_PARTITION in found.partition_path for found in self.merged
        ):
            with suppress(UnsupportedError, InvalidConfigError):
                same.update(table_key_generator(config).fields_of_paths())
        if self.where.columns(self.schema) <= same:
            return coarse if on_keys is None else coarse & on_keys, True
        return (coarse, False) if on_keys is None else (on_keys, True)

    @property
    def output_schema(self) -> pa.Schema:
        """Schema of the rows that the read returns."""
        return returned_schema(self.schema, self.columns, self.paths)

    def with_columns(self, columns: str | Sequence[str] | None) -> ScanPlan:
        """Return the same scan with these columns, or with all columns for None. Raises: as `chosen_columns`."""
        names, paths = chosen_columns(self.schema, columns)
        return replace(self, columns=names, paths=paths)


def plan_scan(
    view: TableView,
    *,
    columns: str | Sequence[str] | None = None,
    where: Condition | None = None,
    as_of: When | None = None,
    kind: str = SNAPSHOT,
) -> ScanPlan:
    """Plan a snapshot, read-optimised or time-travel read.

    `as_of` (inclusive) is compared with completion times; see `view_as_of`. Partitions are pruned here. If the table
    has a record index or a bucket index, and the condition limits the record keys, file groups without these keys are
    pruned here too.
    Row groups and rows are filtered later.

    Raises: SchemaMismatchError for unknown columns; InvalidConfigError if `columns` is empty; UnsupportedError as
    `check_readable`.
    """
    has_index = any(kind.needs_one_of(view.config.metadata_partitions) for kind in INDEXES)
    ask_for_columns(view, metadata_timelines=int(where is not None and has_index))
    view, instant_time, schema = _snapshot(view, as_of, kind)
    stored = stored_columns(view, schema, as_of=instant_time)
    wanted, paths = chosen_columns(schema, columns)
    holders = None if where is None else holders_where(view, where, schema, as_of=instant_time)
    pruning = None if where is None else PartitionPruning.of(view, where, schema, as_of=instant_time)
    wanted_partitions = None
    located = holders if isinstance(holders, KeyHolders) else None
    if pruning is not None and located is None and view.config.has_metadata_table:
        wanted_partitions = pruning.to_list()
    slices = _slices(view, located, kind, instant_time, wanted_partitions)
    listed, skipped = len(slices) if located is None and wanted_partitions is None else None, Skipped()
    if where is not None:
        in_paths = slices
        if pruning is not None and not callable(wanted_partitions):
            kept_paths = pruning.keep({found.partition_path for found in slices})
            in_paths = [found for found in slices if found.partition_path in kept_paths]
        in_buckets = holders.among(in_paths) if isinstance(holders, BucketHolders) else in_paths
        # Only a read with a condition loads the parser of conditions (decision 0015).
        from hoodie.read.skipping import SkipRequest, skip_slices

        request = SkipRequest(view=view, where=where, schema=schema, stored=stored, as_of=instant_time)
        kept, by_partition_stats = skip_slices(request, in_buckets)
        skipped = Skipped(
            by_partition_path=len(slices) - len(in_paths),
            by_bucket=len(in_paths) - len(in_buckets),
            by_partition_stats=by_partition_stats,
            by_column_stats=len(in_buckets) - by_partition_stats - len(kept),
        )
        slices = kept
    keys = None if holders is None or not view.config.populates_meta_fields else holders.few_keys
    return ScanPlan(
        view=view,
        schema=schema,
        slices=tuple(slices),
        columns=wanted,
        paths=paths,
        where=where,
        as_of=instant_time,
        keys=keys,
        stored=stored,
        skipped=skipped,
        kind=kind,
        listed=listed,
        listed_by_partition=wanted_partitions is not None,
    )


def scan_schema(view: TableView, *, as_of: When | None = None, kind: str = SNAPSHOT) -> pa.Schema:
    """Return the schema of the rows of `plan_scan`, without a listing of files. Raises: as `plan_scan`."""
    _, _, schema = _snapshot(view, as_of, kind)
    return returned_schema(schema, schema.names, WHOLE)


def _snapshot(view: TableView, as_of: When | None, kind: str) -> tuple[TableView, str | None, pa.Schema]:
    """Return the view to read, the requested time that limits it, and the table's schema with meta columns."""
    if kind not in (SNAPSHOT, READ_OPTIMIZED):
        raise InvalidConfigError(f"view={kind!r}: expected {SNAPSHOT!r} or {READ_OPTIMIZED!r}")
    check_readable(view)
    view, instant_time = (view, None) if as_of is None else view_as_of(view, as_of)
    return view, instant_time, with_meta_fields(view.schema(as_of=instant_time).arrow)


def plan_keys(view: TableView, keys: pa.Table, *, as_of: str | None = None) -> ScanPlan:
    """Plan a read of the rows with these keys, as in `ScanPlan.keys`; `as_of` (inclusive) is a requested time.

    Raises: as `plan_scan`.
    """
    check_readable(view, by_meta_columns=True)
    schema = with_meta_fields(view.schema(as_of=as_of).arrow)
    holders = holders_of(view, keys[RECORD_KEY].combine_chunks(), as_of=as_of)
    slices = _slices(view, holders if isinstance(holders, KeyHolders) else None, SNAPSHOT, as_of)
    if isinstance(holders, BucketHolders):
        slices = holders.among(slices)
    if PARTITION_PATH in keys.column_names:
        paths = set(pc.unique(keys[PARTITION_PATH]).to_pylist())
        slices = [file_slice for file_slice in slices if file_slice.partition_path in paths]
    return ScanPlan(
        view=view,
        schema=schema,
        slices=tuple(slices),
        columns=tuple(schema.names),
        where=None,
        as_of=as_of,
        keys=keys,
        stored=stored_columns(view, schema, as_of=as_of),
    )


def explain(plan: ScanPlan) -> ReadExplained:
    """Return what a planned read opens. No data file is opened.

    The table is listed again only if the plan did not list all its partitions.

    Raises: ViewOvertakenError if others took files of the view between the two listings.
    """
    total, skips = plan.listed, plan.skipped
    if total is None:
        total = len(_slices(plan.view, None, plan.kind, plan.as_of))
    others = skips.by_partition_path + skips.by_bucket + skips.by_partition_stats + skips.by_column_stats
    unlisted = total - len(plan.slices) - others
    if plan.listed_by_partition:
        skipped = replace(skips, by_partition_path=skips.by_partition_path + unlisted)
    else:
        skipped = replace(skips, by_record_index=unlisted)
    return ReadExplained(
        all_file_slices=total,
        file_slices=len(plan.slices),
        size_bytes=sum(file_slice.size_bytes for file_slice in plan.slices),
        skipped=skipped,
    )


def _slices(
    view: TableView,
    holders: KeyHolders | None,
    kind: str,
    as_of: str | None,
    partitions: WantedPartitions | None = None,
) -> list[FileSlice]:
    """Return the latest slices of all file groups, of `holders` or of partitions.

    For a read-optimised read they are without log files.
    """
    if holders is None:
        slices = list_slices(view, partitions, as_of=as_of)
    else:
        slices = holders.among(list_slices(view, {path for path, _ in holders.groups}, as_of=as_of))
    check_still_there(view, as_of)
    check_formats(view, slices)
    if kind == READ_OPTIMIZED:
        return [replace(file_slice, log_files=()) for file_slice in slices if file_slice.base_file is not None]
    return slices


def check_readable(view: TableView, *, by_meta_columns: bool = False) -> None:
    """Refuse a table whose data is not completely in its own Parquet base files and log files.

    `by_meta_columns`: the read finds rows by `_hoodie_record_key` or `_hoodie_commit_time`. A table without meta fields
    does not have these columns.

    Warns: `HoodieWarning` if a restore is pending, once for each table handle.

    Raises: UnsupportedError. The message names the missing part and the engine that can read the table.
    """
    config = view.config
    missing = {
        f"with {config.base_file_format} base files": config.base_file_format is not BaseFileFormat.PARQUET,
        "without meta fields by key or by commit": by_meta_columns and not config.populates_meta_fields,
    }
    for what, found in missing.items():
        if found:
            raise UnsupportedError(f"{view.store.uri('')}: this release does not read a table {what}; use JVM Hudi")
    _warn_of_restore(view)


def _warn_of_restore(view: TableView) -> None:
    """Warn if a restore is pending, which takes back one commit after the other. Takes a read of its plan then."""
    for found in view.timeline.pending():
        if found.action is Action.RESTORE:
            to = ""
            with suppress(HoodieError):
                to = target_of_restore(view, found)
            call = f"t.restore('{to}')" if to else "t.repair(dry_run=False)"
            where = f" to {to}" if to else ""
            view.state.warn(
                f"{view.store.uri('')} has a pending restore{where} ({found.requested_time}), which "
                "takes back one commit after the other: a read returns the rows of the commits that are left. If the "
                f"process of the restore does not run any more, complete the restore with {call}, then read again"
            )


def check_formats(view: TableView, slices: list[FileSlice]) -> None:
    """Refuse slices with base files in other formats than Parquet; one table can have several formats.

    Raises: UnsupportedError.
    """
    for file_slice in slices:
        if file_slice.base_file is not None and not file_slice.base_file.name.endswith(".parquet"):
            raise UnsupportedError(
                f"{view.store.uri(file_slice.base_file.path)}: this release reads Parquet base files only; use JVM Hudi"
            )
