"""Any sequence of operations leaves the rows that a dict would hold, now and at every earlier commit.

One machine (tests/property/machine.py) with one list of operations, in three mixes: writes and moves between table
versions; all services of a table that lives for years; savepoints, rollbacks and restores of a table that keeps all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import pyarrow as pa
import pytest

from hoodie.errors import CommitConflictError, HistoryLostError, UnsupportedError
from hoodie.table import Table
from tests.property.machine import Run, check_all, check_end, check_now, consume, new_run
from tests.property.model import CITIES, Row, Rules, fresh_batch
from tests.support.samples import IS_WHOLE, draw
from tests.support.seeds import seeded

_CHECKED = 4
"""A run checks everything after each so many of its steps; `make test-all` after each."""
COLUMNS_MAX = 4
WIDER = {pa.int32(): pa.int64(), pa.float32(): pa.float64()}


def upsert(run: Run) -> None:
    """Insert and update rows; some are late, some move to another partition, some delete their key."""
    batch = run.batch(run.rng.choice([5, 40]))
    data = run.data(batch)
    if run.rules.index == "automatic":
        if not batch:
            return
        new, data = {row.id: row for row in batch}, run.stored(batch)
        for name in ("ts", "value", "note"):
            place = data.schema.get_field_index(name)
            values = [getattr(new[key], name) for key in data["id"].to_pylist()]
            data = data.set_column(place, data.schema.field(place), pa.array(values, data.schema.types[place]))
    run.write("upsert", lambda model: model.upsert(batch), data)


def insert(run: Run) -> None:
    """Insert keys that nobody had before."""
    batch = run.in_time(fresh_batch(run.rng, 30, run.model.commit, rules=run.rules))
    run.write(run.rng.choice(["insert", "bulk_insert"]), lambda model: model.insert(batch), run.data(batch))


def delete(run: Run) -> None:
    """Delete keys, of which the table may not have some."""
    stored = [replace(row, city=row.path.removeprefix("city=")) for row in run.rows]
    batch = run.rng.sample(stored, min(len(stored), run.rng.randint(0, 8)))
    if run.rules.index != "automatic":
        batch += run.batch(3)
    run.write("delete", lambda model: model.delete(batch), run.keys(batch))


def delete_where(run: Run) -> None:
    """Delete rows by their values."""
    limit = run.rng.randrange(800, 1000)
    run.write(
        "delete_where",
        lambda model: model.drop(lambda row: row.value is not None and row.value > limit),
        f"value > {limit}",
    )


def update(run: Run) -> None:
    """Change the rows of a city."""

    def change(row: Row) -> Row:
        return replace(row, value=None if row.value is None else row.value + 1, note=f"updated {run.model.commit}")

    city = run.rng.choice(CITIES[:3])
    run.write(
        "update",
        lambda model: model.update(change, lambda row: row.city == city),
        {"value": "value + 1", "note": f"'updated {run.model.commit}'"},
        f"city = '{city}'",
    )


def overwrite(run: Run) -> None:
    """Replace partitions, or the table."""
    batch = run.in_time(fresh_batch(run.rng, 10, run.model.commit, rules=run.rules))
    whole = run.rng.random() < 0.2
    name = "insert_overwrite_table" if whole else "insert_overwrite"
    run.write(name, lambda model: model.overwrite(batch, whole_table=whole), run.data(batch))


def delete_partitions(run: Run) -> None:
    """Delete a partition that has rows."""
    paths = sorted({row.path for row in run.rows})
    if len(paths) > 2:
        path = run.rng.choice(paths)
        run.write("delete_partitions", lambda model: model.drop(lambda row: row.path == path), [path])


def move(run: Run) -> None:
    """The table becomes one of another version, half of the time with the old timeline dropped."""
    found = run.table.view().config.version.value
    others = [version for version in (6, 8, 9) if version != found]
    if run.rules.index not in ("partitioned_record", "automatic") and not run.has_died:
        to = run.rng.choice(others)
        (run.table.upgrade if to > found else run.table.downgrade)(to, dry_run=False)
        if run.rng.random() < 0.5:
            check_now(run)
            run.table.drop_old_timeline(dry_run=False)


def serve(name: str, call: Callable[[Table], object]) -> Callable[[Run], None]:
    """An operation that runs a service, which changes no row; its process dies now and then."""

    def step(run: Run) -> None:
        if run.rng.random() < 0.25:
            run.die(name, call)
        else:
            call(run.table)

    step.__name__ = name
    return step


def compact(run: Run) -> None:
    """Plan a compaction, and often execute what is planned, this or an older plan."""
    if run.rules.is_merge_on_read:
        strategy = run.rng.choice([None, "unbounded"])
        try:
            run.table.schedule_compaction(strategy=strategy)
        except CommitConflictError:
            assert run.has_died, "a table of version 6 plans no compaction while a write is pending, which may be dead"
            return
        if run.rng.random() < 0.7:
            serve("compact", lambda table: table.compact())(run)


def log_compact(run: Run) -> None:
    """Fold the log blocks of the slices that have several."""
    if run.rules.is_merge_on_read and run.table.view().config.version.has_log_compaction:
        instant = run.table.schedule_log_compaction(blocks_min=2)
        if instant is not None:
            serve("log_compact", lambda table: table.compact(instant=instant))(run)


def cluster(run: Run) -> None:
    """Plan a clustering, and often execute what is planned; not if the bucket of a key decides its file group."""
    if run.rules.index == "bucket":
        return
    if run.rng.random() < 0.6:
        serve("cluster", lambda table: table.cluster())(run)
        return
    run.table.schedule_clustering(run.rng.choice([None, "ts"]))
    if run.rng.random() < 0.7:
        run.run_clusterings()


def evolve(run: Run) -> None:
    """Add a column, or widen one."""
    narrow = [name for name, kind in run.extra.items() if kind in WIDER]
    if narrow and run.rng.random() < 0.5:
        name = run.rng.choice(narrow)
        run.extra[name] = WIDER[run.extra[name]]
    elif len(run.extra) < COLUMNS_MAX:
        run.extra[f"more{len(run.extra)}"] = run.rng.choice([pa.int32(), pa.float32(), pa.string()])
    insert(run)


def save(run: Run) -> None:
    """Create a savepoint of the newest commit or service or an older one, and often of the one before it too."""
    done = run.completed()
    last = len(done) - 1 if run.rng.random() < 0.5 else run.rng.randrange(len(done) + 1) - 1
    for instant in done[max(last - run.rng.randint(0, 1), 0) : last + 1]:
        try:
            run.table.savepoint(instant)
        except (HistoryLostError, UnsupportedError) as error:
            run.refused("savepoint", error)


def delete_savepoint(run: Run) -> None:
    """Delete a savepoint."""
    saved = [found.instant for found in run.table.savepoints()]
    if saved:
        run.table.delete_savepoint(run.rng.choice(saved))


def roll_back(run: Run) -> None:
    """Take one or two of the newest commits and services back, unless a savepoint is among them."""
    upsert(run)  # completes the rollback of a dead write, which is not the newest instant then
    before = run.completed()
    if not before:
        return
    chosen = before[-run.rng.randint(1, 2) :]
    saved = {found.instant for found in run.table.savepoints()}
    try:
        run.table.rollback(chosen[0], chain=True)
    except UnsupportedError as error:
        if not saved & set(chosen):
            run.refused("rollback", error)
        return
    assert not saved & set(chosen)
    run.forget(before)


def restore(run: Run) -> None:
    """Restore a savepoint, after later ones were deleted; the process dies now and then, and another completes it."""
    saved = [found.instant for found in run.table.savepoints()]
    if not saved:
        return
    place = run.rng.randrange(len(saved))
    for later in saved[place + 1 :]:
        run.table.delete_savepoint(later)
    before = run.completed()
    if run.rng.random() < 0.3:
        run.die("restore", lambda table: table.restore(saved[place]))
    try:
        run.table.restore(saved[place])
    except UnsupportedError as error:
        run.refused("restore", error)
        return
    run.forget(before)


class Operation(NamedTuple):
    """What happens, and how often in each mix: `writes`, `services`, `undoing`."""

    act: Callable[[Run], None]
    writes: int = 0
    services: int = 0
    undoing: int = 0


OPERATIONS = (
    Operation(upsert, 8, 8, 6),
    Operation(insert, 4, 3, 1),
    Operation(delete, 3, 3, 2),
    Operation(delete_where, 1, 1),
    Operation(update, 1, 1),
    Operation(overwrite, 1, 1, 1),
    Operation(delete_partitions, 1, 1),
    Operation(move, 1, 1, 2),
    Operation(compact, 4, 3, 2),
    Operation(log_compact, 0, 2),
    Operation(cluster, 0, 3),
    Operation(evolve, 0, 2),
    Operation(consume, 1, 3, 1),
    Operation(serve("clean", lambda table: table.clean()), 0, 3),
    Operation(serve("archive", lambda table: table.archive()), 0, 3),
    Operation(serve("repair", lambda table: table.repair(dry_run=False, min_age_seconds=0.0)), 0, 1),
    Operation(save, 0, 2, 2),
    Operation(delete_savepoint, 0, 1),
    Operation(roll_back, 0, 1, 3),
    Operation(restore, 0, 1, 2),
)
STEPS = {"writes": 13, "services": 30, "undoing": 14}


def live(run: Run, mix: str) -> None:
    """Choose steps at random; after each of them the table has the rows of the dict."""
    steps = run.rng.choices(OPERATIONS, [getattr(found, mix) for found in OPERATIONS], k=STEPS[mix])
    try:
        for number, step in enumerate(steps, 1):
            run.done.append(step.act.__name__)
            step.act(run)
            check_now(run)
            if IS_WHOLE or number % _CHECKED == 0:
                check_all(run)
        run.done.append("end")
        check_end(run)
    except BaseException as error:
        error.add_note("\n".join(run.done))
        raise


INDEXES = (
    ("simple", True),
    ("partitioned_record", True),
    ("bloom", True),
    ("bucket", True),
    ("automatic", True),
    *product(("record", "global_simple", "global_bloom"), (True, False)),
)
"""Each index, and whether rows may move to another partition."""


def rules_of(index: str, moves: bool, event_time: bool, is_merge_on_read: bool, version: int) -> Rules | None:
    """The rules of a table, if there is such a table."""
    if (index == "automatic" and event_time) or (index in ("partitioned_record", "automatic") and version < 9):
        return None
    # With these indexes late rows meet deletes in the log, as the JVM has it: tests/interop has those.
    is_logged = is_merge_on_read and event_time
    late = not (is_logged and (index in ("simple", "bloom", "bucket") or (index.startswith("global") and not moves)))
    return Rules(
        event_time, index, moves, is_merge_on_read, version, is_deletable=index != "automatic", late=late
    )  # fmt: skip


PARTS = Rules(False, "record", is_merge_on_read=True, version=9, is_deletable=False)
"""Updates log parts of rows."""
TABLES = [
    PARTS,
    *filter(
        None,
        (
            rules_of(index, moves, event_time, is_merge_on_read, version)
            for (index, moves), event_time, is_merge_on_read, version in product(
                INDEXES, (True, False), (False, True), (6, 8, 9)
            )
        ),
    ),
]


def tables(mix: str, keep: int) -> list[Rules]:
    """The tables of a run: of each index one, as far as `keep` goes; the seed of the run decides. All in test-all."""
    if IS_WHOLE:
        return TABLES
    indexes = draw(list(dict.fromkeys(rules.index for rules in TABLES)), keep, mix)
    return [draw([rules for rules in TABLES if rules.index == index], 1, f"{mix} {index}")[0] for index in indexes]


def name_of(rules: Rules) -> str:
    words = ["merge on read" if rules.is_merge_on_read else "copy on write", rules.index, f"version {rules.version}"]
    words += ["event time" if rules.event_time else "commit time", *([] if rules.moves else ["rows stay"])]
    return ", ".join([*words, *(["parts of rows"] if rules is PARTS else [])])


@seeded(1006)
@pytest.mark.parametrize("rules", tables("writes", 8), ids=name_of)
def test_writes(rules: Rules, seed: int) -> None:
    live(new_run(rules, seed, "writes"), "writes")


@seeded(271828)
@pytest.mark.parametrize("rules", tables("services", 4), ids=name_of)
def test_a_life_with_all_services(rules: Rules, seed: int) -> None:
    live(new_run(rules, seed, "services"), "services")


@seeded(141421)
@pytest.mark.parametrize("rules", tables("undoing", 2), ids=name_of)
def test_savepoints_rollbacks_and_restores(rules: Rules, seed: int) -> None:
    live(new_run(rules, seed, "undoing"), "undoing")
