"""What tagging by the record index says of each row, and what comes of it."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.call import Call
from hoodie.commit.steps import Step
from hoodie.config import indexes
from hoodie.engine import ArrowDataset, LocalEngine
from hoodie.errors import HoodieWarning
from hoodie.files.staging.staged import StageReader, stage_folder
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.index import LookUpCost, Route
from hoodie.index.record.index import RecordIndexUpdate
from hoodie.index.record.look_up import LookUp
from hoodie.index.record.state import record_index
from hoodie.index.record.tag import TagTask
from hoodie.records.keys.automatic_keys import KeySource
from hoodie.table import Table
from hoodie.write import indexed
from hoodie.write.jobs import tag_request_of
from hoodie.write.setup import set_up
from tests.support.index_check import check_index
from tests.support.steps import once_at
from tests.support.tables import PLAIN, new_table, plain, values_of

Told = tuple[str, int | None, str, str, Route | None]
"""Key, ordering value and partition of a row; the partition that it hits, and how: None where it is an insert."""


def table_of(**given: Any) -> Table:
    """`a` in sf and `b` in nyc, both with the ordering value 5."""
    first = plain(("a", 5, "sf"), ("b", 5, "nyc"))
    return new_table(PLAIN, first, **{"partition_by": "city", "ordering": "ts", **given})


def tag(
    table: Table, changes: pa.Table, properties: dict[str, str] | None = None, *, deletes: bool = False
) -> tuple[list[Told], LookUpCost | None]:
    """How the table's index tags these rows; nothing is written but staged files, which go."""
    call = Call(state=table._context.state, engine=LocalEngine(), properties=properties or {})
    operation = WriteOperation.DELETE if deletes else WriteOperation.UPSERT
    setup = set_up(call, operation, None if deletes else ArrowDataset(changes))
    told: list[Told] = []
    with stage_folder(setup.view.store) as folder:
        key_stage = setup.index.key_stage(setup.merger)
        staged = indexed._stage(setup, ArrowDataset(changes), operation, KeySource.COLUMNS, folder, key_stage, None)
        request = tag_request_of(setup, staged, folder)
        tagged = setup.index.tag(request)
        hits: dict[int, set[tuple[str, Route]]] = {}
        with StageReader(setup.view.store) as reader:
            for hit in tagged.hits:
                batch = reader.read(hit)
                pairs = zip(batch.column("row").to_pylist(), batch.column("route").to_pylist(), strict=True)
                for row, route in pairs:
                    if hit.file_id or route != Route.DROP:
                        hits.setdefault(row, set()).add((hit.partition_path, Route(route)))
                    else:
                        hits.setdefault(row, set())
            for run in staged.runs:
                for number, row in enumerate(reader.read(run).to_pylist(), run.start):
                    who = (row["_hoodie_record_key"], row["ts"], row["_hoodie_partition_path"])
                    found = hits.get(number)
                    told += [(*who, "", None)] if found is None else []
                    told += [(*who, "", Route.DROP)] if found == set() else []
                    told += [(*who, path, route) for path, route in found or ()]
    return sorted(told), tagged.look_up


@pytest.mark.parametrize(("ts", "route"), [(4, Route.DROP), (5, Route.MOVE), (6, Route.MOVE)])
def test_a_record_moves_unless_it_is_older(ts: int, route: Route) -> None:
    table = table_of()
    told, _ = tag(table, plain(("a", ts, "la"), ("b", ts, "nyc"), ("new", ts, "la")))
    assert told == [
        ("a", ts, "city=la", "city=sf", route),
        ("b", ts, "city=nyc", "city=nyc", Route.UPDATE),
        ("new", ts, "city=la", "", None),
    ]


def test_where_a_row_goes_whose_record_lies_in_another_partition() -> None:
    """Without moves, and a delete: where the record lies. By commit time every record moves."""
    told, _ = tag(table_of(properties={indexes.RECORD_UPDATE_PARTITION_PATH.key: "false"}), plain(("a", 9, "la")))
    assert told == [("a", 9, "city=la", "city=sf", Route.UPDATE)]
    told, _ = tag(table_of(ordering=None), plain(("a", 1, "la")))
    assert told == [("a", 1, "city=la", "city=sf", Route.MOVE)]
    told, _ = tag(table_of(), pa.table({"id": ["a", "unknown"], "city": ["la", "la"]}), deletes=True)
    assert told == [("a", None, "city=la", "city=sf", Route.UPDATE), ("unknown", None, "city=la", "", None)]


def test_of_rows_of_two_partitions_one_counts() -> None:
    """The losers go nowhere, whether their key is known or new."""
    table = table_of()
    batch = plain(("a", 7, "la"), ("a", 6, "sf"), ("x", 2, "la"), ("x", 3, "sf"))
    told, _ = tag(table, batch)
    assert [row for row in told if row[4] != Route.DROP] == [
        ("a", 7, "city=la", "city=sf", Route.MOVE),
        ("x", 3, "city=sf", "", None),
    ]
    table.upsert(batch)
    assert values_of(table) == [("a", 7, "la"), ("b", 5, "nyc"), ("x", 3, "sf")]
    check_index(table.view())


@pytest.mark.parametrize("order", [1, -1])
def test_of_equal_rows_of_two_partitions_the_later_counts(order: int) -> None:
    table = table_of()
    batch = [("x", 1, "la"), ("x", 1, "sf")][::order]
    table.upsert(plain(*batch))
    assert values_of(table)[-1] == ("x", 1, batch[1][2])


def test_a_record_that_moves_twice_in_a_batch_is_one_update() -> None:
    table = table_of()
    result = table.upsert(plain(("a", 7, "la"), ("a", 6, "la"), ("a", 6, "la")))
    assert (result.inserted, result.updated, result.deleted) == (0, 1, 0)
    assert values_of(table) == [("a", 7, "la"), ("b", 5, "nyc")]


def test_rows_that_lost_stay_out_when_the_file_group_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries may name file groups that are gone. Their keys are new then, but still one row of each counts."""
    table = table_of()
    with monkeypatch.context() as patch:
        patch.setattr(RecordIndexUpdate, "stage_deletes", lambda *_: ())
        table.delete_partitions(["city=sf"])
    table.upsert(plain(("a", 7, "la"), ("a", 8, "nyc"), ("b", 6, "nyc")))
    assert values_of(table) == [("a", 8, "nyc"), ("b", 6, "nyc")]
    check_index(table.view())


@pytest.mark.parametrize("index", ["record", "partitioned_record"])
def test_seek_and_scan_find_the_same(index: str) -> None:
    table = table_of(index=index)
    table.upsert(plain(*((f"k{number}", 5, "sf") for number in range(60))))
    table.delete(pa.table({"id": [f"k{number}" for number in range(0, 60, 7)], "city": ["sf"] * 9}))
    batch = plain(*((f"k{number}", 6, ("sf", "la")[number % 2]) for number in range(70)))
    seek, sought = tag(table, batch, {indexes.RECORD_INDEX_LOOK_UP.key: LookUp.SEEK.value})
    scan, scanned = tag(table, batch, {indexes.RECORD_INDEX_LOOK_UP.key: LookUp.SCAN.value})
    assert seek == scan
    assert sought is not None
    assert scanned is not None
    assert (sought.buckets_scanned, scanned.buckets_sought) == (0, 0)
    assert (sought.keys, sought.found) == (scanned.keys, scanned.found)


def test_in_a_partitioned_index_a_key_of_another_partition_is_another_record() -> None:
    table = table_of(index="partitioned_record")
    batch = plain(("a", 1, "sf"), ("a", 1, "nyc"), ("a", 1, None))
    told, _ = tag(table, batch)
    null = "city=__HIVE_DEFAULT_PARTITION__"
    assert told == [
        ("a", 1, null, "", None),
        ("a", 1, "city=nyc", "", None),
        ("a", 1, "city=sf", "city=sf", Route.UPDATE),
    ]
    table.upsert(batch)
    table.upsert(plain(("a", 2, None)))
    assert len(values_of(Table(table.view().store))) == 4
    check_index(table.view())


def test_an_empty_batch_is_a_commit() -> None:
    table = table_of()
    assert tag(table, plain(("a", 1, "sf")).slice(0, 0)) == ([], LookUpCost())
    table.upsert(plain(("a", 1, "sf")).slice(0, 0))
    table.delete(pa.table({"id": pa.array([], pa.string())}))
    assert len(table.timeline.completed()) == 3


def test_a_key_may_go_and_come_again() -> None:
    table = table_of()
    for _ in range(2):
        table.delete(pa.table({"id": ["a", "never", "a"]}))
        check_index(table.view())
    assert values_of(table) == [("b", 5, "nyc")]
    assert table.upsert(plain(("a", 1, "la"))).inserted == 1
    assert values_of(table) == [("a", 1, "la"), ("b", 5, "nyc")]
    check_index(table.view())


@pytest.mark.parametrize("buckets", [20, 7])
def test_keys_that_were_staged_for_other_buckets_are_refused(buckets: int) -> None:
    """The index is built anew after the keys were staged, and before the write begins."""
    table = table_of()
    table.upsert(plain(*((f"k{number}", 1, "sf") for number in range(50))))
    moved = plain(*((f"k{number}", 2, "la") for number in range(50)))
    with (
        once_at(Step.PREPARED, lambda: Table(table.view().store).index.build("record", buckets=buckets)),
        pytest.raises(hoodie.CommitConflictError, match="built anew while this write ran"),
    ):
        table.upsert(moved)
    assert table.upsert(moved).updated == 50
    check_index(table.view())


def test_the_first_write_makes_the_buckets_that_the_table_asks_for() -> None:
    """Not those that the write asks for: other writers count on the table's properties."""
    minimum = indexes.RECORD_INDEX_BUCKETS_MIN.key
    table = new_table(PLAIN, properties={minimum: "3"})
    table.upsert(plain(*((f"k{number}", 1, "sf") for number in range(50))), properties={minimum: "20"})
    state = record_index(table.view())
    assert state is not None
    assert len(state.file_groups) == 3
    check_index(table.view())


def test_an_index_without_buckets_is_built_again() -> None:
    table = table_of()
    store, folder = table.view().store, ".hoodie/metadata/record_index"
    for name in store.names(folder):
        if name.startswith(".record-index-"):
            store.delete(f"{folder}/{name}")
    with pytest.warns(HoodieWarning, match=r"in the data files.*t\.index\.rebuild\(\)"):
        table.record_locations(["a"])
    written = table.upsert(plain(("a", 9, "la")))
    assert written.inserted == 0
    assert "record_index held no file group and was dropped" in written.notes[0]
    check_index(table.view())


def test_a_task_is_small_and_travels(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has its own buckets only."""
    table = table_of()
    tasks: list[TagTask] = []
    run = LocalEngine.run

    def watched(engine: LocalEngine, function: Callable[..., Any], given: list[Any], *_: Any) -> list[Any]:
        tasks.extend(task for task in given if isinstance(task, TagTask))
        return run(engine, function, given)

    monkeypatch.setattr(LocalEngine, "run", watched)
    tag(table, plain(*((f"k{number}", 1, "sf") for number in range(100))))
    assert sorted(bucket.number for task in tasks for bucket in task.file_groups) == list(range(10))
    for task in tasks:
        assert pickle.loads(pickle.dumps(task)) == task
        assert len(pickle.dumps(task)) < 10_000
