"""Any sequence of operations leaves the rows that a dict would hold, now and at every earlier commit."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.view.history import oldest_readable_instant
from tests.crash.tables import check_tidy, run_until
from tests.property.model import SCHEMA, Model, Row, Rules, fresh_batch, random_batch, to_arrow
from tests.support.index_check import check_index
from tests.support.seeds import seeded

STEPS = 13
TABLES = {
    "event time": Rules(event_time=True),
    "commit time": Rules(event_time=False),
    "event time, partitioned_record": Rules(event_time=True, index="partitioned_record"),
    "event time, bloom": Rules(event_time=True, index="bloom"),
    "event time, global_bloom, rows move": Rules(event_time=True, index="global_bloom"),
    **{
        f"{'event' if event_time else 'commit'} time, {index}, rows {'move' if moves else 'stay'}": Rules(
            event_time=event_time, index=index, moves=moves
        )
        for index in ("global_simple", "record")
        for event_time in (True, False)
        for moves in (True, False)
    },
}
SMALL_FILTERS = {"hoodie.index.bloom.num_entries": "20", "hoodie.index.bloom.fpp": "0.1"}
"""Filters that let many absent keys pass."""
MOVES: dict[str, Callable[[bool], dict[str, str]]] = {
    "simple": lambda moves: {},
    "partitioned_record": lambda moves: {},
    "global_simple": lambda moves: {"hoodie.simple.index.update.partition.path": str(moves).lower()},
    "bloom": lambda moves: SMALL_FILTERS,
    "global_bloom": lambda moves: {"hoodie.bloom.index.update.partition.path": str(moves).lower(), **SMALL_FILTERS},
    "record": lambda moves: {"hoodie.record.index.update.partition.path": str(moves).lower()},
}
# With the simple index and event time late rows meet deletes in the log, as the JVM has it: tests/interop has those.
TABLES |= {
    f"merge on read, {name}": replace(rules, is_merge_on_read=True)
    for name, rules in TABLES.items()
    if not (
        rules.event_time
        and (rules.index in ("simple", "bloom") or (rules.index == "global_simple" and not rules.moves))
    )
}
TABLES["merge on read, commit time, record, parts of rows"] = Rules(
    event_time=False, index="record", is_merge_on_read=True, is_deletable=False
)
TABLES |= {
    f"version 6, {name}": replace(rules, version=6)
    for name, rules in TABLES.items()
    if rules.index != "partitioned_record"
}


@dataclass
class Run:
    """A table and its model, side by side."""

    rng: random.Random
    table: Table
    model: Model
    instants: list[str]
    has_died: bool = False
    """Whether a writer died, and none came since."""

    def write(self, name: str, *args: Any, **kwargs: Any) -> None:
        result = getattr(self.table, name)(*map(self.columns, args), properties=self._sizes(), **kwargs)
        self.instants.append(result.instant)
        self.has_died = False
        check_counts(self.model, name, result)
        self.model.done()

    def columns(self, data: Any) -> Any:
        """Data with the columns that the table has."""
        if isinstance(data, pa.Table):
            return data.select([name for name in data.column_names if name in self.model.rules.schema.names])
        return data

    def _sizes(self) -> dict[str, str]:
        """A few rows fill a file; a record is taken for smaller or larger than it is."""
        full = self.rng.choice([4_000, 8_000, 20_000])
        return {
            "hoodie.parquet.max.file.size": str(full),
            "hoodie.parquet.small.file.limit": str(self.rng.choice([0, full // 2, full])),
            "hoodie.copyonwrite.record.size.estimate": str(self.rng.choice([0, 100, 700])),
        }


def check_counts(model: Model, name: str, result: hoodie.WriteResult) -> None:
    """The counts of a result are those of the model, unless the result says that it could not count."""
    rules, wanted = model.rules, model.counts
    # Of repeated keys that the table does not have, the indexes drop the copies at different steps.
    assert result.ignored is None or result.ignored + result.duplicates == wanted.ignored + wanted.duplicates, name
    if result.deleted is None:
        assert rules.is_merge_on_read, name
        assert not rules.index.endswith("record"), name
    elif rules.is_merge_on_read and (rules.index in ("simple", "bloom") or result.ignored is None):
        # A logged row of a known key may lose when it is read; a key with a logged delete is known to `simple`.
        assert result.inserted + result.updated + result.deleted >= wanted.inserted + wanted.updated + wanted.deleted
        assert rules.index in ("simple", "bloom") or result.inserted == wanted.inserted, name
    else:
        found = result.inserted, result.updated, result.deleted
        assert found == (wanted.inserted, wanted.updated, wanted.deleted), name
    if name != "delete":
        assert result.duplicates == wanted.duplicates, name


def upsert(run: Run) -> None:
    batch = random_batch(run.rng, 40, rules=run.model.rules)
    run.model.upsert(batch)
    run.write("upsert", to_arrow(batch))


def insert(run: Run) -> None:
    batch = fresh_batch(run.rng, 30, run.model.commit, rules=run.model.rules)
    run.model.insert(batch)
    run.write(run.rng.choice(["insert", "bulk_insert"]), to_arrow(batch))


def delete(run: Run) -> None:
    stored = [replace(row, city=row.path.removeprefix("city=")) for row in run.model.rows.values()]
    batch = run.rng.sample(stored, min(len(stored), run.rng.randint(0, 8))) + random_batch(
        run.rng, 3, rules=run.model.rules
    )
    run.model.delete(batch)
    run.write("delete", to_arrow(batch).select(["id", "city"]))


def delete_where(run: Run) -> None:
    limit = run.rng.randrange(900, 1000)
    run.model.drop(lambda row: row.value is not None and row.value > limit)
    run.write("delete_where", f"value > {limit}")


def update(run: Run) -> None:
    def change(row: Row) -> Row:
        return replace(row, value=None if row.value is None else row.value + 1, note="updated")

    run.model.update(change, lambda row: row.city == "sf")
    run.write("update", {"value": "value + 1", "note": "'updated'"}, "city = 'sf'")


def overwrite(run: Run) -> None:
    batch = fresh_batch(run.rng, 10, run.model.commit, rules=run.model.rules)
    whole_table = run.rng.random() < 0.2
    if run.model.rules.is_global and not whole_table:
        return  # keys stay unique only if nothing else holds them: they are fresh, but rows may stay elsewhere
    run.model.overwrite(batch, whole_table=whole_table)
    run.write("insert_overwrite_table" if whole_table else "insert_overwrite", to_arrow(batch))


def delete_partitions(run: Run) -> None:
    paths = {row.path for row in run.model.rows.values()}
    if len(paths) > 2:
        path = run.rng.choice(sorted(paths))
        run.model.drop(lambda row: row.path == path)
        run.write("delete_partitions", [path])


def schedule(run: Run) -> None:
    run.table.schedule_compaction(strategy="unbounded")


def compact(run: Run) -> None:
    while run.table.compact().instant is not None:
        check_now(run)


def die(run: Run) -> None:
    """A writer dies at some storage call: its rows are there, or not."""
    batch = random_batch(run.rng, 20, rules=run.model.rules)
    data = run.columns(to_arrow(batch))
    before = len(run.table.timeline.writes().completed())
    run.has_died = True
    run_until(run.table.view().store, lambda table: table.upsert(data), run.rng.randint(1, 60))
    # The rollback of a write that died before is completed too, whatever becomes of this one.
    if len(run.table.timeline.writes().completed()) > before:
        run.model.upsert(batch)
        run.instants.append(run.table.timeline.writes().completed().instants[-1].requested_time)
        run.model.done()


def die_compacting(run: Run) -> None:
    """A compactor dies at some storage call; another one takes its plan up."""
    run.table.schedule_compaction(strategy="unbounded")
    run_until(run.table.view().store, lambda table: table.compact(), run.rng.randint(1, 40))
    check_now(run)


def move(run: Run) -> None:
    """The table becomes one of another version, half of the time with the old timeline dropped."""
    index = run.model.rules.index
    versions = (9,) if index == "partitioned_record" else (6, 8, 9)
    found = run.table.view().config.version.value
    others = [version for version in versions if version != found]
    if others and not run.has_died:
        to = run.rng.choice(others)
        (run.table.upgrade if to > found else run.table.downgrade)(to, dry_run=False)
        check_now(run)
        if run.rng.random() < 0.5:
            run.table.drop_old_timeline(dry_run=False)


COMPACTIONS: list[tuple[Callable[[Run], None], int]] = [(schedule, 3), (compact, 3), (die, 2), (die_compacting, 1)]
OPERATIONS: list[tuple[Callable[[Run], None], int]] = [
    (upsert, 8),
    (insert, 4),
    (delete, 3),
    (delete_where, 1),
    (update, 1),
    (overwrite, 1),
    (delete_partitions, 1),
    (move, 1),
]


def new_run(rules: Rules, seed: int) -> Run:
    rng = random.Random(seed)
    store = MemoryStore()
    # Where ordering values decide, late rows fill what parts of rows do not bring.
    partial_updates = "compatible" if rules.event_time else "always"
    hoodie.create(
        store.uri(""),
        rules.schema,
        record_key="id",
        partition_by="city",
        ordering="ts" if rules.event_time else None,
        type="merge_on_read" if rules.is_merge_on_read else "copy_on_write",
        index=rules.index,
        table_version=rules.version or (9 if rules.index == "partitioned_record" else (8, 9)[seed // 2 % 2]),
        properties={
            **MOVES[rules.index](rules.moves),
            "hoodie.python.partial.updates": partial_updates,
            "hoodie.metadata.record.index.min.filegroup.count": "3",
        },
    )
    return Run(rng, Table(store), Model(rules), [])


def counted(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.get(name) for name in SCHEMA.names) for row in rows.to_pylist())


def expected(rows: Iterable[Row]) -> Counter[tuple[Any, ...]]:
    return Counter(row.values() for row in rows)


def check_now(run: Run) -> None:
    rows = run.table.to_arrow()
    assert counted(rows) == expected(run.model.rows.values())
    where = {
        (row["_hoodie_record_key"], row["_hoodie_partition_path"], row["_hoodie_commit_time"])
        for row in rows.to_pylist()
    }
    assert where == {(row.id, row.path, run.instants[row.commit]) for row in run.model.rows.values()}
    if run.instants and run.model.rules.index.endswith("record") and not run.has_died:
        check_index(run.table.view())


def check_history(run: Run) -> None:
    """Every snapshot that cleans left is what it was; the others are refused, and the error names the oldest one."""
    oldest = oldest_readable_instant(run.table.view())
    for number, instant in enumerate(run.instants):
        if instant < oldest:
            with pytest.raises(hoodie.HoodieError, match=oldest):
                run.table.to_arrow(as_of=instant)
            continue
        assert counted(run.table.to_arrow(as_of=instant)) == expected(run.model.history[number].values()), instant
    readable = [number for number, instant in enumerate(run.instants) if instant >= oldest]
    for _ in range(6):
        until = run.rng.choice(readable[1:])
        since = run.rng.randrange(until)
        found = run.table.changes(run.instants[since], run.instants[until])
        assert set(counted(found)) == run.model.changes(since, until), (since, until)


@pytest.mark.matrix(keep=26)
@seeded(1006, 271828)
@pytest.mark.parametrize("rules", TABLES.values(), ids=TABLES.keys())
def test_the_table_is_the_dict(rules: Rules, seed: int) -> None:
    print(f"seed {seed}")
    run = new_run(rules, seed)
    chosen = [*OPERATIONS, *(COMPACTIONS if rules.is_merge_on_read else [])]
    operations, weights = zip(*chosen, strict=True)
    for step in range(STEPS):
        operation = run.rng.choices(operations, weights)[0]
        done = [*(instant for instant in run.instants)]
        try:
            operation(run)
            if len(run.instants) > len(done) or rules.is_merge_on_read:
                check_now(run)
        except BaseException as error:
            error.add_note(f"seed {seed}, step {step}: {operation.__name__}")
            raise
    check_history(run)
    for city in ("sf", "nyc"):
        of_city = [row for row in run.model.rows.values() if row.city == city]
        assert counted(run.table.to_arrow(where=f"city = '{city}'")) == expected(of_city)
    rows = sorted(run.model.rows.values(), key=lambda row: (row.id, row.path))
    some = run.rng.sample(rows, min(len(rows), 5))
    assert counted(run.table.read_keys(to_arrow(some).select(["id", "city"]))) == expected(some)
    if rules.is_merge_on_read:
        schedule(run)
        compact(run)
        check_now(run)
        run.model.upsert([])
        run.write("upsert", to_arrow([]))
    check_tidy(run.table.view().store, has_record_index=run.model.rules.index.endswith("record"))
