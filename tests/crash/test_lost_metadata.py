"""Restores and rollbacks that die once the table lacks its metadata table: the next write puts the indexes in order."""

from __future__ import annotations

import pytest

from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.crash.tables import Rows, Write, check_tidy, deaths, new_table, rows_of, trips

PROPERTIES = {
    "hoodie.metadata.compact.max.delta.commits": "1",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.clean.automatic": "false",
}
FIRST: Rows = {"a": (1, "sf"), "b": (1, "la")}
STATES: list[Rows] = [
    {**FIRST, "a": (3, "sf"), "c": (2, "sf"), "d": (3, "la")},
    {**FIRST, "a": (2, "sf"), "c": (2, "sf")},
    FIRST,
]
"""The rows before a rollback of two commits, between its two steps, and after it."""


def undone(table_type: str, is_restore: bool) -> tuple[MemoryStore, Write]:
    """A table with a record index and statistics, and the call that rolls back its last two commits."""
    store = MemoryStore()
    new_table(store, table_type=table_type, properties=PROPERTIES)
    table = Table(store)
    table.insert(trips(FIRST))
    saved = table.savepoint().instant or ""
    first = table.upsert(trips({"a": (2, "sf"), "c": (2, "sf")})).instant or ""
    table.upsert(trips({"a": (3, "sf"), "d": (3, "la")}))
    assert rows_of(store) == STATES[0]
    return store, lambda table: table.restore(saved) if is_restore else table.rollback(first, chain=True)


@pytest.mark.parametrize("is_restore", [True, False])
@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_the_next_write_puts_index_and_statistics_in_order(table_type: str, is_restore: bool) -> None:
    store, act = undone(table_type, is_restore)
    had = Table(store).view().config.metadata_partitions
    assert {"record_index", "column_stats"} <= {*had}
    lacked: set[str] = set()
    for death in deaths(store, act, since=".restore" if is_restore else ".rollback", keep=8):
        before = rows_of(death.store)
        lacked |= {*had} - {*Table(death.store).view().config.metadata_partitions}
        assert before in (STATES[2:] if is_restore else STATES), str(death)
        for key, (ts, _) in before.items():
            assert key in Table(death.store).to_arrow(where=f"ts = {ts}")["id"].to_pylist(), str(death)
        if any(found.action == "restore" for found in Table(death.store).timeline.pending()):
            act(Table(death.store))
        notes = Table(death.store).upsert(trips({"a": (9, "sf"), "z": (9, "sf")})).notes
        # The write may complete the rollback of one more commit.
        steps = STATES[STATES.index(before) :][:2]
        assert rows_of(death.store) in [{**rows, "a": (9, "sf"), "z": (9, "sf")} for rows in steps], str(death)
        table = Table(death.store)
        report = table.verify(full=True)
        assert report.ok, f"{death}: {report}"
        is_lost = any("column statistics are missing" in note for note in notes)
        assert dict(report.warnings) == ({"statistics-missing": 1} if is_lost else {}), f"{death}: {report}, {notes}"
        if is_lost:
            table.index.build("column_stats")
        assert Table(death.store).view().config.metadata_partitions == had, f"{death}: {notes}"
        assert table.index.verify("column_stats").ok, str(death)
        check_tidy(death.store)
    assert {"record_index", "column_stats"} <= lacked, "no death left the table without its metadata table"
