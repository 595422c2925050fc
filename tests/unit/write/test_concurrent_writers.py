"""Writers at the same time: who is alive is left alone, who touched the same files is refused, who died is undone."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.steps import Step
from hoodie.commit.write_instant import write_instant
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.index.simple import SimpleIndex
from hoodie.storage import LocalStore
from hoodie.table import Table
from hoodie.timeline import Action, State, create_inflight, create_requested
from hoodie.timeline.heartbeat import heartbeat_path
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView
from tests.crash.tables import check_tidy
from tests.support.steps import ONE_TRY, once_at
from tests.unit.write.tables import SCHEMA, new_table, trips

MINUTE_MS = 60_000


def keys(table: Table) -> list[str]:
    return sorted(table.to_arrow(columns=["id"])["id"].to_pylist())


def test_a_live_pending_write_is_left_alone(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    state = TableState(LocalStore(str(tmp_path)))
    with write_instant(state, Action.COMMIT, WriteOperation.UPSERT, index=SimpleIndex(TableView.load(state))) as write:
        other = table.upsert(trips(("x", 1, 1.0, "sf")))
        assert other.notes == ()
        pending = table.timeline.pending().instants
        assert [instant.requested_time for instant in pending] == [write.instant_time]
        write.commit((), schema=table.view().schema().avro, extra_metadata={})
    assert list(table.timeline.pending()) == []
    assert keys(table) == ["a", "b", "x"]


def write_meanwhile(
    table: Table,
    operation: str,
    rows: pa.Table,
    act: Callable[[], object],
    properties: Mapping[str, str] = ONE_TRY,
) -> None:
    """Run one of our writes, once, and `act` between its beginning and its commit."""
    with once_at(Step.BEGUN, act):
        getattr(table, operation)(rows, properties=properties)


@pytest.mark.parametrize("ours", ["upsert", "insert", "delete", "insert_overwrite"])
def test_two_writers_on_the_same_file(tmp_path: Path, ours: str) -> None:
    table, other = new_table(tmp_path), hoodie.open(tmp_path)
    theirs: list[hoodie.WriteResult] = []
    with pytest.raises(hoodie.CommitConflictError, match="changed the same file groups"):
        write_meanwhile(
            table, ours, trips(("a", 9, 9.0, "sf")), lambda: theirs.append(other.upsert(trips(("a", 5, 5.0, "sf"))))
        )
    assert table.to_arrow(columns=["id", "ts"]).to_pylist() == [{"id": "b", "ts": 1}, {"id": "a", "ts": 5}]
    assert table.timeline.instants[-1].requested_time == theirs[0].instant
    data_files = sorted(found.name for found in tmp_path.glob("city=*/*.parquet"))
    assert len(data_files) == 3, data_files
    assert list((tmp_path / ".hoodie" / ".temp").iterdir()) == []


def test_two_writers_in_different_partitions_both_commit(tmp_path: Path) -> None:
    table, other = new_table(tmp_path), hoodie.open(tmp_path)
    write_meanwhile(table, "upsert", trips(("a", 9, 9.0, "sf")), lambda: other.upsert(trips(("b", 9, 8.0, "nyc"))))
    rows = table.to_arrow(columns=["id", "fare"]).to_pylist()
    assert sorted((row["id"], row["fare"]) for row in rows) == [("a", 9.0), ("b", 8.0)]


@pytest.mark.parametrize("ours", ["upsert", "insert_overwrite"])
@pytest.mark.parametrize("theirs", ["upsert", "insert_overwrite"])
def test_two_writers_insert_the_same_new_key(tmp_path: Path, ours: str, theirs: str) -> None:
    table, other = new_table(tmp_path), hoodie.open(tmp_path)
    with pytest.raises(hoodie.CommitConflictError, match="inserted into the same"):
        write_meanwhile(
            table, ours, trips(("x", 9, 9.0, "la")), lambda: getattr(other, theirs)(trips(("x", 1, 1.0, "la")))
        )
    assert keys(table) == ["a", "b", "x"]
    assert table.to_arrow(columns=["ts"], where="id = 'x'")["ts"].to_pylist() == [1]


def test_two_writers_insert_the_same_new_key_into_two_partitions_of_a_global_index(tmp_path: Path) -> None:
    table = hoodie.create(tmp_path, SCHEMA, record_key="id", partition_by="city", ordering="ts", index="global_simple")
    table.upsert(trips(("a", 1, 1.0, "sf")))
    other = hoodie.open(tmp_path)
    with pytest.raises(hoodie.CommitConflictError):
        write_meanwhile(table, "upsert", trips(("x", 9, 9.0, "la")), lambda: other.upsert(trips(("x", 1, 1.0, "nyc"))))
    assert keys(table) == ["a", "x"]


def test_an_overwrite_does_not_take_away_what_was_inserted_meanwhile(tmp_path: Path) -> None:
    table, other = new_table(tmp_path), hoodie.open(tmp_path)
    with pytest.raises(hoodie.CommitConflictError):
        write_meanwhile(table, "upsert", trips(("a", 9, 9.0, "sf")), lambda: other.delete_partitions(["city=sf"]))
    assert keys(table) == ["b"]


def begin_jvm_write(path: Path, *, heartbeat_age_ms: int | None) -> str:
    """A pending write as the JVM leaves it: no markers yet, one data file, an empty heartbeat file or none."""
    store = LocalStore(str(path))
    view = Table(store).view()
    instant_time = view.clock.next_time(view.timeline)
    create_requested(store, view.layout, instant_time, Action.COMMIT)
    create_inflight(store, view.layout, instant_time, Action.COMMIT, b"{}")
    (file,) = (path / "city=sf").glob("*.parquet")
    name = f"11111111-2222-3333-4444-555555555555-0_0-1-1_{instant_time}.parquet"
    (path / "city=sf" / name).write_bytes(file.read_bytes())
    if heartbeat_age_ms is not None:
        store.replace(heartbeat_path(instant_time), b"")
        beat = path / heartbeat_path(instant_time)
        seconds = beat.stat().st_mtime - heartbeat_age_ms / 1000
        os.utime(beat, (seconds, seconds))
    return instant_time


@pytest.mark.parametrize("heartbeat_age_ms", [None, 3 * MINUTE_MS])
def test_a_dead_write_of_the_jvm_is_rolled_back(tmp_path: Path, heartbeat_age_ms: int | None) -> None:
    table = new_table(tmp_path)
    dead = begin_jvm_write(tmp_path, heartbeat_age_ms=heartbeat_age_ms)
    assert keys(table) == ["a", "b"]
    result = table.upsert(trips(("x", 1, 1.0, "sf")))
    assert any(dead in note for note in result.notes)
    assert keys(table) == ["a", "b", "x"]
    assert [file.name for file in tmp_path.rglob(f"*{dead}*") if "rollback" not in file.name] == []
    (rollback,) = [instant for instant in table.timeline if instant.action is Action.ROLLBACK]
    assert rollback.state is State.COMPLETED


def test_a_live_write_of_the_jvm_is_left_alone(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    alive = begin_jvm_write(tmp_path, heartbeat_age_ms=MINUTE_MS)
    table.upsert(trips(("x", 1, 1.0, "sf")))
    assert [instant.requested_time for instant in table.timeline.pending()] == [alive]
    assert list((tmp_path / "city=sf").glob(f"*{alive}*")) != []
    assert (tmp_path / heartbeat_path(alive)).exists()
    assert keys(table) == ["a", "b", "x"]


def test_a_write_that_others_took_for_dead_does_not_commit(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    state = TableState(LocalStore(str(tmp_path)))
    with write_instant(state, Action.COMMIT, WriteOperation.UPSERT, index=SimpleIndex(TableView.load(state))) as write:
        write.pending.end()
        table.upsert(trips(("x", 1, 1.0, "sf")))
        with pytest.raises(hoodie.CommitConflictError, match="does not belong to this process"):
            write.commit((), schema=table.view().schema().avro, extra_metadata={})
    assert keys(table) == ["a", "b", "x"]
    assert list(table.timeline.pending()) == []


def test_files_that_came_late_go_with_their_markers(tmp_path: Path) -> None:
    """A task of a cancelled Spark job may write its file after the instant was undone."""
    table = new_table(tmp_path)
    view = table.view()
    assert view.timeline.start is not None
    (file,) = (tmp_path / "city=sf").glob("*.parquet")
    # A day later: the milliseconds after the first commit belong to its completion, or to the next commit.
    late, archived = str(int(view.timeline.start) + 1_000_000_000), str(int(view.timeline.start) - 1_000_000_000)
    for instant_time in (late, archived):
        name = f"11111111-2222-3333-4444-555555555555-0_0-1-1_{instant_time}.parquet"
        (tmp_path / "city=sf" / name).write_bytes(file.read_bytes())
        marker = tmp_path / ".hoodie" / ".temp" / instant_time / "city=sf" / f"{name}.marker.CREATE"
        marker.parent.mkdir(parents=True)
        marker.touch()
    table.upsert(trips(("x", 1, 1.0, "sf")))
    assert list(tmp_path.rglob(f"*{late}*")) == []
    assert [found.suffix for found in tmp_path.rglob(f"*{archived}*")] == [".parquet"]
    assert keys(table) == ["a", "b", "x"]


def upsert_until_it_holds(path: Path, rows: pa.Table) -> int:
    """Write through a handle of our own, again after every conflict; says how often there was one."""
    conflicts = 0
    while True:
        try:
            hoodie.open(path).upsert(rows)
            return conflicts
        except hoodie.CommitConflictError:
            conflicts += 1


@pytest.mark.parametrize("same_partition", [False, True])
def test_writers_on_threads_lose_nothing(tmp_path: Path, same_partition: bool) -> None:
    table = new_table(tmp_path)

    def write(number: int) -> int:
        city = "sf" if same_partition else f"city {number % 3}"
        return sum(upsert_until_it_holds(tmp_path, trips((f"{number}-{turn}", turn, 0.0, city))) for turn in range(3))

    with ThreadPoolExecutor(3) as pool:
        conflicts = list(pool.map(write, range(3)))
    assert keys(table) == sorted(["a", "b", *(f"{number}-{turn}" for number in range(3) for turn in range(3))])
    assert same_partition or sum(conflicts) == 0
    check_tidy(LocalStore(str(tmp_path)))
