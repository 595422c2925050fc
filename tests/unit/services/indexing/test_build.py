"""Building the record index of a table that has rows: sizes, writers beside it, what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.call import Call, Wait
from hoodie.commit.steps import Step
from hoodie.errors import CommitConflictError, InvalidConfigError, RecordKeyError, UnsupportedError
from hoodie.files.table_properties import read_table_config, update_table_config
from hoodie.format.instants.service_metadata import IndexPartitionInfo, IndexPlan
from hoodie.format.table import table_keys as keys
from hoodie.index.record.building import files as index_files
from hoodie.index.record.building.files import bucket_count
from hoodie.index.record.state import record_index
from hoodie.services.indexing.record_builds import build_record_index
from hoodie.table import Table
from hoodie.timeline import Action
from hoodie.view.slices import list_slices
from tests.support import tables
from tests.support.steps import begin, once_at
from tests.support.tables import PLAIN, TYPES, new_table, rows_of, trips_store


def trips(numbers: range, ts: int = 1, shift: int = 0) -> pa.Table:
    """Rows k<n> in three cities; `shift` moves them on."""
    cities = [("sf", "nyc", "la")[(n + shift) % 3] for n in numbers]
    return pa.table({"id": [f"k{n:04}" for n in numbers], "ts": [ts] * len(numbers), "city": cities}, schema=PLAIN)


def made(index: str, *writes: pa.Table) -> Table:
    return new_table(PLAIN, *writes, partition_by="city", ordering="ts", index=index)


@pytest.fixture
def table() -> Table:
    """300 rows, found by global_simple."""
    return made("global_simple", trips(range(300)))


@pytest.fixture
def other(table: Table) -> Table:
    """Another writer of the same table."""
    return Table(table.view().store)


def check(table: Table, entries: int) -> None:
    """The index is on, is the data, and has so many entries."""
    report = table.index.verify()
    assert report.ok, str(report)
    assert report.checked["entries"] == entries
    assert list(table.timeline.pending()) == []


def between(monkeypatch: pytest.MonkeyPatch, module: object, name: str, action: Callable[[], object]) -> None:
    """Run the action once, just before a function of a module is called for the first time."""
    original = getattr(module, name)
    done: list[bool] = []

    def wrapped(*args: object, **kwargs: object) -> object:
        if not done:
            done.append(True)
            action()
        return original(*args, **kwargs)

    monkeypatch.setattr(module, name, wrapped)


def test_a_build_and_what_it_tells(table: Table) -> None:
    result = table.index.build("record")
    assert dict(result.counts) == {"entries": 300, "buckets": 10, "files_read": 3}
    assert result.bytes_written > 0
    assert "300 entries, 10 buckets" in str(result)
    check(table, 300)
    raw = table.view().config.raw
    assert raw["hoodie.index.type"] == "RECORD_INDEX"
    assert raw["hoodie.metadata.record.index.enable"] == "true"
    assert raw["hoodie.record.index.update.partition.path"] == "true"
    moved = table.upsert(trips(range(5), ts=2, shift=1))
    assert (moved.inserted, moved.updated) == (0, 5)
    assert "5 keys looked up in the record index, 5 found" in str(moved)
    check(table, 300)


def test_an_index_that_is_there_stays_unless_another_number_is_asked_for(table: Table) -> None:
    table.index.build(buckets=4)
    assert table.index.build().instant is None
    assert table.index.build(buckets=4).notes == ("the record index exists already, with 4 buckets",)
    for buckets in (7, 2):
        assert table.index.build(buckets=buckets).counts["buckets"] == buckets
        state = record_index(table.view())
        assert state is not None
        assert len(state.file_groups) == buckets
        table.upsert(trips(range(290, 310), ts=buckets))
        check(table, 310)


def test_another_index_type_that_is_stored_stays() -> None:
    table = made("simple", trips(range(10)))
    update_table_config(table.view().store, {"hoodie.index.type": "SIMPLE"})
    table.index.build()
    assert table.view().config.raw["hoodie.index.type"] == "SIMPLE"
    table.upsert(trips(range(8, 12)))
    check(table, 12)


def test_sizes() -> None:
    assert bucket_count(1_000_000_000, {}) == 2000
    assert bucket_count(100_000_000_000, {}) == 10_000
    assert bucket_count(20_000_000, {"hoodie.metadata.record.index.growth.factor": "1.5"}) == 30
    with pytest.raises(InvalidConfigError, match=r"growth\.factor='0'"):
        bucket_count(20_000_000, {"hoodie.metadata.record.index.growth.factor": "0"})
    assert bucket_count(0, {"hoodie.metadata.record.index.min.filegroup.count": "3"}) == 3
    assert bucket_count(5_000_000, {"hoodie.metadata.record.index.max.filegroup.count": "6"}) == 6
    for wrong in (0, 10_001, True):
        with pytest.raises(hoodie.InvalidConfigError, match="from 1 to 10,000"):
            bucket_count(1, {}, asked=wrong)


def test_an_empty_table_gets_an_index_that_writers_fill() -> None:
    table = made("simple")
    assert table.index.build(buckets=2).counts["entries"] == 0
    table.upsert(trips(range(20)))
    check(table, 20)


def test_rows_with_one_key_are_named_and_nothing_is_switched_on(table: Table) -> None:
    table.insert(trips(range(7, 9)))
    before = dict(read_table_config(table.view().store).raw)
    with pytest.raises(RecordKeyError, match=r"2 rows whose key another row also has, such as \['k000[78]'"):
        table.index.build()
    assert dict(read_table_config(table.view().store).raw) == before
    assert list(table.timeline.pending()) == []
    assert table.view().store.folders(".hoodie/metadata") == [".hoodie/metadata/.hoodie", ".hoodie/metadata/files"]


def test_writers_go_on_while_it_is_built(table: Table, other: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inserts, moves, deletes, replaced partitions: before the base files, between the rounds, before the switch."""

    def early() -> None:
        other.upsert(trips(range(295, 330), ts=2, shift=1))
        other.delete(["k0000", "k0001"])

    def late() -> None:
        other.delete_partitions(["city=la"])
        other.upsert(trips(range(0, 3), ts=3))
        other.insert_overwrite(trips(range(400, 403)))

    between(monkeypatch, index_files, "write_base_files", early)
    between(monkeypatch, index_files, "write_file_group_logs", late)
    table.index.build(buckets=5)
    check(table, table.count())
    table.upsert(trips(range(0, 410, 3), ts=9, shift=2))
    check(table, table.count())


def test_a_rebuild_beside_writers_that_use_the_old_index(
    table: Table, other: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.index.build(buckets=2)
    between(monkeypatch, index_files, "write_base_files", lambda: other.upsert(trips(range(290, 320), ts=2)))
    between(monkeypatch, index_files, "write_file_group_logs", lambda: other.delete(["k0005"]))
    table.index.build(buckets=3)
    check(table, 319)


@pytest.mark.parametrize("before", [None, 2])
def test_a_write_that_began_before_the_switch_makes_its_entries_when_it_commits(
    table: Table, other: Table, before: int | None
) -> None:
    if before is not None:
        table.index.build(buckets=before)
    with once_at(Step.LOCATED, lambda: other.index.build(buckets=3)):
        table.upsert(trips(range(280, 330), ts=2, shift=1))
    check(table, 330)
    with once_at(Step.LOCATED, lambda: other.index.build(buckets=4)):
        table.insert_overwrite(trips(range(500, 510)))
    check(table, 10)


def test_a_write_that_began_before_a_drop_commits_without_entries(table: Table, other: Table) -> None:
    table.index.build(buckets=2)
    with once_at(Step.LOCATED, other.index.drop):
        table.upsert(trips(range(280, 330), ts=2))
    assert table.count() == 330
    assert table.view().store.list(".hoodie/metadata/record_index") == []
    table.index.build(buckets=2)
    check(table, 330)


def test_a_key_written_twice_while_it_is_built_is_told_by_the_counts(
    table: Table, other: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    between(monkeypatch, index_files, "write_base_files", lambda: other.insert(trips(range(3), shift=1)))
    with pytest.raises(RecordKeyError, match="300 entries for 303 rows"):
        table.index.build()
    assert list(table.timeline.pending()) == []
    assert record_index(table.view()) is None


def test_files_that_were_cleaned_away_end_the_build(table: Table, other: Table) -> None:

    def rewrite() -> None:
        old = [found.base_file for found in list_slices(other.view()) if found.base_file is not None]
        other.upsert(trips(range(300), ts=2))
        for file in old:
            other.view().store.delete(file.path)

    with once_at(Step.WRITTEN, rewrite), pytest.raises(CommitConflictError, match="was cleaned or rolled back"):
        table.index.build()
    assert list(table.timeline.pending()) == []
    table.index.build()
    check(table, 300)


def test_an_indexing_of_the_jvm_is_left_alone(table: Table) -> None:
    plan = IndexPlan(index_partition_infos=(IndexPartitionInfo(metadata_partition_path="column_stats"),))
    begin(table, Action.INDEXING, plan.to_bytes())
    for refused in (table.index.build, table.index.drop, lambda: table.upsert(trips(range(1)))):
        with pytest.raises(UnsupportedError, match="pending"):
            refused()


def test_a_write_of_another_engine_is_waited_for(table: Table) -> None:
    """Without end: the build gives up, stays pending, and goes on when the write is gone."""
    view = table.view()
    time = begin(table, Action.COMMIT)
    view.store.replace(f".hoodie/.heartbeat/{time}", b"")
    waited: list[float] = []
    with pytest.raises(CommitConflictError, match="of another engine"):
        build_record_index(Call(state=view.state, wait=Wait(0.0, sleep=waited.append)))
    assert record_index(table.view()) is None
    assert [found.action for found in table.timeline.pending()] == [Action.INDEXING, Action.COMMIT][::-1]
    wait = Wait(sleep=lambda _: view.store.delete(f".hoodie/.heartbeat/{time}"))
    result = build_record_index(Call(state=view.state, wait=wait))
    assert any("resumed the build" in note for note in result.notes)
    assert any("10 index file groups were kept from an earlier run" in note for note in result.notes)
    check(table, 300)


def test_a_drop_leaves_keys_unique_and_records_moving(table: Table) -> None:
    table.index.build()
    result = table.index.drop()
    assert result.counts["files_deleted"] > 10
    raw = table.view().config.raw
    assert raw["hoodie.index.type"] == "GLOBAL_SIMPLE"
    assert raw[keys.METADATA_PARTITIONS] == "files"
    assert not {key for key in raw if "record.index" in key or "record.level" in key}
    table.upsert(trips(range(10), ts=2, shift=1))
    assert table.count() == 300
    assert table.index.drop().counts == {}
    table.index.build()
    check(table, 300)
    assert table.view().config.raw["hoodie.index.type"] == "RECORD_INDEX"


@pytest.mark.parametrize("name", ["v6_cow", "v6_mor", "v8_cow", "v9_cow", "v8_mor", "v9_mor"])
def test_tables_of_the_jvm(golden_tables: Path, tmp_path: Path, name: str) -> None:
    """Their own index is there; it is built anew, dropped, and built."""
    shutil.copytree(golden_tables / name, tmp_path / name)
    table = hoodie.open(tmp_path / name, spark=False)
    rows = table.count()
    assert table.index.verify().ok
    for build in (lambda: table.index.build(buckets=4), lambda: (table.index.drop(), table.index.build(buckets=3))):
        build()
        check(table, rows)


# --- version 6, whose log files get their names at the commit ---------------------------------------------------------

START = {"a": (1, "sf"), "b": (1, "nyc")}
CHANGED = {**START, "a": (2, "sf"), "z": (1, "la")}


@pytest.mark.parametrize("step", [Step.BEGUN, Step.WRITTEN], ids=str)
@pytest.mark.parametrize("table_type", TYPES)
def test_a_write_while_a_build_of_version_6_is_pending(table_type: str, step: Step) -> None:
    store = trips_store(START, table_type=table_type, table_version=6)
    with once_at(step, lambda: Table(store).upsert(tables.trips(CHANGED))):
        Table(store).index.build("record", buckets=3)
    assert rows_of(store) == CHANGED
    assert Table(store).verify(full=True).ok


@pytest.mark.parametrize("table_type", TYPES)
def test_a_build_while_a_write_of_version_6_is_pending(table_type: str) -> None:
    """The write is refused: its keys are staged by the old buckets."""
    store = trips_store(START, table_type=table_type, table_version=6)
    act = once_at(Step.WRITTEN, lambda: Table(store).index.build("record", buckets=3))
    with pytest.raises(CommitConflictError, match="built anew"), act:
        Table(store).upsert(tables.trips(CHANGED))
    assert rows_of(store) == START
    Table(store).upsert(tables.trips(CHANGED))
    assert rows_of(store) == CHANGED
    assert Table(store).verify(full=True).ok
