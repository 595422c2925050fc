"""Writes by options and save mode, in process: what mode overwrite does to options and tables."""

from __future__ import annotations

import pyarrow as pa

from hoodie.engine import ArrowDataset
from hoodie.table import Table
from hoodie.table.save import Save
from hoodie.write.create_by_options import JVM_DEFAULTS
from hoodie.write.result import WriteResult
from tests.unit.write.tables import FIRST, new_table, trips

WRITE = "hoodie.datasource.write"
NAMED = {f"{WRITE}.recordkey.field": "id", f"{WRITE}.partitionpath.field": "city", f"{WRITE}.precombine.field": "ts"}


def save(table: Table, data: pa.Table, options: dict[str, str], *, overwrites: bool = False) -> WriteResult | None:
    """Write the rows as `df.write.format("hudi")` with these options does."""
    wanted = Save.of(options, overwrites=overwrites, defaults=JVM_DEFAULTS)
    store = table.view().store
    return wanted.checked(store, data.schema, ArrowDataset(data.slice(0, 0))).run(table, ArrowDataset(data))


def test_mode_overwrite_drops_duplicates_of_the_data_only() -> None:
    table = new_table(FIRST)
    rows = trips(("a", 1, 1.0, "sf"), ("n", 1, 1.0, "sf"), ("n", 2, 2.0, "sf"))
    drops = {f"{WRITE}.operation": "insert", f"{WRITE}.insert.drop.duplicates": "true"}
    result = save(table, rows, drops, overwrites=True)
    assert result is not None
    assert (result.operation, result.inserted, result.duplicates) == ("insert_overwrite_table", 2, 1)
    assert sorted(table.to_arrow(["id", "ts"]).to_pylist(), key=str) == [{"id": "a", "ts": 1}, {"id": "n", "ts": 2}]


def test_mode_overwrite_notes_that_it_created_the_table_anew() -> None:
    table = new_table(FIRST)
    first = table.timeline.instants[0]
    for options in ({}, NAMED):
        result = save(
            table, FIRST, {**options, "hoodie.datasource.write.hive_style_partitioning": "true"}, overwrites=True
        )
        assert result is not None
        assert (result.notes, table.timeline.instants[0]) == ((), first)
    result = save(table, FIRST, {f"{WRITE}.recordkey.field": "ts"}, overwrites=True)
    assert result is not None
    assert result.notes[0].startswith("mode overwrite deleted the table with its history, and created it anew")
    assert first not in table.timeline.instants
    assert table.view().config.record_key_fields == ("ts",)
