"""Tables of tests/support/actions.py on a local disk, for tests of its single system calls."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from pathlib import Path

from hoodie.storage import Store
from hoodie.table import Table
from tests.support.actions import CELLS, Cell
from tests.support.disks import CountingDisk, local_double
from tests.support.fault_store import Call

UPSERTS = [cell for cell in CELLS if str(cell) in ("upsert, copy_on_write, record", "upsert, merge_on_read, record")]
"""An upsert that updates, deletes and inserts, one of each in a partition of its own."""


def local_copy(store: Store, folder: Path) -> Path:
    """The files of the store in a folder, in the place of an earlier copy."""
    shutil.rmtree(folder, ignore_errors=True)
    for info in store.list("", recursive=True):
        file = folder / info.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(store.read(info.path))
    return folder


def calls_of(cell: Cell, start: Store, scratch: Path, *, durable: bool = False) -> Sequence[Call]:
    """The system calls of the action."""
    disk = CountingDisk()
    with local_double(local_copy(start, scratch), disk, durable=durable) as store:
        cell.action.act(Table(store))
    return disk.calls


def sampled(count: int, size: int, seed: int) -> list[int]:
    """Numbers of calls, from the first to one after the last; a different sample for each seed."""
    chooser = random.Random(seed)
    return sorted(chooser.sample(range(1, count + 2), min(size, count + 1)))
