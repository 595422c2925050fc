-- Steps of the page procedure_services.py. The lines that begin with -- are explained in sql_page.py.

-- step: a copy-on-write table with partitions
-- table: serve_cow
CREATE TABLE serve_cow (id int, v string, ts bigint, p string) USING hudi
  TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', 'hoodie.index.type' = 'SIMPLE') PARTITIONED BY (p)
  LOCATION '{path}';
INSERT INTO serve_cow VALUES (1, 'a', 5, 'x'), (2, 'b', 5, 'x'), (3, 'c', 5, 'y');
UPDATE serve_cow SET v = 'u', ts = 6 WHERE id = 1;
DELETE FROM serve_cow WHERE id = 2;

-- step: run_clean with nothing to do
CALL run_clean(table => 'serve_cow');

-- step: run_clean that keeps one commit
UPDATE serve_cow SET v = 'u1' WHERE id = 1;
CALL run_clean(table => 'serve_cow', retain_commits => 1);

-- step: run_clean that keeps one version of the files
UPDATE serve_cow SET v = 'u2' WHERE id = 1;
CALL run_clean(table => 'serve_cow', clean_policy => 'KEEP_LATEST_FILE_VERSIONS', file_versions_retained => 1);

-- step: show_cleans
CALL show_cleans(table => 'serve_cow');

-- step: show_cleans_metadata
CALL show_cleans_metadata(table => 'serve_cow');

-- step: show_clean_plans
-- without: extra_metadata
CALL show_clean_plans(table => 'serve_cow');

-- step: run_clustering: schedule, sorted, and the partitions shown
INSERT INTO serve_cow VALUES (11, 'k', 5, 'x'), (10, 'l', 5, 'x');
CALL run_clustering(table => 'serve_cow', op => 'schedule', order => 'v', show_involved_partition => true);

-- step: show_clustering
CALL show_clustering(table => 'serve_cow', show_involved_partition => true);

-- step: run_clustering: execute
CALL run_clustering(table => 'serve_cow', op => 'execute');

-- step: run_clustering of the partitions of a predicate
CALL run_clustering(table => 'serve_cow', predicate => "p = 'x'", order => 'id', show_involved_partition => true);

-- step: archive_commits
CALL archive_commits(table => 'serve_cow', min_commits => 4, max_commits => 5, retain_commits => 1);

-- step: show_archived_commits
CALL show_archived_commits(table => 'serve_cow');

-- step: show_archived_commits between two times
CALL show_archived_commits(table => 'serve_cow', start_ts => '20200101000000000', end_ts => '20990101000000000');

-- step: show_archived_commits_metadata
CALL show_archived_commits_metadata(table => 'serve_cow', start_ts => '2020', end_ts => '2099', limit => 100);

-- step: show_timeline with archived instants
-- volatile: requested_time, inflight_time, completed_time
CALL show_timeline(table => 'serve_cow', showArchived => true);

-- step: export_instants

-- step: drop_partition
CALL drop_partition(table => 'serve_cow', partition => 'p=y');

-- step: truncate_table of a partition
INSERT INTO serve_cow VALUES (20, 'a', 5, 'y'), (21, 'b', 5, 'z');
CALL truncate_table(table => 'serve_cow', partitions => 'p=y');

-- step: run_ttl
CALL run_ttl(table => 'serve_cow', retain_days => 1);

-- step: run_clean with options, of a table in a database
UPDATE serve_cow SET v = 'u3' WHERE id = 1;
CALL run_clean(table => 'default.serve_cow', options => 'hoodie.clean.commits.retained=1');

-- step: show_cleans with archived ones
CALL show_cleans(table => 'serve_cow', showArchived => true);

-- step: run_clustering by two columns in an order of space, with options
INSERT INTO serve_cow VALUES (30, 'a', 5, 'y'), (31, 'b', 5, 'z');
CALL run_clustering(table => 'serve_cow', op => 'scheduleAndExecute', order => 'ts,v', order_strategy => 'zorder',
  options => 'hoodie.clustering.plan.strategy.target.file.max.bytes=1048576');

-- step: run_clustering by a column that is not there is refused
CALL run_clustering(table => 'serve_cow', order => 'nothing');

-- step: run_clustering of no partition
CALL run_clustering(table => 'serve_cow', predicate => "p = 'absent'", order => 'id');

-- step: run_clustering by a predicate on rows is refused
CALL run_clustering(table => 'serve_cow', predicate => "ts > 1L", order => 'id');

-- step: show_compaction of a copy-on-write table is refused
CALL show_compaction(table => 'serve_cow');

-- step: run_compaction of a copy-on-write table
CALL run_compaction(op => 'run', table => 'serve_cow');

-- step: drop_partition of two, and of one that is not there
CALL drop_partition('serve_cow', 'p=y,p=z,p=absent');

-- step: run_clustering of single files, without an order
CALL run_clustering(table => 'serve_cow', selected_partitions => 'p=x');

-- step: truncate_table
CALL truncate_table(table => 'serve_cow');

-- step: a merge-on-read table with log files
-- table: serve_mor
CREATE TABLE serve_mor (id int, v string, ts bigint, p string) USING hudi
  TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts', 'hoodie.index.type' = 'SIMPLE')
  PARTITIONED BY (p) LOCATION '{path}';
INSERT INTO serve_mor VALUES (1, 'a', 5, 'x'), (2, 'b', 5, 'x'), (3, 'c', 5, 'y');
UPDATE serve_mor SET v = 'u', ts = 6 WHERE id < 4;

-- step: run_compaction: schedule
CALL run_compaction(op => 'schedule', table => 'serve_mor', options => 'hoodie.compact.inline.max.delta.commits=1');

-- step: show_compaction
CALL show_compaction(table => 'serve_mor');

-- step: run_compaction: run
CALL run_compaction(op => 'run', table => 'serve_mor');

-- step: show_compaction after it, by path
CALL show_compaction(path => '{path}');

-- step: run_compaction of an instant
UPDATE serve_mor SET v = 'w', ts = 7 WHERE id = 3;
CALL run_compaction(op => 'schedule', table => 'serve_mor', options => 'hoodie.compact.inline.max.delta.commits=1');
CALL run_compaction(op => 'execute', table => 'serve_mor', instants => '{compaction_requested}');

-- step: run_compaction of an instant that is not pending is refused
CALL run_compaction(op => 'execute', table => 'serve_mor', instants => '20200101000000000');

-- step: run_compaction with an unknown operation is refused
CALL run_compaction(op => 'sometimes', table => 'serve_mor');

-- step: run_compaction: scheduleAndExecute with nothing to do
CALL run_compaction(op => 'scheduleAndExecute', table => 'serve_mor');

-- step: run_rollback_inflight_tableservice of a plan that nobody began
CALL run_clustering(table => 'serve_mor', op => 'schedule', order => 'id');
CALL run_rollback_inflight_tableservice(table => 'serve_mor', pending_instant => '{clustering_requested}');

-- step: run_rollback_inflight_tableservice of a plan that somebody began

-- step: show_clustering after it
CALL show_clustering(table => 'serve_mor');

-- step: drop the tables
-- table: proc_none
DROP TABLE IF EXISTS serve_cow;
DROP TABLE IF EXISTS serve_mor;
