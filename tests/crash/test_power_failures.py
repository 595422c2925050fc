"""A power failure forgets what was not synced: with `durable` no acknowledged commit is lost, no table is damaged."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

import hoodie
from hoodie.errors import HoodieError
from hoodie.storage import LocalStore
from hoodie.table import Table
from hoodie.write.create import CreateOptions, create_table
from tests.crash.local_tables import NEW, START, TYPES, calls_of_write, copied, make_table, sampled, write
from tests.crash.tables import SCHEMA, Rows, check_recovery, new_table, rows_of, trips
from tests.support.disks import ForgetfulDisk, local_double
from tests.support.fault_store import CrashError
from tests.support.seeds import seeded

_FAILURES = 4


@pytest.fixture(scope="module", params=TYPES)
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_table(tmp_path_factory.mktemp("power") / "table", request.param, durable=True)


def outcome(root: Path) -> Rows | str:
    """The rows, or the error that a reader gets."""
    try:
        return rows_of(LocalStore(root))
    except HoodieError as error:
        return type(error).__name__


@seeded(1, 2, 3)
@pytest.mark.parametrize("chance", [0.0, 0.5])
def test_an_acknowledged_commit_survives(table: Path, tmp_path: Path, chance: float, seed: int) -> None:
    root = copied(table, tmp_path / "table")
    disk = ForgetfulDisk(root)
    with local_double(root, disk, durable=True) as store:
        write(Table(store))
        disk.survivors(tmp_path / "after", seed=seed, chance=chance)
    assert rows_of(LocalStore(tmp_path / "after")) == NEW
    check_recovery(LocalStore(tmp_path / "after"), NEW, NEW)


def test_without_the_option_it_may_be_lost(table: Path, tmp_path: Path) -> None:
    """The double forgets: else the other tests would show nothing."""
    root = copied(table, tmp_path / "table")
    disk = ForgetfulDisk(root)
    with local_double(root, disk) as store:
        write(Table(store))
        disk.survivors(tmp_path / "after")
    assert rows_of(LocalStore(root)) == NEW
    assert outcome(tmp_path / "after") == START


@seeded(1, 2)
def test_a_power_failure_in_the_middle_of_a_write(table: Path, tmp_path: Path, seed: int) -> None:
    count = calls_of_write(table, tmp_path / "counted", durable=True)
    for place, number in enumerate(sampled(count, _FAILURES, seed)):
        root = copied(table, tmp_path / "table")
        disk = ForgetfulDisk(root, number)
        with local_double(root, disk, durable=True) as store, contextlib.suppress(CrashError):
            write(Table(store))
        after, chance = tmp_path / f"after-{number}", (0.0, 0.3, 0.7)[place % 3]
        disk.survivors(after, seed=seed, chance=chance)
        try:
            check_recovery(LocalStore(after), START, NEW)
        except BaseException as error:
            error.add_note(f"seed {seed}, chance {chance}, power failure at call {number}: {disk.calls[-1]}")
            raise


def test_the_stored_option_makes_every_handle_durable(tmp_path: Path) -> None:
    root = tmp_path / "table"
    root.mkdir()
    disk = ForgetfulDisk(root)
    properties = {"hoodie.python.durable": "true"}
    with local_double(root, disk) as store:
        create_table(store, SCHEMA, CreateOptions(record_key="id", partition_by="city", properties=properties))
        disk.survivors(tmp_path / "created")
    assert hoodie.open(tmp_path / "created").count() == 0
    with local_double(root, disk) as store:
        Table(store).upsert(trips(START))
        disk.survivors(tmp_path / "written")
    assert rows_of(LocalStore(tmp_path / "written")) == START
    with pytest.raises(HoodieError, match=r"hoodie.python.durable is fixed when the table is created"):
        hoodie.open(root).upsert(trips(START), properties={"hoodie.python.durable": "false"})
    assert "durable" in repr(hoodie.open(root).view().store.spec)


def test_a_creation_survives(tmp_path: Path) -> None:
    (tmp_path / "parent").mkdir()
    disk = ForgetfulDisk(tmp_path / "parent")
    new_table(LocalStore(tmp_path / "parent" / "deep" / "table", durable=True, disk=disk))
    disk.survivors(tmp_path / "after")
    assert rows_of(LocalStore(tmp_path / "after" / "deep" / "table")) == {}
