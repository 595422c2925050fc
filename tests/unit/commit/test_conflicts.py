"""Conflicts of two writers: non-blocking appends, early detection, writes that were taken back or archived."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import pyarrow as pa
import pytest

from hoodie.commit.conflicts import completed_since
from hoodie.commit.rollback import roll_back
from hoodie.commit.steps import Step
from hoodie.errors import CommitConflictError, InvalidConfigError, MissingFileError, UnsupportedError
from hoodie.files.markers import TEMP_FOLDER, delete_markers, marker_folder
from hoodie.progress import Progress, listening
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import Timeline
from hoodie.timeline.heartbeat import Heartbeat
from hoodie.view.slices import list_slices
from hoodie.view.table_view import TableView
from tests.support.deaths import check_tidy
from tests.support.fault_store import FaultStore
from tests.support.index_check import check_index
from tests.support.steps import ONE_TRY, once_at
from tests.support.tables import SCHEMA, create_in, new_table, rows_of, trips, trips_store

NON_BLOCKING = {"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL", **ONE_TRY}
EARLY = {"hoodie.write.concurrency.early.conflict.detection.enable": "true", **ONE_TRY}
EARLY_COMMITS = {**EARLY, "hoodie.write.concurrency.early.conflict.check.commit.conflict": "true"}
ONE_VERSION = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
START = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc")}


def table_of(table_type: str = "copy_on_write", index: str = "record") -> tuple[MemoryStore, Table]:
    store = trips_store(START, table_type=table_type, index=index)
    return store, Table(store)


@pytest.mark.parametrize("theirs", [{"b": (2, "sf")}, {"a": (2, "sf")}, {"a": (9, "sf")}, {"y": (1, "sf")}])
def test_non_blocking_appends_meet(theirs: Mapping[str, tuple[int, str]]) -> None:
    """The same file group, the same key, new keys of both: the ordering value decides, whoever commits first."""
    store, table = table_of("merge_on_read")
    ours = {"a": (5, "sf"), "x": (5, "sf")}
    with once_at(Step.BEGUN, lambda: Table(store).upsert(trips(theirs), properties=NON_BLOCKING)):
        result = table.upsert(trips(ours), properties=NON_BLOCKING)
    assert result.notes == ()
    expected = dict(START)
    for rows in (theirs, ours):
        expected.update({key: row for key, row in rows.items() if row[0] >= expected.get(key, row)[0]})
    assert rows_of(store) == expected
    check_tidy(store)


def test_non_blocking_appends_to_a_bucket_meet_and_its_first_writes_do_not() -> None:
    store, table = table_of("merge_on_read", "bucket")
    begun = once_at(Step.BEGUN, lambda: Table(store).upsert(trips({"a": (9, "sf")}), properties=NON_BLOCKING))
    with begun:
        assert table.upsert(trips({"a": (5, "sf"), "b": (5, "sf")}), properties=NON_BLOCKING).notes == ()
    first = once_at(Step.BEGUN, lambda: Table(store).upsert(trips({"x": (1, "rome")}), properties=NON_BLOCKING))
    with pytest.raises(CommitConflictError, match="try again"), first:
        table.upsert(trips({"x": (2, "rome")}), properties=NON_BLOCKING)
    assert rows_of(store) == {**START, "a": (9, "sf"), "b": (5, "sf"), "x": (1, "rome")}
    assert table.verify(full=True).ok


@pytest.mark.parametrize("ours", ["delete", "update", "the same new key"])
def test_other_non_blocking_writes_conflict(ours: str) -> None:
    store, table = table_of("merge_on_read")
    writes = {
        "delete": lambda: table.delete(["a"], properties=NON_BLOCKING),
        "update": lambda: table.update({"ts": "ts + 1"}, where="id = 'a'", properties=NON_BLOCKING),
        "the same new key": lambda: table.upsert(trips({"x": (3, "sf")}), properties=NON_BLOCKING),
    }
    theirs = trips({"a": (2, "sf"), "x": (2, "sf")})
    act = once_at(Step.BEGUN, lambda: Table(store).upsert(theirs, properties=NON_BLOCKING))
    with pytest.raises(CommitConflictError, match="try again"), act:
        writes[ours]()
    assert rows_of(store) == {**START, "a": (2, "sf"), "x": (2, "sf")}
    check_index(table.view())


def test_where_writes_cannot_be_non_blocking() -> None:
    for table_type, index in (("copy_on_write", "record"), ("merge_on_read", "simple")):
        store, table = table_of(table_type, index)
        before = len(store.list("", recursive=True))
        with pytest.raises(UnsupportedError, match="requires a merge-on-read table with a record index"):
            table.upsert(trips(START), properties=NON_BLOCKING)
        assert len(store.list("", recursive=True)) == before
    _, table = table_of("merge_on_read")
    with pytest.raises(InvalidConfigError, match="contradicts"):
        table.upsert(trips(START), properties={**NON_BLOCKING, **EARLY})
    older = new_table(SCHEMA, trips(START), type="merge_on_read", ordering="ts", table_version=6)
    with pytest.raises(UnsupportedError, match="of version 8 or later"):
        older.upsert(trips(START), properties=NON_BLOCKING)
    with pytest.raises(InvalidConfigError, match="cannot be written by JVM Hudi"):
        create_in(MemoryStore(), table_type="merge_on_read", properties=NON_BLOCKING)


def test_the_markers_of_a_running_write_are_found_before_files_are_written() -> None:
    store, table = table_of()
    refused = FaultStore(store)
    refused.register()

    def act() -> None:
        with pytest.raises(CommitConflictError, match="is running and has markers of the same file groups"):
            Table(refused).upsert(trips({"a": (5, "sf")}), properties=EARLY)
        assert Table(store).upsert(trips({"c": (5, "nyc")}), properties=EARLY).notes == ()

    with once_at(Step.WRITTEN, act):
        table.upsert(trips({"b": (2, "sf")}))
    assert not any(call.path.endswith(".parquet") for call in refused.calls if call.operation == "open_output")
    refused.unregister()
    assert rows_of(store) == {**START, "b": (2, "sf"), "c": (5, "nyc")}
    check_tidy(store)


def test_early_detection_costs_one_listing() -> None:
    counts = []
    for properties in (ONE_TRY, EARLY):
        store, _ = table_of()
        counted = FaultStore(store, count_reads=True)
        counted.register()
        Table(counted).upsert(trips({"a": (5, "sf"), "c": (5, "nyc")}), properties=properties)
        counted.unregister()
        counts.append(len(counted.calls))
    assert counts[1] - counts[0] == 1


def test_markers_of_a_timeline_server_are_read_while_its_writer_lives() -> None:
    store, table = table_of()
    (found,) = list_slices(table.view(), {"city=sf"})
    other = str(int(table.view().timeline.instants[-1].requested_time) - 1)
    name = f"city=sf/{found.file_id}_0-0-0_{other}.parquet.marker.MERGE"
    with Heartbeat(store, other):
        with once_at(Step.BEGUN, lambda: _marker_file(store, other, name)), pytest.raises(CommitConflictError):
            table.upsert(trips({"a": (5, "sf")}), properties=EARLY)
        with once_at(Step.BEGUN, lambda: _marker_file(store, other, name)):
            table.upsert(trips({"c": (5, "nyc")}), properties=EARLY)
    with once_at(Step.BEGUN, lambda: _marker_file(store, other, name)):
        table.upsert(trips({"a": (5, "sf")}), properties=EARLY)
    delete_markers(store, other)
    assert rows_of(store) == {**START, "a": (5, "sf"), "c": (5, "nyc")}


def _marker_file(store: MemoryStore, instant_time: str, name: str) -> None:
    store.replace(f"{marker_folder(instant_time)}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    store.replace(f"{marker_folder(instant_time)}/MARKERS0", name.encode() + b"\n")


def test_a_write_that_completed_is_found_before_files_are_written() -> None:
    store, table = table_of()
    refused = FaultStore(store)
    refused.register()
    act = once_at(Step.BEGUN, lambda: Table(store).upsert(trips({"b": (2, "sf")})))
    with pytest.raises(CommitConflictError, match="changed the file groups"), act:
        Table(refused).upsert(trips({"a": (5, "sf")}), properties=EARLY_COMMITS)
    assert not any(call.operation == "open_output" and "city=" in call.path for call in refused.calls)
    refused.unregister()
    with once_at(Step.BEGUN, lambda: Table(store).upsert(trips({"b": (3, "sf")}))):
        assert table.upsert(trips({"c": (5, "nyc")}), properties=EARLY_COMMITS).notes == ()
    assert store.folders(TEMP_FOLDER) == []


def test_a_write_is_made_again_if_a_completed_write_was_rolled_back_meanwhile() -> None:
    store, table = table_of()
    newest = table.upsert(trips({"a": (2, "sf"), "x": (2, "sf")})).instant

    def take_back() -> None:
        other = Table(store)
        with other.view().state.table_lock() as lock:
            view = TableView.load(other.view().state, lock)
            instant = view.timeline.get(newest)
            assert instant is not None
            roll_back(view, instant)

    with once_at(Step.BEGUN, take_back):
        result = table.upsert(trips({"b": (3, "sf")}))
    assert result.notes[0] == f"retried once: the write {newest} was rolled back while this write ran"
    assert rows_of(store) == {**START, "b": (3, "sf")}


@pytest.mark.parametrize("phase", ["tag", "write"])
@pytest.mark.parametrize("policy", [ONE_VERSION, {"hoodie.clean.commits.retained": "1"}])
def test_a_write_is_made_again_if_files_that_it_reads_were_cleaned(phase: str, policy: Mapping[str, str]) -> None:
    """Before it looks up keys: the file group seems to be gone, and the key new. After that: the file is missing."""
    store, table = table_of()
    deleted: list[int] = []

    def act(progress: Progress) -> None:
        if progress.phase == phase and not deleted:
            deleted.append(0)
            other = Table(store)
            for ts in (2, 3):
                other.upsert(trips({"a": (ts, "sf")}))
            deleted.append(other.clean(properties=policy).counts.get("files_deleted", 0))

    with listening(act):
        result = table.upsert(trips({"b": (5, "sf")}))
    assert result.notes[0].startswith("retried once: ")
    assert ("deleted" in result.notes[0]) == (policy is ONE_VERSION) == (deleted == [0, 2])
    assert rows_of(store) == {**START, "a": (3, "sf"), "b": (5, "sf")}
    check_tidy(store)


def test_a_file_that_is_missing_without_a_clean_is_no_conflict() -> None:
    store, table = table_of()
    (found,) = list_slices(table.view(), {"city=sf"})
    assert found.base_file is not None
    store.delete(found.base_file.path)
    with pytest.raises(MissingFileError):
        table.upsert(trips({"b": (5, "sf")}))


def test_writes_that_may_be_archived_are_a_conflict() -> None:
    store, table = table_of()
    before = table.view()
    for number in range(3):
        table.upsert(trips({"c": (number + 2, "nyc")}))
    now = table.view()
    assert len(completed_since(before, now)) == 3
    archived = dataclasses.replace(now, timeline=Timeline.of(now.timeline.instants[-1:]))
    with pytest.raises(CommitConflictError, match="may be archived") as found:
        completed_since(before, archived)
    assert found.value.retry_cause is not None
    pending = [dataclasses.replace(i, state=i.state.INFLIGHT, completion_time=None) for i in before.timeline][-1:]
    slow = dataclasses.replace(before, timeline=Timeline.of(pending))
    assert completed_since(slow, now)[0].requested_time == pending[0].requested_time
    with pytest.raises(CommitConflictError, match="may be archived"):
        completed_since(slow, archived)
    empty = dataclasses.replace(before, timeline=Timeline.of(()))
    assert len(completed_since(empty, now)) == 4
    store.create(".hoodie/timeline/history/manifest_1", b"")
    with pytest.raises(CommitConflictError, match="may be archived"):
        completed_since(empty, dataclasses.replace(archived))


def test_a_schema_that_changed_is_not_retried() -> None:
    store, table = table_of()
    wider = trips({"c": (2, "nyc")}).append_column("more", pa.array([1], pa.int64()))
    act = once_at(Step.BEGUN, lambda: Table(store).upsert(wider))
    with pytest.raises(CommitConflictError, match="changed the schema") as found, act:
        table.upsert(trips({"a": (5, "sf")}))
    assert found.value.retry_cause is None
