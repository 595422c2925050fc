"""Writers at the same time: who is alive is left alone, who touched the same files is refused, who died is undone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

import polars as pl
import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.rollback import committed_files
from hoodie.commit.steps import Step
from hoodie.commit.write_instant import WriteInstant, write_instant
from hoodie.files.markers import write_marker
from hoodie.format.filenames import IoType
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.index.simple import SimpleIndex
from hoodie.table import Table
from hoodie.timeline import Action, State, create_inflight, create_requested
from hoodie.timeline.heartbeat import heartbeat_path
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView
from tests.support import tables
from tests.support.deaths import check_tidy
from tests.support.steps import ONE_TRY, once_at
from tests.support.tables import TYPES, values_of
from tests.unit.write.tables import FIRST, files_of, ids_of, memory_of, new_table, trips

MINUTE_MS = 60_000
OTHER = trips(("x", 1, 1.0, "sf"))


def begun(table: Table) -> AbstractContextManager[WriteInstant]:
    """A write of another handle that runs in the body."""
    state = TableState(memory_of(table))
    return write_instant(state, Action.COMMIT, WriteOperation.UPSERT, index=SimpleIndex(TableView.load(state)))


def test_a_live_pending_write_is_left_alone() -> None:
    table = new_table(FIRST)
    with begun(table) as write:
        assert table.upsert(OTHER).notes == ()
        assert [instant.requested_time for instant in table.timeline.pending()] == [write.instant_time]
        write.commit((), schema=table.view().schema().avro, extra_metadata={})
    assert list(table.timeline.pending()) == []
    assert ids_of(table) == ["a", "b", "x"]


def test_a_write_that_others_took_for_dead_does_not_commit() -> None:
    table = new_table(FIRST)
    with begun(table) as write:
        write.pending.end()
        table.upsert(OTHER)
        with pytest.raises(hoodie.CommitConflictError, match="does not belong to this process"):
            write.commit((), schema=table.view().schema().avro, extra_metadata={})
    assert ids_of(table) == ["a", "b", "x"]
    assert list(table.timeline.pending()) == []


def meet(table: Table, ours: str, rows: pa.Table, theirs: str, others: object) -> None:
    """One of our writes, once, and another one between its beginning and its commit."""
    other = hoodie.open(table.path)
    with once_at(Step.BEGUN, lambda: getattr(other, theirs)(others)):
        getattr(table, ours)(rows, properties=ONE_TRY)


@pytest.mark.parametrize("ours", ["upsert", "insert", "delete", "insert_overwrite"])
def test_two_writers_on_the_same_file(ours: str) -> None:
    table = new_table(FIRST)
    with pytest.raises(hoodie.CommitConflictError, match="changed the same file groups"):
        meet(table, ours, trips(("a", 9, 9.0, "sf")), "upsert", trips(("a", 5, 5.0, "sf")))
    assert values_of(table, "id", "ts") == [("a", 5), ("b", 1)]
    assert len(table.timeline.instants) == 2
    files = files_of(table)
    assert len([path for path in files if path.startswith("city=") and path.endswith(".parquet")]) == 3
    assert not any(path.startswith(".hoodie/.temp") for path in files)


def test_two_writers_in_different_partitions_both_commit() -> None:
    table = new_table(FIRST)
    meet(table, "upsert", trips(("a", 9, 9.0, "sf")), "upsert", trips(("b", 9, 8.0, "nyc")))
    assert values_of(table, "id", "fare") == [("a", 9.0), ("b", 8.0)]


@pytest.mark.parametrize(
    ("ours", "theirs", "index", "city"),
    [
        ("upsert", "upsert", "record", "la"),
        ("upsert", "insert_overwrite", "record", "la"),
        ("insert_overwrite", "upsert", "record", "la"),
        ("insert_overwrite", "insert_overwrite", "record", "la"),
        ("upsert", "upsert", "global_simple", "nyc"),
    ],
)
def test_two_writers_insert_the_same_new_key(ours: str, theirs: str, index: str, city: str) -> None:
    """In one partition, or in any two of a global index without entries of keys."""
    table = new_table(trips(("a", 1, 1.0, "sf")), index=index)
    words = "inserted into the same" if city == "la" else None
    with pytest.raises(hoodie.CommitConflictError, match=words):
        meet(table, ours, trips(("x", 9, 9.0, "la")), theirs, trips(("x", 1, 1.0, city)))
    assert values_of(table, "id", "ts") == [("a", 1), ("x", 1)]


def a_data_file(table: Table, instant_time: str) -> str:
    """Copy a file of the table, as if a write had written it; return its name."""
    store = memory_of(table)
    info = next(info for info in store.list("city=sf") if info.name.endswith(".parquet"))
    name = f"11111111-2222-3333-4444-555555555555-0_0-1-1_{instant_time}.parquet"
    store.create(f"city=sf/{name}", store.read(info.path))
    return name


def begin_jvm_write(table: Table, *, heartbeat_age_ms: int | None) -> str:
    """A pending write as the JVM leaves it: no markers yet, one data file, an empty heartbeat file or none."""
    view, store = table.view(), memory_of(table)
    instant_time = view.clock.next_time(view.timeline)
    create_requested(store, view.layout, instant_time, Action.COMMIT)
    create_inflight(store, view.layout, instant_time, Action.COMMIT, b"{}")
    a_data_file(table, instant_time)
    if heartbeat_age_ms is not None:
        path = heartbeat_path(instant_time)
        store.replace(path, b"")
        store._content.files[path] = b"", store._content.files[path][1] - heartbeat_age_ms
    return instant_time


@pytest.mark.parametrize("heartbeat_age_ms", [None, 3 * MINUTE_MS])
def test_a_dead_write_of_the_jvm_is_rolled_back(heartbeat_age_ms: int | None) -> None:
    table = new_table(FIRST)
    dead = begin_jvm_write(table, heartbeat_age_ms=heartbeat_age_ms)
    assert ids_of(table) == ["a", "b"]
    assert any(dead in note for note in table.upsert(OTHER).notes)
    assert ids_of(table) == ["a", "b", "x"]
    assert [path for path in files_of(table) if dead in path and "rollback" not in path] == []
    (rollback,) = [instant for instant in table.timeline if instant.action is Action.ROLLBACK]
    assert rollback.state is State.COMPLETED


def test_a_live_write_of_the_jvm_is_left_alone() -> None:
    table = new_table(FIRST)
    alive = begin_jvm_write(table, heartbeat_age_ms=MINUTE_MS)
    table.upsert(OTHER)
    assert [instant.requested_time for instant in table.timeline.pending()] == [alive]
    files = files_of(table)
    assert heartbeat_path(alive) in files
    assert any(path.startswith("city=sf") and alive in path for path in files)
    assert ids_of(table) == ["a", "b", "x"]


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("is_listed", [False, True])
def test_the_file_of_a_late_attempt_at_a_committed_write_goes(version: int, is_listed: bool) -> None:
    """Its task ran twice. If the metadata table was built with the file meanwhile, the file stays with its rows."""
    table = tables.new_table(tables.PLAIN, tables.rows("a"), partition_by="city", index="simple", table_version=version)
    store = memory_of(table)
    view = table.view()
    (instant,) = view.timeline.completed()
    (path,) = committed_files(view, instant)
    late = f"city=sf/late-0_9-9-9_{instant.requested_time}.parquet"
    store.create(late, store.read(path))
    if is_listed:
        table.index.rebuild()
    for file in (path, late):
        write_marker(store, instant.requested_time, file, IoType.CREATE)
    table.upsert(tables.rows("b", city="nyc"))
    assert (store.head(late) is not None) == is_listed
    assert store.head(path) is not None
    assert store.folders(".hoodie/.temp") == []
    assert [key for (key,) in values_of(table, "id")] == (["a", "a", "b"] if is_listed else ["a", "b"])
    if not is_listed:
        table.index.rebuild()
        assert [key for (key,) in values_of(table, "id")] == ["a", "b"]


def test_files_that_came_late_go_with_their_markers() -> None:
    """A task of a cancelled Spark job may write its file after the instant was undone."""
    table = new_table(FIRST)
    start = int(table.view().timeline.start or "")
    # A day later: the milliseconds after the first commit belong to its completion, or to the next commit.
    late, archived = str(start + 1_000_000_000), str(start - 1_000_000_000)
    for instant_time in (late, archived):
        name = a_data_file(table, instant_time)
        memory_of(table).create(f".hoodie/.temp/{instant_time}/city=sf/{name}.marker.CREATE", b"")
    table.upsert(OTHER)
    files = files_of(table)
    assert [path for path in files if late in path] == []
    assert [path.rpartition(".")[2] for path in files if archived in path] == ["parquet"]
    assert ids_of(table) == ["a", "b", "x"]


def upsert_until_it_holds(path: str, rows: pa.Table) -> int:
    """Write through a handle of our own, again after every conflict; says how often there was one."""
    conflicts = 0
    while True:
        try:
            hoodie.open(path).upsert(rows)
            return conflicts
        except hoodie.CommitConflictError:
            conflicts += 1


@pytest.mark.parametrize("same_partition", [False, True])
def test_writers_on_threads_lose_nothing(same_partition: bool) -> None:
    table = new_table(FIRST)

    def write(number: int) -> int:
        city = "sf" if same_partition else f"city {number}"
        return sum(upsert_until_it_holds(table.path, trips((f"{number}-{turn}", turn, 0.0, city))) for turn in range(2))

    with ThreadPoolExecutor(3) as pool:
        conflicts = list(pool.map(write, range(3)))
    assert ids_of(table) == sorted(["a", "b", *(f"{number}-{turn}" for number in range(3) for turn in range(2))])
    assert same_partition or sum(conflicts) == 0
    check_tidy(memory_of(table))


WRITERS, WRITES, READS = 3, 3, 6
ROWS = pa.table({"id": [f"k{n:03}" for n in range(300)], "p": [str(n % 3) for n in range(300)], "n": [0] * 300})


@pytest.mark.parametrize("table_type", TYPES)
def test_threads_write_and_read_by_one_handle(table_type: str) -> None:
    table = tables.new_table(ROWS.schema, ROWS, partition_by="p", type=table_type)

    def write(writer: int) -> None:
        own = ROWS.slice(writer * 100, 100)
        for number in range(1, WRITES + 1):
            table.upsert(own.set_column(2, "n", pa.array([number] * 100)))

    def read(_: int) -> None:
        for _ in range(READS):
            found = table.to_arrow(["id", "n"])
            counts = found.group_by("n").aggregate([("id", "count_distinct")])["id_count_distinct"].to_pylist()
            assert sum(counts) == found.num_rows == 300
            assert all(count % 100 == 0 for count in counts)  # whole commits only
            assert sum(batch.num_rows for batch in table.to_batches()) == table.count() == 300
            assert table.to_polars().select(pl.len()).collect().item() == 300
            assert table.read_keys(["k001"]).num_rows == 1

    with ThreadPoolExecutor(WRITERS + 2) as threads:
        works = [threads.submit(write, writer) for writer in range(WRITERS)] + [threads.submit(read, n) for n in (0, 1)]
        for work in works:
            work.result()
    assert table.count(where=f"n = {WRITES}") == 300
    assert len(table.timeline.instants) >= 1 + WRITERS * WRITES
    assert table.verify().ok
