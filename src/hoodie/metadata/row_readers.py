"""Read rows of `column_stats`, `partition_stats` and `bloom_filters` by key (docs/format/metadata.md §4.4 to §4.6)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import MetadataPartitionMissingError
from hoodie.files.slices import FileSlice
from hoodie.format.hashes.java_hash import file_group_masks
from hoodie.format.metadata_table.column_stats import StatsRow
from hoodie.format.metadata_table.filter_row import FilterRow, bloom_filter_key
from hoodie.format.metadata_table.metadata_record import RecordType
from hoodie.format.table.versions import TableVersion
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.metadata.paths import METADATA_VERSION, REBUILD_ADVICE, partition_folder
from hoodie.metadata.slice_content import SliceContent
from hoodie.metadata.slices import read_slice, slices_among
from hoodie.storage import FileInfo, Store
from hoodie.timeline import Timeline

_Slice = tuple[FileSlice, tuple[FileInfo, ...]]
_Slices = tuple[_Slice, ...]
"""The newest slice of each file group of a partition, by number, and its listed files."""
_Pieces = Iterator[tuple[pa.BinaryArray, pa.BinaryArray | None, str]]
_AFTER_TEXT = b"\xff"
"""Greater than every byte of a key."""


class StatsReader:
    """Reads one of the two partitions as of one state of the metadata table. Creating it costs one listing.

    `timeline`: the visible instants of the metadata table; `version`: the table's version. Memory: the rows of a call,
    and cached files.

    Raises: CorruptFileError if a file does not parse; MetadataPartitionMissingError if there is no file group.
    """

    def __init__(
        self, store: Store, kind: PartitionKind, timeline: Timeline, *, version: TableVersion = METADATA_VERSION
    ) -> None:
        self._store = store
        self._repeats = kind.repeats_rows
        self._slices = _listed_slices(store, kind, timeline, version)

    @property
    def file_ids(self) -> tuple[str, ...]:
        """File ids of the file groups, ascending; at least one."""
        return tuple(found.file_id for found, _ in self._slices)

    def rows_at(self, keys: Collection[str]) -> dict[str, StatsRow]:
        """Return the rows of these keys by key; keys without a row are absent."""
        found: dict[str, StatsRow] = {}
        for place, mine in _keys_by_slice(self._slices, keys):
            content = read_slice(self._store, *place)
            found |= _merged(_pieces_at(content, mine), content.file_slice.file_id, self._repeats)
        return found

    def rows_below(self, prefixes: Sequence[str]) -> dict[str, StatsRow]:
        """Return the rows whose keys begin with one of the texts, by key."""
        found: dict[str, StatsRow] = {}
        for place in self._slices:
            content = read_slice(self._store, *place)
            for prefix in prefixes:
                pieces = _pieces_below(content, prefix.encode())
                found |= _merged(pieces, content.file_slice.file_id, self._repeats)
        return found


def _listed_slices(store: Store, kind: PartitionKind, timeline: Timeline, version: TableVersion) -> _Slices:
    """List a partition once. Raises: MetadataPartitionMissingError if there is no file group."""
    infos = {info.path: info for info in store.list(partition_folder(kind.name))}
    slices = slices_among(store, kind, timeline, infos.values(), version=version)
    if not slices:
        where = store.uri(partition_folder(kind.name))
        raise MetadataPartitionMissingError(f"all file groups are missing: {REBUILD_ADVICE}", path=where)
    return tuple((found, tuple(infos[path] for path in found.paths)) for found in slices)


def _keys_by_slice(slices: _Slices, keys: Collection[str]) -> Iterator[tuple[_Slice, pa.BinaryArray]]:
    """Yield each slice that may have some of the keys, and these keys, ascending."""
    wanted = pa.array(sorted(keys), pa.string())
    for place, mask in zip(slices, file_group_masks(wanted, len(slices)), strict=True):
        mine = wanted.filter(mask).cast(pa.binary())
        if len(mine):
            yield place, mine


def _pieces_at(content: SliceContent, keys: pa.BinaryArray) -> _Pieces:
    """Yield keys, values and schema of the base file and of each block, oldest first."""
    if content.base is not None:
        values = content.base.get_many(keys)
        there = pc.is_valid(values)
        yield keys.filter(there), values.filter(there), content.base_schema_json
    for block in content.blocks:
        places, found = block.find(keys, seek=True)
        yield keys.take(pa.array(places)), found, block.schema_json


def _pieces_below(content: SliceContent, prefix: bytes) -> _Pieces:
    stop = prefix + _AFTER_TEXT
    if content.base is not None:
        keys, values = content.base.get_range(prefix, stop)
        yield keys, values, content.base_schema_json
    for block in content.blocks:
        keys = block.keys.cast(pa.binary())
        inside = pc.and_(pc.greater_equal(keys, prefix), pc.less(keys, stop))
        yield keys.filter(inside), None if block.values is None else block.values.filter(inside), block.schema_json


def with_joined_rows(content: SliceContent, keys: pa.Array, values: pa.Array, record_type: RecordType) -> pa.Array:
    """Return the values of the next base file of `partition_stats`, whose rows that are not tight include older ones.

    `keys` (ascending) and `values` are the newest rows of the slice. Reads the keys of its log files.
    """
    if not content.blocks:
        return values
    changed = pa.concat_arrays([block.keys.cast(pa.binary()) for block in content.blocks]).unique().sort()
    rows = _merged(_pieces_at(content, changed), content.file_slice.file_id, False)
    loose = {name: row.to_bytes(record_type, typed=row.is_typed) for name, row in rows.items() if not row.is_tight}
    if not loose:
        return values
    names = sorted(loose, key=str.encode)
    mask = pc.is_in(keys, value_set=pa.array(names, keys.type))
    return pc.replace_with_mask(values, mask, pa.array([loose[name] for name in names], values.type))


def _merged(pieces: _Pieces, path: str, repeats: bool) -> dict[str, StatsRow]:
    """Merge rows by the rule of the JVM: a row that is not tight is joined with the older row of its key.

    `pieces` are ordered from the oldest to the newest. Rows that a newer row replaces are not parsed. `repeats`: a row
    that equals the older one describes the same unchanged file, and repeats it.
    """
    found: dict[str, StatsRow | None] = {}
    settled: set[str] = set()
    for keys, values, schema_json in reversed(list(pieces)):
        names = keys.cast(pa.string()).to_pylist()
        for number, name in enumerate(names):
            if name in settled:
                continue
            if values is None:
                found.setdefault(name, None)
                settled.add(name)
                continue
            row = StatsRow.parse(values[number].as_py(), schema_json=schema_json, path=path)
            newer = found.get(name)
            is_again = repeats and newer is not None and newer.range == row.range
            found[name] = row if newer is None else newer if is_again else newer.after(row)
            if row.is_tight or row.is_deleted:
                settled.add(name)
    return {name: row for name, row in found.items() if row is not None and not row.is_deleted}


Place = tuple[str, str]
"""Partition path and name of a base file."""


@dataclass(frozen=True, slots=True)
class FilterReader:
    """Reads the partition as of one state of the metadata table. Picklable; tasks read the filters of their files."""

    slices: _Slices

    @classmethod
    def open(
        cls, store: Store, kind: PartitionKind, timeline: Timeline, *, version: TableVersion = METADATA_VERSION
    ) -> FilterReader:
        """List the partition once; `timeline`: the visible instants of the metadata table; `version`: the table's.

        Raises: MetadataPartitionMissingError if there is no file group.
        """
        return cls(_listed_slices(store, kind, timeline, version))

    @property
    def file_ids(self) -> tuple[str, ...]:
        """File ids of the file groups, ascending; at least one."""
        return tuple(found.file_id for found, _ in self.slices)

    def rows_at(self, store: Store, places: Collection[Place]) -> dict[Place, FilterRow]:
        """Return the rows of these base files; files without a row are absent. Memory: the rows, and cached files.

        Raises: CorruptFileError if a file of the partition does not parse.
        """
        by_key = {bloom_filter_key(*place): place for place in places}
        found: dict[Place, FilterRow] = {}
        for (file_slice, infos), keys in _keys_by_slice(self.slices, by_key):
            content = read_slice(store, file_slice, infos)
            path = store.uri(f"{file_slice.partition_path}/{file_slice.file_id}")
            for key, (value, schema_json) in _newest(content, keys).items():
                row = FilterRow.parse(value, schema_json=schema_json, path=path)
                if row is not None:
                    found[by_key[key.decode()]] = row
        return found


def _newest(content: SliceContent, keys: pa.BinaryArray) -> dict[bytes, tuple[bytes, str]]:
    """Return the newest value of each key and the schema of its file; deleted keys are absent."""
    found: dict[bytes, tuple[bytes, str]] = {}
    for present, values, schema_json in _pieces_at(content, keys):
        for number, name in enumerate(present.to_pylist()):
            if values is None:
                found.pop(name, None)
            else:
                found[name] = values[number].as_py(), schema_json
    return found
