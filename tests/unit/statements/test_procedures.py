"""CALL: what procedures show of a table, what they change, and what is refused with another way to do it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import CommitConflictError, HoodieError, InstantNotFoundError, InvalidConfigError, UnsupportedError
from hoodie.files.markers import read_markers, write_marker
from hoodie.format.filenames import IoType
from hoodie.services.clustering.clustering import CLUSTERING
from hoodie.statements.procedures.registry import PROCEDURES, REFUSED
from hoodie.timeline import Action, Heartbeat, State, create_inflight
from tests.support.steps import begin
from tests.support.tables import new_table

ROWS = {"id": ["a", "b", "c"], "city": ["x", "x", "y"], "fare": [1.0, 2.0, 3.0]}
Call = Callable[[str], list[dict[str, Any]]]


def made(**options: Any) -> hoodie.Table:
    """A table of two commits: an insert of three rows, an update of one."""
    change = {"id": ["a"], "city": ["x"], "fare": [10.0]}
    return new_table(pa.table(ROWS).schema, ROWS, change, partition_by="city", index="simple", **options)


@pytest.fixture
def trips() -> hoodie.Table:
    return made()


def newest(t: hoodie.Table) -> str:
    return t.timeline.instants[-1].requested_time


def caller(t: hoodie.Table) -> Call:
    def call(text: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = hoodie.sql(None, f"CALL {text}", tables={"t": t}).to_pylist()
        return rows

    return call


@pytest.fixture
def call(trips: hoodie.Table) -> Call:
    return caller(trips)


def test_help_lists_procedures_and_describes_one(call: Call) -> None:
    (listed,) = call("help()")
    assert "\n\tshow_commits\tList the newest completed writes" in listed["result"]
    (described,) = call("help(cmd => 'show_commit_write_stats')")
    lines = [line.split() for line in described["result"].splitlines()]
    assert lines[:5] == [
        ["parameters:"],
        ["param", "type_name", "default_value", "required"],
        ["table", "string", "null", "true"],
        ["limit", "integer", "10", "false"],
        ["instant_time", "string", "null", "true"],
    ]
    assert ["avg_record_size", "long", "true", "{}"] in lines


@pytest.mark.parametrize(
    "text", ["show_commits(path => '{}')", "drop_old_timeline(path => '{}')", "show_savepoints(path => '{}')"]
)
def test_a_path_names_the_table(trips: hoodie.Table, call: Call, text: str) -> None:
    assert len(call(text.format(trips.path))) == len(call(text.replace("path", "table").format("t")))


def test_every_procedure_with_a_table_takes_its_path() -> None:
    """Only where `path` means something else it does not."""
    names = {name: {one.name for one in found.parameters} for name, found in PROCEDURES.items()}
    assert {name for name, found in PROCEDURES.items() if "table" in names[name] and not found.takes_path} - {
        name for name in names if {"table", "path"} <= names[name]
    } == set()
    assert not PROCEDURES["commits_compare"].takes_path


def test_nothing_to_do_is_a_fact(call: Call) -> None:
    facts = {row["fact"]: row["value"] for row in call("repair(table => 't')")}
    assert facts["result"] == "nothing to do"


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_missing_procedure_says_what_to_use(call: Call, name: str) -> None:
    with pytest.raises(UnsupportedError, match=f"CALL {name}: this release has no such procedure; use "):
        call(f"{name}(table => 't')")


def test_a_filter_is_a_condition_on_the_columns(trips: hoodie.Table, call: Call) -> None:
    last = newest(trips)
    assert [row["instant_time"] for row in call(f"show_timeline(table => 't', filter => 'instant_time = {last}')")]
    assert call("show_timeline(table => 't', filter => \"action = 'clean'\")") == []
    assert call("show_timeline(table => 't', limit => 1, filter => \"instant_time < '3'\")") == call(
        "show_timeline(table => 't', limit => 1)"
    )
    with pytest.raises(HoodieError, match="nothing"):
        call("show_timeline(table => 't', filter => 'nothing = 1')")


def test_one_commit_in_files_partitions_and_numbers(trips: hoodie.Table, call: Call) -> None:
    first, second = (instant.requested_time for instant in trips.timeline)
    files = call(f"show_commit_files('t', 10, '{first}')")
    assert sorted((row["partition_path"], row["previous_commit"], row["total_records_written"]) for row in files) == [
        ("city=x", "null", 2),
        ("city=y", "null", 1),
    ]
    (changed,) = call(f"show_commit_partitions(table => 't', instant_time => '{second}')")
    assert (changed["total_files_updated"], changed["total_records_updated"]) == (1, 1)
    (numbers,) = call(f"show_commit_write_stats(table => 't', instant_time => '{second}')")
    assert numbers["avg_record_size"] == -(-numbers["total_bytes_written"] // 2)
    assert [row["write_amplification_factor"] for row in call("stats_wa('t')")] == ["0", "2.00", "5.00"]
    with pytest.raises(InstantNotFoundError, match="no completed write 123"):
        call("show_commit_files(table => 't', instant_time => '123')")


def test_archived_commits_within_times() -> None:
    # Commits stay active until the metadata table, which has them, is compacted.
    trips = made(properties={"hoodie.metadata.compact.max.delta.commits": "2"})
    call, first = caller(trips), trips.timeline.instants[0].requested_time
    for fare in range(4):
        trips.upsert({"id": ["a"], "city": ["x"], "fare": [float(fare)]})
    call("run_clean(table => 't', retain_commits => 1)")
    call("archive_commits(table => 't', min_commits => 2, max_commits => 3, retain_commits => 1)")
    everything = "start_ts => '2000', end_ts => '3000'"
    archived = call(f"show_archived_commits(table => 't', {everything})")
    assert archived[-1]["commit_time"] == first
    assert archived[-1]["total_records_written"] == 3
    assert call("show_archived_commits(table => 't')") == []
    files = call(f"show_archived_commits_metadata(table => 't', {everything}, limit => 100)")
    assert {row["commit_time"] for row in files} == {row["commit_time"] for row in archived}
    shown = call("show_timeline(table => 't', showArchived => true)")
    assert {row["instant_time"] for row in shown if row["timeline_type"] == "ARCHIVED"} >= {first}


def test_two_tables_are_compared_by_their_commits(trips: hoodie.Table) -> None:
    other = hoodie.create(f"{trips.path}-other", ROWS, record_key="id", partition_by="city")
    later = other.upsert(ROWS).instant
    (found,) = caller(trips)(f"commits_compare('t', '{other.path}')")
    assert found["compare_detail"].endswith(f"is behind by 1 commits. Commits to catch up - [{later}]")
    (found,) = caller(other)(f"commits_compare('t', '{trips.path}')")
    assert found["compare_detail"].endswith(f"is ahead by 1 commits. Commits to catch up - [{later}]")


def test_file_slices_with_base_and_log_files() -> None:
    t = made(type="merge_on_read")
    call, (first, _) = caller(t), (instant.requested_time for instant in t.timeline)
    shown = {row["partition"]: row for row in call("show_fsview_all('t')")}
    assert (shown["city=x"]["base_instant"], shown["city=x"]["num_delta_files"]) == (first, 1)
    assert shown["city=y"]["delta_files"] == "[]"
    (latest,) = call("show_fsview_latest(table => 't', partition_path => 'city=x')")
    logs = latest["total_delta_file_size"]
    assert latest["delta_to_base_radio_compaction_scheduled"] == logs / latest["data_file_size"]
    assert latest["delta_files_compaction_unscheduled"].count(".log.") == 1
    assert [row["num_delta_files"] for row in call(f"show_fsview_all(table => 't', max_instant => '{first}')")] == []
    until = f"table => 't', max_instant => '{first}', include_max => true"
    assert [row["num_delta_files"] for row in call(f"show_fsview_all({until})")] == [0, 0]
    with pytest.raises(InvalidConfigError, match="one of path_regex and partition_path"):
        call("show_fsview_latest(table => 't', partition_path => 'a', path_regex => 'b')")


def test_blocks_and_records_of_log_files() -> None:
    t = made(type="merge_on_read")
    call = caller(t)
    second = newest(t)
    t.delete({"id": ["b"], "city": ["x"]})
    blocks = call("show_logfile_metadata(table => 't', log_file_path_pattern => 'city=x/*')")
    assert [(row["block_type"], row["record_count"]) for row in blocks] == [
        ("PARQUET_DATA_BLOCK", 1),
        ("DELETE_BLOCK", 1),
    ]
    assert blocks[0]["instant_time"] == json.loads(blocks[0]["header_metadata"])["INSTANT_TIME"] == second
    (record,) = call(f"show_logfile_records(path => '{t.path}', log_file_path_pattern => '{t.path}/*')")
    assert json.loads(record["records"])["fare"] == 10.0
    with pytest.raises(InvalidConfigError, match="matches none of the 2 log files"):
        call("show_logfile_records(table => 't', log_file_path_pattern => 'city=y/*')")


def test_the_metadata_table_against_the_files(trips: hoodie.Table, call: Call) -> None:
    assert [row["partition"] for row in call("show_metadata_table_partitions('t')")] == ["city=x", "city=y"]
    names = [row["file_path"] for row in call("show_metadata_table_files(table => 't', partition => 'city=x')")]
    assert len(names) == 2
    assert call("validate_metadata_table_files('t')") == []
    assert len(call("validate_metadata_table_files(table => 't', verbose => true)")) == 3
    trips.view().store.delete(f"city=x/{names[0]}")
    (lost,) = call("validate_metadata_table_files('t')")
    assert (lost["file_name"], lost["is_present_in_fs"], lost["is_present_in_metadata"]) == (names[0], False, True)
    statistics = "show_metadata_table_column_stats(table => 't', targetColumns => 'FARE', partition => 'city=x')"
    assert [(row["min_value"], row["max_value"]) for row in call(statistics)] == [("2.0", "10.0")]


def test_files_that_are_there_deleted_or_unknown(trips: hoodie.Table, call: Call) -> None:
    def status(name: str) -> tuple[str, str]:
        (row,) = call(f"show_file_status(table => 't', partition => 'city=x', file => '{name}')")
        return row["status"], row["action"]

    old, new = (row["file_path"] for row in call("show_metadata_table_files(table => 't', partition => 'city=x')"))
    old, new = sorted((old, new), key=lambda name: name.rpartition("_")[2])
    call("run_clean(table => 't', clean_policy => 'KEEP_LATEST_FILE_VERSIONS', file_versions_retained => 1)")
    assert status(old) == ("deleted", "clean")
    assert status(new) == ("exist", "")
    assert status("other.parquet") == ("unknown", "")
    undone = trips.upsert({"id": ["a"], "city": ["x"], "fare": [11.0]}).instant
    (written,) = (row["data_file"] for row in call("show_fsview_latest(table => 't', partition_path => 'city=x')"))
    call(f"rollback_to_instant('t', '{undone}')")
    assert status(written.rpartition("/")[2]) == ("deleted", "rollback")
    with pytest.raises(InvalidConfigError, match="expected partition"):
        call(f"show_file_status(table => 't', file => '{new}')")


def test_cleans_and_their_plans(call: Call) -> None:
    assert call("run_clean(table => 't', retain_commits => 1)") == []
    (done,) = call("run_clean(table => 't', clean_policy => 'KEEP_LATEST_FILE_VERSIONS', file_versions_retained => 1)")
    (shown,) = call("show_cleans('t')")
    assert (shown["total_files_deleted"], shown["start_clean_time"]) == (1, done["start_clean_time"])
    (part,) = call("show_cleans_metadata('t')")
    assert (part["partition_path"], part["success_delete_files"]) == ("city=x", 1)
    (plan,) = call("show_clean_plans('t')")
    assert (plan["plan_time"], plan["policy"]) == (shown["clean_time"], "KEEP_LATEST_FILE_VERSIONS")


def test_a_clean_waits_for_the_commits_that_a_call_names(call: Call, trips: hoodie.Table) -> None:
    versions = "table => 't', clean_policy => 'KEEP_LATEST_FILE_VERSIONS', file_versions_retained => 1"
    assert call(f"run_clean({versions}, trigger_max_commits => 3)") == []
    assert call(f"run_clean({versions}, options => 'hoodie.clean.trigger.max.commits=3')") == []
    assert not call("show_cleans('t')")
    (done,) = call(f"run_clean({versions}, trigger_max_commits => 2)")
    assert done["total_files_deleted"] == 1
    trips.upsert({"id": ["a"], "city": ["x"], "fare": [11.0]})
    assert call(f"run_clean({versions}, trigger_max_commits => 2)") == []
    (done,) = call(f"run_clean({versions})")
    assert done["total_files_deleted"] == 1
    with pytest.raises(InvalidConfigError, match=r"hoodie\.clean\.trigger\.max\.commits"):
        call(f"run_clean({versions}, trigger_max_commits => 0)")


def test_rollbacks_and_the_files_that_they_deleted(trips: hoodie.Table, call: Call) -> None:
    last = newest(trips)
    call(f"rollback_to_instant('t', '{last}')")
    (shown,) = call("show_rollbacks('t')")
    assert (shown["rollback_instant"], shown["total_files_deleted"], shown["total_partitions"]) == (last, 1, 1)
    (deleted,) = call(f"show_rollback_detail(table => 't', instant_time => '{shown['instant']}')")
    assert (deleted["partition"], deleted["succeeded"]) == ("city=x", True)
    told = {row["action"]: row["rollback_info"] for row in call("show_timeline('t')")}
    assert told == {"rollback": f"Rolled back: {last}", "commit": None}


def test_clusterings_of_chosen_partitions(call: Call) -> None:
    shown = "op => 'schedule', order => 'fare', show_involved_partition => true"
    with pytest.raises(InvalidConfigError, match="partition columns city only"):
        call(f"run_clustering(table => 't', predicate => 'fare > 1', {shown})")
    assert call(f"run_clustering(table => 't', partition_regex_pattern => 'city', {shown})") == []
    (one,) = call(f"run_clustering(table => 't', predicate => \"city = 'x'\", {shown})")
    (two,) = call(f"run_clustering(table => 't', partition_regex_pattern => '.*=y', {shown})")
    assert [(row["state"], row["involved_partitions"]) for row in (one, two)] == [
        ("REQUESTED", "city=x"),
        ("REQUESTED", "city=y"),
    ]
    for op in ("schedule", "scheduleAndExecute"):
        with pytest.raises(InvalidConfigError, match="makes a new plan"):
            call(f"run_clustering(table => 't', op => '{op}', instants => '{one['timestamp']}')")
    assert {row["state"] for row in call("show_clustering('t')")} == {"REQUESTED"}
    call(f"run_clustering(table => 't', instants => '{one['timestamp']}')")
    states = {row["timestamp"]: row["state"] for row in call("show_clustering('t')")}
    assert states == {one["timestamp"]: "COMPLETED", two["timestamp"]: "REQUESTED"}


def test_no_other_limit_is_negative(call: Call, tmp_path: Path) -> None:
    for text in ("show_commits('t', limit => -1)", f"export_instants('t', '{tmp_path}', limit => -2)"):
        with pytest.raises(InvalidConfigError, match="expected 0 or more"):
            call(text)


@pytest.mark.parametrize(("pattern", "told"), [("[", "regular expression expected"), (r"(.)\\1", "back-reference")])
def test_patterns_that_are_refused(call: Call, pattern: str, told: str) -> None:
    with pytest.raises(InvalidConfigError, match=told):
        call(f"run_clustering(table => 't', op => 'schedule', partition_regex_pattern => '{pattern}')")


def test_a_pattern_is_decided_in_linear_time() -> None:
    city = "a" * 40 + "b"
    rows = {"id": ["a"], "city": [city], "fare": [1.0]}
    call = caller(new_table(pa.table(rows).schema, rows, partition_by="city", index="simple"))
    assert call("run_clustering(table => 't', op => 'schedule', partition_regex_pattern => 'city=(a+)+$')") == []


@pytest.mark.parametrize("removes", [True, False])
def test_a_clustering_that_died_is_rolled_back(trips: hoodie.Table, call: Call, *, removes: bool) -> None:
    (plan,) = call("run_clustering(table => 't', op => 'schedule', order => 'fare')")
    roll_back = (
        f"run_rollback_inflight_tableservice(table => 't', pending_instant => '{plan['timestamp']}', "
        f"delete_request_instant_file => {str(removes).lower()})"
    )
    with pytest.raises(InstantNotFoundError, match="no inflight compaction or clustering"):
        call(roll_back)
    view = trips.view()
    (instant,) = CLUSTERING.pending_plans(view)
    create_inflight(view.store, view.layout, instant.requested_time, instant.action, b"")
    assert [row["instant"] for row in call(roll_back)] == [plan["timestamp"]]
    left = [(found.requested_time, found.state) for found in trips.timeline.pending()]
    assert left == ([] if removes else [(plan["timestamp"], State.REQUESTED)])


def test_rows_and_partitions_are_removed(trips: hoodie.Table, call: Call) -> None:
    assert call("drop_partition('t', 'city=y,city=absent')") == [{"result": "Success"}]
    assert call("drop_partition('t', 'city=absent')") == [{"result": "Success"}]
    assert sorted(trips.to_arrow(columns=["id"])["id"].to_pylist()) == ["a", "b"]
    trips.upsert(ROWS)
    assert call("truncate_table(table => 't', partitions => 'city=x')") == []
    assert trips.to_arrow(columns=["id"])["id"].to_pylist() == ["c"]
    assert call("truncate_table('t')") == []
    assert trips.count() == 0


def test_markers_are_deleted_unless_the_writer_runs(trips: hoodie.Table, call: Call) -> None:
    store = trips.view().store
    write_marker(store, "20990101000000000", "city=x/some.parquet", IoType.CREATE)
    heartbeat = Heartbeat(store, "20990101000000000")
    heartbeat.start()
    try:
        with pytest.raises(CommitConflictError, match="is running"):
            call("delete_marker('t', '20990101000000000')")
    finally:
        heartbeat.stop()
    assert call("delete_marker('t', '20990101000000000')") == [{"delete_marker_result": True}]
    assert read_markers(store, "20990101000000000") is None


def test_defaults_of_arguments_do_not_override_the_options_of_the_caller() -> None:
    trips = made(properties={"hoodie.metadata.compact.max.delta.commits": "2"})
    for fare in range(5):
        trips.upsert(
            {"id": ["a"], "city": ["x"], "fare": [float(fare)]}, properties={"hoodie.clean.automatic": "false"}
        )
    trips.clean(properties={"hoodie.clean.commits.retained": "1"})
    low = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "1"}

    def commits(text: str, **options: str) -> int:
        hoodie.sql(None, f"CALL {text}", tables={"t": trips}, properties={**low, **options})
        return len(trips.timeline.writes())

    assert commits("archive_commits(table => 't', min_commits => 20, max_commits => 30)") == 7
    assert commits("archive_commits(table => 't')") < 7


def test_moves_to_another_version_have_the_options_of_the_caller() -> None:
    trips = made(key_generator="complex", record_key="id")
    call = "CALL downgrade_table('t', 'EIGHT')"
    with pytest.raises(UnsupportedError, match=r"complex\.keygen\.validation\.enable=false"):
        hoodie.sql(None, call, tables={"t": trips})
    off = {"hoodie.write.complex.keygen.validation.enable": "false"}
    hoodie.sql(None, call, tables={"t": trips}, properties=off)
    assert trips.view().config.version.value == 8


def test_versions_change(call: Call) -> None:
    assert call("upgrade_table('t', 'nine')") == [{"result": True}]
    for procedure, version in (("downgrade_table", "EIGHT"), ("downgrade_table", "SIX"), ("upgrade_table", "NINE")):
        assert call(f"{procedure}('t', '{version}')") == [{"result": True}]
    with pytest.raises(UnsupportedError, match="found 7"):
        call("downgrade_table('t', 'SEVEN')")
    with pytest.raises(InvalidConfigError, match="expected one of ZERO"):
        call("upgrade_table('t', '9')")


def test_a_savepoint_that_exists_and_compactions_of_copy_on_write(call: Call) -> None:
    assert call("create_savepoint('t')") == [{"create_savepoint_result": True}]
    assert call("create_savepoint('t')") == [{"create_savepoint_result": False}]
    with pytest.raises(UnsupportedError, match="no merge-on-read table"):
        call("show_compaction('t')")


def test_copies_need_a_session(call: Call) -> None:
    for text in ("copy_to_table(table => 't', new_table => 'n')", "copy_to_temp_view(table => 't', view_name => 'n')"):
        with pytest.raises(UnsupportedError, match="needs a Spark session"):
            call(text)


def test_files_on_disk(tmp_path: Path) -> None:
    t = new_table(pa.table(ROWS).schema, ROWS, partition_by="city", path=tmp_path / "trips")
    t.savepoint()
    call = caller(t)
    broken = tmp_path / "trips" / "city=x" / "broken.parquet"
    broken.write_bytes(b"no parquet")
    assert [row["path"] for row in call(f"show_invalid_parquet('{t.path}')")] == [f"file://{broken}"]
    assert call(f"show_invalid_parquet(path => '{t.path}', partitions => 'city=y')") == []
    (whole,) = call(f"show_fs_path_detail('{t.path}')")
    parts = call(f"show_fs_path_detail(path => '{t.path}', is_sub => true)")
    assert {row["storage_path"].rpartition("/")[2] for row in parts} == {".hoodie", "city=x", "city=y"}
    assert [row["storage_size"] for row in parts] == sorted((row["storage_size"] for row in parts), reverse=True)
    assert whole["storage_size"] == sum(row["storage_size"] for row in parts) == whole["quota"]
    assert whole["path_num"] == 1 + sum(row["path_num"] for row in parts)
    (leaf,) = (row for row in parts if row["storage_path"].endswith("city=y"))
    assert (leaf["path_num"], leaf["file_num"]) == (1, 2)
    assert leaf["storage_size(unit)"] == f"{leaf['storage_size'] / 1024:.2f}KB"
    folder = tmp_path / "exported"
    folder.mkdir()
    (told,) = call(f"export_instants('t', '{folder}', limit => -1)")
    assert told["export_detail"] == f"Exported 2 Instants to {folder}"
    contents = [json.loads(found.read_text()) for found in sorted(folder.iterdir())]
    assert [pa.array(list(content)).to_pylist()[0] for content in contents]
    assert {"savepointedBy", "partitionToWriteStats"} <= {key for content in contents for key in content}


def test_partition_files_and_plans_of_cleans_are_mended(trips: hoodie.Table, call: Call) -> None:
    trips.view().store.delete("city=y/.hoodie_partition_metadata")

    def told(more: str = "") -> list[tuple[str, str]]:
        rows = call(f"repair_add_partition_meta(table => 't'{more})")
        return [(row["metadata_is_present"], row["action"]) for row in rows]

    assert told() == [("Yes", "None"), ("No", "None")]
    assert told(", dry_run => false") == [("Yes", "None"), ("No", "Repaired")]
    assert told() == [("Yes", "None"), ("Yes", "None")]
    for content in (b"", b"damaged"):
        time = begin(trips, Action.CLEAN, content, only_requested=True)
        assert trips.timeline.get(time, Action.CLEAN) is not None
        assert call("repair_corrupted_clean_files('t')") == [{"result": True}]
        assert trips.timeline.get(time, Action.CLEAN) is None
