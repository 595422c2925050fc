"""Writes of a table with automatic keys die at storage calls: rows of before or after, each with its key."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest

from hoodie.records.change import RECORD_KEY
from hoodie.storage import MemoryStore, Store
from hoodie.table import Table
from tests.support.deaths import check_tidy, deaths
from tests.support.recoveries import noted
from tests.support.samples import sample_of
from tests.support.tables import Rows, Write, create_in, trips

START: Rows = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc"), "d": (1, "la")}
NEW: Rows = {"x": (1, "sf"), "y": (1, "rome")}
_DEATHS = 3
"""Calls of a write at which it dies in a normal run."""
_CASES = 6
"""Writes of kinds of tables in a normal run."""


def older(table: Table) -> object:
    """Update rows by their stored keys."""
    rows = table.to_arrow(where="city = 'sf'")
    return table.upsert(rows.set_column(rows.schema.get_field_index("ts"), "ts", pa.array([0] * rows.num_rows)))


def without(*keys: str) -> Rows:
    """The rows of the start without some."""
    return {key: row for key, row in START.items() if key not in keys}


WRITES: dict[str, tuple[Write, Rows]] = {
    "insert": (lambda table: table.insert(trips(NEW)), {**START, **NEW}),
    "bulk_insert": (lambda table: table.bulk_insert(trips(NEW)), {**START, **NEW}),
    "insert_overwrite": (
        lambda table: table.insert_overwrite(trips({"x": (1, "sf")})),
        {**without("a", "b"), "x": (1, "sf")},
    ),
    "upsert": (older, {**START, "a": (0, "sf"), "b": (0, "sf")}),
    "update": (lambda table: table.update({"ts": "5"}, where="id = 'c'"), {**START, "c": (5, "nyc")}),
    "delete_where": (lambda table: table.delete_where("id IN ('a', 'c')"), without("a", "c")),
}


CASES = list(product(WRITES, ["copy_on_write", "merge_on_read"], [None, "record"]))


def rows_and_keys(store: Store) -> tuple[Rows, dict[str, str]]:
    """The rows, and the key of each; no key and no row twice."""
    found = Table(store).to_arrow([RECORD_KEY, "id", "ts", "city"]).to_pylist()
    keys = {row["id"]: row[RECORD_KEY] for row in found}
    assert len(keys) == len(set(keys.values())) == len(found)
    return {row["id"]: (row["ts"], row["city"]) for row in found}, keys


@pytest.mark.parametrize(("name", "table_type", "index"), sample_of(CASES, _CASES, "writes with automatic keys"))
def test_a_write_dies_at_any_call(name: str, table_type: str, index: str | None) -> None:
    write, after = WRITES[name]
    start = MemoryStore()
    create_in(start, table_type=table_type, index=index, record_key=None, ordering=None)
    Table(start).insert(trips(START))
    _, keys = rows_and_keys(start)
    outcomes = []
    for death in deaths(start, write, keep=_DEATHS):
        with noted(death):
            found, _ = rows_and_keys(death.store)
            assert found in (START, after)
            outcomes.append(found)
            Table(death.store).insert(trips({"z": (1, "la")}))
            rows, now = rows_and_keys(death.store)
            assert rows == {**found, "z": (1, "la")}
            assert {key: now[key] for key in keys if key in rows} == {key: keys[key] for key in keys if key in rows}
            check_tidy(death.store, has_record_index=index == "record")
    assert (outcomes[0], outcomes[-1]) == (START, after)
