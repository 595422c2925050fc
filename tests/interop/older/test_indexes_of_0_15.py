"""Indexes in the metadata table of version 6: JVM Hudi 0.15.0 and we find keys by them, and keep them up to date.

A wrong or missing entry of the record index shows as two rows of a key after the next upsert.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import hoodie
from hoodie.metadata.folder import MetadataFolder
from hoodie.timeline import Action
from tests.interop.judges import Jvm
from tests.interop.older.life import BEFORE, TABLE_TYPES, Life
from tests.interop.older.trips import trips, undo_completion
from tests.support.deaths import die_at

RELEASES = ("0.15.0",)
RECORD = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.compact.max.delta.commits": "4",
}


def check(life: Life) -> None:
    life.check()
    assert "record_index" in life.table.view().config.metadata_partitions


@pytest.mark.parametrize("table_type", TABLE_TYPES)
@pytest.mark.parametrize("is_ours", [True, False], ids=["our table", "its table"])
def test_both_find_keys_by_the_record_index(older: Jvm, tmp_path: Path, table_type: str, is_ours: bool) -> None:
    life = Life(older, tmp_path / "trips", table_type, index="record", options=RECORD)
    if is_ours:
        life.create()
    life.upsert(range(16), is_ours=is_ours)
    check(life)
    for by_us in (not is_ours, is_ours):
        low = 5 * by_us
        life.upsert(range(low, low + 4), is_ours=by_us)
        life.upsert(range(14 + low, 20 + low), is_ours=by_us)
        check(life)
        life.delete(range(low + 1, low + 3), is_ours=by_us)
        life.upsert(range(low + 3), is_ours=not by_us)
        check(life)
    if table_type == "MERGE_ON_READ":
        life.compact(is_ours=True)
    life.cluster(is_ours=True)
    life.upsert(range(10, 20), is_ours=False)
    check(life)
    life.upsert(range(4, 13), is_ours=True)
    view = life.table.view()
    done = [found.action for found in MetadataFolder(view.store, view.config).timeline().completed()]
    assert done.count(Action.COMMIT) >= 2
    check(life)


@pytest.mark.parametrize("table_type", TABLE_TYPES)
def test_each_rolls_back_entries_of_a_dead_write_of_the_other(older: Jvm, tmp_path: Path, table_type: str) -> None:
    life = Life(older, tmp_path / "trips", table_type, index="record", options=RECORD)
    life.create()
    life.upsert(range(10), is_ours=True)
    life.upsert(range(5, 12), is_ours=False)
    ending = f".{life.timeline.completed().instants[-1].action}"
    die_at(life.path, lambda table: table.upsert(trips(range(8, 16), 50)), "move", ending, BEFORE, tmp_path / "copy")
    (dead,) = life.timeline.pending().instants
    check(life)
    life.upsert(range(2, 14), is_ours=False)
    assert life.timeline.get(dead.requested_time) is None
    life.upsert(range(13, 15), is_ours=True)
    check(life)
    before = dict(life.rows)
    life.upsert(range(10, 18), is_ours=False)
    life.rows, dead = before, undo_completion(life.path)
    check(life)
    life.upsert(range(12, 20), is_ours=True)
    assert life.timeline.get(dead.requested_time) is None
    check(life)
    life.upsert(range(10, 18), is_ours=False)
    check(life)


def test_an_index_that_we_build_serves_the_other(older: Jvm, tmp_path: Path) -> None:
    life = Life(older, tmp_path / "trips", "COPY_ON_WRITE")
    life.upsert(range(12), is_ours=False)
    life.table.index.build("record")
    life.options = RECORD
    life.upsert(range(6, 18), is_ours=False)
    check(life)
    life.upsert(range(15, 20), is_ours=True)
    life.upsert(range(20), is_ours=False)
    check(life)
    life.table.index.drop("record")
    life.options = {"hoodie.index.type": "GLOBAL_SIMPLE"}
    life.upsert(range(22), is_ours=False)
    life.check()
    assert "record_index" not in hoodie.open(life.path).view().config.metadata_partitions
