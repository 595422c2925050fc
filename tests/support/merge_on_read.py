"""Small merge-on-read tables for tests, and their rows as the file slices give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from hoodie.engine import LocalEngine, TaskContext
from hoodie.engine.api import Result, Task
from hoodie.files.merged_slice import read_file_slice
from hoodie.storage import MemoryStore, Store
from hoodie.table import Table
from hoodie.view.slices import list_slices
from hoodie.write.create import CreateOptions, create_table

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("city", pa.string()), ("_hoodie_is_deleted", pa.bool_())])

Rows = dict[str, tuple[int, str]]
"""The model: record key -> ordering value and city."""


def new_table(*, index: str = "record", properties: Mapping[str, str] | None = None) -> MemoryStore:
    """An empty table in memory, partitioned by `city`, ordered by `ts`."""
    store = MemoryStore()
    wanted = CreateOptions(
        record_key="id",
        partition_by="city",
        ordering="ts",
        type="merge_on_read",
        index=index,
        properties=properties or {},
    )
    create_table(store, SCHEMA, wanted)
    return store


def trips(rows: Mapping[str, tuple[int, str]], *, deleted: tuple[str, ...] = ()) -> pa.Table:
    """Rows of the model as data to write; `deleted` of them say that they delete their key."""
    return pa.table(
        {
            "id": list(rows),
            "ts": [ts for ts, _ in rows.values()],
            "city": [city for _, city in rows.values()],
            "_hoodie_is_deleted": [key in deleted for key in rows],
        },
        schema=SCHEMA,
    )


def merged_rows(store: Store) -> Rows:
    """What a reader that knows nothing of earlier writers sees, slice by slice; no key twice."""
    return {key: (ts, city) for key, ts, city, *_ in _merged(store)}


def commit_times(store: Store) -> dict[str, tuple[str, str]]:
    """Commit time and sequence number by record key: what compactions keep."""
    return {key: (time, number) for key, _, _, time, number in _merged(store)}


def _merged(store: Store) -> list[tuple[str, int, str, str, str]]:
    view = Table(store).view()
    read = view.slice_read()
    columns = ["id", "ts", "city", "_hoodie_commit_time", "_hoodie_commit_seqno"]
    found: list[tuple[str, int, str, str, str]] = []
    for file_slice in list_slices(view):
        for rows in read_file_slice(view.store, file_slice, read):
            found += zip(*(rows[name].to_pylist() for name in columns), strict=True)
    assert len({row[0] for row in found}) == len(found), f"a key has two rows: {found}"
    return found


@dataclass(frozen=True)
class EngineThen(LocalEngine):
    """Does something between the tasks of a compaction and its commit."""

    then: Callable[[], object] = field(default=lambda: None)

    def run(
        self, function: Callable[[Task, TaskContext], Result], tasks: Sequence[Task], sizes: Sequence[int] | None = None
    ) -> list[Result]:
        """Run the tasks, then the rest."""
        results = super().run(function, tasks, sizes)
        self.then()
        return results
