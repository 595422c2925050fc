"""A process that dies at any storage call leaves a metadata table that readers and the next writer can live with."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hoodie.files.table_properties import update_table_config
from hoodie.format.table import table_keys as keys
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.table import MetadataTable
from tests.support.fake_commits import FakeTable
from tests.support.fault_store import CrashError, CrashPoint, FaultStore
from tests.support.metadata_limits import DELTA_COMMITS_MAX
from tests.unit.metadata.conftest import copy_of

Step = Callable[[FakeTable], None]
each_crash_point = pytest.mark.parametrize("crash_point", list(CrashPoint), ids=lambda point: point.value)


def die_everywhere(table: FakeTable, crash_point: CrashPoint, step: Step, recover: Step) -> int:
    """Run `step` on copies of the table, dying at its first, second, … call, and `recover` after each death."""
    for number in range(1, 1000):
        copied = table.over(copy_of(table.store))
        dying = FaultStore(copied.store, number, crash_point=crash_point)
        try:
            step(copied.over(dying))
        except CrashError:
            recover(copied)
        else:
            return number - 1
    raise AssertionError("the step never ends")


def check(table: FakeTable) -> None:
    assert table.metadata_table().listing(table.timeline) == table.storage_listing()


def with_pending_write(table: FakeTable) -> tuple[str, Step]:
    """A write that has its file and is about to tell the metadata table."""
    instant_time = table.begin()
    stat = table.add_file(instant_time, "city=sf")
    return instant_time, lambda some: some.tell_metadata_table(some.metadata_table(), instant_time, stat)


def roll_back(table: FakeTable, instant_time: str) -> None:
    ours = table.metadata_table()
    ours.rollback(instant_time, rollback_instant=table.clock.next_time(table.timeline), table=table.locked)
    table.roll_back_data(instant_time)


@each_crash_point
@pytest.mark.parametrize("commits_before", [0, DELTA_COMMITS_MAX - 1], ids=["plain", "compacting"])
def test_a_commit_that_dies(table: FakeTable, crash_point: CrashPoint, commits_before: int) -> None:
    ours = table.metadata_table()
    for _ in range(commits_before):
        table.commit(ours, rows=1)
    before = table.storage_listing()
    instant_time, step = with_pending_write(table)

    def recover(dead: FakeTable) -> None:
        assert dead.metadata_table().listing(dead.timeline) == before
        retried = dead.over(copy_of(dead.store))
        step(retried)
        assert retried.metadata_table().listing(retried.timeline) == before
        roll_back(dead, instant_time)
        assert dead.metadata_table().listing(dead.timeline) == before
        for _ in range(2):
            dead.commit(dead.metadata_table(), rows=1)
            check(dead)

    calls = die_everywhere(table, crash_point, step, recover)
    assert calls >= (4 if commits_before == 0 else 8)


@each_crash_point
def test_a_rollback_that_dies(table: FakeTable, crash_point: CrashPoint) -> None:
    before = table.storage_listing()
    instant_time, commit = with_pending_write(table)
    commit(table)
    rollback_time = table.clock.next_time(table.timeline)

    def step(some: FakeTable) -> None:
        some.metadata_table().rollback(instant_time, rollback_instant=rollback_time, table=some.locked)

    def recover(dead: FakeTable) -> None:
        assert dead.metadata_table().listing(dead.timeline) == before
        step(dead)
        dead.roll_back_data(instant_time)
        check(dead)
        timeline = MetadataFolder(dead.store, dead.config).timeline()
        assert [found.requested_time for found in timeline.pending()] == []
        dead.commit(dead.metadata_table(), rows=1)
        check(dead)

    assert die_everywhere(table, crash_point, step, recover) >= 6


@each_crash_point
def test_an_initialisation_that_dies(table: FakeTable, crash_point: CrashPoint) -> None:
    table.drop_metadata_table()

    def step(some: FakeTable) -> None:
        MetadataTable.create(some.locked)
        update_table_config(some.store, {keys.METADATA_PARTITIONS: "files"})

    def recover(dead: FakeTable) -> None:
        if not dead.config.has_metadata_table:
            step(dead)
        check(dead)
        dead.commit(dead.metadata_table(), rows=1)
        check(dead)

    assert die_everywhere(table, crash_point, step, recover) >= 8
