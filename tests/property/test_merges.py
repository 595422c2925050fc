"""Random merges and partial upserts leave the rows of a loop over rows, and refuse what it refuses."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.table.merge import TableMerger
from tests.support.rows import assert_same_rows
from tests.support.seeds import seeded

SCHEMA = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("fare", pa.float64()), ("note", pa.string())]
)
MERGES = 14
Row = dict[str, Any]
Key = tuple[Any, ...]
Sides = tuple[Row, Row]
Test = Callable[[Row, Row], bool | None]


@dataclass(frozen=True)
class Shape:
    """A table, and what makes two of its rows the same record."""

    table_type: str
    event_time: bool
    index: str

    @property
    def key(self) -> tuple[str, ...]:
        return ("id", "city") if self.index == "simple" else ("id",)

    @property
    def on(self) -> str:
        return " AND ".join(f"t.{name} = s.{name}" for name in self.key)

    def key_of(self, row: Row) -> Key:
        return tuple(row[name] for name in self.key)

    def wins(self, newer: Row, older: Row) -> bool:
        """Whether a row replaces the stored one: null is the lowest ordering value, ties go to the newer."""
        if not self.event_time or older["ts"] is None:
            return True
        return newer["ts"] is not None and newer["ts"] >= older["ts"]

    def create(self, name: str) -> hoodie.Table:
        return hoodie.create(
            f"memory://{name}", SCHEMA, record_key="id", partition_by=self.key[1:],
            ordering="ts" if self.event_time else None, index=self.index, type=self.table_type, spark=False,
        )  # fmt: skip


SHAPES = {
    "copy on write, event time": Shape("copy_on_write", True, "simple"),
    "copy on write, commit time": Shape("copy_on_write", False, "record"),
    # With the simple index and event time, late rows meet deletes in the log, as the JVM has it.
    "merge on read, event time": Shape("merge_on_read", True, "record"),
    "merge on read, commit time": Shape("merge_on_read", False, "simple"),
}


def _less(one: float | None, other: float | None) -> bool | None:
    return None if one is None or other is None else one < other


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


# Conditions and expressions, each in SQL and as a function of the stored row and the source row.
OF_BOTH: dict[str, Test] = {
    "s.fare > t.fare": lambda t, s: _less(t["fare"], s["fare"]),
    "NOT (s.ts < t.ts)": lambda t, s: None if (less := _less(s["ts"], t["ts"])) is None else not less,
    "t.note IS NULL OR s.fare < 40": lambda t, s: t["note"] is None or _less(s["fare"], 40),
}
OF_SOURCE: dict[str, Test] = {
    "s.fare < 60": lambda t, s: _less(s["fare"], 60),
    "s.note IS NOT NULL": lambda t, s: s["note"] is not None,
}
OF_TARGET: dict[str, Test] = {
    "t.fare < 50": lambda t, s: _less(t["fare"], 50),
    "t.note = 'x'": lambda t, s: None if t["note"] is None else t["note"] == "x",
}
UPDATES: list[tuple[dict[str, str], Callable[[Row, Row], Row]]] = [
    ({"fare": "t.fare + s.fare"}, lambda t, s: {"fare": _sum(t["fare"], s["fare"])}),
    ({"note": "s.note", "ts": "s.ts"}, lambda t, s: {"note": s["note"], "ts": s["ts"]}),
    ({"fare": "s.ts", "note": "'x'"}, lambda t, s: {"fare": s["ts"], "note": "x"}),
]
INSERTS: list[tuple[dict[str, str], Callable[[Row, Row], Row]]] = [
    ({"id": "s.id", "city": "s.city"}, lambda t, s: {"id": s["id"], "city": s["city"]}),
    (
        {"id": "s.id", "city": "s.city", "ts": "s.ts + 1", "note": "'new'"},
        lambda t, s: {"id": s["id"], "city": s["city"], "ts": None if s["ts"] is None else s["ts"] + 1, "note": "new"},
    ),
]
OTHERS: list[tuple[dict[str, str], Callable[[Row, Row], Row]]] = [
    ({"note": "'gone'", "fare": "coalesce(t.fare, 0) + 1"}, lambda t, s: {"note": "gone", "fare": (t["fare"] or 0) + 1})
]
# Other joins than by the key: `on`, and whether two rows meet.
JOINS: dict[str, Test] = {
    "t.fare = s.fare": lambda t, s: t["fare"] is not None and t["fare"] == s["fare"],
    "t.note <=> s.note AND t.ts = s.ts": lambda t, s: (
        t["note"] == s["note"] and t["ts"] is not None and t["ts"] == s["ts"]
    ),
    "t.id = s.id AND t.fare <=> s.fare": lambda t, s: t["id"] == s["id"] and t["fare"] == s["fare"],
}
NONE: Row = dict.fromkeys(SCHEMA.names)


@dataclass(frozen=True)
class Clause:
    """A clause: the call of the builder, and the row that it leaves; None where it deletes."""

    group: str
    condition: str | None
    takes: Test
    result: Callable[[Row, Row], Row | None]
    call: Callable[[TableMerger], TableMerger]

    @property
    def deletes_always(self) -> bool:
        return self.condition is None and self.result is _deleted


def _deleted(t: Row, s: Row) -> None:
    return None


def _random_clause(rng: random.Random, group: str, *, last: bool, by_key: bool) -> Clause:
    tests = {
        "matched": {**OF_BOTH, **OF_SOURCE, **OF_TARGET}, "not_matched": OF_SOURCE, "not_matched_by_source": OF_TARGET
    }[group]  # fmt: skip
    condition = None if last and rng.random() < 0.6 else rng.choice(list(tests))
    takes: Test = (lambda t, s: True) if condition is None else tests[condition]
    prefix = f"when_{group}"
    matched = ["update", "delete", *(["update_all"] if by_key else [])]
    verb = rng.choice({"matched": matched, "not_matched": ["insert", "insert_all"],
                       "not_matched_by_source": ["update", "delete"]}[group])  # fmt: skip
    if verb in ("delete", "update_all", "insert_all"):
        result: Callable[[Row, Row], Row | None] = _deleted if verb == "delete" else lambda t, s: s
        return Clause(group, condition, takes, result, lambda m: getattr(m, f"{prefix}_{verb}")(condition))
    values, compute = rng.choice({"matched": UPDATES, "not_matched": INSERTS, "not_matched_by_source": OTHERS}[group])
    return Clause(
        group, condition, takes, lambda t, s: {**t, **compute(t, s)},
        lambda m: getattr(m, f"{prefix}_{verb}")(values, condition),
    )  # fmt: skip


def _random_clauses(rng: random.Random, *, by_key: bool) -> list[Clause]:
    found: list[Clause] = []
    while not found:
        for group, most in (("matched", 3), ("not_matched", 2), ("not_matched_by_source", 2)):
            count = rng.randint(0, most)
            found += [_random_clause(rng, group, last=number == count - 1, by_key=by_key) for number in range(count)]
    return found


def _random_rows(rng: random.Random, shape: Shape, count: int, *, repeats: bool) -> list[Row]:
    rows: dict[Any, Row] = {}
    for number in range(count):
        row: Row = {
            "id": f"k{rng.randrange(25)}",
            "city": rng.choice(["sf", "nyc", None]),
            "ts": rng.choice([None, rng.randrange(6)]),
            "fare": rng.choice([None, float(rng.randrange(100))]),
            "note": rng.choice([None, "", "x"]),
        }
        rows[number if repeats else shape.key_of(row)] = row
    return list(rows.values())


def _changes(
    shape: Shape, state: dict[Key, Row], source: list[Row], clauses: list[Clause], meets: Test
) -> list[tuple[Key, Any, bool]]:
    """Key and new row of every change, None for a delete; and whether it inserts a key that is there."""
    pairs = [(t, s) for s in source for t in state.values() if meets(t, s)]
    met = [("matched", t, s) for t, s in pairs]
    met += [("not_matched", NONE, s) for s in source if not any(s is own for _, own in pairs)]
    met += [("not_matched_by_source", t, NONE) for t in state.values() if not any(t is target for target, _ in pairs)]
    found = []
    for group, t, s in met:
        clause = next((one for one in clauses if one.group == group and one.takes(t, s)), None)
        if clause is not None:
            key = shape.key_of(s if t is NONE else t)
            found.append((key, clause.result(t, s), t is NONE and key in state))
    return found


def _apply(shape: Shape, state: dict[Key, Row], changes: list[tuple[Key, Any, bool]]) -> None:
    for key, row, _ in changes:
        if row is None:
            state.pop(key, None)
        elif key not in state or shape.wins(row, state[key]):
            state[key] = row


def _merge(rng: random.Random, shape: Shape, table: hoodie.Table, state: dict[Key, Row]) -> None:
    """Merge random rows by random clauses into both."""
    by_key = rng.random() < 0.6
    clauses = _random_clauses(rng, by_key=by_key)
    source = _random_rows(rng, shape, rng.randrange(20 if by_key else 4), repeats=rng.random() < 0.3)
    on = shape.on if by_key else rng.choice(list(JOINS))
    merge = table.merge(_table_of(source), on)
    for clause in clauses:
        merge = clause.call(merge)
    meets = JOINS.get(on, lambda t, s: shape.key_of(t) == shape.key_of(s))
    changes = _changes(shape, state, source, clauses, meets)
    twice = len({key for key, *_ in changes}) < len(changes) and not all(one.deletes_always for one in clauses)
    if twice or any(replaces for *_, replaces in changes):
        with pytest.raises(hoodie.RecordKeyError, match="nothing was committed"):
            merge.execute()
    else:
        merge.execute()
        _apply(shape, state, changes)


def _upsert_parts(rng: random.Random, shape: Shape, table: hoodie.Table, state: dict[Key, Row]) -> None:
    """Upsert random rows without some columns into both."""
    rows = _random_rows(rng, shape, rng.randrange(1, 10), repeats=False)
    needed = {"id", "city", *(("ts",) if shape.event_time else ())}
    names = [name for name in SCHEMA.names if name in needed or rng.random() < 0.5]
    table.upsert(_table_of(rows).select(names), partial=True)
    parts = [{name: row[name] for name in names} for row in rows]
    _apply(
        shape, state, [(shape.key_of(one), {**state.get(shape.key_of(one), NONE), **one}, False) for one in parts]
    )  # fmt: skip


def _table_of(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@pytest.mark.matrix(keep=4)
@pytest.mark.parametrize("name", SHAPES)
@seeded(0, 1)
def test_merges_do_what_a_loop_over_rows_does(name: str, seed: int) -> None:
    rng, shape = random.Random(f"{name} {seed}"), SHAPES[name]
    table = shape.create(f"merges-{name}-{seed}".replace(" ", "-").replace(",", ""))
    first = _random_rows(rng, shape, 20, repeats=False)
    table.upsert(_table_of(first))
    state = {shape.key_of(row): row for row in first}
    for _ in range(MERGES):
        step = _upsert_parts if rng.random() < 0.25 else _merge
        step(rng, shape, table, state)
        assert_same_rows(table.to_arrow(SCHEMA.names), _table_of(list(state.values())), key=list(shape.key))
