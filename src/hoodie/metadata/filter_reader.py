"""Read rows of `bloom_filters`: the filters of given base files (docs/format/metadata.md §4.6)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie.errors import MetadataPartitionMissingError
from hoodie.files.slices import FileSlice
from hoodie.format.hashes.java_hash import file_group_index
from hoodie.format.metadata_table.filter_row import FilterRow, bloom_filter_key
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.metadata.paths import REBUILD_ADVICE, partition_folder
from hoodie.metadata.slice_content import SliceContent
from hoodie.metadata.slices import read_slice, slices_among
from hoodie.storage import FileInfo, Store
from hoodie.timeline import Timeline

Place = tuple[str, str]
"""Partition path and name of a base file."""


@dataclass(frozen=True, slots=True)
class FilterReader:
    """Reads the partition as of one state of the metadata table. Picklable; tasks read the filters of their files."""

    slices: tuple[tuple[FileSlice, tuple[FileInfo, ...]], ...]
    """The slice of each file group, by number, and its listed files."""

    @classmethod
    def open(cls, store: Store, kind: PartitionKind, timeline: Timeline) -> FilterReader:
        """List the partition once; `timeline`: the visible instants of the metadata table.

        Raises: MetadataPartitionMissingError if there is no file group.
        """
        infos = {info.path: info for info in store.list(partition_folder(kind.name))}
        slices = slices_among(store, kind, timeline, infos.values())
        if not slices:
            where = store.uri(partition_folder(kind.name))
            raise MetadataPartitionMissingError(f"all file groups are missing: {REBUILD_ADVICE}", path=where)
        return cls(tuple((found, tuple(infos[path] for path in found.paths)) for found in slices))

    @property
    def file_ids(self) -> tuple[str, ...]:
        """File ids of the file groups, ascending; at least one."""
        return tuple(found.file_id for found, _ in self.slices)

    def rows_at(self, store: Store, places: Collection[Place]) -> dict[Place, FilterRow]:
        """Return the rows of these base files; files without a row are absent. Memory: the rows, and cached files.

        Raises: CorruptFileError if a file of the partition does not parse.
        """
        by_key = {bloom_filter_key(*place): place for place in places}
        wanted = pa.array(sorted(by_key), pa.string())
        numbers = file_group_index(wanted, len(self.slices)) if len(wanted) else np.zeros(0, np.int32)
        found: dict[Place, FilterRow] = {}
        for number in sorted(set(numbers.tolist())):
            file_slice, infos = self.slices[number]
            keys = wanted.filter(pa.array(numbers == number)).cast(pa.binary())
            content = read_slice(store, file_slice, infos)
            path = store.uri(f"{file_slice.partition_path}/{file_slice.file_id}")
            for key, (value, schema_json) in _newest(content, keys).items():
                row = FilterRow.parse(value, schema_json=schema_json, path=path)
                if row is not None:
                    found[by_key[key.decode()]] = row
        return found


def _newest(content: SliceContent, keys: pa.BinaryArray) -> dict[bytes, tuple[bytes, str]]:
    """Return the newest value of each key and the schema of its file; deleted keys are absent."""
    names = keys.to_pylist()
    found: dict[bytes, tuple[bytes, str]] = {}
    if content.base is not None:
        values = content.base.get_many(keys).to_pylist()
        found = {
            name: (value, content.base_schema_json)
            for name, value in zip(names, values, strict=True)
            if value is not None
        }
    for block in content.blocks:
        places, values = block.find(keys, seek=True)
        for number, place in enumerate(places.tolist()):
            if values is None:
                found.pop(names[place], None)
            else:
                found[names[place]] = values[number].as_py(), block.schema_json
    return found
