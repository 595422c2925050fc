"""Single system calls of a local store: a process dies at one, another acts before one, or the power fails at one.

No row is lost, none is added, and the next writer goes on. A power failure forgets what was not synced: with `durable`
no acknowledged commit is lost, and no table is damaged.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

import hoodie
from hoodie.errors import CorruptFileError, HoodieError, TableNotFoundError
from hoodie.storage import LocalStore
from hoodie.table import Table
from hoodie.write.create import CreateOptions, create_table
from tests.support.actions import START, Cell
from tests.support.deaths import check_recovery
from tests.support.disks import CountingDisk, DyingDisk, ForgetfulDisk, PausingDisk, local_double
from tests.support.fault_store import CrashError
from tests.support.local_tables import UPSERTS, calls_of, local_copy, sampled
from tests.support.recoveries import noted
from tests.support.samples import sample_numbers
from tests.support.seeds import seeded
from tests.support.tables import SCHEMA, Rows, create_in, rows_of, trips

_CALLS = 2
"""Calls of a write at which something happens in a case."""
_CREATIONS = 8
"""Calls of a creation at which it dies in a normal run."""
each_type = pytest.mark.parametrize("cell", UPSERTS, ids=str)


@pytest.mark.matrix(keep=3)
@seeded(1, 2)
@pytest.mark.parametrize("durable", [False, True])
@each_type
def test_a_write_that_dies(cell: Cell, tmp_path: Path, durable: bool, seed: int) -> None:
    """Before its first call nothing has happened, after its last all has."""
    start = cell.prepared()
    calls = calls_of(cell, start, tmp_path / "counted", durable=durable)
    assert len(calls) > 60
    outcomes = []
    for number in (1, *sampled(len(calls), _CALLS, seed), len(calls) + 10):
        root, disk = local_copy(start, tmp_path / "dead"), DyingDisk(number)
        with local_double(root, disk, durable=durable) as store, contextlib.suppress(CrashError):
            cell.action.act(Table(store))
        with noted(f"seed {seed}, death at call {number}: {disk.calls[-1]}"):
            outcomes.append(rows_of(LocalStore(root)))
            check_recovery(LocalStore(root), START, cell.rows)
    assert (outcomes[0], outcomes[-1]) == (START, cell.rows)


def test_a_creation_that_dies(tmp_path: Path) -> None:
    disk = CountingDisk()
    create_in(LocalStore(tmp_path / "whole", disk=disk))
    outcomes = set()
    for number in sample_numbers(range(1, len(disk.calls) + 2), _CREATIONS):
        root = tmp_path / str(number)
        with contextlib.suppress(CrashError):
            create_in(LocalStore(root, disk=DyingDisk(number)))
        exists = hoodie.exists(root)
        outcomes.add(exists)
        if not exists:
            with pytest.raises(TableNotFoundError):
                hoodie.open(root)
            create_in(LocalStore(root))
        check_recovery(LocalStore(root), {}, {})
    assert outcomes == {False, True}


@pytest.mark.matrix(keep=2)
@seeded(1, 2)
@each_type
def test_another_writer_acts_before_a_call(cell: Cell, tmp_path: Path, seed: int) -> None:
    """It writes to another partition, or to the same file group, wherever this writer does not hold the lock."""
    start, acted = cell.prepared(), 0
    count = len(calls_of(cell, start, tmp_path / "counted"))
    for number in sampled(count, 2 * _CALLS + 1, seed):
        root = local_copy(start, tmp_path / "shared")
        other: Rows = {"a": (3, "sf"), "o": (1, "oslo")} if number % 2 else {"o": (1, "oslo")}
        done: list[object] = []

        def meanwhile(root: Path = root, other: Rows = other, done: list[object] = done) -> None:
            if not (root / ".hoodie" / "lock").exists():
                done.append(hoodie.open(root).upsert(trips(other)))

        told = False
        with local_double(root, PausingDisk(number, meanwhile)) as store:
            try:
                cell.action.act(Table(store))
            except HoodieError:
                told = True
        with noted(f"seed {seed}, pause at call {number}, refused: {told}"):
            expected = {**(START if told else cell.rows), **(other if done else {})}
            assert rows_of(LocalStore(root)) == expected
            assert done or not told
            check_recovery(LocalStore(root), expected, expected)
        acted += len(done)
    assert acted


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_torn_completed_file_is_an_error(tmp_path: Path, share: float) -> None:
    """Our stores cannot leave one; another writer, or a damaged disk, can."""
    root = local_copy(UPSERTS[0].prepared(), tmp_path / "torn")
    newest = max(root.joinpath(".hoodie", "timeline").glob("*commit"), key=lambda path: path.name)
    whole = newest.read_bytes()
    newest.write_bytes(whole[: int(len(whole) * share)])
    for call in (Table.to_arrow, UPSERTS[0].action.act):
        with pytest.raises(CorruptFileError, match=newest.name):
            call(hoodie.open(root))
    newest.write_bytes(whole)
    assert rows_of(LocalStore(root)) == START


@pytest.mark.matrix(keep=5)
@seeded(1, 2, 3)
@pytest.mark.parametrize("chance", [0.0, 0.5])
@each_type
def test_an_acknowledged_commit_survives_a_power_failure(cell: Cell, tmp_path: Path, chance: float, seed: int) -> None:
    root = local_copy(cell.prepared(), tmp_path / "table")
    disk = ForgetfulDisk(root)
    with local_double(root, disk, durable=True) as store:
        cell.action.act(Table(store))
        disk.survivors(tmp_path / "after", seed=seed, chance=chance)
    check_recovery(LocalStore(tmp_path / "after"), cell.rows, cell.rows)


@each_type
def test_without_the_option_it_may_be_lost(cell: Cell, tmp_path: Path) -> None:
    """The double forgets: else the other tests would show nothing."""
    root = local_copy(cell.prepared(), tmp_path / "table")
    disk = ForgetfulDisk(root)
    with local_double(root, disk) as store:
        cell.action.act(Table(store))
        disk.survivors(tmp_path / "after")
    assert rows_of(LocalStore(root)) == cell.rows
    assert rows_of(LocalStore(tmp_path / "after")) == START


@pytest.mark.matrix(keep=2)
@seeded(1, 2)
@each_type
def test_a_power_failure_in_the_middle_of_a_write(cell: Cell, tmp_path: Path, seed: int) -> None:
    start = cell.prepared()
    count = len(calls_of(cell, start, tmp_path / "counted", durable=True))
    for number, chance in zip(sampled(count, 3, seed), (0.0, 0.3, 0.7), strict=True):
        root = local_copy(start, tmp_path / "table")
        disk = ForgetfulDisk(root, number)
        with local_double(root, disk, durable=True) as store, contextlib.suppress(CrashError):
            cell.action.act(Table(store))
        after = tmp_path / f"after-{number}"
        disk.survivors(after, seed=seed, chance=chance)
        with noted(f"seed {seed}, chance {chance}, power failure at call {number}: {disk.calls[-1]}"):
            check_recovery(LocalStore(after), START, cell.rows)


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


def test_a_creation_survives_a_power_failure(tmp_path: Path) -> None:
    (tmp_path / "parent").mkdir()
    disk = ForgetfulDisk(tmp_path / "parent")
    create_in(LocalStore(tmp_path / "parent" / "deep" / "table", durable=True, disk=disk))
    disk.survivors(tmp_path / "after")
    assert rows_of(LocalStore(tmp_path / "after" / "deep" / "table")) == {}
