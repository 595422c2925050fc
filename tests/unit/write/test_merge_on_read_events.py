"""Late events, deletes and duplicates in the logs of a merge-on-read table: what must come out is what was written."""

from __future__ import annotations

from itertools import count
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.table import Table

SCHEMA = pa.schema(
    [("id", pa.string()), ("ts", pa.int64()), ("city", pa.string()), ("a", pa.string()), ("n", pa.int64())]
)
_NUMBERS = count()


def new_table(schema: pa.Schema = SCHEMA, **options: Any) -> Table:
    """A merge-on-read table in this process, ordered by `ts`."""
    named: dict[str, Any] = {"record_key": "id", "partition_by": "city", "ordering": "ts", "type": "merge_on_read"}
    return hoodie.create(f"memory://events-{next(_NUMBERS)}", schema, **{**named, **options}, spark=False)


def data(*rows: tuple[Any, ...], schema: pa.Schema = SCHEMA) -> pa.Table:
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)],
        schema=schema,
    )


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow(columns=SCHEMA.names).to_pylist())


@pytest.mark.parametrize("late_comes_first", [True, False])
def test_an_update_does_not_bring_a_late_row_back(late_comes_first: bool) -> None:
    table = new_table(index="simple")
    table.upsert(data(("k", 20, "sf", "a0", 0)))
    late = data(("k", 10, "sf", "late", 99))
    if late_comes_first:
        table.upsert(late)
    table.update({"n": "n + 1"})
    if not late_comes_first:
        table.upsert(late)
    assert rows_of(table) == [("k", 20, "sf", "a0", 1)]
    table.schedule_compaction()
    table.compact()
    assert rows_of(table) == [("k", 20, "sf", "a0", 1)]
