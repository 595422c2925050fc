-- Steps of the page compaction.py. The lines that begin with -- are explained in sql_page.py.

-- step: SQL: a merge-on-read table with inline compaction as table property
-- table: compaction_sql
-- result: services and files
CREATE TABLE compaction_sql (id int, v string, ts bigint) USING hudi
  TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts') LOCATION '{path}';
INSERT INTO compaction_sql VALUES (1, 'a', 1), (2, 'b', 1);
UPDATE compaction_sql SET v = 'u', ts = 2 WHERE id = 1;

-- step: SQL: SET hoodie.compact.inline
-- result: services and files
SET hoodie.compact.inline = true;
SET hoodie.compact.inline.max.delta.commits = 1;
UPDATE compaction_sql SET v = 'w', ts = 3 WHERE id = 2;
RESET hoodie.compact.inline;
RESET hoodie.compact.inline.max.delta.commits;

-- step: CALL run_compaction with op schedule
-- result: services
UPDATE compaction_sql SET v = 'x', ts = 4 WHERE id = 2;
CALL run_compaction(op => 'schedule', table => 'compaction_sql',
  options => 'hoodie.compact.inline.max.delta.commits=1');

-- step: CALL run_compaction with op run executes it
-- result: services and files
CALL run_compaction(op => 'run', table => 'compaction_sql');

-- step: CALL run_compaction with op scheduleAndExecute
-- result: services and files
UPDATE compaction_sql SET v = 'y', ts = 5 WHERE id = 1;
CALL run_compaction(op => 'scheduleAndExecute', table => 'compaction_sql',
  options => 'hoodie.compact.inline.max.delta.commits=1');

-- step: CALL run_compaction with an unknown op is refused
CALL run_compaction(op => 'sometimes', table => 'compaction_sql');

-- step: log compaction inline

-- step: drop the table of SQL
-- table: compaction_sql
DROP TABLE compaction_sql;
