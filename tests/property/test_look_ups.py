"""Look-ups by key against a scan of everything, after any sequence of operations, now and at every earlier moment."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa
import pytest

import hoodie
from hoodie.storage import MemoryStore
from tests.property.model import SCHEMA, fresh_batch, random_batch, to_arrow
from tests.support.seeds import seeded

OPERATIONS = 9
KEYS = [f"k{number}" for number in range(60)]
COMPACT_OFTEN = {"hoodie.metadata.compact.max.delta.commits": "3"}
Places = dict[str, tuple[str, str]]


def places(table: hoodie.Table, as_of: str | None = None) -> Places:
    """Partition path and file id of every record, by a scan that no index helps."""
    found = table.to_arrow(["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"], as_of=as_of)
    return {
        row["_hoodie_record_key"]: (row["_hoodie_partition_path"], row["_hoodie_file_name"].partition("_")[0])
        for row in found.to_pylist()
    }


def check(table: hoodie.Table, rng: random.Random, instant: str | None) -> None:
    """Everything that asks the index tells what the scan tells."""
    expected = places(table, instant)
    asked = [*rng.choices(KEYS, k=12), *rng.sample(sorted(expected), min(5, len(expected))), "nobody"]
    found = table.record_locations(asked, as_of=instant)
    assert found["_hoodie_record_key"].to_pylist() == asked
    located = list(zip(found["partition_path"].to_pylist(), found["file_id"].to_pylist(), strict=True))
    assert located == [expected.get(key, (None, None)) for key in asked]
    names = ", ".join(f"'{key}'" for key in asked)
    by_condition = table.to_arrow(["_hoodie_record_key"], where=f"id IN ({names})", as_of=instant)
    held = sorted(set(asked) & expected.keys())
    assert sorted(by_condition["_hoodie_record_key"].to_pylist()) == held
    entries = table.inspect.index(instant)
    assert dict(zip(entries["key"].to_pylist(), zip(*_columns(entries), strict=True), strict=True)) == expected
    if instant is None:
        assert sorted(table.read_keys(asked)["id"].to_pylist()) == held
        new = table.filter_exists(pa.table({"id": asked}))["id"].to_pylist()
        assert new == [key for key in asked if key not in expected]


def _columns(entries: pa.Table) -> list[list[str]]:
    return [entries[name].to_pylist() for name in ("partition_path", "file_id")]


def delete_a_partition(table: hoodie.Table, rng: random.Random) -> str:
    """Delete a partition that has rows; without any, insert some."""
    partitions = sorted({partition for partition, _ in places(table).values()})
    if partitions:
        return table.delete_partitions([rng.choice(partitions)]).instant
    return table.upsert(to_arrow(random_batch(rng, 10))).instant


def replayed(entries: Places, changes: pa.Table) -> Places:
    """Entries with the changes made, one after the other."""
    for row in changes.to_pylist():
        if row["change"] == "delete":
            entries.pop(row["key"], None)
        else:
            entries[row["key"]] = (row["partition_path"], row["file_id"])
    return entries


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("moves", [True, False], ids=["records move", "records stay"])
@seeded(0, 1)
def test_look_ups_tell_what_a_scan_tells(seed: int, moves: bool) -> None:
    rng = random.Random(f"{seed} {moves}")
    options = {**COMPACT_OFTEN, "hoodie.record.index.update.partition.path": str(moves).lower()}
    table = hoodie.create(
        MemoryStore().uri(""), SCHEMA, record_key="id", partition_by="city", ordering="ts", index="record",
        properties=options, spark=False,
    )  # fmt: skip
    operations: list[tuple[int, Callable[[int], str]]] = [
        (5, lambda number: table.upsert(to_arrow(random_batch(rng, 40))).instant),
        (2, lambda number: table.delete(to_arrow(random_batch(rng, 15))).instant),
        (1, lambda number: table.insert(to_arrow(fresh_batch(rng, 10, number))).instant),
        (1, lambda number: table.bulk_insert(to_arrow(fresh_batch(rng, 10, number))).instant),
        (1, lambda number: table.insert_overwrite(to_arrow(fresh_batch(rng, 10, number))).instant),
        (1, lambda number: delete_a_partition(table, rng)),
    ]
    weights, actions = zip(*operations, strict=True)
    history: list[tuple[str, Places]] = []
    for number in range(OPERATIONS):
        instant = rng.choices(actions, weights)[0](number)
        history.append((instant, places(table)))
        check(table, rng, None)
    for place, (instant, expected) in enumerate(history):
        assert places(table, instant) == expected
        check(table, rng, instant)
        later, at_end = rng.choice(history[place:])
        assert replayed(dict(expected), table.inspect.index_changes(instant, later)) == at_end
