-- Steps of the page sql_dml.py. The lines that begin with -- are explained in sql_page.py.

-- step: insert with a key and an ordering column
-- table: dml_keyed
CREATE TABLE dml_keyed (id int, v string, ts bigint) USING hudi
  TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts') LOCATION '{path}';
INSERT INTO dml_keyed VALUES (1, 'a', 5), (2, 'b', 5);

-- step: insert of an existing key, newer
INSERT INTO dml_keyed VALUES (1, 'newer', 6), (3, 'c', 5);

-- step: insert of an existing key, older
INSERT INTO dml_keyed VALUES (2, 'older', 4);

-- step: insert of a key twice in one statement
INSERT INTO dml_keyed VALUES (4, 'd', 5), (4, 'd2', 7);

-- step: insert twice with a key and no ordering column
-- table: dml_no_ordering
CREATE TABLE dml_no_ordering (id int, v string, ts bigint) USING hudi TBLPROPERTIES (primaryKey = 'id')
  LOCATION '{path}';
INSERT INTO dml_no_ordering VALUES (1, 'a', 5), (2, 'b', 5);
INSERT INTO dml_no_ordering VALUES (1, 'again', 1), (3, 'c', 5), (3, 'c2', 5);

-- step: insert twice with a key, merge-on-read
-- table: dml_mor
CREATE TABLE dml_mor (id int, v string, ts bigint) USING hudi
  TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts') LOCATION '{path}';
INSERT INTO dml_mor VALUES (1, 'a', 5), (2, 'b', 5);
INSERT INTO dml_mor VALUES (1, 'again', 1), (2, 'newer', 9), (3, 'c', 5);

-- step: insert twice without a key
-- table: dml_keyless
CREATE TABLE dml_keyless (id int, v string, ts bigint) USING hudi LOCATION '{path}';
INSERT INTO dml_keyless VALUES (1, 'a', 5), (2, 'b', 5);
INSERT INTO dml_keyless VALUES (1, 'a', 5);

-- step: insert with a list of columns
INSERT INTO dml_keyless (ts, id, v) VALUES (7, 3, 'c');

-- step: insert with a list of some columns
INSERT INTO dml_keyless (id) VALUES (4);

-- step: insert of too few values is refused
INSERT INTO dml_keyless VALUES (5, 'e');

-- step: insert of too many values is refused
INSERT INTO dml_keyless VALUES (5, 'e', 5, 5);

-- step: insert of another type that can be cast
INSERT INTO dml_keyless VALUES (6L, 7, 8);

-- step: insert of a text that is no number is refused
INSERT INTO dml_keyless VALUES ('text', 'v', 8);

-- step: insert of a number that is too large is refused
INSERT INTO dml_keyless VALUES (1099511627776, 'v', 8);

-- step: insert without the key
-- table: dml_keyed
INSERT INTO dml_keyed (v, ts) VALUES ('v', 1);

-- step: insert of null into a column that is not null
-- table: dml_required
CREATE TABLE dml_required (id int NOT NULL, v string NOT NULL, ts bigint) USING hudi TBLPROPERTIES (primaryKey = 'id')
  LOCATION '{path}';
INSERT INTO dml_required VALUES (1, NULL, 5);

-- step: insert of values into columns that are not null
INSERT INTO dml_required VALUES (1, 'a', NULL);

-- step: insert as select from a temporary view

-- step: insert of a whole view
-- table: dml_whole
CREATE TABLE dml_whole (id int, v string, ts bigint) USING hudi LOCATION '{path}';
INSERT INTO dml_whole TABLE dml_view;

-- step: insert as select from another table
-- table: dml_copy
CREATE TABLE dml_copy (id int, v string, ts bigint) USING hudi
  TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts') LOCATION '{path}';
INSERT INTO dml_copy SELECT id + 2, v, ts FROM dml_source;

-- step: insert as select of all columns, with the meta columns
INSERT INTO dml_copy SELECT * FROM dml_source;

-- step: insert as select matches columns by position, not by name
INSERT INTO dml_copy SELECT 9 AS ts, 'position' AS id, 10L AS v;

-- step: insert as select by name
INSERT INTO dml_copy BY NAME SELECT 11L AS ts, 'name' AS v, 10 AS id;

-- step: insert as select from a join
INSERT INTO dml_copy SELECT a.id + 10, b.v, a.ts FROM dml_source a JOIN dml_view b ON a.id = b.id;

-- step: operation insert
-- table: dml_operation
CREATE TABLE dml_operation (id int, v string, ts bigint) USING hudi
  TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts') LOCATION '{path}';
INSERT INTO dml_operation VALUES (1, 'a', 5), (2, 'b', 5);
SET hoodie.spark.sql.insert.into.operation = insert;
INSERT INTO dml_operation VALUES (1, 'insert', 6), (1, 'insert', 7);

-- step: operation upsert
SET hoodie.spark.sql.insert.into.operation = upsert;
INSERT INTO dml_operation VALUES (2, 'upsert', 6);

-- step: operation bulk_insert
SET hoodie.spark.sql.insert.into.operation = bulk_insert;
INSERT INTO dml_operation VALUES (2, 'bulk', 6), (2, 'bulk', 7);

-- step: an unknown operation is refused
SET hoodie.spark.sql.insert.into.operation = other;
INSERT INTO dml_operation VALUES (3, 'c', 6);

-- step: the default operation again
RESET hoodie.spark.sql.insert.into.operation;
INSERT INTO dml_operation VALUES (3, 'c', 6);

-- step: duplicates are dropped by policy
SET hoodie.datasource.insert.dup.policy = drop;
INSERT INTO dml_operation VALUES (3, 'dropped', 9), (5, 'e', 1);

-- step: duplicates are refused by policy
SET hoodie.datasource.insert.dup.policy = fail;
INSERT INTO dml_operation VALUES (3, 'refused', 9), (6, 'f', 1);

-- step: insert mode strict with an existing key
RESET hoodie.datasource.insert.dup.policy;
SET hoodie.sql.insert.mode = strict;
INSERT INTO dml_operation VALUES (5, 'strict', 9);

-- step: insert mode upsert
SET hoodie.sql.insert.mode = upsert;
INSERT INTO dml_operation VALUES (5, 'upsert', 9);
RESET hoodie.sql.insert.mode;

-- step: the operation of the writer of DataFrames
SET hoodie.datasource.write.operation = upsert;
INSERT INTO dml_operation VALUES (3, 'written', 20);
RESET hoodie.datasource.write.operation;

-- step: an operation as property of the table
-- table: dml_property
CREATE TABLE dml_property (id int, v string, ts bigint) USING hudi
  TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', 'hoodie.spark.sql.insert.into.operation' = 'upsert')
  LOCATION '{path}';
INSERT INTO dml_property VALUES (1, 'a', 5), (2, 'b', 5);
INSERT INTO dml_property VALUES (1, 'newer', 6), (2, 'older', 4);

-- step: insert into partitions: the last values are their columns
-- table: dml_parts
CREATE TABLE dml_parts (id int, v string, ts bigint, p string, q int) USING hudi
  TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts') PARTITIONED BY (p, q) LOCATION '{path}';
INSERT INTO dml_parts VALUES (1, 'a', 5, 'x', 1), (2, 'b', 5, 'x', 2), (3, 'c', 5, 'y', 1);

-- step: static partition
INSERT INTO dml_parts PARTITION (p = 'x', q = 3) SELECT 4, 'd', 5;

-- step: dynamic partition
INSERT INTO dml_parts PARTITION (p, q) SELECT 5, 'e', 5, 'y', 3;

-- step: static and dynamic partition
INSERT INTO dml_parts PARTITION (p = 'y', q) SELECT 6, 'f', 5, 4;

-- step: static partition with a list of columns
INSERT INTO dml_parts PARTITION (p = 'z', q = 1) (ts, id, v) VALUES (5, 7, 'g');

-- step: the same key in another partition
INSERT INTO dml_parts VALUES (1, 'elsewhere', 6, 'z', 1);

-- step: a list of columns with the partition column first
INSERT INTO dml_parts (p, q, id, v, ts) VALUES ('z', 2, 8, 'h', 5);

-- step: null as partition
-- table: dml_null
CREATE TABLE dml_null (id int, v string, ts bigint, p string) USING hudi
  TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts') PARTITIONED BY (p) LOCATION '{path}';
INSERT INTO dml_null VALUES (1, 'a', 5, NULL), (2, 'b', 5, 'x');
SHOW PARTITIONS dml_null;

-- step: insert overwrite of a static partition
-- table: dml_parts
INSERT OVERWRITE TABLE dml_parts PARTITION (p = 'z', q = 1) SELECT 21, 'over', 5;

-- step: insert overwrite of a static partition with no row
INSERT INTO dml_parts VALUES (40, 'gone', 5, 'empty', 1), (41, 'stays', 5, 'empty', 2);
INSERT OVERWRITE TABLE dml_parts PARTITION (p = 'empty', q = 1) SELECT id, v, ts FROM dml_view WHERE id > 99;

-- step: insert overwrite of dynamic partitions
INSERT OVERWRITE dml_parts PARTITION (p, q) SELECT 22, 'over', 5, 'x', 2 UNION ALL SELECT 20, 'over', 5, 'y', 2;

-- step: insert overwrite of a static and a dynamic partition
INSERT OVERWRITE dml_parts PARTITION (p = 'y', q) SELECT 23, 'over', 5, 9;

-- step: insert overwrite of the partitioned table
INSERT OVERWRITE TABLE dml_parts VALUES (24, 'over', 5, 'x', 1), (24, 'twice', 6, 'x', 1);

-- step: insert overwrite with the overwrite mode dynamic of Spark
INSERT INTO dml_parts VALUES (25, 'a', 5, 'x', 2), (26, 'b', 5, 'y', 2), (30, 'c', 5, 'y', 2);
SET spark.sql.sources.partitionOverwriteMode = dynamic;
INSERT OVERWRITE TABLE dml_parts VALUES (27, 'over', 5, 'x', 1);
RESET spark.sql.sources.partitionOverwriteMode;

-- step: insert overwrite with the overwrite mode dynamic of Hudi
SET hoodie.datasource.overwrite.mode = DYNAMIC;
INSERT OVERWRITE TABLE dml_parts VALUES (28, 'over', 5, 'y', 2);
RESET hoodie.datasource.overwrite.mode;

-- step: insert overwrite of a table without partitions
-- table: dml_operation
INSERT OVERWRITE TABLE dml_operation SELECT id, v, ts FROM dml_source;

-- step: insert overwrite of a table by itself
INSERT OVERWRITE TABLE dml_operation SELECT id, concat(v, '!'), ts FROM dml_operation WHERE id = 1;

-- step: insert overwrite of a table without a key
-- table: dml_keyless
INSERT OVERWRITE TABLE dml_keyless VALUES (1, 'a', 5), (1, 'a', 5), (2, 'b', 6);

-- step: insert overwrite of a merge-on-read table
-- table: dml_mor
INSERT OVERWRITE TABLE dml_mor VALUES (1, 'a', 5), (2, 'b', 5), (3, 'c', 5);

-- step: insert overwrite with no row and the overwrite mode dynamic of Spark
-- table: dml_parts
SET spark.sql.sources.partitionOverwriteMode = dynamic;
INSERT OVERWRITE TABLE dml_parts SELECT id, v, ts, 'x' AS p, 1 AS q FROM dml_view WHERE id > 99;
RESET spark.sql.sources.partitionOverwriteMode;

-- step: insert overwrite with no row
-- table: dml_whole
INSERT OVERWRITE TABLE dml_whole SELECT * FROM dml_view WHERE id > 99;

-- step: update
-- table: dml_copy
UPDATE dml_copy SET v = concat(v, '+'), ts = ts + 1 WHERE id < 3;

-- step: update without a condition
UPDATE dml_copy SET v = upper(v);

-- step: update of a key is refused
UPDATE dml_copy SET id = 99 WHERE id = 1;

-- step: update of a partition column
-- table: dml_null
UPDATE dml_null SET p = 'moved' WHERE id = 2;

-- step: update of an unknown column is refused
UPDATE dml_null SET absent = 1;

-- step: update to a lower ordering value
-- table: dml_mor
UPDATE dml_mor SET v = 'lower', ts = 0 WHERE id = 1;

-- step: update with a subquery
UPDATE dml_mor SET v = 'in' WHERE id IN (SELECT id FROM dml_view WHERE id > 2);

-- step: update of a table without a key
-- table: dml_keyless
UPDATE dml_keyless SET v = 'updated' WHERE id = 1;

-- step: delete
-- table: dml_copy
DELETE FROM dml_copy WHERE id = 2;

-- step: delete with a subquery
DELETE FROM dml_copy WHERE id IN (SELECT id FROM dml_source);

-- step: delete of a table without a key
-- table: dml_keyless
DELETE FROM dml_keyless WHERE id = 2;

-- step: delete of a merge-on-read table
-- table: dml_mor
DELETE FROM dml_mor WHERE id = 3;

-- step: delete of all rows
-- table: dml_null
DELETE FROM dml_null;

-- step: merge: update, insert and delete

-- step: merge with a delete before an update without a condition
-- table: dml_odd
CREATE TABLE dml_odd (id int, v string, ts bigint) USING hudi
  TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts') LOCATION '{path}';
INSERT INTO dml_odd VALUES (1, 'a', 5), (2, 'b', 5), (4, 'm4', 1);
MERGE INTO dml_odd t USING (SELECT 4 AS id, 'kept' AS v, 8L AS ts) s ON t.id = s.id
  WHEN MATCHED AND s.ts = 8 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v, ts = s.ts;

-- step: merge that deletes only
-- table: dml_merge
MERGE INTO dml_merge t USING (SELECT 4 AS id, 9L AS ts) s ON t.id = s.id WHEN MATCHED THEN DELETE;

-- step: merge with stars, from a view
MERGE INTO dml_merge t USING dml_view s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;

-- step: merge with stars, from a table of hudi
MERGE INTO dml_merge t USING dml_copy s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;

-- step: merge of some columns
MERGE INTO dml_merge t USING (SELECT 1 AS id, 'part' AS v, 99L AS ts) s ON t.id = s.id
  WHEN MATCHED THEN UPDATE SET t.v = s.v, ts = s.ts;

-- step: merge of inserts only
MERGE INTO dml_merge t USING (SELECT 1 AS id, 'no' AS v, 100L AS ts UNION ALL SELECT 12, 'yes', 1L) s ON t.id = s.id
  WHEN NOT MATCHED THEN INSERT *;

-- step: merge of an older row
MERGE INTO dml_merge t USING (SELECT 2 AS id, 'older' AS v, 1L AS ts) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;

-- step: merge of two rows of a key
-- table: dml_odd
MERGE INTO dml_odd t USING (SELECT 2 AS id, 'one' AS v, 20L AS ts UNION ALL SELECT 2, 'two', 21L) s ON t.id = s.id
  WHEN MATCHED THEN UPDATE SET *;

-- step: merge without the ordering column
MERGE INTO dml_odd t USING (SELECT 2 AS id, 'unordered' AS v) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v;

-- step: merge on a column that is no key
MERGE INTO dml_odd t USING (SELECT 1 AS id, 'a' AS v, 100L AS ts) s ON t.v = s.v WHEN MATCHED THEN UPDATE SET *;

-- step: merge into partitions, merge-on-read
-- table: dml_merge_mor
CREATE TABLE dml_merge_mor (id int, v string, ts bigint, p string) USING hudi
  TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts') PARTITIONED BY (p) LOCATION '{path}';
INSERT INTO dml_merge_mor VALUES (1, 'a', 5, 'x'), (2, 'b', 5, 'y'), (3, 'c', 5, 'y');
MERGE INTO dml_merge_mor t USING (SELECT 1 AS id, 'm1' AS v, 6L AS ts, 'x' AS p UNION ALL SELECT 2, '', 6L, 'y'
  UNION ALL SELECT 4, 'm4', 6L, 'z') s ON t.id = s.id AND t.p = s.p WHEN MATCHED AND s.v <> '' THEN UPDATE SET *
  WHEN MATCHED AND s.v = '' THEN DELETE WHEN NOT MATCHED THEN INSERT *;

-- step: merge by the key, when the source row has another partition
MERGE INTO dml_merge_mor t USING (SELECT 3 AS id, 'moved' AS v, 9L AS ts, 'x' AS p) s ON t.id = s.id
  WHEN MATCHED THEN UPDATE SET *;

-- step: merge of a table without a key
-- table: dml_keyless
MERGE INTO dml_keyless t USING (SELECT 1 AS id, 'merged' AS v, 100L AS ts UNION ALL SELECT 7, 'new', 1L) s
  ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;

-- step: merge of the quick start, of a partitioned table without a key
-- table: dml_trips
CREATE TABLE dml_trips (ts bigint, uuid string, fare double, city string) USING hudi
  PARTITIONED BY (city) LOCATION '{path}';
INSERT INTO dml_trips VALUES (1, 'a', 19.1, 'sf'), (2, 'b', 27.7, 'sf'), (3, 'c', 33.9, 'sao'), (4, 'd', 34.15, 'sao');
MERGE INTO dml_trips AS target
  USING (SELECT 9L AS ts, 'b' AS uuid, 2.3D AS fare, 'sf' AS city UNION ALL SELECT 9, 'c', 1.0, 'sao'
    UNION ALL SELECT 9, 'n', 5.5, 'sf' UNION ALL SELECT 9, 'm', 6.5, 'chennai') AS source
  ON target.uuid = source.uuid
  WHEN MATCHED THEN UPDATE SET target.fare = target.fare + source.fare WHEN NOT MATCHED THEN INSERT *;

-- step: merge that updates, deletes and inserts, of a table without a key
MERGE INTO dml_trips AS target
  USING (SELECT 10L AS ts, 'm' AS uuid, 0.0D AS fare, 'chennai' AS city UNION ALL SELECT 10, 'a', 1.5, 'sf'
    UNION ALL SELECT 10, 'o', 7.5, 'sf' UNION ALL SELECT 10, 'o', 7.5, 'sf') AS source
  ON target.uuid = source.uuid AND target.city = source.city
  WHEN MATCHED AND source.fare > 0 THEN UPDATE SET * WHEN MATCHED AND source.fare = 0 THEN DELETE
  WHEN NOT MATCHED THEN INSERT (ts, uuid, fare, city) VALUES (source.ts, source.uuid, source.fare, source.city);

-- step: merge by a condition that is no equality, of a table without a key
MERGE INTO dml_trips AS target
  USING (SELECT 30.0D AS low, 34.0D AS high) AS source ON target.fare BETWEEN source.low AND source.high
  WHEN MATCHED THEN UPDATE SET target.ts = 30;

-- step: merge by two columns, of a merge-on-read table without a key
-- table: dml_events
CREATE TABLE dml_events (id int, v string, ts bigint) USING hudi TBLPROPERTIES (type = 'mor') LOCATION '{path}';
INSERT INTO dml_events VALUES (1, 'a', 1), (1, 'b', 1), (2, 'c', 1), (CAST(NULL AS INT), 'd', 1);
MERGE INTO dml_events t
  USING (SELECT 1 AS id, 'b' AS v, 5L AS ts UNION ALL SELECT 2, 'x', 6L UNION ALL SELECT CAST(NULL AS INT), 'd', 7L) s
  ON t.id = s.id AND t.v = s.v WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;

-- step: merge that deletes and inserts, of a table without a key
-- table: dml_trips
MERGE INTO dml_trips AS target
  USING (SELECT 10L AS ts, 'b' AS uuid, 0.0D AS fare, 'sf' AS city UNION ALL SELECT 10, 'p', 7.5, 'sf') AS source
  ON target.uuid = source.uuid WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *;

-- step: merge of two rows for a row, of a table without a key
MERGE INTO dml_trips AS target
  USING (SELECT 10L AS ts, 'c' AS uuid UNION ALL SELECT 11, 'c') AS source
  ON target.uuid = source.uuid WHEN MATCHED THEN UPDATE SET ts = source.ts;

-- step: merge that updates all columns of a partitioned table without a key
MERGE INTO dml_trips AS target USING (SELECT 40L AS ts, 'd' AS uuid, 1.0D AS fare, 'la' AS city) AS source
  ON target.uuid = source.uuid WHEN MATCHED THEN UPDATE SET *;

-- step: merge that only sets some columns, of a merge-on-read table without a key
-- table: dml_events
MERGE INTO dml_events t USING (SELECT 1 AS id, 'a' AS v, 9L AS ts) s ON t.id = s.id AND t.v = s.v
  WHEN MATCHED THEN UPDATE SET ts = s.ts;

-- step: merge that sets some columns and inserts, of a merge-on-read table without a key
-- table: dml_partial
CREATE TABLE dml_partial (id int, v string, ts bigint) USING hudi TBLPROPERTIES (type = 'mor') LOCATION '{path}';
INSERT INTO dml_partial VALUES (1, 'a', 1), (1, 'b', 1), (2, 'c', 1), (CAST(NULL AS INT), 'd', 1);
MERGE INTO dml_partial t USING (SELECT 1 AS id, 'b' AS v, 5L AS ts UNION ALL SELECT 2, 'x', 6L) s
  ON t.id = s.id AND t.v = s.v WHEN MATCHED THEN UPDATE SET ts = s.ts WHEN NOT MATCHED THEN INSERT *;

-- step: rows with a condition, sorted and limited
-- table: dml_merge
SELECT id, v FROM dml_merge WHERE ts > 4 ORDER BY id DESC LIMIT 2;

-- step: groups
SELECT count(*) AS n, sum(ts) AS total FROM dml_merge GROUP BY id % 2;

-- step: join of two tables
SELECT a.id, a.v, b.v AS other FROM dml_merge a JOIN dml_copy b ON a.id = b.id;

-- step: a common table expression and a subquery
WITH w AS (SELECT id FROM dml_copy) SELECT id, v FROM dml_merge WHERE id IN (SELECT id FROM w);

-- step: meta columns by name
SELECT _hoodie_record_key, _hoodie_partition_path, v FROM dml_merge;

-- step: a table by its path
SELECT id, v FROM hudi.`{path}`;

-- step: the table of the catalog by its name

-- step: timestamp as of a requested time
-- without: _hoodie
SELECT * FROM dml_merge TIMESTAMP AS OF '{requested[0]}';

-- step: timestamp as of a completion time
-- without: _hoodie
SELECT * FROM dml_merge TIMESTAMP AS OF '{completed[0]}';

-- step: timestamp as of a time in words
-- without: _hoodie
SELECT * FROM dml_merge TIMESTAMP AS OF '{dashed[1]}';

-- step: timestamp as of a time before the table
-- without: _hoodie
SELECT * FROM dml_merge TIMESTAMP AS OF '2020-01-01';

-- step: version as of a requested time
-- without: _hoodie
SELECT * FROM dml_merge VERSION AS OF '{requested[0]}';

-- step: changes from earliest, latest state
-- without: _hoodie
SELECT * FROM hudi_table_changes('dml_merge', 'latest_state', 'earliest');

-- step: changes from the first commit, latest state
-- without: _hoodie
SELECT * FROM hudi_table_changes('dml_merge', 'latest_state', '{completed[0]}');

-- step: changes between two commits, by path
-- without: _hoodie
SELECT * FROM hudi_table_changes('{path}', 'latest_state', '{completed[0]}', '{completed[1]}');

-- step: changes with the database in the name
-- without: _hoodie
SELECT id FROM hudi_table_changes('default.dml_merge', 'latest_state', 'earliest') WHERE id = 1;

-- step: change data of a table without change data is refused
SELECT * FROM hudi_table_changes('dml_merge', 'cdc', 'earliest');

-- step: change data from earliest
-- table: dml_cdc
CREATE TABLE dml_cdc (id int, v string, ts bigint) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts',
  'hoodie.table.cdc.enabled' = 'true') LOCATION '{path}';
INSERT INTO dml_cdc VALUES (1, 'a', 5), (2, 'b', 5);
UPDATE dml_cdc SET v = 'u', ts = 6 WHERE id = 1;
DELETE FROM dml_cdc WHERE id = 2;
SELECT op, before, after FROM hudi_table_changes('dml_cdc', 'cdc', 'earliest');

-- step: change data between two commits, by path
SELECT op, before, after FROM hudi_table_changes('{path}', 'cdc', '{completed[0]}', '{completed[1]}');

-- step: columns of change data
-- result: columns
SELECT * FROM hudi_table_changes('dml_cdc', 'cdc', 'earliest');

-- step: a table as a function
SELECT id, v FROM hudi_query('dml_cdc', 'snapshot');

-- step: the timeline of a table
SELECT action, state FROM hudi_query_timeline('dml_cdc', 'true');

-- step: the timeline of a table, one argument
-- result: columns
SELECT * FROM hudi_query_timeline('dml_cdc');

-- step: the timeline of a table, by path
-- result: columns
SELECT * FROM hudi_query_timeline('{path}', 'false');

-- step: the metadata of a table
SELECT count(*) > 0 AS found FROM hudi_metadata('dml_cdc');

-- step: the metadata of a table, by path
SELECT key, type FROM hudi_metadata('{path}') WHERE type IN (1, 2);

-- step: the slices of the files, by path
-- result: columns
SELECT * FROM hudi_filesystem_view('{path}');

-- step: drop what is left
