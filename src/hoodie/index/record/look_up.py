"""Look up keys in the record index: in one index file group, or in all of them (docs/format/metadata.md §5; RFC-08)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import Engine, LocalEngine, TaskContext
from hoodie.format.metadata_table.record_location import LocationColumn, RecordLocation
from hoodie.index.api import LookUpCost
from hoodie.index.record.file_groups import IndexFileGroup, RecordIndexState, read_file_group
from hoodie.metadata.slice_content import SliceContent
from hoodie.storage import Store, StoreSpec, open_store


class LookUp(StrEnum):
    """The way to search the files of an index file group."""

    SEEK = "seek"
    """Decompress only the blocks that may have a searched key."""
    SCAN = "scan"
    """Read the whole files once."""


SCAN_SHARE = 0.5
"""Share of a file group's keys from which on a scan is cheaper than seeking.

RFC-08 gives about 30%; measured with this library: 40% of 100,000 keys, 61% of a million
(docs/record-index/measured.md).
"""


def way_of(wanted: int, content: SliceContent) -> LookUp:
    """Return the cheaper way to look up `wanted` distinct keys in a file group."""
    stored = sum(len(block) for block in content.blocks) + (0 if content.base is None else len(content.base))
    return LookUp.SCAN if wanted >= SCAN_SHARE * stored else LookUp.SEEK


def find(content: SliceContent, keys: pa.StringArray, *, look_up: LookUp = LookUp.SEEK) -> LocationColumn:
    """Find the locations of keys that belong to the file group, in their order; keys without an entry have none.

    Memory: the keys, the blocks that are decompressed, and one location for each distinct value.

    Raises: CorruptFileError if a file of the file group does not parse.
    """
    wanted = keys.cast(pa.binary())
    found = _Found(len(wanted))
    path = content.file_slice.file_id
    for block in reversed(content.blocks):
        rows = found.is_open.nonzero()[0]
        places, values = block.find(wanted.take(pa.array(rows)), seek=look_up is LookUp.SEEK)
        found.set_locations(rows[places], values, schema_json=block.schema_json, path=path)
    rows = found.is_open.nonzero()[0]
    if content.base is not None and len(rows):
        open_keys = wanted.take(pa.array(rows))
        if look_up is LookUp.SEEK:
            values = content.base.get_many(open_keys)
        else:
            base_keys, base_values = content.base.entries()
            values = base_values.take(pc.index_in(open_keys, value_set=base_keys))
        found.set_locations(rows, values, schema_json=content.base_schema_json, path=path)
    return LocationColumn(tuple(found.locations), found.codes)


class _Found:
    """Collects locations, newest block first. An older block does not change the result of a newer block."""

    def __init__(self, count: int) -> None:
        self.locations: list[RecordLocation] = []
        self.codes = np.full(count, -1, np.int64)
        self.is_open = np.ones(count, np.bool_)

    def set_locations(
        self, rows: npt.NDArray[np.int64], values: pa.BinaryArray | None, *, schema_json: str, path: str
    ) -> None:
        """Set the locations of rows; without values, the rows are deleted."""
        self.is_open[rows] = False
        if values is None or not len(rows):
            return
        column = LocationColumn.parse(values, schema_json=schema_json, path=path)
        self.codes[rows] = np.where(column.codes >= 0, column.codes + len(self.locations), -1)
        self.locations.extend(column.locations)


@dataclass(frozen=True, slots=True)
class FoundLocations:
    """Locations of keys. `codes` has for each key its position in `locations`; -1 if the index has no location."""

    locations: tuple[RecordLocation, ...]
    codes: npt.NDArray[np.int64]
    cost: LookUpCost

    @property
    def groups(self) -> frozenset[tuple[str, str]]:
        """Partition paths and file ids of the file groups that hold the keys."""
        return frozenset((location.partition_path, location.file_id) for location in self.locations)


def look_up(
    engine: Engine, store: Store, state: RecordIndexState, keys: pa.StringArray, *, way: LookUp | None = None
) -> FoundLocations:
    """Find the locations of keys, in the order of the keys, which may repeat. `way` forces seek or scan.

    Reads the files of the index file groups to which the keys belong. Memory: the keys, and on each worker the memory
    of `hoodie.index.record.look_up.find` for one index file group. Locations are returned as stored: the caller checks
    that their file groups still exist.

    Raises: CorruptFileError if a file of a file group does not parse.
    """
    encoded = keys.dictionary_encode()
    distinct = encoded.dictionary
    numbers = state.numbers_of(distinct)
    rows = [(numbers == file_group.number).nonzero()[0] for file_group in state.file_groups]
    asked = [(file_group, mine) for file_group, mine in zip(state.file_groups, rows, strict=True) if len(mine)]
    tasks = [(file_group, distinct.take(pa.array(mine))) for file_group, mine in asked]
    # Threads of this process share `store`; workers of other engines open a store.
    shared = store if isinstance(engine, LocalEngine) else store.spec
    results = engine.run(partial(_look_up_file_group, store=shared, way=way), tasks)
    codes = np.full(len(distinct), -1, np.int64)
    locations: list[RecordLocation] = []
    for (_, mine), (column, _) in zip(asked, results, strict=True):
        codes[mine] = np.where(column.codes >= 0, column.codes + len(locations), -1)
        locations += column.locations
    cost = sum((cost for _, cost in results), LookUpCost())
    return FoundLocations(tuple(locations), codes[np.asarray(encoded.indices)], cost)


def _look_up_file_group(
    task: tuple[IndexFileGroup, pa.StringArray], context: TaskContext, *, store: Store | StoreSpec, way: LookUp | None
) -> tuple[LocationColumn, LookUpCost]:
    """Look up distinct keys in one index file group."""
    file_group, keys = task
    content = read_file_group(open_store(store) if isinstance(store, StoreSpec) else store, file_group)
    way = way or way_of(len(keys), content)
    column = find(content, keys, look_up=way)
    cost = LookUpCost(
        keys=len(keys),
        found=int((column.codes >= 0).sum()),
        buckets_sought=int(way is LookUp.SEEK),
        buckets_scanned=int(way is LookUp.SCAN),
        bytes_read=file_group.size_bytes,
    )
    return column, cost
