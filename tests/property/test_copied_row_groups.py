"""Random writes to base files of many row groups, beside a dict: copied and encoded row groups have the same rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from tests.support.row_groups import small_row_groups
from tests.support.samples import SEED
from tests.support.tables import new_table

SCHEMA = pa.schema(
    [("id", pa.string()), ("ts", pa.int64()), ("x", pa.float64()), ("s", pa.string()), ("l", pa.list_(pa.int32()))]
)
Rows = dict[str, dict[str, Any]]
KINDS: dict[str, dict[str, Any]] = {
    "record": {"index": "record"},
    "simple": {"index": "simple"},
    "bloom": {"index": "bloom"},
    "statistics": {
        "index": "record",
        "properties": {"hoodie.metadata.index.column.stats.enable": "true"},
    },
    "change data": {"index": "record", "properties": {"hoodie.table.cdc.enabled": "true"}},
    "commit order": {"index": "record", "ordering": None},
    "version 6": {"index": "simple", "table_version": 6},
    "version 8": {"index": "record", "table_version": 8},
    "merge on read": {
        "type": "mor",
        "index": "record",
        "properties": {"hoodie.metadata.index.column.stats.enable": "true"},
    },
    "merge on read, commit order": {"type": "mor", "index": "bloom", "ordering": None},
    "merge on read, version 6": {
        "type": "mor",
        "index": "simple",
        "table_version": 6,
        "ordering": None,
    },
}


def batch(drawn: random.Random, keys: list[int], ts: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"k{key:04}",
            "ts": ts if drawn.random() < 0.8 else drawn.randrange(ts + 1),
            "x": drawn.choice([None, float("nan"), drawn.random()]),
            "s": drawn.choice([None, "", "é" * drawn.randrange(20)]),
            "l": drawn.choice([None, [], [1, None]]),
        }
        for key in keys
    ]


def keys_of(drawn: random.Random, near: bool) -> list[int]:
    """Keys that are close to each other, so that most row groups have none of them, or keys all over."""
    if near:
        first = drawn.randrange(1000)
        return sorted(drawn.sample(range(first, first + 12), drawn.randrange(1, 8)))
    return sorted(drawn.sample(range(1000), drawn.randrange(1, 25)))


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    return small_row_groups(monkeypatch)


@pytest.mark.seeded
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_writes_beside_a_dict(kind: str, seed: int, copies: list[tuple[str, ...]]) -> None:
    drawn = random.Random(f"{SEED} {kind} {seed}")
    options = {"ordering": "ts", "type": "cow", **KINDS[kind]}
    first = batch(drawn, list(range(0, 1000, 3)), 1)
    table = new_table(SCHEMA, **options)
    table.bulk_insert(pa.Table.from_pylist(first, schema=SCHEMA))
    rows: Rows = {row["id"]: row for row in first}
    is_ordered = options["ordering"] is not None
    for step in range(2, 18):
        change(table, rows, drawn, step, is_ordered)
        if options["type"] == "mor" and drawn.random() < 0.5:
            table.schedule_compaction()
            table.compact()
        found = table.to_arrow([*SCHEMA.names]).sort_by("id").to_pylist()
        assert repr(found) == repr([rows[key] for key in sorted(rows)]), step
        report = table.verify(full=True)
        assert report.ok, report
        for low in (0.1, 0.9):
            kept = sum(row["x"] is not None and (row["x"] > low or row["x"] != row["x"]) for row in rows.values())
            assert table.count(where=f"x > {low}") == kept
    assert () in copies, "no row group was copied"
    if options["type"] == "cow":
        assert any(changed and "s" not in changed for changed in copies), "no row group was copied in part"


def change(table: hoodie.Table, rows: Rows, drawn: random.Random, step: int, is_ordered: bool) -> None:
    """Do one random write to the table and to the rows."""
    keys = keys_of(drawn, near=drawn.random() < 0.6)

    def upsert() -> None:
        data = batch(drawn, keys, step)
        table.upsert(pa.Table.from_pylist(data, schema=SCHEMA))
        for row in data:
            old = rows.get(row["id"])
            if old is None or not is_ordered or row["ts"] >= old["ts"]:
                rows[row["id"]] = row

    def delete() -> None:
        gone = [f"k{key:04}" for key in keys]
        table.delete(gone)
        for key in gone:
            rows.pop(key, None)

    def update() -> None:
        bound = f"k{min(keys):04}"
        table.update({"s": "'new'"}, where=f"id >= '{bound}' AND id < '{bound}9'")
        for key, row in rows.items():
            if bound <= key < f"{bound}9":
                rows[key] = {**row, "s": "new"}

    def scatter() -> None:
        rest = drawn.randrange(7)
        table.update({"x": "ts * 0.5", "l": "null"}, where=f"id LIKE '%{rest}' AND s IS NULL")
        for key, row in rows.items():
            if key.endswith(str(rest)) and row["s"] is None:
                rows[key] = {**row, "x": row["ts"] * 0.5, "l": None}

    def set_again() -> None:
        chosen = drawn.sample(sorted(rows), min(len(rows), 9))
        data = [{**rows[key], "x": drawn.choice([rows[key]["x"], float("nan"), 0.25])} for key in chosen]
        table.upsert(pa.Table.from_pylist(data, schema=SCHEMA))
        rows.update({row["id"]: row for row in data})

    def append() -> None:
        data = batch(drawn, [2000 + step * 50 + place for place in range(drawn.randrange(1, 40))], step)
        table.upsert(pa.Table.from_pylist(data, schema=SCHEMA))
        rows.update({row["id"]: row for row in data})

    acts: list[Callable[[], None]] = [upsert, upsert, delete, update, scatter, set_again, append]
    act = set_again if step == 2 else drawn.choice(acts)
    act()
