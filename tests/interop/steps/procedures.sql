-- Steps of the page procedures.py. The lines that begin with -- are explained in sql_page.py.

-- step: a copy-on-write table with partitions: insert, update, delete
-- table: proc_cow
CREATE TABLE proc_cow (id int, v string, ts bigint, p string) USING hudi
  TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', 'hoodie.index.type' = 'SIMPLE') PARTITIONED BY (p)
  LOCATION '{path}';
INSERT INTO proc_cow VALUES (1, 'a', 5, 'x'), (2, 'b', 5, 'x'), (3, 'c', 5, 'y');
UPDATE proc_cow SET v = 'u', ts = 6 WHERE id = 1;
DELETE FROM proc_cow WHERE id = 2;

-- step: help
-- select: contains(result, 'show_commits') AS commits, contains(result, 'run_clean')
CALL help();

-- step: help of a procedure
CALL help(cmd => 'show_commits');

-- step: an unknown procedure is refused
CALL show_nothing(table => 'proc_cow');

-- step: a missing argument is refused
CALL show_commits(limit => 3);

-- step: an unknown argument
CALL show_commits(table => 'proc_cow', nothing => 3);

-- step: show_commits
CALL show_commits(table => 'proc_cow');

-- step: show_commits by position, with a limit
CALL system.show_commits('proc_cow', 1);

-- step: show_commits_metadata
CALL show_commits_metadata(table => 'proc_cow');

-- step: show_commit_files
CALL show_commit_files(table => 'proc_cow', instant_time => '{requested[-1]}');

-- step: show_commit_partitions
CALL show_commit_partitions(table => 'proc_cow', instant_time => '{requested[1]}');

-- step: show_commit_write_stats
-- volatile: avg_record_size
CALL show_commit_write_stats(table => 'proc_cow', instant_time => '{requested[0]}');

-- step: show_commit_extra_metadata
-- volatile: metadata_value
-- where: metadata_key = 'schema'
CALL show_commit_extra_metadata(table => 'proc_cow');

-- step: show_commit_extra_metadata of one key
-- volatile: metadata_value
CALL show_commit_extra_metadata(table => 'proc_cow', instant_time => '{requested[-1]}', metadata_key => 'schema');

-- step: show_timeline
-- volatile: requested_time, inflight_time, completed_time
CALL show_timeline(table => 'proc_cow');

-- step: show_timeline with a filter and a limit, by path
-- select: instant_time, action, state
CALL show_timeline(path => '{path}', limit => 5, filter => "state = 'COMPLETED' AND action = 'commit'");

-- step: show_timeline from a time on
-- select: action, state
CALL show_timeline(table => 'proc_cow', startTime => '{requested[-1]}');

-- step: show_table_properties
-- where: key IN ('hoodie.table.name', 'hoodie.table.type', 'hoodie.table.recordkey.fields')
CALL show_table_properties(table => 'proc_cow', limit => 100);

-- step: show_table_properties with a filter
CALL show_table_properties(table => "proc_cow", limit => 100, filter => "key = 'hoodie.table.type'");

-- step: show_fsview_all
CALL show_fsview_all(table => 'proc_cow');

-- step: show_fsview_all of some partitions
CALL show_fsview_all(table => 'proc_cow', path_regex => '*', limit => 2);

-- step: show_fsview_latest
CALL show_fsview_latest(table => 'proc_cow', path_regex => '*');

-- step: show_fsview_latest of a partition
CALL show_fsview_latest(table => 'proc_cow', partition_path => 'p=x');

-- step: show_metadata_table_partitions
CALL show_metadata_table_partitions(table => 'proc_cow');

-- step: show_metadata_table_files
CALL show_metadata_table_files(table => 'proc_cow', partition => 'p=x');

-- step: show_metadata_table_stats
-- volatile: stat_key, stat_value
-- result: columns
CALL show_metadata_table_stats(table => 'proc_cow');

-- step: show_metadata_table_column_stats
CALL show_metadata_table_column_stats(table => 'proc_cow', targetColumns => 'id,v');

-- step: show_metadata_column_stats_overlap
CALL show_metadata_column_stats_overlap(table => 'proc_cow', targetColumns => 'id');

-- step: validate_metadata_table_files
CALL validate_metadata_table_files(table => 'proc_cow');

-- step: validate_metadata_table_files, verbose
-- volatile: fs_size, metadata_size
CALL validate_metadata_table_files(table => 'proc_cow', verbose => true);

-- step: stats_file_sizes
-- volatile: min, 10th, 50th, avg, 95th, max, std_dev
CALL stats_file_sizes(table => 'proc_cow');

-- step: stats_wa
CALL stats_wa(table => 'proc_cow');

-- step: show_fs_path_detail
-- volatile: path_num, file_num, storage_size, storage_size(unit), storage_path, quota
CALL show_fs_path_detail(path => '{path}');

-- step: show_invalid_parquet

-- step: show_file_status of a file that is there

-- step: create_savepoint of the newest commit, with a comment
CALL create_savepoint(table => 'proc_cow', commit_time => '', user => 'me', comments => 'keep');

-- step: create_savepoint of a commit
CALL create_savepoint(table => 'proc_cow', commit_time => '{requested[1]}');

-- step: create_savepoint of an unknown commit
CALL create_savepoint(table => 'proc_cow', commit_time => '20200101000000000');

-- step: show_savepoints
CALL show_savepoints(table => 'proc_cow');

-- step: delete_savepoint, by path
CALL delete_savepoint(path => '{path}', instant_time => '{requested[1]}');

-- step: rollback_to_savepoint
INSERT INTO proc_cow VALUES (9, 'gone', 5, 'z');
CALL rollback_to_savepoint(table => 'proc_cow', instant_time => '{savepoint}');

-- step: delete_savepoint without an instant
CALL delete_savepoint(table => 'proc_cow');

-- step: rollback_to_instant of the newest commit
INSERT INTO proc_cow VALUES (9, 'gone', 5, 'z');
CALL rollback_to_instant(table => 'proc_cow', instant_time => '{requested[-1]}');

-- step: rollback_to_instant of an unknown instant
CALL rollback_to_instant(table => 'proc_cow', instant_time => '20200101000000000');

-- step: show_rollbacks
CALL show_rollbacks(table => 'proc_cow');

-- step: show_rollback_detail
-- volatile: deleted_file
CALL show_rollback_detail(table => 'proc_cow', instant_time => '{rollback}');

-- step: create_savepoint twice of one commit
CALL create_savepoint('proc_cow', '{requested[-1]}');
CALL create_savepoint('proc_cow', '{requested[-1]}');

-- step: delete_savepoint of a commit without one is refused
CALL delete_savepoint(table => 'proc_cow', instant_time => '{requested[0]}');

-- step: rollback_to_savepoint without an instant
DELETE FROM proc_cow;
CALL rollback_to_savepoint(table => 'proc_cow');

-- step: commits_compare
CALL commits_compare(table => 'proc_cow', path => '{path}');

-- step: show_fsview_all until an instant
CALL show_fsview_all(table => 'proc_cow', max_instant => '{requested[1]}', include_max => true, limit => 100);

-- step: show_metadata_table_files without a partition
CALL show_metadata_table_files(table => 'proc_cow');

-- step: show_commit_files of an unknown commit is refused
CALL show_commit_files(table => 'proc_cow', instant_time => '20200101000000000');

-- step: a filter of the numbers of commits
-- select: action, state
CALL show_timeline(table => "proc_cow",
  filter => "action = 'commit' AND instant_time > '2000' AND rollback_info IS NULL");

-- step: a wrong filter is refused
CALL show_timeline(table => 'proc_cow', filter => 'nothing = 1');

-- step: repair_add_partition_meta
CALL repair_add_partition_meta(table => 'proc_cow');

-- step: repair_corrupted_clean_files
CALL repair_corrupted_clean_files(table => 'proc_cow');

-- step: repair_overwrite_hoodie_props

-- step: repair_deduplicate
-- result: columns
CALL repair_deduplicate(table => 'proc_cow', duplicated_partition_path => 'p=x',
  repaired_output_path => '{folder}/repaired');

-- step: delete_marker
CALL delete_marker(table => 'proc_cow', instant_time => '{requested[-1]}');

-- step: upgrade_table to the version that it has
CALL upgrade_table(table => 'proc_cow', to_version => 'NINE');

-- step: show_bootstrap_mapping
CALL show_bootstrap_mapping(table => 'proc_cow');

-- step: show_audit_lock_status
-- volatile: config_path, audit_folder_path
CALL show_audit_lock_status(table => 'proc_cow');

-- step: copy_to_temp_view
CALL copy_to_temp_view(table => 'proc_cow', view_name => 'proc_view');
SELECT id, v FROM proc_view;

-- step: copy_to_table
CALL copy_to_table(table => 'proc_cow', new_table => 'proc_copy');
SELECT id, v FROM proc_copy;

-- step: copy_to_table of chosen columns, as of the first commit
CALL copy_to_table(table => 'proc_cow', new_table => 'proc_old', columns => 'id,v', as_of_instant => '{requested[0]}');
SELECT * FROM proc_old;

-- step: copy_to_temp_view of changes, in place of the view
CALL copy_to_temp_view(table => 'proc_cow', view_name => 'proc_view', query_type => 'incremental',
  begin_instance_time => '{completed[0]}', end_instance_time => '{completed[1]}', replace => true);
SELECT id, v FROM proc_view;

-- step: a merge-on-read table: inserts, an update
-- table: proc_mor
CREATE TABLE proc_mor (id int, v string, ts bigint, p string) USING hudi
  TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts', 'hoodie.index.type' = 'SIMPLE')
  PARTITIONED BY (p) LOCATION '{path}';
INSERT INTO proc_mor VALUES (1, 'a', 5, 'x'), (2, 'b', 5, 'x'), (3, 'c', 5, 'y');
UPDATE proc_mor SET v = 'u', ts = 6 WHERE id = 1;

-- step: show_commits of the merge-on-read table
CALL show_commits(table => 'proc_mor');

-- step: show_commits_metadata of the merge-on-read table
CALL show_commits_metadata(table => 'proc_mor');

-- step: show_fsview_all of the merge-on-read table
-- volatile: total_delta_file_size, delta_files
CALL show_fsview_all(table => 'proc_mor');

-- step: show_fsview_latest of the merge-on-read table
-- volatile: total_delta_file_size, delta_size_compaction_scheduled, delta_size_compaction_unscheduled
-- volatile: delta_to_base_radio_compaction_scheduled, delta_to_base_radio_compaction_unscheduled
-- volatile: delta_files_compaction_scheduled, delta_files_compaction_unscheduled
CALL show_fsview_latest(table => 'proc_mor');

-- step: show_logfile_metadata
-- volatile: header_metadata, footer_metadata
CALL show_logfile_metadata(table => 'proc_mor', log_file_path_pattern => '{path}/p=x/.*.log*');

-- step: show_logfile_records
-- volatile: records
CALL show_logfile_records(table => 'proc_mor', log_file_path_pattern => '{path}/p=x/.*.log*');

-- step: show_logfile_metadata of a delete block
-- volatile: header_metadata, footer_metadata
DELETE FROM proc_mor WHERE id = 2;
CALL show_logfile_metadata(table => 'proc_mor', log_file_path_pattern => '{path}/p=x/.*.log*');

-- step: delete_metadata_table
-- volatile: result
CALL delete_metadata_table(table => 'proc_mor');

-- step: downgrade_table
CALL downgrade_table(table => 'proc_mor', to_version => 'EIGHT');

-- step: drop the tables
-- table: proc_none
DROP TABLE IF EXISTS proc_cow;
DROP TABLE IF EXISTS proc_mor;
DROP TABLE IF EXISTS proc_copy;
DROP TABLE IF EXISTS proc_old;
