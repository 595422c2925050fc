"""Find the file groups that can hold given record keys, so that a read opens no other file.

The record index contains them. With a bucket index they follow from the hash of a key.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hoodie.config.indexes import INDEX_TYPE_KEY
from hoodie.engine import LocalEngine
from hoodie.errors import (
    HoodieError,
    InvalidConfigError,
    MetadataPartitionMissingError,
    MetadataTableMissingError,
    UnsupportedError,
)
from hoodie.files.slices import FileSlice
from hoodie.format.filenames import bucket_of_file_id
from hoodie.index import BUCKET, RECORD, IndexKind, index_of_view, lost_record_index, obeys_buckets
from hoodie.index.bucket import BucketRule, rule_of_reads
from hoodie.index.record.file_groups import RecordIndexState
from hoodie.index.record.look_up import FoundLocations, look_up
from hoodie.index.record.state import record_index
from hoodie.records.change import RECORD_KEY
from hoodie.records.keys.key_columns import KeyColumns
from hoodie.view.slices import list_slices
from hoodie.view.still_there import check_still_there
from hoodie.view.stored_keys import view_key_generator
from hoodie.view.table_view import TableView

if TYPE_CHECKING:
    from hoodie.records.condition import Condition, KeysOf

_LOOKED_UP_KEYS_MAX = 100_000
"""With more keys a read does not use the index: nearly every file group holds some of them, and a scan is cheaper."""

FILTERED_KEYS_MAX = 1_000
"""With more keys a read does not filter rows or row groups by them: the filter costs more than it saves."""


@dataclass(frozen=True, slots=True)
class KeyHolders:
    """File groups, as partition path and file id, that hold some of the keys. No other file group holds any."""

    groups: frozenset[tuple[str, str]]
    few_keys: pa.Table | None = None
    """The record keys, at most `FILTERED_KEYS_MAX`, if each key value has only one string form; None otherwise."""

    def among(self, slices: list[FileSlice]) -> list[FileSlice]:
        """Return the slices of these file groups; an index entry may name a file group that no longer exists."""
        return [file_slice for file_slice in slices if file_slice.group in self.groups]


@dataclass(frozen=True, slots=True)
class BucketHolders:
    """The buckets of some keys: file groups of other buckets hold none of them. `few_keys` as in `KeyHolders`."""

    rule: BucketRule
    keys: pa.StringArray
    few_keys: pa.Table | None = None

    def among(self, slices: list[FileSlice]) -> list[FileSlice]:
        """Return the slices of these buckets, and those that belong to no bucket of the table."""
        by_path: dict[str, frozenset[int]] = {}
        found = []
        for file_slice in slices:
            path, bucket = file_slice.partition_path, bucket_of_file_id(file_slice.file_id)
            if path not in by_path:
                by_path[path] = frozenset(self.rule.buckets(self.keys, path).tolist())
            if bucket is None or bucket >= self.rule.counts.of(path) or bucket in by_path[path]:
                found.append(file_slice)
        return found


def _buckets_of(view: TableView, keys: pa.StringArray, *, as_of: str | None) -> BucketHolders | None:
    """Return the buckets of keys in a table with a bucket index; None for other tables.

    None too for a state before a switch to the bucket index: its file groups may obey no buckets, or other ones.
    """
    if _index_of(view) is not BUCKET or not obeys_buckets(view, as_of=as_of):
        return None
    rule = rule_of_reads(view)
    return None if rule is None else BucketHolders(rule, keys)


def index_for_reads(view: TableView, *, as_of: str | None = None) -> RecordIndexState | None:
    """Return the record index if reads can use it.

    None if the table has no record index or finds records by another index. Also None if the index no longer stores its
    state as of that requested time; reads then use the data files. The same holds, with a warning, for an index that is
    missing. If inserts wrote several rows with one key, the
    index contains the location of the newest row.
    """
    lost = lost_record_index(view)
    if lost is not None:
        view.state.warn(f"keys are looked up in the data files: {lost}; the next write builds it, or t.index.build()")
    if _index_of(view) is not RECORD:
        return None
    try:
        return record_index(view, as_of=as_of)
    except UnsupportedError:
        return None
    except (MetadataPartitionMissingError, MetadataTableMissingError) as error:
        view.state.warn(f"keys are looked up in the data files: {error}")
        return None


def is_unique_by_partition(view: TableView) -> bool:
    """Check whether record keys are unique in a partition only: two partitions can hold different records of a key.

    This is so by the index that the table has today, in a view of the past too.
    """
    kind = _index_of(view)
    if kind is None:
        return not view.config.raw[INDEX_TYPE_KEY].strip().lower().startswith("global")
    return not kind.is_global


def _index_of(view: TableView) -> IndexKind | None:
    """Return the table's index; None if this release does not support it, because reads do not require an index."""
    try:
        return index_of_view(view)
    except (InvalidConfigError, UnsupportedError):
        return None


def holders_of(view: TableView, keys: pa.StringArray, *, as_of: str | None = None) -> KeyHolders | BucketHolders | None:
    """Return the file groups that hold these record keys; None if reads cannot use the index, or a scan is cheaper."""
    if len(keys) > _LOOKED_UP_KEYS_MAX:
        return None
    buckets = _buckets_of(view, keys, as_of=as_of)
    if buckets is not None:
        return buckets
    found = _looked_up(view, keys, as_of)
    return None if found is None else KeyHolders(found.groups)


def _looked_up(view: TableView, keys: pa.StringArray, as_of: str | None) -> FoundLocations | None:
    state = index_for_reads(view, as_of=as_of)
    return None if state is None else look_up(LocalEngine(), view.store, state, keys)


def locate(view: TableView, keys: pa.StringArray, *, as_of: str | None = None) -> FoundLocations | None:
    """Look up locations of record keys in the record index; None if reads cannot use the index.

    Locations in removed file groups are left out.
    """
    found = _looked_up(view, keys, as_of)
    if found is None:
        return None
    partitions = {path for path, _ in found.groups}
    current = {part.group for part in list_slices(view, partitions, as_of=as_of)}
    check_still_there(view, as_of)
    return only_in(found, frozenset(current))


def only_in(found: FoundLocations, current: frozenset[tuple[str, str]]) -> FoundLocations:
    """Keep the locations in these file groups (partition path and file id); keys elsewhere count as unknown."""
    is_gone = [(place.partition_path, place.file_id) not in current for place in found.locations]
    if not any(is_gone):
        return found
    # Code -1 (unknown key) selects the last element.
    return replace(found, codes=np.where(np.array([*is_gone, True])[found.codes], -1, found.codes))


def holders_where(
    view: TableView, where: Condition, schema: pa.Schema, *, as_of: str | None = None
) -> KeyHolders | BucketHolders | None:
    """Return the file groups that hold the record keys to which a condition limits a read.

    None if the condition does not limit the keys, and as for `holders_of`. `schema` is the table schema with meta
    columns.
    """
    wanted = where.wanted_keys(schema, _key_columns(view, schema))
    if wanted is None or len(wanted.keys) > _LOOKED_UP_KEYS_MAX:
        return None
    keys = pa.array(sorted(wanted.keys), pa.string())
    is_filtered = wanted.is_certain and len(keys) <= FILTERED_KEYS_MAX
    few_keys = pa.table({RECORD_KEY: keys}) if is_filtered else None
    buckets = _buckets_of(view, keys, as_of=as_of) if wanted.is_certain else None
    if buckets is not None:
        return replace(buckets, few_keys=few_keys)
    found = _looked_up(view, keys, as_of)
    if found is None or (not wanted.is_certain and (found.codes < 0).any()):
        return None
    return KeyHolders(found.groups, few_keys)


def _key_columns(view: TableView, schema: pa.Schema) -> dict[str, KeysOf]:
    """Return columns that alone determine the record key, each with a function from its values to record keys.

    They are the meta column, and the key column if the table has only one.
    """
    columns: dict[str, KeysOf] = {RECORD_KEY: lambda values: values}
    fields = view.config.record_key_fields
    if len(fields) == 1 and fields[0] in schema.names:
        try:
            key_columns = KeyColumns(view_key_generator(view), schema)
        except HoodieError:
            return columns
        name = fields[0]
        columns[name] = lambda values: key_columns.record_keys(pa.RecordBatch.from_arrays([values], names=[name]))
    return columns
