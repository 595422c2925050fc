"""A table that an older release of JVM Hudi and we write in turns, with the services of both, and after deaths."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import hoodie
from hoodie.table import Table
from hoodie.timeline import Action, Timeline
from tests.interop.judges import NEWEST_TABLE_VERSION, Jvm, create_trips
from tests.interop.jvm_services import clean_by_jvm
from tests.interop.older.trips import SCHEMA, assert_all_read, trips, undo_completion, write
from tests.support.deaths import die_at
from tests.support.fault_store import CrashPoint

BEFORE = CrashPoint.BEFORE
TABLE_TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
CLUSTERING = "hoodie.clustering.plan.strategy.small.file.limit=1000000,hoodie.clustering.plan.strategy.max.num.groups=2"
CLEANER = {
    "hoodie.index.type": "SIMPLE",
    # Its client fails without one (0.15).
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
}
SET_BY_INDEX = ("hoodie.index.type", "hoodie.metadata.record.index.enable")
ONE_COMMIT = {"hoodie.clean.commits.retained": "1", "hoodie.cleaner.commits.retained": "1"}


@dataclass
class Life:
    """A table, the rows that it must have, and the steps that either of the two does to it."""

    older: Jvm
    path: Path
    table_type: str
    options: Mapping[str, str] = field(default_factory=dict)
    """Properties of our new table, and options of each write of the release."""
    index: str | None = None
    rows: dict[str, int] = field(default_factory=dict)
    ts: int = 0
    writers: set[bool] = field(default_factory=set)

    @property
    def version(self) -> int:
        """The table version of the release."""
        return NEWEST_TABLE_VERSION[self.older.release]

    def create(self) -> None:
        """A new table of ours, with the default index of its version."""
        own = {key: value for key, value in self.options.items() if key not in SET_BY_INDEX}
        create_trips(
            self.path, SCHEMA, type=self.table_type.lower(),
            index=self.index or ("record" if self.version > 6 else "simple"), table_version=self.version,
            properties={"hoodie.datasource.write.hive_style_partitioning": "false", **own},
        )  # fmt: skip

    @property
    def table(self) -> Table:
        """A new handle of ours."""
        return hoodie.open(self.path, spark=False)

    @property
    def timeline(self) -> Timeline:
        """Today's timeline."""
        return self.table.timeline

    def upsert(self, numbers: range, *, is_ours: bool) -> None:
        """New versions of rows, by one of the two."""
        self.ts += 1
        self.writers.add(is_ours)
        data = trips(numbers, self.ts)
        if is_ours:
            self.table.upsert(data)
        else:
            write(self.older, self.path, data, table_type=self.table_type, options=self.options)
        self.rows |= dict.fromkeys(data["id"].to_pylist(), self.ts)

    def delete(self, numbers: range, *, is_ours: bool) -> None:
        """Deletes of rows, by one of the two."""
        self.ts += 1
        self.writers.add(is_ours)
        data = trips(numbers, self.ts)
        if is_ours:
            self.table.delete(data.select(["id", "city"]))
        else:
            write(self.older, self.path, data, table_type=self.table_type, operation="delete", options=self.options)
        self.rows = {key: ts for key, ts in self.rows.items() if key not in data["id"].to_pylist()}

    def compact(self, *, is_ours: bool) -> None:
        """Merge the logs."""
        self.writers.add(is_ours)
        if is_ours:
            self.table.schedule_compaction()
            self.table.compact()
        else:
            self.older.compact(self.path)

    def cluster(self, *, is_ours: bool) -> None:
        """Rewrite small files."""
        self.writers.add(is_ours)
        if is_ours:
            self.table.cluster(by="ts")
        else:
            self.older.sql(f"CALL run_clustering(path => '{self.path}', options => '{CLUSTERING}')")

    def clean(self, *, is_ours: bool) -> None:
        """Delete files that only older snapshots need."""
        self.writers.add(is_ours)
        if is_ours:
            self.table.clean(properties=ONE_COMMIT)
        else:
            options = {**ONE_COMMIT, **CLEANER, "hoodie.metadata.record.index.enable": str(self.version > 6).lower()}
            clean_by_jvm(self.older, self.path, self.table_type, options)

    def check(self) -> None:
        """All readers agree, the table keeps its version, and our full check finds nothing."""
        assert_all_read(self.older, self.path, self.rows, with_hudi_rs=len(self.writers) == 1)
        assert self.table.view().config.version.value == self.version
        report = self.table.verify(full=True)
        assert report.ok, report


def take_turns(life: Life, *, is_ours: bool, seed: int) -> None:
    """Each step by one of the two, drawn from the seed; every service is done by both."""
    rng = random.Random(f"{seed} {life.table_type} {is_ours}")
    if is_ours:
        life.create()
    life.upsert(range(20), is_ours=is_ours)
    life.check()
    kinds = (
        (life.compact, life.cluster, life.clean) if life.table_type == "MERGE_ON_READ" else (life.cluster, life.clean)
    )
    services = [(service, by) for service in kinds for by in (True, False)]
    for service, by in rng.sample(services, len(services)):
        life.upsert(range(rng.randrange(8), 12), is_ours=rng.random() < 0.5)
        life.upsert(range(10, rng.randrange(20, 30)), is_ours=not by)
        service(is_ours=by)
        life.check()
        low = rng.randrange(15)
        life.delete(range(low, low + 3), is_ours=rng.random() < 0.5)
        life.check()
    expected = {"COPY_ON_WRITE": (2, 0), "MERGE_ON_READ": (2, 2)}[life.table_type]
    done = [instant.action for instant in life.timeline.completed()]
    compactions = done.count(Action.COMMIT) if life.table_type == "MERGE_ON_READ" else 0
    assert (done.count(Action.REPLACE_COMMIT), compactions) == expected
    assert Action.CLEAN in done


def roll_back_each_other(life: Life, scratch: Path) -> None:
    """Each of the two rolls back a dead write of the other."""
    life.create()
    life.upsert(range(10), is_ours=True)
    life.upsert(range(5, 10), is_ours=False)
    ending = f".{life.timeline.completed().instants[-1].action}"
    die_at(life.path, lambda table: table.upsert(trips(range(3, 13), 50)), "move", ending, BEFORE, scratch)
    (dead,) = life.timeline.pending().instants
    life.check()
    life.upsert(range(4), is_ours=False)
    assert life.timeline.get(dead.requested_time) is None
    # Hudi 0.15 stops reading a log at the block of a rollback that began after the newest commit, here its own commit
    # that rolled back first: it sees these rows of its own only when another commit comes.
    life.upsert(range(2), is_ours=True)
    life.check()
    before = dict(life.rows)
    life.upsert(range(2, 14), is_ours=False)
    life.rows, dead = before, undo_completion(life.path)
    life.check()
    life.upsert(range(6), is_ours=True)
    assert life.timeline.get(dead.requested_time) is None
    life.check()


def leave_and_return(life: Life, other: int, *, is_ours: bool) -> None:
    """The table becomes one of another version, goes on there by us, and comes back; the older release continues it."""
    if is_ours:
        life.create()
    for numbers in (range(20), range(12), range(6, 26)):
        life.upsert(numbers, is_ours=is_ours)
    life.check()
    _move(life, other)
    life.upsert(range(3, 15), is_ours=True)
    life.delete(range(4, 6), is_ours=True)
    _move(life, life.version)
    life.table.drop_old_timeline(dry_run=False)
    life.check()
    for by in (False, True, False):
        life.upsert(range(8, 30), is_ours=by)
        life.delete(range(9, 11), is_ours=not by)
        life.check()
    if life.table_type == "MERGE_ON_READ":
        life.compact(is_ours=False)
    life.cluster(is_ours=False)
    life.clean(is_ours=False)
    life.check()


def _move(life: Life, to: int) -> None:
    table = life.table
    result = (table.upgrade if to > table.view().config.version.value else table.downgrade)(to, dry_run=False)
    assert result.to_version == to
    found = table.to_arrow(columns=["id", "ts"])
    assert dict(zip(found["id"].to_pylist(), found["ts"].to_pylist(), strict=True)) == life.rows
    report = table.verify(full=True)
    assert report.ok, report
