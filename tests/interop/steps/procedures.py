"""SQL procedures: what CALL shows of a table; savepoints, rollbacks and copies."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tests.interop.steps.script import Page, Script

PAGE = Page("SQL procedures: commits, files, savepoints and copies")
COLUMNS: Final = "id int, v string, ts bigint, p string"
# File groups as JVM Hudi's default makes them: the record index would let inserts go to log files.
KEYED: Final = "primaryKey = 'id', preCombineField = 'ts', 'hoodie.index.type' = 'SIMPLE'"
COUNTS: Final = (
    "total_bytes_written",
    "time_taken_in_millis",
    "time_cost",
    "file_id",
    "file_size",
    "file_name",
    "file_path",
    "data_file",
    "data_file_size",
    "start_clean_time",
)
"""Columns whose values no second run repeats."""


def create(it: Script, table: str, properties: str = KEYED) -> None:
    """Create a table with partitions, and go on with it."""
    it.use(table)
    it.sql(
        f"CREATE TABLE {{t}} ({COLUMNS}) USING hudi TBLPROPERTIES ({properties}) PARTITIONED BY (p) LOCATION '{{path}}'"
    )


def call(it: Script, text: str, *volatile: str) -> Any:
    """Run a procedure; values of volatile columns become 0, unless they are null."""
    return blank(it.sql(f"CALL {text}"), *volatile)


def blank(frame: Any, *volatile: str) -> Any:
    """Return the frame with 0 for the values of `COUNTS` and of these columns, in their types."""
    columns = []
    for name, kind in frame.dtypes:
        if name in (*COUNTS, *volatile):
            columns.append(f"CASE WHEN `{name}` IS NOT NULL THEN CAST('0' AS {kind}) END AS `{name}`")
        else:
            columns.append(f"`{name}`")
    return frame.selectExpr(*columns)


def newest(it: Script) -> str:
    """Return the requested time of the newest completed commit."""
    return it.instants()[-1][0]


def instant(it: Script, suffix: str) -> str:
    """Return the requested time of the newest instant whose file has this suffix."""
    folder = Path(it.path, ".hoodie", "timeline")
    return max(found.name for found in folder.glob(f"*.{suffix}")).partition(".")[0].partition("_")[0]


def drop(it: Script, *tables: str) -> None:
    """Drop tables, and go on with none."""
    it.use("proc_none")
    for table in tables:
        it.sql(f"DROP TABLE IF EXISTS {table}")


@PAGE.step("a copy-on-write table with partitions: insert, update, delete")
def _(it: Script) -> None:
    create(it, "proc_cow")
    it.sql("INSERT INTO {t} VALUES (1, 'a', 5, 'x'), (2, 'b', 5, 'x'), (3, 'c', 5, 'y')")
    it.sql("UPDATE {t} SET v = 'u', ts = 6 WHERE id = 1")
    it.sql("DELETE FROM {t} WHERE id = 2")


@PAGE.step("help")
def _(it: Script) -> Any:
    return call(it, "help()").selectExpr("contains(result, 'show_commits') AS commits", "contains(result, 'run_clean')")


@PAGE.step("help of a procedure")
def _(it: Script) -> Any:
    return call(it, "help(cmd => 'show_commits')")


@PAGE.step("an unknown procedure is refused")
def _(it: Script) -> Any:
    return call(it, "show_nothing(table => '{t}')")


@PAGE.step("a missing argument is refused")
def _(it: Script) -> Any:
    return call(it, "show_commits(limit => 3)")


@PAGE.step("an unknown argument")
def _(it: Script) -> Any:
    return call(it, "show_commits(table => '{t}', nothing => 3)")


@PAGE.step("show_commits")
def _(it: Script) -> Any:
    return call(it, "show_commits(table => '{t}')")


@PAGE.step("show_commits by position, with a limit")
def _(it: Script) -> Any:
    return call(it, "system.show_commits('{t}', 1)")


@PAGE.step("show_commits_metadata")
def _(it: Script) -> Any:
    return call(it, "show_commits_metadata(table => '{t}')")


@PAGE.step("show_commit_files")
def _(it: Script) -> Any:
    return call(it, f"show_commit_files(table => '{{t}}', instant_time => '{newest(it)}')")


@PAGE.step("show_commit_partitions")
def _(it: Script) -> Any:
    return call(it, f"show_commit_partitions(table => '{{t}}', instant_time => '{it.instants()[1][0]}')")


@PAGE.step("show_commit_write_stats")
def _(it: Script) -> Any:
    text = f"show_commit_write_stats(table => '{{t}}', instant_time => '{it.instants()[0][0]}')"
    return call(it, text, "avg_record_size")


@PAGE.step("show_commit_extra_metadata")
def _(it: Script) -> Any:
    found = call(it, "show_commit_extra_metadata(table => '{t}')", "metadata_value")
    return found.where("metadata_key = 'schema'")


@PAGE.step("show_commit_extra_metadata of one key")
def _(it: Script) -> Any:
    key = f"instant_time => '{newest(it)}', metadata_key => 'schema'"
    return call(it, f"show_commit_extra_metadata(table => '{{t}}', {key})", "metadata_value")


@PAGE.step("show_timeline")
def _(it: Script) -> Any:
    times = ("requested_time", "inflight_time", "completed_time")
    return call(it, "show_timeline(table => '{t}')", *times)


@PAGE.step("show_timeline with a filter and a limit, by path")
def _(it: Script) -> Any:
    text = f"""show_timeline(path => '{it.path}', limit => 5, filter => "state = 'COMPLETED' AND action = 'commit'")"""
    return call(it, text).select("instant_time", "action", "state")


@PAGE.step("show_timeline from a time on")
def _(it: Script) -> Any:
    return call(it, f"show_timeline(table => '{{t}}', startTime => '{newest(it)}')").select("action", "state")


@PAGE.step("show_table_properties")
def _(it: Script) -> Any:
    found = call(it, "show_table_properties(table => '{t}', limit => 100)")
    return found.where("key IN ('hoodie.table.name', 'hoodie.table.type', 'hoodie.table.recordkey.fields')")


@PAGE.step("show_table_properties with a filter")
def _(it: Script) -> Any:
    wanted = "key = 'hoodie.table.type'"
    return call(it, f'show_table_properties(table => "{{t}}", limit => 100, filter => "{wanted}")')


@PAGE.step("show_fsview_all")
def _(it: Script) -> Any:
    return call(it, "show_fsview_all(table => '{t}')")


@PAGE.step("show_fsview_all of some partitions")
def _(it: Script) -> Any:
    return call(it, "show_fsview_all(table => '{t}', path_regex => '*', limit => 2)")


@PAGE.step("show_fsview_latest")
def _(it: Script) -> Any:
    return call(it, "show_fsview_latest(table => '{t}', path_regex => '*')")


@PAGE.step("show_fsview_latest of a partition")
def _(it: Script) -> Any:
    return call(it, "show_fsview_latest(table => '{t}', partition_path => 'p=x')")


@PAGE.step("show_metadata_table_partitions")
def _(it: Script) -> Any:
    return call(it, "show_metadata_table_partitions(table => '{t}')")


@PAGE.step("show_metadata_table_files")
def _(it: Script) -> Any:
    return call(it, "show_metadata_table_files(table => '{t}', partition => 'p=x')")


@PAGE.step("show_metadata_table_stats")
def _(it: Script) -> Any:
    return call(it, "show_metadata_table_stats(table => '{t}')", "stat_key", "stat_value").limit(0)


@PAGE.step("show_metadata_table_column_stats")
def _(it: Script) -> Any:
    return call(it, "show_metadata_table_column_stats(table => '{t}', targetColumns => 'id,v')")


@PAGE.step("show_metadata_column_stats_overlap")
def _(it: Script) -> Any:
    return call(it, "show_metadata_column_stats_overlap(table => '{t}', targetColumns => 'id')")


@PAGE.step("validate_metadata_table_files")
def _(it: Script) -> Any:
    return call(it, "validate_metadata_table_files(table => '{t}')")


@PAGE.step("validate_metadata_table_files, verbose")
def _(it: Script) -> Any:
    return call(it, "validate_metadata_table_files(table => '{t}', verbose => true)", "fs_size", "metadata_size")


@PAGE.step("stats_file_sizes")
def _(it: Script) -> Any:
    sizes = ("min", "10th", "50th", "avg", "95th", "max", "std_dev")
    return call(it, "stats_file_sizes(table => '{t}')", *sizes)


@PAGE.step("stats_wa")
def _(it: Script) -> Any:
    return call(it, "stats_wa(table => '{t}')")


@PAGE.step("show_fs_path_detail")
def _(it: Script) -> Any:
    sizes = ("path_num", "file_num", "storage_size", "storage_size(unit)", "storage_path", "quota")
    return call(it, f"show_fs_path_detail(path => '{it.path}')", *sizes)


@PAGE.step("show_invalid_parquet")
def _(it: Script) -> Any:
    Path(it.path, "p=x", "broken.parquet").write_bytes(b"no parquet")
    found = call(it, f"show_invalid_parquet(path => '{it.path}')", "path")
    Path(it.path, "p=x", "broken.parquet").unlink()
    return found


@PAGE.step("show_file_status of a file that is there")
def _(it: Script) -> Any:
    name = max(found.name for found in Path(it.path, "p=x").glob("*.parquet"))
    return call(it, f"show_file_status(table => '{{t}}', partition => 'p=x', file => '{name}')", "full_path")


@PAGE.step("create_savepoint of the newest commit, with a comment")
def _(it: Script) -> Any:
    return call(it, "create_savepoint(table => '{t}', commit_time => '', user => 'me', comments => 'keep')")


@PAGE.step("create_savepoint of a commit")
def _(it: Script) -> Any:
    return call(it, f"create_savepoint(table => '{{t}}', commit_time => '{it.instants()[1][0]}')")


@PAGE.step("create_savepoint of an unknown commit")
def _(it: Script) -> Any:
    return call(it, "create_savepoint(table => '{t}', commit_time => '20200101000000000')")


@PAGE.step("show_savepoints")
def _(it: Script) -> Any:
    return call(it, "show_savepoints(table => '{t}')")


@PAGE.step("delete_savepoint, by path")
def _(it: Script) -> Any:
    return call(it, f"delete_savepoint(path => '{it.path}', instant_time => '{it.instants()[1][0]}')")


@PAGE.step("rollback_to_savepoint")
def _(it: Script) -> Any:
    it.sql("INSERT INTO {t} VALUES (9, 'gone', 5, 'z')")
    return call(it, f"rollback_to_savepoint(table => '{{t}}', instant_time => '{instant(it, 'savepoint')}')")


@PAGE.step("delete_savepoint without an instant")
def _(it: Script) -> Any:
    return call(it, "delete_savepoint(table => '{t}')")


@PAGE.step("rollback_to_instant of the newest commit")
def _(it: Script) -> Any:
    it.sql("INSERT INTO {t} VALUES (9, 'gone', 5, 'z')")
    return call(it, f"rollback_to_instant(table => '{{t}}', instant_time => '{newest(it)}')")


@PAGE.step("rollback_to_instant of an unknown instant")
def _(it: Script) -> Any:
    return call(it, "rollback_to_instant(table => '{t}', instant_time => '20200101000000000')")


@PAGE.step("show_rollbacks")
def _(it: Script) -> Any:
    return call(it, "show_rollbacks(table => '{t}')")


@PAGE.step("show_rollback_detail")
def _(it: Script) -> Any:
    text = f"show_rollback_detail(table => '{{t}}', instant_time => '{instant(it, 'rollback')}')"
    return call(it, text, "deleted_file")


@PAGE.step("create_savepoint twice of one commit")
def _(it: Script) -> Any:
    call(it, f"create_savepoint('{{t}}', '{newest(it)}')").collect()
    return call(it, f"create_savepoint('{{t}}', '{newest(it)}')")


@PAGE.step("delete_savepoint of a commit without one is refused")
def _(it: Script) -> Any:
    return call(it, f"delete_savepoint(table => '{{t}}', instant_time => '{it.instants()[0][0]}')")


@PAGE.step("rollback_to_savepoint without an instant")
def _(it: Script) -> Any:
    it.sql("DELETE FROM {t}")
    return call(it, "rollback_to_savepoint(table => '{t}')")


@PAGE.step("commits_compare")
def _(it: Script) -> Any:
    return call(it, f"commits_compare(table => '{{t}}', path => '{it.path}')")


@PAGE.step("show_fsview_all until an instant")
def _(it: Script) -> Any:
    until = f"max_instant => '{it.instants()[1][0]}'"
    return call(it, f"show_fsview_all(table => '{{t}}', {until}, include_max => true, limit => 100)")


@PAGE.step("show_metadata_table_files without a partition")
def _(it: Script) -> Any:
    return call(it, "show_metadata_table_files(table => '{t}')")


@PAGE.step("show_commit_files of an unknown commit is refused")
def _(it: Script) -> Any:
    return call(it, "show_commit_files(table => '{t}', instant_time => '20200101000000000')")


@PAGE.step("a filter of the numbers of commits")
def _(it: Script) -> Any:
    wanted = "action = 'commit' AND instant_time > '2000' AND rollback_info IS NULL"
    return call(it, f'show_timeline(table => "{{t}}", filter => "{wanted}")').select("action", "state")


@PAGE.step("a wrong filter is refused")
def _(it: Script) -> Any:
    return call(it, "show_timeline(table => '{t}', filter => 'nothing = 1')")


@PAGE.step("repair_add_partition_meta")
def _(it: Script) -> Any:
    return call(it, "repair_add_partition_meta(table => '{t}')")


@PAGE.step("repair_corrupted_clean_files")
def _(it: Script) -> Any:
    return call(it, "repair_corrupted_clean_files(table => '{t}')")


@PAGE.step("repair_overwrite_hoodie_props")
def _(it: Script) -> Any:
    source = Path(it.path).parent / "new.properties"
    source.write_text(Path(it.path, ".hoodie", "hoodie.properties").read_text())
    found = call(it, f"repair_overwrite_hoodie_props(table => '{{t}}', new_props_file_path => '{source}')")
    return found.where("property = 'hoodie.table.type'")


@PAGE.step("repair_deduplicate")
def _(it: Script) -> Any:
    places = f"duplicated_partition_path => 'p=x', repaired_output_path => '{Path(it.path).parent / 'repaired'}'"
    return call(it, f"repair_deduplicate(table => '{{t}}', {places})").limit(0)


@PAGE.step("delete_marker")
def _(it: Script) -> Any:
    return call(it, f"delete_marker(table => '{{t}}', instant_time => '{newest(it)}')")


@PAGE.step("upgrade_table to the version that it has")
def _(it: Script) -> Any:
    return call(it, "upgrade_table(table => '{t}', to_version => 'NINE')")


@PAGE.step("show_bootstrap_mapping")
def _(it: Script) -> Any:
    return call(it, "show_bootstrap_mapping(table => '{t}')")


@PAGE.step("show_audit_lock_status")
def _(it: Script) -> Any:
    return call(it, "show_audit_lock_status(table => '{t}')", "config_path", "audit_folder_path")


@PAGE.step("copy_to_temp_view")
def _(it: Script) -> Any:
    call(it, "copy_to_temp_view(table => '{t}', view_name => 'proc_view')").collect()
    return it.sql("SELECT id, v FROM proc_view")


@PAGE.step("copy_to_table")
def _(it: Script) -> Any:
    call(it, "copy_to_table(table => '{t}', new_table => 'proc_copy')").collect()
    return it.sql("SELECT id, v FROM proc_copy")


@PAGE.step("copy_to_table of chosen columns, as of the first commit")
def _(it: Script) -> Any:
    more = f"columns => 'id,v', as_of_instant => '{it.instants()[0][0]}'"
    call(it, f"copy_to_table(table => '{{t}}', new_table => 'proc_old', {more})").collect()
    return it.sql("SELECT * FROM proc_old")


@PAGE.step("copy_to_temp_view of changes, in place of the view")
def _(it: Script) -> Any:
    first, second = (pair[1] for pair in it.instants()[:2])
    span = f"query_type => 'incremental', begin_instance_time => '{first}', end_instance_time => '{second}'"
    call(it, f"copy_to_temp_view(table => '{{t}}', view_name => 'proc_view', {span}, replace => true)").collect()
    return it.sql("SELECT id, v FROM proc_view")


@PAGE.step("a merge-on-read table: inserts, an update")
def _(it: Script) -> None:
    create(it, "proc_mor", f"type = 'mor', {KEYED}")
    it.sql("INSERT INTO {t} VALUES (1, 'a', 5, 'x'), (2, 'b', 5, 'x'), (3, 'c', 5, 'y')")
    it.sql("UPDATE {t} SET v = 'u', ts = 6 WHERE id = 1")


@PAGE.step("show_commits of the merge-on-read table")
def _(it: Script) -> Any:
    return call(it, "show_commits(table => '{t}')")


@PAGE.step("show_commits_metadata of the merge-on-read table")
def _(it: Script) -> Any:
    return call(it, "show_commits_metadata(table => '{t}')")


@PAGE.step("show_fsview_all of the merge-on-read table")
def _(it: Script) -> Any:
    return call(it, "show_fsview_all(table => '{t}')", "total_delta_file_size", "delta_files")


@PAGE.step("show_fsview_latest of the merge-on-read table")
def _(it: Script) -> Any:
    sizes = ("total_delta_file_size", "delta_size_compaction_scheduled", "delta_size_compaction_unscheduled")
    ratios = ("delta_to_base_radio_compaction_scheduled", "delta_to_base_radio_compaction_unscheduled")
    files = ("delta_files_compaction_scheduled", "delta_files_compaction_unscheduled")
    return call(it, "show_fsview_latest(table => '{t}')", *sizes, *ratios, *files)


@PAGE.step("show_logfile_metadata")
def _(it: Script) -> Any:
    text = f"show_logfile_metadata(table => '{{t}}', log_file_path_pattern => '{it.path}/p=x/.*.log*')"
    return call(it, text, "header_metadata", "footer_metadata")


@PAGE.step("show_logfile_records")
def _(it: Script) -> Any:
    text = f"show_logfile_records(table => '{{t}}', log_file_path_pattern => '{it.path}/p=x/.*.log*')"
    return call(it, text, "records")


@PAGE.step("show_logfile_metadata of a delete block")
def _(it: Script) -> Any:
    it.sql("DELETE FROM {t} WHERE id = 2")
    text = f"show_logfile_metadata(table => '{{t}}', log_file_path_pattern => '{it.path}/p=x/.*.log*')"
    return call(it, text, "header_metadata", "footer_metadata")


@PAGE.step("delete_metadata_table")
def _(it: Script) -> Any:
    return call(it, "delete_metadata_table(table => '{t}')", "result")


@PAGE.step("downgrade_table")
def _(it: Script) -> Any:
    return call(it, "downgrade_table(table => '{t}', to_version => 'EIGHT')")


@PAGE.step("drop the tables")
def _(it: Script) -> None:
    drop(it, "proc_cow", "proc_mor", "proc_copy", "proc_old")
    it.spark.catalog.dropTempView("proc_view")
