"""Random writes, services, savepoints, rollbacks and restores: after each step the rows are those of a dict."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from hoodie.errors import UnsupportedError
from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.crash.tables import Rows, check_tidy, new_table, rows_of, trips
from tests.support.seeds import seeded

STEPS = 14
KEYS, CITIES = "abcdefgh", ("sf", "la", "nyc")
PROPERTIES = {
    "hoodie.metadata.compact.max.delta.commits": "3",
    # A clean would end the history of a long run.
    "hoodie.clean.automatic": "false",
}


@dataclass
class Run:
    """A table beside its model: the rows after each commit, in the order of the commits."""

    rng: random.Random
    table: Table
    history: dict[str, Rows] = field(default_factory=dict)

    @property
    def rows(self) -> Rows:
        """The rows as they should be."""
        return next(reversed(self.history.values()), {})

    def add(self, instant: str | None, rows: Rows) -> None:
        """Record what a commit left."""
        assert instant is not None
        self.history[instant] = rows

    def keep_until(self, instant: str | None) -> None:
        """Forget the commits after `instant`; all of them if it is None."""
        times = list(self.history)
        for time in times[times.index(instant) + 1 if instant is not None else 0 :]:
            del self.history[time]


def upsert(run: Run) -> None:
    """Insert and update a few keys; some move to another partition."""
    latest = max((ts for ts, _ in run.rows.values()), default=0) + 1
    changed = {key: (latest, run.rng.choice(CITIES)) for key in run.rng.sample(KEYS, 3)}
    run.add(run.table.upsert(trips(changed)).instant, {**run.rows, **changed})


def delete(run: Run) -> None:
    """Delete a key."""
    if run.rows:
        key = run.rng.choice(sorted(run.rows))
        rows = {other: row for other, row in run.rows.items() if other != key}
        run.add(run.table.delete(trips({key: run.rows[key]})).instant, rows)


def overwrite(run: Run) -> None:
    """Replace a partition."""
    city = run.rng.choice(CITIES)
    rows = {key: row for key, row in run.rows.items() if row[1] != city}
    free = sorted(set(KEYS) - rows.keys())
    if free:
        new = {free[0]: (1, city)}
        run.add(run.table.insert_overwrite(trips(new)).instant, {**rows, **new})


def compact(run: Run) -> None:
    """Compact, or only plan a compaction, on a merge-on-read table."""
    if not run.table.view().config.raw["hoodie.table.type"].startswith("MERGE"):
        return
    planned = run.table.schedule_compaction()
    if planned is not None and run.rng.random() < 0.7:
        run.table.compact(planned)
        run.add(planned, run.rows)


def save(run: Run) -> None:
    """Create a savepoint of any commit, and often of the commit before it too."""
    if run.history:
        times = list(run.history)
        last = run.rng.randrange(len(times))
        for instant in times[max(last - run.rng.randint(0, 1), 0) : last + 1]:
            run.table.savepoint(instant)


def roll_back(run: Run) -> None:
    """Roll back the newest commits, as far as no savepoint is among them."""
    times = list(run.history)
    count = run.rng.randint(1, 2)
    if len(times) < count:
        return
    saved = {found.instant for found in run.table.savepoints()}
    if saved & set(times[-count:]):
        with pytest.raises(UnsupportedError, match="savepoint"):
            run.table.rollback(times[-count], chain=True)
        return
    run.table.rollback(times[-count], chain=True)
    run.keep_until(times[-count - 1] if len(times) > count else None)


def restore(run: Run) -> None:
    """Restore the newest savepoint; older ones after the later were deleted."""
    saved = [found.instant for found in run.table.savepoints()]
    if not saved:
        return
    if len(saved) > 1 and run.rng.random() < 0.5:
        run.table.delete_savepoint(saved.pop())
    run.table.restore(saved[-1])
    run.keep_until(saved[-1])


STEPS_OF_A_RUN: tuple[tuple[Callable[[Run], None], int], ...] = (
    (upsert, 6), (delete, 2), (overwrite, 1), (compact, 2), (save, 2), (roll_back, 3), (restore, 2),
)  # fmt: skip


@pytest.mark.matrix(keep=2)
@seeded(1006, 271828)
@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_the_table_is_the_dict(table_type: str, seed: int) -> None:
    print(f"seed {seed}")
    store = MemoryStore()
    new_table(store, table_type=table_type, properties=PROPERTIES)
    run = Run(random.Random(seed), Table(store))
    steps, weights = zip(*STEPS_OF_A_RUN, strict=True)
    for number, step in enumerate(run.rng.choices(steps, weights, k=STEPS)):
        try:
            step(run)
            assert rows_of(store) == run.rows
            for instant, rows in run.history.items():
                found = run.table.to_arrow(["id", "ts", "city"], as_of=instant).to_pylist()
                assert {row["id"]: (row["ts"], row["city"]) for row in found} == rows
        except BaseException as error:
            error.add_note(f"seed {seed}, step {number}: {step.__name__}")
            raise
    # A plan of a compaction may be pending.
    run.table.upsert(trips({"z": (1, "sf")}))
    for planned in run.table.pending_compactions().instants:
        run.table.compact(planned)
    assert rows_of(store) == {**run.rows, "z": (1, "sf")}
    check_tidy(store)
    assert run.table.index.verify().ok
