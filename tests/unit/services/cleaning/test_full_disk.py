"""A clean on a full disk: it makes room from what dead writers left, or says how much it needs and would free."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hoodie.errors import StorageError
from hoodie.files.staging.staged import STAGE_PREFIX
from hoodie.table import Table
from hoodie.timeline.owner import Owner
from tests.support.disks import CountingDisk, DoubleStore, local_double
from tests.support.tables import create_in, rows_of, trips

RETAINED = {"hoodie.clean.commits.retained": "1"}
OFF = {"hoodie.clean.automatic": "false"}


class SmallDisk(CountingDisk):
    """A disk with `room` bytes left: what is written takes of them, what is deleted adds to them."""

    room = 1 << 30

    def write_new(self, path: str, data: bytes) -> None:
        """Write the file, or refuse it."""
        if len(data) > self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        super().write_new(path, data)
        self.room -= len(data)

    def unlink(self, path: str) -> None:
        """Delete the file."""
        size_bytes = Path(path).stat().st_size
        super().unlink(path)
        self.room += size_bytes


@pytest.fixture
def disk() -> SmallDisk:
    return SmallDisk()


@pytest.fixture
def store(disk: SmallDisk, tmp_path: Path) -> Iterator[DoubleStore]:
    """A table of four commits, of which two have obsolete files, on a disk that is full then."""
    with local_double(tmp_path / "t", disk) as store:
        create_in(store)
        for number in range(4):
            Table(store).upsert(trips({"a": (number, "sf")}), properties=OFF)
        disk.room = 0
        yield store


def test_a_clean_that_has_no_room_changes_nothing_and_says_what_it_needs(store: DoubleStore, disk: SmallDisk) -> None:
    before = {info.path: store.read(info.path) for info in store.list("", recursive=True)}
    with pytest.raises(StorageError) as refused:
        Table(store).clean(properties=RETAINED)
    told = str(refused.value)
    assert f"{store.uri('')} was not cleaned, as its disk is full" in told
    assert ".hoodie/lock: No space left on device" in told
    assert re.search(r"free 66\.\d kB outside of the table, then clean again to free \d\.\d kB$", told)
    assert refused.value.errno == errno.ENOSPC
    assert {info.path: store.read(info.path) for info in store.list("", recursive=True)} == before
    disk.room = 66_000
    done = Table(store).clean(properties=RETAINED)
    assert done.counts["files_deleted"] == 2
    assert Table(store).verify(full=True).ok


def test_staged_rows_of_dead_writers_make_room(store: DoubleStore, disk: SmallDisk) -> None:
    disk.room = 1 << 20
    dead = f".hoodie/.temp/{STAGE_PREFIX}{Owner.new().short_name}"
    living = Owner.new()
    living.run()
    kept = f".hoodie/.temp/{STAGE_PREFIX}{living.short_name}"
    for folder in (dead, kept):
        store.create(f"{folder}/rows.arrow", b"x" * 100_000)
    disk.room = 0
    done = Table(store).clean(properties=RETAINED)
    living.forget()
    assert done.notes[0] == "the disk was full: staged rows of dead writers were deleted first, 100.0 kB"
    assert done.counts["files_deleted"] == 2
    assert [info.path for info in store.list(".hoodie/.temp", recursive=True)] == [f"{kept}/rows.arrow"]
    assert rows_of(store) == {"a": (3, "sf")}
    assert Table(store).verify(full=True).ok


def test_other_errors_of_the_disk_are_those_of_the_disk(store: DoubleStore, disk: SmallDisk) -> None:
    def refuse(path: str, data: bytes) -> None:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), path)

    disk.write_new = refuse  # type: ignore[method-assign]
    with pytest.raises(StorageError, match="lock: Permission denied; give this user access") as refused:
        Table(store).clean(properties=RETAINED)
    assert "was not cleaned" not in str(refused.value)
