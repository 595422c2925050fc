"""Look up record keys in the record index for a read, with one task for each file group that may have keys."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.engine import Engine, LocalEngine, TaskContext
from hoodie.format.metadata_table.record_location import LocationColumn, RecordLocation
from hoodie.index.api import LookUpCost
from hoodie.index.record.file_groups import IndexFileGroup, RecordIndexState, read_file_group
from hoodie.index.record.find import LookUp, find, way_of
from hoodie.storage import Store, StoreSpec, open_store


@dataclass(frozen=True, slots=True)
class FoundLocations:
    """Locations of keys. `codes` has for each key its position in `locations`; -1 if the index has no location."""

    locations: tuple[RecordLocation, ...]
    codes: npt.NDArray[np.int64]
    cost: LookUpCost

    @property
    def groups(self) -> frozenset[tuple[str, str]]:
        """Partition paths and file ids of the file groups that hold the keys."""
        return frozenset((found.partition_path, found.file_id) for found in self.locations)


def look_up(
    engine: Engine, store: Store, state: RecordIndexState, keys: pa.StringArray, *, way: LookUp | None = None
) -> FoundLocations:
    """Find the locations of keys, in the order of the keys, which may repeat. `way` forces seek or scan.

    Reads the files of the index file groups to which the keys belong. Memory: the keys, and on each worker the memory
    of `hoodie.index.record.find.find` for one index file group. Locations are returned as stored: the caller checks
    that their file groups still exist.

    Raises:
        CorruptFileError: a file of a file group does not parse.
    """
    encoded = keys.dictionary_encode()
    distinct = encoded.dictionary
    numbers = state.numbers_of(distinct)
    rows = [np.flatnonzero(numbers == file_group.number) for file_group in state.file_groups]
    asked = [(file_group, mine) for file_group, mine in zip(state.file_groups, rows, strict=True) if len(mine)]
    tasks = [_Task(store.spec, file_group, distinct.take(pa.array(mine)), way) for file_group, mine in asked]
    # Threads of this process share `store`; workers of other engines open a store.
    function = partial(_look_up_file_group, store=store) if isinstance(engine, LocalEngine) else _look_up_file_group
    results = engine.run(function, tasks)
    codes = np.full(len(distinct), -1, np.int64)
    locations: list[RecordLocation] = []
    for (_, mine), (column, _) in zip(asked, results, strict=True):
        codes[mine] = np.where(column.codes >= 0, column.codes + len(locations), -1)
        locations += column.locations
    cost = sum((cost for _, cost in results), LookUpCost())
    return FoundLocations(tuple(locations), codes[np.asarray(encoded.indices)], cost)


@dataclass(frozen=True, slots=True)
class _Task:
    """The look-up of distinct keys in one index file group. Picklable."""

    store: StoreSpec
    file_group: IndexFileGroup
    keys: pa.StringArray
    way: LookUp | None


def _look_up_file_group(
    task: _Task, context: TaskContext, *, store: Store | None = None
) -> tuple[LocationColumn, LookUpCost]:
    content = read_file_group(store or open_store(task.store), task.file_group)
    way = task.way or way_of(len(task.keys), content)
    column = find(content, task.keys, look_up=way)
    cost = LookUpCost(
        keys=len(task.keys),
        found=int((column.codes >= 0).sum()),
        buckets_sought=int(way is LookUp.SEEK),
        buckets_scanned=int(way is LookUp.SCAN),
        bytes_read=task.file_group.size_bytes,
    )
    return column, cost
