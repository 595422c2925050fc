"""What cleans delete and keep, on tables in memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from hoodie.commit.steps import Step
from hoodie.errors import CorruptFileError, HistoryLostError, InvalidConfigError, UnsupportedError
from hoodie.format.instants.service_metadata import CleanerPlan, CleanFileInfo, CleanMetadata
from hoodie.services.cleaning.partitions import LEFT
from hoodie.storage import Store
from hoodie.table import Table
from hoodie.timeline import Action, Heartbeat, Instant, read_instant
from hoodie.view.listing import list_files
from hoodie.view.table_view import TableView
from tests.support.cleaned_tables import check_listing, data_files, table_of_versions, version_of
from tests.support.fault_store import FaultStore
from tests.support.refusals import refused
from tests.support.steps import begin, once_at
from tests.support.tables import made_once, rows_of, trips

SF, NYC = "city=sf", "city=nyc"
TWO = {"hoodie.clean.commits.retained": "2"}
PENDING = "20991231235959999"


def store_of(table: Table) -> Store:
    return table.view().store


def cleans(table: Table) -> list[Instant]:
    return [found for found in table.timeline if found.action is Action.CLEAN]


def metadata_of(table: Table) -> CleanMetadata:
    view, clean = table.view(), cleans(table)[-1]
    return CleanMetadata.parse(read_instant(view.store, view.layout, clean), path="clean")


def counts(table: Table) -> dict[str, int]:
    """How many data files each partition has."""
    return {path: len(names) for path, names in data_files(store_of(table)).items()}


@made_once
def without_nyc() -> Table:
    """A table that lost a partition three commits ago."""
    table = table_of_versions(2)
    table.delete_partitions([NYC])
    for version in range(2, 5):
        table.upsert(version_of(version, "a"))
    return table


def plan_of(*paths: str, partition: str = SF, **more: Any) -> bytes:
    """A plan of a clean that deletes these files."""
    files = {partition: tuple(CleanFileInfo(file_path=path) for path in paths)}
    policy = "KEEP_LATEST_COMMITS"
    return CleanerPlan(policy=policy, file_paths_to_be_deleted_per_partition=files, **more).to_bytes()


def test_the_newest_commits_stay_readable() -> None:
    table = table_of_versions(6)
    commits = [found.requested_time for found in table.timeline]
    three = {"hoodie.clean.commits.retained": "3"}
    dry = table.clean(dry_run=True, properties=three)
    assert dry.dry_run
    assert dry.oldest_readable == commits[3]
    assert {path: len(names) for path, names in dry.files.items()} == {NYC: 2, SF: 2}
    assert cleans(table) == []
    before = data_files(store_of(table))
    done = table.clean(properties=three)
    assert {**done.counts} == {**dry.counts, "partitions_dropped": 0}
    assert done.counts["files_deleted"] == 4
    assert done.counts["bytes_freed"] > 0
    assert done.oldest_readable == commits[3]
    # The newest slice before the window stays, as a reader may have begun before the window moved.
    left = data_files(store_of(table))
    assert counts(table) == {NYC: 4, SF: 4}
    gone = {path: sorted(set(before[path]) - set(left[path])) for path in before}
    assert gone == {path: sorted(names) for path, names in dry.files.items()}
    check_listing(table)
    assert rows_of(store_of(table)) == {"a": (5, "sf"), "b": (5, "nyc")}
    for version in range(3, 6):
        found = table.to_arrow(as_of=commits[version], columns=["ts"]).column("ts").to_pylist()
        assert found == [version, version]
    with pytest.raises(UnsupportedError, match=commits[3]):
        table.to_arrow(as_of=commits[2])
    stored = metadata_of(table)
    assert stored.earliest_commit_to_retain == commits[3]
    assert stored.last_completed_commit_timestamp == commits[5]
    assert table.clean(properties=three).instant is None


def test_a_clean_follows_a_commit_unless_it_is_off() -> None:
    table = table_of_versions(3)
    assert table.upsert(version_of(3), properties=TWO).services == ()
    (result,) = table.upsert(version_of(4), properties={**TWO, "hoodie.clean.automatic": "true"}).services
    assert (result.operation, result.counts["files_deleted"]) == ("clean", 4)
    assert len(cleans(table)) == 1


def test_a_clean_looks_at_what_changed_since_the_last_one() -> None:
    table = table_of_versions(4)
    assert table.clean(properties=TWO).counts["files_deleted"] == 2
    for version in range(4, 8):
        table.upsert(version_of(version, "a"))
    seen: list[str] = []
    listing = list_files

    def spy(view: TableView, partitions: Collection[str] | None = None) -> Mapping[str, Mapping[str, int]]:
        seen.extend(partitions or ["all"])
        return listing(view, partitions)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hoodie.services.cleaning.plan.list_files", spy)
        planned = table.clean(dry_run=True, properties=TWO)
        # Commits 2 and 3 of the retained window are looked at again: they wrote both partitions.
        assert sorted(seen) == [NYC, SF]
        assert {path: len(names) for path, names in planned.files.items()} == {NYC: 2, SF: 4}
        table.clean(properties=TWO)
        seen.clear()
        table.upsert(version_of(8, "a"))
        table.clean(properties=TWO)
        assert set(seen) == {SF}


def test_old_files_of_an_insert_only_table_are_not_searched_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some commits without anything to delete are followed by one clean without files; the next plans begin there."""
    monkeypatch.setattr("hoodie.services.cleaning.clean._COMMITS_IN_VAIN", 3)
    small = {"hoodie.parquet.small.file.limit": "0", "hoodie.clean.automatic": "true"}
    table = table_of_versions(0, properties={**small, "hoodie.clean.commits.retained": "3"})
    for version in range(8):
        # A new handle each time: a process remembers what it looked at.
        Table(store_of(table)).insert(trips({f"k{version}": (1, "sf")}))
    (clean,) = cleans(table)
    assert clean.is_completed
    assert metadata_of(table).partition_metadata == {}
    commits = [found for found in table.timeline if found.action is Action.COMMIT]
    assert metadata_of(table).earliest_commit_to_retain == commits[3].requested_time


def test_file_versions() -> None:
    table = table_of_versions(6)
    kept = {"hoodie.clean.fileversions.retained": "2"}
    done = table.clean(properties=kept)
    assert done.counts["files_deleted"] == 8
    assert counts(table) == {NYC: 2, SF: 2}
    stored = metadata_of(table)
    assert stored.earliest_commit_to_retain == ""
    assert stored.partition_metadata[SF].policy == "KEEP_LATEST_FILE_VERSIONS"
    table.upsert(version_of(6, "a"))
    assert table.clean(properties=kept).counts["files_deleted"] == 1
    check_listing(table)
    assert table.clean(properties={"hoodie.clean.fileversions.retained": "1"}).counts["files_deleted"] == 2


@pytest.mark.parametrize(
    "stored",
    [
        {"hoodie.clean.commits.retained": "10"},
        {"hoodie.clean.hours.retained": "24"},
        {"hoodie.clean.commits.retained": "10", "hoodie.clean.fileversions.retained": "5"},
        {"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS"},
    ],
    ids=str,
)
def test_an_option_of_the_call_beats_what_the_table_stores(stored: dict[str, str]) -> None:
    table = table_of_versions(6)
    table.alter.set_properties(stored)
    given = {"hoodie.clean.fileversions.retained": "2"}
    named = {"hoodie.clean.policy": "KEEP_LATEST_COMMITS"}
    assert table.clean(dry_run=True).counts["files_deleted"] == 0
    assert table.clean(dry_run=True, properties={**given, **named}).counts["files_deleted"] == 0
    assert table.clean(properties=given).counts["files_deleted"] == 8


def test_a_dry_run_names_the_snapshots_that_a_clean_without_files_ends() -> None:
    table = table_of_versions(0)
    commits = [str(table.bulk_insert(trips({f"k{n}": (n, "sf")})).instant) for n in range(13)]
    one = {"hoodie.clean.commits.retained": "1"}
    assert table.clean(dry_run=True, properties={"hoodie.clean.commits.retained": "5"}).notes == ()
    dry = table.clean(dry_run=True, properties=one)
    assert table.count(as_of=commits[0]) == 1
    assert commits[-1] in dry.notes[0]
    done = table.clean(properties=one)
    assert dry.counts == done.counts == {"files_deleted": 0, "bytes_freed": 0, "partitions_dropped": 0}
    assert dry.oldest_readable == done.oldest_readable == commits[-1]
    with pytest.raises(HistoryLostError):
        table.count(as_of=commits[0])
    again = table.clean(dry_run=True, properties=one)
    assert (again.notes, again.oldest_readable) == ((), commits[-1])


def test_a_number_of_commits_beats_a_stored_policy() -> None:
    table = table_of_versions(6)
    table.alter.set_property("hoodie.clean.policy", "KEEP_LATEST_FILE_VERSIONS")
    table.alter.set_property("hoodie.clean.fileversions.retained", "9")
    assert table.clean(dry_run=True).counts["files_deleted"] == 0
    assert table.clean(properties={"hoodie.clean.commits.retained": "1"}).counts["files_deleted"] > 0


def test_a_deleted_partition_is_dropped_when_it_leaves_the_window() -> None:
    table = without_nyc()
    done = table.clean(properties=TWO)
    assert done.counts["partitions_dropped"] == 1
    store = store_of(table)
    assert NYC not in list_files(table.view())
    assert store.list(NYC) == []
    assert metadata_of(table).partition_metadata[NYC].is_partition_deleted
    check_listing(table)
    table.upsert(version_of(9, "b"))
    assert rows_of(store) == {"a": (4, "sf"), "b": (9, "nyc")}


def test_an_emptied_partition_waits_while_a_write_is_pending() -> None:
    """A dead write is rolled back first; a dry run counts without it too, and names it."""
    table = without_nyc()
    heartbeat = Heartbeat(store_of(table), PENDING)
    heartbeat.start()
    begin(table, Action.COMMIT, at=PENDING)
    dry = table.clean(dry_run=True, properties=TWO)
    heartbeat.stop()
    assert (dry.counts["partitions_dropped"], dry.counts["files_deleted"]) == (0, 4)
    dry = table.clean(dry_run=True, properties=TWO)
    assert dry.notes == (f"{PENDING}.commit (inflight) would be rolled back first: its writer had died",)
    done = table.clean(properties=TWO)
    assert done.counts["partitions_dropped"] == dry.counts["partitions_dropped"] == 1
    assert done.counts["files_deleted"] == dry.counts["files_deleted"]
    check_listing(table)


def test_a_dry_run_counts_the_window_without_dead_writes() -> None:
    table = table_of_versions(5)
    dead = begin(table, Action.COMMIT)
    heartbeat = Heartbeat(store_of(table), dead)
    heartbeat.start()  # so that the next writers leave it alone
    for version in (5, 6, 7):
        table.upsert(version_of(version))
    heartbeat.stop()
    dry = table.clean(dry_run=True, properties=TWO)
    done = table.clean(properties=TWO)
    assert dry.counts["files_deleted"] == done.counts["files_deleted"] > 0
    assert dry.oldest_readable == done.oldest_readable


def test_replaced_file_groups_stay_while_the_window_has_them() -> None:
    table = table_of_versions(2)
    table.insert_overwrite(version_of(7, "a"))
    table.upsert(version_of(8, "a"))
    assert table.clean(dry_run=True, properties=TWO).files.keys() == {NYC}
    table.upsert(version_of(9, "a"))
    table.clean(properties=TWO)
    names = data_files(store_of(table))[SF]
    assert len(names) == 3
    ids = {name.partition("_")[0] for name in names}
    assert len(ids) == 1, "a file group that was replaced before the window is still there"
    check_listing(table)


def test_log_files_go_with_their_slice() -> None:
    table = table_of_versions(4, table_type="merge_on_read")
    assert table.schedule_compaction()
    table.compact()
    for version in range(4, 7):
        table.upsert(version_of(version))
    done = table.clean(properties=TWO)
    assert done.counts["files_deleted"] == 8
    assert all(len(names) == 4 for names in data_files(store_of(table)).values())
    check_listing(table)
    assert rows_of(store_of(table)) == {"a": (6, "sf"), "b": (6, "nyc")}


def test_a_pending_compaction_keeps_its_slices() -> None:
    table = table_of_versions(2, table_type="merge_on_read")
    assert table.schedule_compaction()
    for version in range(2, 8):
        table.upsert(version_of(version))
    assert table.clean(properties={"hoodie.clean.commits.retained": "1"}).counts.get("files_deleted", 0) == 0
    assert table.clean(properties={"hoodie.clean.fileversions.retained": "1"}).counts.get("files_deleted", 0) == 0
    table.compact()
    assert rows_of(store_of(table)) == {"a": (7, "sf"), "b": (7, "nyc")}


@pytest.mark.parametrize(
    ("path", "partition", "message"),
    [
        ("memory://elsewhere/x_0-0-0_1.parquet", SF, "expected"),
        ("city=sf/../../x_0-0-0_1.parquet", SF, "expected"),
        ("/city=sf/hoodie.properties", SF, "expected"),
        ("", NYC, "expected a file of partition 'city=nyc'"),
    ],
)
def test_a_plan_that_leads_out_of_the_partition_deletes_nothing(path: str, partition: str, message: str) -> None:
    """The first file of the plan is one of `city=sf`."""
    table = table_of_versions(3)
    store = store_of(table)
    (name, *_) = data_files(store)[SF]
    paths = [found for found in (store.uri(f"{SF}/{name}"), path) if found]
    begin(table, Action.CLEAN, plan_of(*paths, partition=partition), at=PENDING, only_requested=True)
    with pytest.raises(CorruptFileError, match=message):
        table.clean()
    assert name in data_files(store)[SF]


def test_a_pending_clean_is_finished_first() -> None:
    table = table_of_versions(6)
    view = table.view()
    commits = [found.requested_time for found in table.timeline]
    names = sorted(data_files(view.store)[SF], key=lambda name: name.rpartition("_")[2])
    paths = (view.store.uri(f"{SF}/{name}") for name in names[:2])
    plan = plan_of(*paths, last_completed_commit_timestamp=commits[-1])
    begin(table, Action.CLEAN, plan, at=PENDING, only_requested=True)
    view.store.delete(f"{SF}/{names[0]}")
    # Its files may be gone: what it names counts already.
    with pytest.raises(UnsupportedError, match=commits[-1]):
        table.to_arrow(as_of=commits[0])
    # A clean that follows a commit leaves a clean that was requested just now to the JVM that may execute it.
    assert table.upsert(version_of(6, "a"), properties={"hoodie.clean.automatic": "true"}).services[0].instant is None
    done = table.clean()
    assert done.instant == PENDING
    assert done.counts["files_deleted"] == 2
    check_listing(table)


def test_a_clean_without_a_plan_is_removed() -> None:
    table = table_of_versions(2)
    begin(table, Action.CLEAN, at=PENDING, only_requested=True)
    table.clean()
    assert cleans(table) == []


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("partition.filter.selected", SF, "hoodie.clean.incremental.enabled=false"),
        ("partition.filter.regex", "(", "regular expression"),
        ("policy", "keep", "one of"),
    ],
)
def test_what_is_refused(option: str, value: str, told: str) -> None:
    table = table_of_versions(1)
    with refused(table, told, error=InvalidConfigError):
        table.clean(properties={f"hoodie.clean.{option}": value})


def test_a_filter_of_partitions() -> None:
    table = table_of_versions(6)
    some = {**TWO, "hoodie.clean.incremental.enabled": "false"}
    selected = {**some, "hoodie.clean.partition.filter.selected": "city=sf, city=la"}
    note = "the table has no partition city=la, which hoodie.clean.partition.filter.selected selects"
    assert table.clean(dry_run=True, properties=selected).notes == (note,)
    done = table.clean(properties=selected)
    assert (done.counts["files_deleted"], done.notes) == (3, (note,))
    by_pattern = {**some, "hoodie.clean.partition.filter.regex": "city=n.c"}
    assert table.clean(dry_run=True, properties=by_pattern).files.keys() == {NYC}
    by_list = {**some, "hoodie.clean.partition.filter.selected": f"city=la, {NYC}"}
    assert table.clean(dry_run=True, properties=by_list).files.keys() == {NYC}


def test_an_emptied_partition_that_is_left_is_looked_at_again() -> None:
    """A write began between plan and completion; the clean's metadata names the partition for the next clean."""
    table = without_nyc()
    with once_at(Step.LOCATED, lambda: begin(table, Action.COMMIT, at=PENDING, only_requested=True)):
        assert table.clean(properties=TWO).counts["partitions_dropped"] == 0
    assert (metadata_of(table).extra_metadata or {})[LEFT] == '["city=nyc"]'
    assert NYC in list_files(table.view())
    assert table.clean(properties=TWO).counts["partitions_dropped"] == 1
    assert NYC not in list_files(table.view())
    assert LEFT not in (metadata_of(table).extra_metadata or {})


def test_savepoints_are_read_once() -> None:
    store = store_of(table_of_versions(2))
    Table(store).savepoint()
    (saved,) = Table(store).savepoints()
    for version in range(2, 6):
        Table(store).upsert(version_of(version))
    counting = FaultStore(store, count_reads=True)
    counting.register()
    table = Table(counting)
    for _ in range(3):
        assert table.clean(dry_run=True, properties=TWO).counts["files_deleted"] == 4
    assert sum("savepoint" in call.path and call.operation == "read" for call in counting.calls) == 1
    # A savepoint of the same commit that is created again is another one.
    Table(store).delete_savepoint(saved.instant)
    assert table.clean(dry_run=True, properties=TWO).counts["files_deleted"] == 6
    counting.unregister()


@pytest.mark.parametrize(
    ("key", "accepted", "wrong", "advice"),
    [
        ("hoodie.clean.failed.writes.policy", "LAZY", "NEVER", "eager, lazy expected"),
        ("hoodie.clean.multiple.enabled", "false", "true", "while another is pending"),
        ("hoodie.clean.delete.bootstrap.base.file", "false", "true", "never deleted"),
    ],
)
def test_options_of_the_jvm_that_allow_one_way_here(key: str, accepted: str, wrong: str, advice: str) -> None:
    table = table_of_versions(4)
    with pytest.raises(InvalidConfigError, match=advice):
        table.clean(properties={**TWO, key: wrong})
    with pytest.raises(InvalidConfigError, match=advice):
        table.upsert(version_of(4), properties={key: wrong})
    assert table.clean(properties={**TWO, key: accepted}).counts["files_deleted"] == 2
