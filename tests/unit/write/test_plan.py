"""Where changes go: the sizes of files decide, unless the index dictates the file groups of inserts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import pytest

from hoodie.errors import UnsupportedError
from hoodie.files.slices import BaseFile, FileSlice
from hoodie.files.staging.staged import StagedHits, StagedRun
from hoodie.index.api import HashRange, InsertShare, Placement
from hoodie.index.record.index import RecordIndex
from hoodie.records.keys.sorting import HASH_END
from hoodie.view.slices import list_slices
from hoodie.write.files.context import FileSizing
from hoodie.write.plan import FileTask, SizePlacement, TaggedRows, plan_files
from tests.support.tables import TYPES
from tests.unit.write.tables import new_table, trips

SIZING = FileSizing(max_file_bytes=1000, small_file_bytes=600)
TENS = SizePlacement(SIZING, 10)


def run(path: str, rows: int, start: int = 0) -> StagedRun:
    return StagedRun(path="stage", batch=start, partition_path=path, rows=rows, size_bytes=rows * 10, start=start)


def hits(path: str, file_id: str, updates: int, moves: int = 0) -> StagedHits:
    counts = {"updates": updates, "moves": moves, "drops": 0}
    return StagedHits(path="hits", batch=0, partition_path=path, file_id=file_id, first=0, last=0, **counts)


def file_slice(path: str, file_id: str, size_bytes: int) -> FileSlice:
    base = BaseFile(path, f"{file_id}_0-0-0_1.parquet", file_id, "1", size_bytes)
    return FileSlice(path, file_id, "1", base)


def shares(tasks: list[FileTask]) -> list[tuple[str | None, int]]:
    return [(task.base_file.file_id if task.base_file else None, task.insert_rows) for task in tasks]


def check_ranges(tasks: list[FileTask]) -> None:
    """The inserts of a partition go to exactly one place each."""
    ranges = sorted((task.inserts.start, task.inserts.end) for task in tasks if isinstance(task.inserts, HashRange))
    assert ranges[0][0] == 0
    assert ranges[-1][1] == HASH_END
    assert all(before[1] == after[0] for before, after in itertools.pairwise(ranges))


def test_nothing_to_do() -> None:
    assert plan_files([], [], [file_slice("p", "f", 10)], placement=TENS) == []


@pytest.mark.parametrize(("rows", "files"), [(1, 1), (100, 1), (101, 2), (1000, 10), (1001, 11)])
def test_inserts_open_as_many_files_as_they_fill(rows: int, files: int) -> None:
    tasks = plan_files([run("p", rows)], [], [], placement=TENS)
    assert len(tasks) == files
    assert all(task.base_file is None for task in tasks)
    assert max(task.insert_rows for task in tasks) <= 100
    check_ranges(tasks)


def test_a_record_larger_than_a_file_gets_its_own() -> None:
    tasks = plan_files([run("p", 3)], [], [], placement=SizePlacement(SIZING, 5000))
    assert shares(tasks) == [(None, 1)] * 3


def test_small_files_are_filled_first_smallest_first() -> None:
    slices = [
        file_slice("p", "full", 1200),
        file_slice("p", "big", 700),
        file_slice("p", "s", 500),
        file_slice("p", "xs", 100),
    ]
    tasks = plan_files([run("p", 120)], [], slices, placement=TENS)
    assert sorted(shares(tasks), key=str) == [("s", 30), ("xs", 90)]
    check_ranges(tasks)
    tasks = plan_files([run("p", 300)], [], slices, placement=TENS)
    assert sorted(shares(tasks), key=str) == [("s", 50), ("xs", 90), (None, 80), (None, 80)]
    check_ranges(tasks)


def test_no_small_files_if_the_limit_is_zero() -> None:
    sizing = FileSizing(max_file_bytes=1000, small_file_bytes=0)
    tasks = plan_files([run("p", 10)], [], [file_slice("p", "f", 1)], placement=SizePlacement(sizing, 10))
    assert shares(tasks) == [(None, 10)]


def test_updates_go_to_their_file_however_full() -> None:
    slices = [file_slice("p", "full", 1200), file_slice("p", "other", 1100)]
    tasks = plan_files([run("p", 10)], [hits("p", "full", 10)], slices, placement=TENS)
    # The second task is there for a row that the count hides: a key the table holds twice is hit twice.
    assert shares(tasks) == [("full", 0), (None, 1)]
    assert tasks[0].hits
    assert tasks[0].inserts is None


def test_updates_and_inserts_meet_in_a_small_file() -> None:
    (task,) = plan_files([run("p", 10)], [hits("p", "f", 4)], [file_slice("p", "f", 100)], placement=TENS)
    assert (task.insert_rows, bool(task.hits)) == (6, True)
    check_ranges([task])


def test_deletes_rewrite_only_files_that_hold_the_keys() -> None:
    slices = [file_slice("p", "f", 100), file_slice("p", "g", 100), file_slice("q", "h", 100)]
    found = [hits("p", "f", 2)]
    tasks = plan_files([run("p", 5), run("q", 5, 5)], found, slices, placement=TENS, known_only=True)
    assert shares(tasks) == [("f", 0)]


def test_partitions_are_planned_by_themselves() -> None:
    runs = [run("q", 5), run("p", 5, 5), run("q", 5, 10)]
    tasks = plan_files(runs, [], [file_slice("p", "f", 100)], placement=TENS)
    assert [(task.partition_path, task.insert_rows) for task in tasks] == [("p", 5), ("q", 10)]
    rows = TaggedRows(tuple(runs), (hits("q", "h", 1),))
    assert [len(rows.runs_for(task.partition_path)) for task in tasks] == [1, 2]
    assert [len(rows.hits_for(task.partition_path)) for task in tasks] == [0, 1]


def test_a_move_is_a_delete_there_and_an_insert_here() -> None:
    slices = [file_slice("p", "f", 100)]
    runs, found = [run("q", 3)], [hits("p", "f", 0, 2)]
    tasks = plan_files(runs, found, slices, placement=TENS)
    assert [(task.partition_path, bool(task.hits), task.insert_rows) for task in tasks] == [
        ("p", True, 0),
        ("q", False, 3),
    ]
    rows = TaggedRows(tuple(runs), tuple(found), is_global=True)
    assert all(rows.runs_for(task.partition_path) == tuple(runs) for task in tasks)
    assert all(rows.hits_for(task.partition_path) == tuple(found) for task in tasks)


def test_a_global_plan_leaves_room_for_inserts_it_cannot_count() -> None:
    """Updates of other partitions' rows may hide the partition's own inserts."""
    slices = [file_slice("p", "f", 1200)]
    found = [hits("p", "f", 5)]
    tasks = plan_files([run("p", 5)], found, slices, placement=TENS)
    assert [task.inserts is not None for task in tasks] == [False, True]


HALVES = [f"0000000{half}-0000-0000-0000-000000000000-0" for half in range(2)]


class Halves:
    """Two file groups for each partition, whatever their size: one for each half of the key hashes."""

    def place(self, partition_path: str, rows: int, slices: Sequence[FileSlice]) -> Iterator[InsertShare]:
        for half, file_id in enumerate(HALVES):
            hashes = HashRange(half * HASH_END // 2, (half + 1) * HASH_END // 2)
            yield InsertShare(file_id, hashes, rows // 2)


@pytest.mark.parametrize("kind", TYPES)
def test_inserts_go_where_the_index_says(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    def halves(session: RecordIndex, default: Placement) -> Placement:
        return Halves()

    monkeypatch.setattr(RecordIndex, "placement", halves)
    table, more = new_table(type=kind), trips(("more", 1, 1.0, "sf"))
    for start in (0, 20, 40):
        table.upsert(trips(*((f"k{number}", number, 1.0, "sf") for number in range(start, start + 40))))
    if kind == "copy_on_write":
        table.insert(more)
    else:
        with pytest.raises(UnsupportedError, match="which accept no inserts in this write"):
            table.insert(more)
    assert {found.file_id for found in list_slices(table.view())} == {*HALVES}
    assert table.count() == (81 if kind == "copy_on_write" else 80)
