"""Small tables of trips for tests of writes, and the check that nothing came of a refused call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.support import tables

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("fare", pa.float64()), ("city", pa.string())])
NAMED: dict[str, Any] = {"record_key": "id", "partition_by": "city", "ordering": "ts"}


def trips(*rows: tuple[str | None, int | None, float | None, str | None]) -> pa.Table:
    """Rows of the table's columns."""
    return tables.table_of(SCHEMA, *rows)


FIRST = trips(("a", 1, 1.0, "sf"), ("b", 1, 2.0, "nyc"))


def new_table(*data: Any, path: Path | None = None, **options: Any) -> Table:
    """A table of trips with this data, partitioned by city and ordered by `ts`; in memory, or in the folder `path`."""
    return tables.new_table(SCHEMA, *data, path=path, **{**NAMED, **options})


def ids_of(table: Table, where: str | None = None) -> list[str]:
    """The keys of the rows, sorted."""
    return sorted(table.to_arrow(["id"], where)["id"].to_pylist())


def memory_of(table: Table) -> MemoryStore:
    """The store of a table in memory."""
    store = table.view().store
    assert isinstance(store, MemoryStore)
    return store


def files_of(place: Table | MemoryStore | Path) -> dict[str, bytes]:
    """Every file of a table in memory or of a folder, with its bytes: what a refused call must not change."""
    if isinstance(place, Path):
        return {str(file.relative_to(place)): file.read_bytes() for file in sorted(place.rglob("*")) if file.is_file()}
    store = memory_of(place) if isinstance(place, Table) else place
    return {path: data for path, (data, _) in store._content.files.items()}


@contextmanager
def untouched(
    place: Table | MemoryStore | Path,
    match: str | None,
    error: type[BaseException] | tuple[type[BaseException], ...] = hoodie.HoodieError,
) -> Iterator[pytest.ExceptionInfo[BaseException]]:
    """The block raises this error with a message that matches, and no file changes."""
    before = files_of(place)
    with pytest.raises(error, match=match) as caught:
        yield caught
    str(caught.value).encode()  # a terminal can print it
    assert files_of(place) == before
