"""Conditions on rows of merge-on-read tables: a version that lost never shows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.view.slices import list_slices
from hoodie.write.create import CreateOptions, create_table

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("part", pa.string())])


def rows(*found: tuple[str, int, str | None]) -> pa.Table:
    return pa.table(dict(zip(SCHEMA.names, map(list, zip(*found, strict=True)), strict=True)), schema=SCHEMA)


@pytest.mark.parametrize("index", ["simple", "record"])
def test_values_that_share_a_partition(index: str) -> None:
    store = MemoryStore()
    wanted = CreateOptions(record_key="id", partition_by="part", ordering="ts", type="merge_on_read", index=index)
    create_table(store, SCHEMA, wanted)
    table = Table(store)
    table.upsert(rows(("a", 10, ""), ("b", 10, "")))
    table.upsert(rows(("a", 5, None), ("b", 15, None)))
    assert any(found.log_files for found in list_slices(table.view()))
    for where, kept in (("part is null", ["b"]), ("part = ''", ["a"]), ("part is null and id = 'a'", [])):
        assert table.to_arrow(where=where)["id"].to_pylist() == kept, where
