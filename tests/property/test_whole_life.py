"""Any sequence of writes, services, savepoints, rollbacks, restores and deaths leaves the rows of a dict, for years."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from hoodie.errors import HistoryLostError, UnsupportedError
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.table import Table
from tests.crash.tables import check_tidy, trips
from tests.property.life import CITIES, KEYS, Life, check_now, check_past, check_sound, consume, new_life, read
from tests.support.seeds import seeded

STEPS = 30
COLUMNS_MAX = 4
WIDER = {pa.int32(): pa.int64(), pa.float32(): pa.float64()}


def upsert(life: Life) -> None:
    """Insert and update a few keys; some move to another partition."""
    life.ts += 1
    keys = life.rng.sample(KEYS, life.rng.randint(1, 4))
    if life.index == "automatic":
        keys = [key for key in keys if (key in life.rows) == (keys[0] in life.rows)]
    changed = {key: (life.ts, life.city(key)) for key in keys}
    life.write("upsert", lambda table: life.put(table, changed), {**life.rows, **changed})


def insert(life: Life) -> None:
    """Insert keys that the table does not have."""
    free = sorted(set(KEYS) - life.rows.keys())
    if free:
        life.ts += 1
        new = {key: (life.ts, life.city(key)) for key in free[:2]}
        name = life.rng.choice(["insert", "bulk_insert"])
        life.write(name, lambda table: getattr(table, name)(life.data(new)), {**life.rows, **new})


def delete(life: Life) -> None:
    """Delete a key."""
    if life.rows:
        key = life.rng.choice(sorted(life.rows))
        rows = {other: row for other, row in life.rows.items() if other != key}
        gone = trips({key: life.rows[key]}).select(["id", "city"])
        if life.index == "automatic":
            gone = life.stored(life.table, [key]).select([RECORD_KEY, PARTITION_PATH])
        life.write("delete", lambda table: table.delete(gone), rows)


def delete_where(life: Life) -> None:
    """Delete old rows of a partition."""
    city, least = life.rng.choice(CITIES), life.rng.randint(0, life.ts)
    rows = {key: row for key, row in life.rows.items() if row[1] != city or row[0] >= least}
    life.write("delete_where", lambda table: table.delete_where(f"city = '{city}' AND ts < {least}"), rows)


def update(life: Life) -> None:
    """Change the rows of a partition."""
    life.ts += 1
    city, ts = life.rng.choice(CITIES), life.ts
    rows = {key: (ts, row[1]) if row[1] == city else row for key, row in life.rows.items()}
    life.write("update", lambda table: table.update({"ts": str(ts)}, f"city = '{city}'"), rows)


def overwrite(life: Life) -> None:
    """Replace a partition."""
    city = life.rng.choice(CITIES)
    rows = {key: row for key, row in life.rows.items() if row[1] != city}
    free = [key for key in sorted(set(KEYS) - rows.keys()) if life.moves or life.city(key) == city]
    if free:
        life.ts += 1
        new = {free[0]: (life.ts, city)}
        life.write("insert_overwrite", lambda table: table.insert_overwrite(life.data(new)), {**rows, **new})


def delete_partition(life: Life) -> None:
    """Delete a partition that has rows."""
    cities = sorted({city for _, city in life.rows.values()})
    if len(cities) > 1:
        city = life.rng.choice(cities)
        rows = {key: row for key, row in life.rows.items() if row[1] != city}
        life.write("delete_partitions", lambda table: table.delete_partitions([f"city={city}"]), rows)


def _serve(name: str, call: Callable[[Table], object]) -> Callable[[Life], None]:
    """Return a step that runs a service, which changes no row; its process dies now and then."""

    def step(life: Life) -> None:
        if life.rng.random() < 0.25:
            life.died(name, call)
        else:
            call(life.table)

    step.__name__ = name
    return step


def compact(life: Life) -> None:
    """Plan a compaction, and often execute what is planned."""
    if life.table.view().config.raw["hoodie.table.type"].startswith("MERGE"):
        life.table.schedule_compaction()
        if life.rng.random() < 0.7:
            _serve("compact", lambda table: table.compact())(life)


def log_compact(life: Life) -> None:
    """Fold the log blocks of the slices that have several."""
    if life.table.view().config.raw["hoodie.table.type"].startswith("MERGE") and life.version > 6:
        instant = life.table.schedule_log_compaction(blocks_min=2)
        if instant is not None:
            _serve("log_compact", lambda table: table.compact(instant=instant))(life)


def evolve(life: Life) -> None:
    """Add a column, or widen one."""
    narrow = [name for name, kind in life.extra.items() if kind in WIDER]
    if narrow and life.rng.random() < 0.5:
        name = life.rng.choice(narrow)
        life.extra[name] = WIDER[life.extra[name]]
    elif len(life.extra) < COLUMNS_MAX:
        life.extra[f"more{len(life.extra)}"] = life.rng.choice([pa.int32(), pa.float32(), pa.string()])
    upsert(life)


_cluster = _serve("cluster", lambda table: table.cluster())


def cluster(life: Life) -> None:
    """Plan and execute a clustering."""
    if life.clusters:
        _cluster(life)


def schedule_clustering(life: Life) -> None:
    """Plan a clustering, and often execute what is planned."""
    if not life.clusters:
        return
    life.table.schedule_clustering(life.rng.choice([None, "ts"]))
    if life.rng.random() < 0.7:
        life.run_clusterings()


def save(life: Life) -> None:
    """Create a savepoint of the newest commit, or of an older one, which a clean may have taken."""
    if life.history:
        instant = list(life.history)[-1 if life.rng.random() < 0.7 else life.rng.randrange(len(life.history))]
        if instant in life.writes():
            try:
                life.table.savepoint(instant)
            except (HistoryLostError, UnsupportedError) as error:
                life.done.append(f"savepoint refused: {error}")


def delete_savepoint(life: Life) -> None:
    """Delete a savepoint."""
    saved = [found.instant for found in life.table.savepoints()]
    if saved:
        life.table.delete_savepoint(life.rng.choice(saved))


def roll_back(life: Life) -> None:
    """Take the newest commit back: of data, or of a service."""
    # The rollback of a dead write is completed first, so that it is not the newest instant.
    upsert(life)
    done = Table(life.store).timeline.writes().completed().instants
    if not done:
        return
    newest = done[-1].requested_time
    try:
        life.table.rollback(newest)
    except UnsupportedError as error:
        life.done.append(f"rollback refused: {error}")
        return
    life.done.append("rolled back")
    if newest in life.history:
        life.forget([newest])


def restore(life: Life) -> None:
    """Restore a savepoint; the process dies now and then, and another call completes it."""
    saved = [found.instant for found in life.table.savepoints() if found.instant in life.history]
    if not saved:
        return
    for later in saved[1:]:
        life.table.delete_savepoint(later)
    target = saved[0]
    if life.rng.random() < 0.3:
        life.died("restore", lambda table: table.restore(target))
    try:
        life.table.restore(target)
    except UnsupportedError as error:
        life.done.append(f"restore refused: {error}")
        return
    life.done.append("restored")
    times = list(life.history)
    life.forget(times[times.index(target) + 1 :])


OPERATIONS: tuple[tuple[Callable[[Life], None], int], ...] = (
    (upsert, 10),
    (insert, 3),
    (delete, 3),
    (delete_where, 1),
    (update, 1),
    (overwrite, 1),
    (delete_partition, 1),
    (_serve("clean", lambda table: table.clean()), 3),
    (_serve("archive", lambda table: table.archive()), 3),
    (cluster, 2),
    (schedule_clustering, 1),
    (compact, 3),
    (log_compact, 2),
    (evolve, 2),
    (save, 2),
    (delete_savepoint, 1),
    (roll_back, 1),
    (restore, 1),
    (consume, 3),
    (_serve("repair", lambda table: table.repair(dry_run=False, min_age_seconds=0.0)), 1),
)


@pytest.mark.matrix(keep=2)
@seeded(1006, 271828)
@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_a_table_lives_through_everything(table_type: str, seed: int) -> None:
    live(new_life(seed, table_type), seed)


@pytest.mark.matrix(keep=2)
@seeded(141421)
@pytest.mark.parametrize("version", [6, 8])
@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_a_table_of_an_older_version_lives_through_everything(table_type: str, version: int, seed: int) -> None:
    life = new_life(seed, table_type, version=version)
    live(life, seed)
    assert Table(life.store).view().config.version.value == version


@pytest.mark.matrix(keep=1)
@seeded(1313)
@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_a_table_with_automatic_keys_lives_through_everything(table_type: str, seed: int) -> None:
    live(new_life(seed, table_type, "automatic"), seed)


def live(life: Life, seed: int) -> None:
    """Choose steps at random; after each of them the table has the rows of the dict."""
    steps, weights = zip(*OPERATIONS, strict=True)
    for step in life.rng.choices(steps, weights, k=STEPS):
        try:
            life.done.append(step.__name__)
            step(life)
            check_now(life)
            check_past(life)
            check_sound(life)
        except BaseException as error:
            error.add_note("\n".join([f"seed {seed}:", *life.done]))
            raise
    _end(life)


def _end(life: Life) -> None:
    """After the last deaths are taken up, nothing is left of them, and the full check finds nothing."""
    life.ts += 1
    last = {KEYS[0]: (life.ts, life.city(KEYS[0]))}
    life.run_clusterings()
    life.put(life.table, last, {"hoodie.compact.inline": "false"})
    life.rows |= last
    while life.table.pending_compactions().instants:
        life.table.compact()
    life.table.clean()
    consume(life)
    assert read(Table(life.store)) == life.rows
    report = Table(life.store).verify(full=True)
    assert report.problems == {}, f"{report}\n" + "\n".join(life.done)
    if report.warnings:
        # Such as statistics whose build died with a restore: a warning names the repair.
        life.table.repair(dry_run=False, min_age_seconds=0.0)
    # A partitioned index that a restore lost is not built again; the notes say so.
    partitions = Table(life.store).view().config.metadata_partitions
    assert life.index != "record" or RECORD_INDEX in partitions
    check_tidy(life.store, has_record_index=RECORD_INDEX in partitions)
