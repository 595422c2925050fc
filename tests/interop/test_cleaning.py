"""Cleans of both: the JVM plans as we do, each cleans the other's table and goes on, each finishes the other's."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.format.instants.service_metadata import CleanerPlan
from hoodie.storage import LocalStore
from hoodie.table import Table
from hoodie.timeline import Action, Instant, InstantClock, State, read_instant
from tests.interop.judges import HIVE, Jvm, create_trips
from tests.interop.jvm_services import clean_by_jvm, schedule_by_jvm
from tests.support.cleaned_tables import NO_CLEAN, check_listing
from tests.support.deaths import run_until
from tests.support.fault_store import CrashPoint
from tests.support.rows import assert_same_rows

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("city", pa.string())])
HOUR_MS = 3_600_000
FEW = {"hoodie.clean.commits.retained": "2"}
Rows = dict[str, tuple[int, str]]
POLICIES = {
    "commits": {"hoodie.clean.commits.retained": "3"},
    "hours": {"hoodie.clean.hours.retained": "4"},
    "versions": {"hoodie.clean.fileversions.retained": "2"},
}


def batch(rows: Rows) -> pa.Table:
    columns = {"id": list(rows), "ts": [ts for ts, _ in rows.values()], "city": [city for _, city in rows.values()]}
    return pa.table(columns, schema=SCHEMA)


def version(number: int, keys: str) -> Rows:
    cities = {"a": "sf", "b": "nyc", "c": "la"}
    return {key: (number, cities[key]) for key in keys}


def new_table(path: Path, table_type: str) -> Table:
    return create_trips(
        path, SCHEMA, type=table_type,
        properties={**NO_CLEAN, "hoodie.metadata.record.index.min.filegroup.count": "2"}, spark=False,
    )  # fmt: skip


def planned(path: Path) -> tuple[str, set[tuple[str, str]], set[str]]:
    """What the pending clean keeps from and deletes: its earliest commit, files by partition, partitions."""
    view = hoodie.open(path).view()
    pending = [found for found in view.timeline.pending() if found.action is Action.CLEAN]
    if not pending:
        return "", set(), set()
    plan = CleanerPlan.parse(read_instant(view.store, view.layout, pending[0], State.REQUESTED), path=str(path))
    earliest = plan.earliest_instant_to_retain
    files = {
        (partition, info.file_path.rpartition("/")[2])
        for partition, infos in (plan.file_paths_to_be_deleted_per_partition or {}).items()
        for info in infos
    }
    return "" if earliest is None else earliest.timestamp, files, set(plan.partitions_to_be_deleted or ())


def used_table(jvm: Jvm, path: Path, table_type: str) -> Table:
    """A table whose commits span hours: replaced file groups, a deleted partition, a savepoint."""
    table = new_table(path, table_type)
    start = time.time_ns() // 1_000_000 - 7 * HOUR_MS
    minutes = [0]
    table._context.state.clock = InstantClock(
        table.view().layout.zone, now_ms=lambda: start + minutes[0] * HOUR_MS // 60
    )

    def later() -> None:
        minutes[0] += 10

    def compact() -> None:
        if table_type == "merge_on_read":
            assert table.schedule_compaction()
            table.compact()
            later()

    for number in range(3):
        table.upsert(batch(version(number, "abc")))
        later()
    compact()
    table.delete_partitions(["city=la"])
    later()
    table.insert_overwrite(batch(version(4, "b")))
    later()
    for number in range(5, 11):
        table.upsert(batch(version(number, "ab")))
        for _ in range(5):
            later()
        if number == 7:
            compact()
    # At the end: its completion time is now, and later instants would follow it.
    saved = table.timeline.completed().instants[1].requested_time
    jvm.sql(f"CALL create_savepoint(path => '{path}', commit_time => '{saved}')")
    return table


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_both_plan_the_same(jvm: Jvm, tmp_path: Path, table_type: str) -> None:
    used_table(jvm, tmp_path / "t", table_type)
    for name, options in POLICIES.items():
        theirs = tmp_path / f"theirs-{name}"
        shutil.copytree(tmp_path / "t", theirs)
        schedule_by_jvm(jvm, theirs, table_type, options)
        earliest, files, partitions = planned(theirs)
        assert files, name
        ours = hoodie.open(tmp_path / "t", spark=False).clean(dry_run=True, properties=options)
        # The savepoint needs files of the deleted partition: the JVM drops its folder with them, we do not.
        assert partitions <= {"city=la"}
        assert {(path, file) for path, names in ours.files.items() for file in names} == files, name
        assert ours.counts["partitions_dropped"] == 0
        if name != "versions":
            assert ours.oldest_readable == earliest


@dataclass
class Shared:
    """A table that both write to, and the rows that it must have."""

    jvm: Jvm
    path: Path
    table_type: str
    rows: Rows = field(default_factory=dict)

    @property
    def table(self) -> Table:
        return hoodie.open(self.path, spark=False)

    def agree(self) -> None:
        """Both read the rows, with and without the metadata table; it lists what is there; the index is right."""
        check_listing(self.table)
        for is_listed in ("true", "false"):
            found = self.jvm.read(self.path, SCHEMA.names, options={"hoodie.metadata.enable": is_listed})
            assert_same_rows(found, batch(self.rows))
        assert_same_rows(self.table.to_arrow(columns=SCHEMA.names), batch(self.rows))
        assert self.table.index.verify().ok

    def jvm_writes(self, changed: Rows) -> None:
        """The JVM upserts, and cleans after its commit."""
        settings = {**FEW, "hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.record.index.enable": "true", **HIVE}
        self.jvm.write_trips(batch(changed), self.path, table_type=self.table_type.upper(), options=settings)
        self.rows.update(changed)
        self.agree()

    def we_write(self, *numbers: int) -> None:
        """Versions of two records; merge-on-read: a compaction in the middle of several."""
        table = self.table
        for place, number in enumerate(numbers):
            if self.table_type == "merge_on_read" and 0 < place == len(numbers) // 2:
                assert table.schedule_compaction()
                table.compact()
            table.upsert(batch(version(number, "ab")))
            self.rows.update(version(number, "ab"))

    def we_die_while_cleaning(self) -> Instant:
        """One file is deleted; the clean is inflight."""
        rehearsal = self.path.parent / "rehearsal"
        shutil.copytree(self.path, rehearsal)
        calls = run_until(LocalStore(str(rehearsal)), lambda dying: dying.clean(properties=FEW), None).calls
        first = next(
            n for n, call in enumerate(calls, 1) if call.operation == "delete" and not call.path.startswith(".hoodie")
        )
        run_until(LocalStore(str(self.path)), lambda dying: dying.clean(properties=FEW), first, CrashPoint.AFTER)
        (left,) = self.table.timeline.pending()
        assert (left.action, left.state) == (Action.CLEAN, State.INFLIGHT)
        return left


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_each_cleans_and_goes_on(jvm: Jvm, tmp_path: Path, table_type: str) -> None:
    shared = Shared(jvm, tmp_path / "t", table_type)
    new_table(shared.path, table_type).upsert(batch(version(0, "abc")))
    shared.we_write(1)
    shared.table.delete_partitions(["city=la"])
    shared.we_write(2, 3, 4, 5)
    # We clean, and drop the partition; the JVM goes on, and cleans.
    assert shared.table.clean(properties=FEW).counts["partitions_dropped"] == 1
    assert not (shared.path / "city=la").exists()
    shared.agree()
    shared.jvm_writes({**version(6, "a"), "c": (6, "la")})
    shared.jvm_writes(version(7, "ac"))
    # The JVM plans, we finish it.
    shared.we_write(8, 9, 10, 11, 12, 13)
    schedule_by_jvm(jvm, shared.path, table_type, FEW)
    (waiting,) = shared.table.timeline.pending()
    done = shared.table.clean(properties=FEW)
    assert (done.instant, done.counts["files_deleted"] > 0) == (waiting.requested_time, True)
    shared.agree()
    # We die in the middle of a clean, the JVM finishes it.
    shared.we_write(14, 15, 16, 17, 18, 19)
    left = shared.we_die_while_cleaning()
    clean_by_jvm(jvm, shared.path, table_type, FEW)
    found = shared.table.timeline.get(left.requested_time, Action.CLEAN)
    assert found is not None
    assert found.is_completed
    shared.agree()
    shared.jvm_writes(version(20, "b"))
    shared.we_write(21)
    shared.agree()
