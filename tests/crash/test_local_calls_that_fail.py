"""A system call of the local store fails, or another writer acts before it: old rows or new rows,."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

import hoodie
from hoodie.errors import CorruptFileError, HoodieError
from hoodie.storage import LocalStore
from hoodie.table import Table
from tests.crash.local_tables import NEW, START, TYPES, calls_of_write, copied, make_table, sampled, write
from tests.crash.tables import check_recovery, rows_of, trips
from tests.support.disks import FailingDisk, PausingDisk, local_double
from tests.support.seeds import seeded

_FAILURES = 3
_EVER = 10**9


@pytest.fixture(scope="module", params=TYPES)
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_table(tmp_path_factory.mktemp("local") / "table", request.param)


@pytest.mark.matrix(keep=4)
@pytest.mark.parametrize("code", [errno.EIO, errno.EACCES, errno.ENOSPC], ids=["EIO", "EACCES", "ENOSPC"])
@pytest.mark.parametrize("is_lasting", [False, True], ids=["once", "from then on"])
@seeded(1)
def test_a_call_that_fails(table: Path, tmp_path: Path, code: int, is_lasting: bool, seed: int) -> None:
    count = calls_of_write(table, tmp_path / "counted")
    for number in sampled(count, _FAILURES, seed + code):
        root = copied(table, tmp_path / "failed")
        disk = FailingDisk(code, number, last=_EVER if is_lasting else number)
        told: BaseException | None = None
        with local_double(root, disk) as store:
            try:
                write(Table(store))
            except HoodieError as error:
                told = error
        try:
            found = rows_of(LocalStore(root))
            assert found == NEW if told is None else found in (START, NEW)
            check_recovery(LocalStore(root), found, found)
        except BaseException as error:
            error.add_note(f"seed {seed}, {errno.errorcode[code]} at call {number}: {disk.calls[number - 1 :][:1]}")
            raise


@pytest.mark.matrix(keep=2)
@seeded(1, 2)
def test_another_writer_acts_before_a_call(table: Path, tmp_path: Path, seed: int) -> None:
    """It writes to another partition, or to the same file group, wherever this writer does not hold the lock."""
    count = calls_of_write(table, tmp_path / "counted")
    acted = 0
    for number in sampled(count, _FAILURES, seed):
        root = copied(table, tmp_path / "shared")
        other = {"a": (3, "sf"), "o": (1, "oslo")} if number % 2 else {"o": (1, "oslo")}
        done: list[object] = []

        def meanwhile(root: Path = root, other: dict[str, tuple[int, str]] = other, done: list[object] = done) -> None:
            if not (root / ".hoodie" / "lock").exists():
                done.append(hoodie.open(root).upsert(trips(other)))

        told = False
        with local_double(root, PausingDisk(number, meanwhile)) as store:
            try:
                write(Table(store))
            except HoodieError:
                told = True
        expected = {**(START if told else NEW), **(other if done else {})}
        assert rows_of(LocalStore(root)) == expected, f"seed {seed}, pause at call {number}, refused: {told}"
        assert done or not told
        check_recovery(LocalStore(root), expected, expected)
        acted += len(done)
    assert acted


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_torn_completed_file_is_an_error(table: Path, tmp_path: Path, share: float) -> None:
    """Our stores cannot leave one; another writer, or a damaged disk, can."""
    root = copied(table, tmp_path / "torn")
    write(hoodie.open(root))
    newest = max(root.joinpath(".hoodie", "timeline").glob("*commit"), key=lambda path: path.name)
    whole = newest.read_bytes()
    newest.write_bytes(whole[: int(len(whole) * share)])
    for call in (lambda: hoodie.open(root).to_arrow(), lambda: write(hoodie.open(root))):
        with pytest.raises(CorruptFileError, match=newest.name):
            call()
    newest.write_bytes(whole)
    assert rows_of(LocalStore(root)) == NEW
