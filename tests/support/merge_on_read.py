"""Small merge-on-read tables for tests, and their rows as the file slices give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from hoodie.commit.call import Call
from hoodie.engine import Engine, LocalEngine, TaskContext
from hoodie.engine.api import Result, Task
from hoodie.files.merged_slice import read_file_slice
from hoodie.storage import MemoryStore, Store
from hoodie.table import Table
from hoodie.view.slices import list_slices
from hoodie.view.table_state import TableState
from tests.support.tables import SCHEMA, Rows, trips, trips_store

__all__ = ["SCHEMA", "EngineThen", "Rows", "commit_times", "merged_rows", "new_table", "on_engine", "trips"]


def new_table(*, index: str = "record", properties: Mapping[str, str] | None = None) -> MemoryStore:
    """An empty table in memory, partitioned by `city`, ordered by `ts`."""
    return trips_store(table_type="merge_on_read", index=index, properties=properties)


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


def on_engine(store: Store, engine: Engine, properties: Mapping[str, str] | None = None) -> Call:
    """A call whose tasks all run on this engine, however small they are."""
    options = {"hoodie.python.local.bytes.max": "0", **(properties or {})}
    return Call(state=TableState(store), engine=engine, properties=options)
