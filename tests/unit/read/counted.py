"""A table on a store that counts: which data files does a call open, and how often does it load the table's view?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

import hoodie
from hoodie.files.table_properties import PROPERTIES
from hoodie.storage import open_store
from tests.support import tables
from tests.support.fault_store import FaultStore

CITIES = 8
ROWS = pa.table(
    {
        "id": [f"k{number:02}" for number in range(40)],
        "city": [f"c{number % CITIES}" for number in range(40)],
        "x": list(range(40)),
    }
)


def new_table(rows: pa.Table = ROWS, *more: Any, **options: Any) -> hoodie.Table:
    """A copy of a table with a record index, partitioned by city, to which these rows were upserted."""
    return tables.new_table(rows.schema, rows, *more, **{"partition_by": "city", "index": "record", **options})


class Counted:
    """A second handle on a table, and the data files that its calls open."""

    def __init__(self, path: str) -> None:
        self._store = FaultStore(open_store(path), count_reads=True)
        self._store.register()
        self.table = hoodie.open(self._store.spec.uri, spark=False)

    def close(self) -> None:
        """Forget the store."""
        self._store.unregister()

    def opened(self) -> list[str]:
        """Paths of data files opened or read since the last call, sorted."""
        paths = {call.path for call in self._store.calls if call.path.endswith(".parquet")}
        self._store.calls.clear()
        return sorted(paths)

    def view_loads(self) -> tuple[int, int]:
        """Reads of the table's properties, and listings of its timeline, since the last call."""
        calls = [(call.operation, call.path) for call in self._store.calls]
        self._store.calls.clear()
        return calls.count(("read", PROPERTIES)), calls.count(("names", ".hoodie/timeline"))

    def listings(self, folder: str) -> int:
        """Listings of a folder since the last call of another method."""
        return sum(call.operation == "names" and call.path == folder for call in self._store.calls)

    def partitions(self) -> list[str]:
        """Partition paths of those files."""
        return sorted({path.rpartition("/")[0] for path in self.opened()})


@contextmanager
def counting(table: hoodie.Table) -> Iterator[Counted]:
    """A handle whose storage reads are counted."""
    counted = Counted(table.path)
    try:
        counted.opened()
        yield counted
    finally:
        counted.close()
