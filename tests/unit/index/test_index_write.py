"""What the indexes of a table read and record for one write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import hoodie
from hoodie.config.indexes import INDEX_TYPE_KEY
from hoodie.files.table_properties import update_table_config
from hoodie.index import record
from hoodie.index.record.state import record_index
from hoodie.table import Table
from hoodie.view.table_view import TableView
from tests.support.index_check import check_index
from tests.unit.write.tables import SCHEMA, trips


def test_what_several_ask_for_is_read_once(tmp_path: Path) -> None:
    table = hoodie.create(tmp_path, SCHEMA, record_key="id", partition_by="city", spark=False)
    table.upsert(trips(("a", 1, 1.0, "sf")))
    view, calls = table.view(), [0]

    def counted(view: TableView) -> int:
        calls[0] += 1
        return len(view.timeline)

    assert [view.fact(counted), view.fact(counted)] == [1, 1]
    assert calls == [1]
    assert view.fact(record_index) is view.fact(record_index)


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert"])
def test_a_write_lists_the_record_index_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str) -> None:
    table = hoodie.create(tmp_path, SCHEMA, record_key="id", partition_by="city", spark=False)
    table.upsert(trips(("a", 1, 1.0, "sf")))
    views: list[TableView] = []
    list_files = record.state.index_history

    def counted(view: TableView) -> object:
        views.append(view)
        return list_files(view)

    monkeypatch.setattr(record.state, "index_history", counted)
    write: Callable[..., object] = getattr(table, operation)
    write(trips(("b", 1, 1.0, "sf")))
    # Writes that look up keys also count the groups by which keys are staged, before the write begins.
    assert len(views) == 1 + (operation in ("upsert", "insert"))
    check_index(table.view())


def test_the_record_index_is_kept_if_another_index_serves_the_write(tmp_path: Path) -> None:
    """A JVM writer may store another type beside a record index, which stays true to the data all the same."""
    table: Table = hoodie.create(tmp_path, SCHEMA, record_key="id", partition_by="city", ordering="ts", spark=False)
    table.upsert(trips(("a", 1, 1.0, "sf"), ("b", 1, 1.0, "nyc")))
    update_table_config(table.view().store, {INDEX_TYPE_KEY: "GLOBAL_SIMPLE"})
    assert table.upsert(trips(("a", 2, 1.0, "la"), ("c", 1, 1.0, "sf"))).look_up is None
    check_index(table.view())
    table.delete(trips(("b", 1, 1.0, "nyc")).select(["id"]))
    check_index(table.view())
    assert table.to_arrow().num_rows == 2
