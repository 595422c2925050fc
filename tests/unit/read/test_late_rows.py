"""Change data has the rows that a late row changed, though they keep the commit time of an earlier commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.files.table_properties import update_table_config
from hoodie.format.table import table_keys as keys
from hoodie.storage import MemoryStore
from tests.support import tables
from tests.support.mixing_tables import PARTIAL, create, rows_of
from tests.support.tables import made_once

KEEP = {"hoodie.compact.inline": "false"}
Event = tuple[Any, ...]


@made_once
def new_table(index: str = "simple") -> hoodie.Table:
    return create(MemoryStore().uri(""), PARTIAL, 9, index=index, type="merge_on_read", properties=KEEP)


@made_once
def late_table() -> hoodie.Table:
    """A table with a row that lacks a field, and a row that lacks none."""
    table = new_table()
    upsert(table, ("k", 9, None, "b", 1, None), ("m", 9, "a", "b", 1, None))
    return table


def upsert(table: hoodie.Table, *rows: tuple[Any, ...]) -> str:
    return str(table.upsert(rows_of(rows, PARTIAL)).instant)


def events(table: hoodie.Table, since: str | None, **how: Any) -> list[Event]:
    """The changes after an instant: the operation, the key, and field `a` before and after."""
    found = table.changes(since, mode="cdc", **how).to_pylist()
    images = [(row["op"], *((row[side] or {"id": None, "a": None}) for side in ("before", "after"))) for row in found]
    return sorted(((op, old["id"] or new["id"], old["a"], new["a"]) for op, old, new in images), key=str)


def first_of(table: hoodie.Table) -> str:
    return str(table.timeline.completed().instants[0].requested_time)


def test_a_late_row_is_a_change_if_it_fills_a_field() -> None:
    table = late_table()
    first = first_of(table)
    filled = upsert(table, ("k", 3, "late", "other", 2, None), ("m", 3, "late", "other", 2, None))
    (change,) = table.changes(first, mode="cdc").to_pylist()
    row = {"id": "k", "ord": 9, "a": None, "b": "b", "n": 1, "_hoodie_is_deleted": None}
    assert change == {"op": "u", "ts_ms": filled, "before": row, "after": {**row, "a": "late"}}
    upsert(table, ("k", 2, "later", None, 3, None))
    assert events(table, filled) == []
    assert table.changes(first).num_rows == 0  # as the incremental query of JVM Hudi


def test_it_is_chosen_by_columns_and_conditions_as_other_changes() -> None:
    table = late_table()
    first = first_of(table)
    filled = upsert(table, ("k", 3, "late", "other", 2, None))
    images = table.changes(first, mode="cdc", columns=["b"], flat=True)
    assert images.select(["op", "before_b", "after_b"]).to_pylist() == [{"op": "u", "before_b": "b", "after_b": "b"}]
    for where, count in {"a = 'late'": 1, "a IS NULL": 1, "a = 'other'": 0, "b = 'b'": 1, "n = 2": 0}.items():
        assert len(events(table, first, where=where)) == count, where
        assert table.changes(first, mode="cdc", columns="ord", where=where).num_rows == count
    assert [len(events(table, since, until=filled)) for since in (first, filled)] == [1, 0]


CASES: dict[str, tuple[Callable[[hoodie.Table], object], list[Event]]] = {
    "an update and a late row in one commit": (
        lambda t: upsert(t, ("k", 3, "late", None, 2, None), ("m", 9, "a", "b", 1, None), ("n", 1, "x", None, 2, None)),
        [("i", "n", None, "x"), ("u", "k", None, "late"), ("u", "m", "a", "a")],
    ),
    "two late rows of a key in one commit": (
        lambda t: upsert(t, ("k", 3, "late", None, 2, None), ("k", 4, None, "x", 3, None)),
        [("u", "k", None, "late")],
    ),
    "a delete after it": (
        lambda t: (upsert(t, ("k", 3, "late", None, 2, None)), t.delete(["k"])),
        [("d", "k", "late", None), ("u", "k", None, "late")],
    ),
    "a late delete": (lambda t: upsert(t, ("k", 3, "late", None, 2, True)), []),
    "a late delete of the values of a late row": (
        lambda t: (upsert(t, ("k", 3, "late", None, 2, None)), upsert(t, ("k", 5, None, None, 2, True))),
        [("u", "k", "late", None), ("u", "k", None, "late")],
    ),
    "a row that wins after it": (
        lambda t: (upsert(t, ("k", 3, "late", None, 2, None)), upsert(t, ("k", 9, None, "x", 2, None))),
        [("u", "k", "late", "late"), ("u", "k", None, "late")],
    ),
    "a compaction and a late row after it": (
        lambda t: (
            upsert(t, ("k", 3, "late", None, 2, None), ("m", 9, None, "b", 1, None)),
            t.schedule_compaction(),
            t.compact(),
            upsert(t, ("k", 4, "later", None, 2, None)),
        ),
        [("u", "k", None, "late"), ("u", "m", "a", "a")],
    ),
    "a log compaction and a late row after it": (
        lambda t: (
            upsert(t, ("k", 3, "late", None, 2, None)),
            upsert(t, ("m", 3, None, "b", 2, None)),
            t.schedule_log_compaction(blocks_min=2),
            t.compact(),
            upsert(t, ("k", 2, "latest", None, 2, None)),
        ),
        [("u", "k", None, "late")],
    ),
    "an overwrite after it": (
        lambda t: (
            upsert(t, ("k", 3, "late", None, 2, None)),
            t.insert_overwrite_table(rows_of([("k", 1, None, None, 2, None)], PARTIAL)),
        ),
        [("d", "k", "late", None), ("d", "m", "a", None), ("i", "k", None, None), ("u", "k", None, "late")],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_commit_has_its_changes(case: str) -> None:
    table = late_table()
    first = first_of(table)
    act, expected = CASES[case]
    act(table)
    assert events(table, first) == expected
    update_table_config(table.view().store, {keys.METADATA_PARTITIONS: None})
    assert events(table, first) == expected  # from listings of the storage


def test_late_rows_of_the_first_commit_are_part_of_its_inserts() -> None:
    table = new_table("bucket")
    upsert(table, ("k", 3, "late", None, 2, None), ("k", 9, None, "b", 1, None), ("m", 1, None, None, 1, True))
    assert events(table, None) == [("i", "k", None, "late")]


def test_a_late_row_changes_rows_of_tables_that_mix_no_fields() -> None:
    """A row of the base file is visible again, and a logged row with some columns gets the others from the late row."""
    found = {}
    acts: dict[str, Callable[[hoodie.Table], hoodie.WriteResult]] = {
        "again": lambda t: t.delete(["k"]),
        "partly": lambda t: t.update({"a": "'p'"}, where="id = 'k'"),
    }
    columns = {"id": ["k"], "ord": [20], "a": ["a"], "b": ["b"]}
    properties = {**KEEP, "hoodie.python.partial.updates": "always"}
    options: dict[str, Any] = {"ordering": "ord", "type": "mor", "index": "simple", "properties": properties}
    for name, act in acts.items():
        table = tables.new_table(pa.table(columns).schema, columns, **options)
        since = act(table).instant
        table.upsert(pa.table({"id": ["k"], "ord": [10], "a": ["late"], "b": ["late"]}))
        (change,) = table.changes(since, mode="cdc").to_pylist()
        assert [change["after"]] == table.to_arrow(columns=[*columns]).to_pylist()
        found[name] = (change["op"], change["before"], change["after"]["b"])
    row = {"id": "k", "ord": 20, "a": "p", "b": "b"}
    assert found == {"again": ("i", None, "b"), "partly": ("u", row, "late")}


def test_rows_of_a_key_that_is_stored_twice_are_compared_in_their_order() -> None:
    table = new_table()
    table.insert(rows_of([("k", 9, "a", None, 1, None)], PARTIAL))
    table.insert(rows_of([("k", 8, None, None, 2, None)], PARTIAL))
    last = upsert(table, ("k", 3, "late", None, 3, None))
    assert events(table, first_of(table))[-1] == ("u", "k", None, "late")
    upsert(table, ("k", 2, "no", None, 4, None))
    assert table.count() == 2
    assert events(table, last) == []
