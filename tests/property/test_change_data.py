"""Change data of random operations: the events of each commit lead from the rows before it to the rows after it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.records.change import IS_DELETED
from hoodie.table import Table
from hoodie.view.listing import list_files
from tests.support.mixing_tables import PARTIAL, POSTGRES, create, drawn, rows_of
from tests.support.seeds import seeded

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("city", pa.string()), ("value", pa.float64())])
CITIES = ("sf", "nyc", "la")
Row = dict[str, Any]


@pytest.mark.matrix(keep=5)
@seeded(1, 2)
@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
@pytest.mark.parametrize("index", ["record", "simple"])
@pytest.mark.parametrize("logged", [False, True])
def test_the_changes_of_each_commit_lead_from_its_rows_before_to_its_rows_after(
    table_type: str, index: str, logged: bool, seed: int
) -> None:
    chance = random.Random(seed)
    table = hoodie.create(
        f"memory://change-data-{table_type}-{index}-{logged}-{seed}", SCHEMA, record_key="id", partition_by="city",
        ordering="ts", type=table_type, index=index, spark=False,
        properties={"hoodie.clean.automatic": "false", "hoodie.table.cdc.enabled": str(logged).lower()},
    )  # fmt: skip
    states: list[tuple[str, dict[tuple[str, str], Row]]] = []
    for number in range(14):
        done = _operation(table, chance, number)
        if done is not None:
            states.append((done, _rows(table)))
    found = table.changes(mode="cdc").to_pylist()
    by_commit: dict[str, list[Row]] = {}
    for change in found:
        by_commit.setdefault(change["ts_ms"], []).append(change)
    assert by_commit.keys() <= {instant for instant, _ in states}
    rows: dict[tuple[str, str], Row] = {}
    for instant, after in states:
        rows = _applied(rows, by_commit.get(instant, []))
        assert rows == after, f"commit {instant}"
    # A span has the changes of its commits, as columns too.
    middle = states[len(states) // 2][0]
    later = table.changes(since=middle, mode="cdc", flat=True).to_pylist()
    wanted = [change for change in found if change["ts_ms"] > middle]
    assert sorted(map(_flat, wanted), key=repr) == sorted(later, key=repr)


@pytest.mark.matrix(keep=2)
@seeded(3, 4)
@pytest.mark.parametrize("payload", [PARTIAL, POSTGRES])
@pytest.mark.parametrize(("version", "index"), [(6, "simple"), (8, "bucket"), (9, "record"), (9, "simple")])
def test_a_late_row_that_fills_fields_is_a_change(
    tmp_path: Path, payload: str, version: int, index: str, seed: int
) -> None:
    """Its row keeps the commit time of an earlier commit. Other rows that keep theirs are no changes."""
    chance, options = random.Random(seed), {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}
    table = create(tmp_path, payload, version, index=index, type="merge_on_read", properties=options)
    done = [_late_operation(table, chance, payload, number) for number in range(12)]
    by_commit: dict[str, list[Row]] = {}
    for change in table.changes(mode="cdc").to_pylist():
        by_commit.setdefault(change["ts_ms"], []).append(change)
    rows: dict[str, Row] = {}
    for instant in filter(None, done):
        after = {row["id"]: row for row in table.to_arrow(as_of=instant).to_pylist()}
        for change in by_commit.get(instant, []):
            key = (change["after"] or change["before"])["id"]
            assert change["before"] == (_data(rows[key]) if key in rows else None)
            assert change["after"] == (_data(after[key]) if key in after else None)
            is_late = key in after and after[key]["_hoodie_commit_time"] != instant
            assert not is_late or change["before"] != change["after"]
        changed = {(change["after"] or change["before"])["id"] for change in by_commit.get(instant, [])}
        assert len(changed) == len(by_commit.get(instant, []))
        kept = {key: _data(row) for key, row in rows.items() if key not in changed}
        assert kept == {key: _data(row) for key, row in after.items() if key not in changed}, f"commit {instant}"
        rows = after


def _late_operation(table: Table, chance: random.Random, payload: str, number: int) -> str:
    """Commit random rows or deletes, and sometimes compact after it; return the instant."""
    names = [f"k{place:02}" for place in range(20)]
    rows = [drawn(chance, key, payload, 1000 * number + n) for n, key in enumerate(chance.choices(names, k=9))]
    data = rows_of(rows, payload)
    done = table.delete(data.select(["id"])) if number and chance.random() < 0.2 else table.upsert(data)
    service, logs = chance.random(), table.view().config.version.value >= 8
    if service < 0.3 and (table.schedule_log_compaction(2) if service < 0.15 and logs else table.schedule_compaction()):
        table.compact()
    return done.instant


def _data(row: Row) -> Row:
    return {name: value for name, value in row.items() if not name.startswith("_hoodie_") or name == IS_DELETED}


def _operation(table: Table, chance: random.Random, number: int) -> str | None:
    """Commit one random operation, and sometimes compact or cluster after it; return its instant."""
    rows = [_row(chance, number) for _ in range(chance.randint(1, 12))]
    data = pa.Table.from_pylist(list({row["id"]: row for row in rows}.values()), schema=SCHEMA)
    key_columns = ["id", "city"]
    choices: list[Callable[[], Any]] = [
        lambda: table.upsert(data),
        lambda: table.upsert(data),
        lambda: table.delete(data.select(key_columns)),
        lambda: table.insert_overwrite(data),
        lambda: table.delete_partitions([chance.choice(sorted(list_files(table.view())))]),
        lambda: table.update({"value": "value + 1"}, where=f"city = '{chance.choice(CITIES)}'"),
    ]
    done = chance.choice(choices[:1] if number == 0 else choices)()
    service = chance.random()
    if service < 0.25 and table.view().config.table_type.value == "MERGE_ON_READ":
        table.compact()
    elif service < 0.35:
        table.cluster(by=["value"])
    return done.instant or None


def _row(chance: random.Random, number: int) -> Row:
    value = chance.choice([None, chance.random()])
    return {
        "id": f"k{chance.randint(0, 20):02}",
        "ts": chance.randint(0, number + 1),
        "city": chance.choice(CITIES),
        "value": value,
    }


def _rows(table: Table) -> dict[tuple[str, str], Row]:
    return {_identity(row): row for row in table.to_arrow(columns=SCHEMA.names).to_pylist()}


def _applied(rows: dict[tuple[str, str], Row], changes: list[Row]) -> dict[tuple[str, str], Row]:
    """Apply the changes of one commit: the images before must be the rows; deletes go first, as a record may move."""
    now = dict(rows)
    for change in changes:
        if change["op"] in ("u", "d"):
            assert rows[_identity(change["before"])] == change["before"]
            del now[_identity(change["before"])]
        else:
            assert change["before"] is None
    for change in changes:
        if change["op"] in ("u", "i"):
            assert _identity(change["after"]) not in now
            now[_identity(change["after"])] = change["after"]
        else:
            assert change["after"] is None
    return now


def _identity(row: Row) -> tuple[str, str]:
    return row["id"], row["city"]


def _flat(change: Row) -> Row:
    flat = {"op": change["op"], "ts_ms": change["ts_ms"]}
    for image in ("before", "after"):
        values = change[image] or dict.fromkeys(SCHEMA.names)
        flat |= {f"{image}_{name}": values[name] for name in SCHEMA.names}
    return flat
