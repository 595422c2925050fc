"""Which files a read touches: slices as of an instant, pruned by what the condition says of partitions and keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.files.slices import BaseFile, FileSlice
from hoodie.format.table_schema import with_meta_fields
from hoodie.index import partition_tells
from hoodie.metadata.rules import table_key_generator
from hoodie.metadata.view import TableView
from hoodie.read.key_holders import KeyHolders, holders_of, holders_where
from hoodie.read.readable import check_formats, check_readable
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.records.expression import columns_of, to_filter
from hoodie.records.key_generator import KeyGenerator
from hoodie.records.pruning import prune_partitions
from hoodie.timeline import to_instant_time

When = str | datetime | date
SNAPSHOT = "snapshot"
READ_OPTIMIZED = "read_optimized"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPlan:
    """A read that is settled: these files, these columns, this condition.

    `schema` is the table's with meta columns; `columns` the ones to return, in order; `where` a Spark SQL condition.
    `instants`: only rows that one of these commits wrote; None for all rows. `keys`: only rows with these record keys
    (and partition paths, if it has that column); None for all.
    """

    view: TableView
    schema: pa.Schema
    files: tuple[BaseFile, ...]
    columns: tuple[str, ...]
    where: str | None
    instants: frozenset[str] | None = None
    keys: pa.Table | None = None

    @property
    def output_schema(self) -> pa.Schema:
        """Schema of the rows that come out."""
        return pa.schema([self.schema.field(name) for name in self.columns])

    def with_columns(self, columns: str | Sequence[str] | None) -> ScanPlan:
        """The same scan with these columns, or all of them.

        Raises: SchemaMismatchError for unknown ones.
        """
        return replace(self, columns=_checked_columns(self.schema, columns))


def plan_scan(
    view: TableView,
    *,
    columns: str | Sequence[str] | None = None,
    where: str | None = None,
    as_of: When | None = None,
    kind: str = SNAPSHOT,
) -> ScanPlan:
    """Settle a snapshot, read-optimised or time-travel read.

    `as_of` (inclusive) compares with requested times. Partitions are pruned here, and file groups that do not hold the
    record keys which the condition names, if the table has a record index; row groups and rows later.

    Raises: SchemaMismatchError for unknown columns; InvalidConfigError for a condition that does not parse, or no
    columns; UnsupportedError for slices with log files, unless `kind` is `read_optimized`, and as `check_readable`.
    """
    if kind not in (SNAPSHOT, READ_OPTIMIZED):
        raise InvalidConfigError(f"view={kind!r}: expected {SNAPSHOT!r} or {READ_OPTIMIZED!r}")
    check_readable(view)
    instant_time = None if as_of is None else to_instant_time(as_of, view.layout.zone)
    schema = with_meta_fields(view.schema(as_of=instant_time).arrow)
    wanted = _checked_columns(schema, columns)
    holders = None if where is None else holders_where(view, where, schema, as_of=instant_time)
    files = _files(view, holders, kind, instant_time)
    if where is not None:
        files = _prune(view, files, where, schema)
    keys = None if holders is None or not view.config.populates_meta_fields else holders.few_keys
    return ScanPlan(view=view, schema=schema, files=tuple(files), columns=wanted, where=where, keys=keys)


def plan_keys(view: TableView, keys: pa.Table, *, as_of: str | None = None) -> ScanPlan:
    """Settle the read of the rows with these keys, as `ScanPlan.keys` has them; `as_of` is a requested time.

    Raises: as `plan_scan`.
    """
    check_readable(view, by_meta_columns=True)
    schema = with_meta_fields(view.schema(as_of=as_of).arrow)
    holders = holders_of(view, keys[RECORD_KEY].combine_chunks(), as_of=as_of)
    files = _files(view, holders, SNAPSHOT, as_of)
    if PARTITION_PATH in keys.column_names:
        paths = set(pc.unique(keys[PARTITION_PATH]).to_pylist())
        files = [file for file in files if file.partition_path in paths]
    return ScanPlan(view=view, schema=schema, files=tuple(files), columns=tuple(schema.names), where=None, keys=keys)


def _files(view: TableView, holders: KeyHolders | None, kind: str, as_of: str | None) -> list[BaseFile]:
    """Base files of the newest slices: of all file groups, or of those that hold some keys."""
    if holders is None:
        return _base_files(view, view.slices(as_of=as_of), kind)
    return _base_files(view, holders.among(view.slices(holders.partitions, as_of=as_of)), kind)


def _checked_columns(schema: pa.Schema, columns: str | Sequence[str] | None) -> tuple[str, ...]:
    if columns is None:
        return tuple(schema.names)
    wanted = (columns,) if isinstance(columns, str) else tuple(columns)
    if not wanted:
        raise InvalidConfigError("columns=[] asks for no columns; name at least one, or leave it out to get all")
    unknown = [name for name in wanted if name not in schema.names]
    if unknown:
        raise SchemaMismatchError(f"columns {unknown} are not in the table; it has {schema.names}")
    return wanted


def _base_files(view: TableView, slices: list[FileSlice], kind: str) -> list[BaseFile]:
    check_formats(view, slices)
    for found in slices:
        if found.log_files and kind == SNAPSHOT:
            raise UnsupportedError(
                f"{view.store.uri('')} has log files (file group {found.file_id} in {found.partition_path!r}): merged "
                "snapshots of merge-on-read tables come with hoodie 0.3; view='read_optimized' reads the base files"
            )
    return [found.base_file for found in slices if found.base_file is not None]


def _prune(view: TableView, files: list[BaseFile], where: str, schema: pa.Schema) -> list[BaseFile]:
    """Drop the files of partitions in which the condition cannot hold; keep all where the paths do not tell.

    A condition that has no Arrow form prunes nothing: the engine that runs it decides row by row, and knows types that
    we do not compare; unknown columns are refused by name. Nothing is pruned either where rows stay in their first
    partition when their partition columns change: the path says nothing of them.
    """
    fields = [name for name in view.config.partition_fields if name in schema.names]
    try:
        told = columns_of(where, schema) & set(fields)
    except UnsupportedError:
        return files
    if not told or not files or not partition_tells(view.config):
        return files
    try:
        to_filter(where, schema)
    except (UnsupportedError, SchemaMismatchError):
        return files
    paths = sorted({file.partition_path for file in files})
    values, unknown = _partition_values(table_key_generator(view.config), paths, fields, schema)
    kept = prune_partitions(where, schema, values, unknown=unknown)
    alive = {path for path, keep in zip(paths, kept.to_pylist(), strict=True) if keep}
    return [file for file in files if file.partition_path in alive]


def _partition_values(
    keys: KeyGenerator, paths: list[str], fields: list[str], schema: pa.Schema
) -> tuple[pa.Table, dict[str, pa.BooleanArray]]:
    """Typed partition values by path, and which of them the path does not tell."""
    texts = [keys.partition_values(path) for path in paths]
    columns: dict[str, pa.Array] = {}
    unknown: dict[str, pa.BooleanArray] = {}
    for name in fields:
        told = [None if found is None else found.get(name) for found in texts]
        columns[name], unknown[name] = _typed(pa.array(told, pa.string()), schema.field(name).type)
    return pa.table(columns), unknown


def _typed(texts: pa.StringArray, data_type: pa.DataType) -> tuple[pa.Array, pa.BooleanArray]:
    """Texts as values of a type, where that is certain: strings, integers, booleans and dates."""
    certain = (
        pa.types.is_string(data_type)
        or pa.types.is_integer(data_type)
        or pa.types.is_boolean(data_type)
        or pa.types.is_date(data_type)
    )
    if certain:
        try:
            return texts.cast(data_type), pc.is_null(texts)
        except pa.ArrowInvalid:
            pass
    return pa.nulls(len(texts), data_type), pa.repeat(True, len(texts))
