"""A process dies at any system call of its local store: no row is lost, none is added, and the next writer goes on."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

import hoodie
from hoodie.errors import TableNotFoundError
from hoodie.storage import LocalStore
from hoodie.table import Table
from tests.crash.local_tables import NEW, START, TYPES, calls_of_write, copied, make_table, sampled, write
from tests.crash.tables import check_recovery, new_table, rows_of
from tests.support.disks import CountingDisk, DyingDisk, local_double
from tests.support.fault_store import CrashError
from tests.support.seeds import seeded

_DEATHS = 3


@pytest.fixture(scope="module", params=TYPES)
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_table(tmp_path_factory.mktemp("local") / "table", request.param)


@pytest.mark.matrix(keep=4)
@seeded(1, 2)
@pytest.mark.parametrize("durable", [False, True])
def test_a_write_that_dies(table: Path, tmp_path: Path, durable: bool, seed: int) -> None:
    count = calls_of_write(table, tmp_path / "counted", durable=durable)
    for number in sampled(count, _DEATHS, seed):
        root, disk = copied(table, tmp_path / "dead"), DyingDisk(number)
        with local_double(root, disk, durable=durable) as store, contextlib.suppress(CrashError):
            write(Table(store))
        try:
            check_recovery(LocalStore(root), START, NEW)
        except BaseException as error:
            error.add_note(f"seed {seed}, death at call {number}: {disk.calls[-1]}")
            raise


def test_what_happens_before_the_first_call_and_after_the_last(table: Path, tmp_path: Path) -> None:
    count = calls_of_write(table, tmp_path / "counted")
    assert count > 60
    for number, expected in ((1, START), (count + 10, NEW)):
        root = copied(table, tmp_path / "dead")
        with local_double(root, DyingDisk(number)) as store, contextlib.suppress(CrashError):
            write(Table(store))
        assert rows_of(LocalStore(root)) == expected


def test_a_creation_that_dies_at_each_call(tmp_path: Path) -> None:
    disk = CountingDisk()
    new_table(LocalStore(tmp_path / "whole", disk=disk))
    outcomes = set()
    for number in range(1, len(disk.calls) + 2):
        root = tmp_path / str(number)
        with contextlib.suppress(CrashError):
            new_table(LocalStore(root, disk=DyingDisk(number)))
        exists = hoodie.exists(root)
        outcomes.add(exists)
        if not exists:
            with pytest.raises(TableNotFoundError):
                hoodie.open(root)
            new_table(LocalStore(root))
        check_recovery(LocalStore(root), {}, {})
    assert outcomes == {False, True}
