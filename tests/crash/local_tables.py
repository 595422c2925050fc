"""Small tables on a local disk for tests of its single system calls, and the write that these tests stop."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

from hoodie.storage import LocalStore
from hoodie.table import Table
from tests.crash.tables import Rows, new_table, trips
from tests.support.disks import CountingDisk, local_double

START: Rows = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc")}
NEW: Rows = {"a": (2, "sf"), "b": (1, "sf"), "x": (1, "la")}
TYPES = ("copy_on_write", "merge_on_read")


def write(table: Table) -> object:
    """An upsert that updates, deletes and inserts, one of each in a partition of its own: from `START` to `NEW`."""
    return table.upsert(trips({"a": (2, "sf"), "c": (2, "nyc"), "x": (1, "la")}, deleted=("c",)))


def make_table(folder: Path, table_type: str, *, durable: bool = False) -> Path:
    """A table with a record index and the rows of `START`; with logs if its type has them."""
    store = LocalStore(folder, durable=durable)
    new_table(store, table_type=table_type)
    Table(store).upsert(trips({**START, "b": (0, "sf")}))
    Table(store).upsert(trips(START))
    return folder


def copied(table: Path, target: Path) -> Path:
    """A copy of the table, in the place of an earlier copy."""
    shutil.rmtree(target, ignore_errors=True)
    return Path(shutil.copytree(table, target))


def calls_of_write(table: Path, scratch: Path, *, durable: bool = False) -> int:
    """How many system calls the write makes."""
    disk = CountingDisk()
    with local_double(copied(table, scratch), disk, durable=durable) as store:
        write(Table(store))
    return len(disk.calls)


def sampled(count: int, size: int, seed: int) -> Iterator[int]:
    """Numbers of calls, from the first to one after the last; a different sample for each seed."""
    chooser = random.Random(seed)
    yield from sorted(chooser.sample(range(1, count + 2), min(size, count + 1)))
