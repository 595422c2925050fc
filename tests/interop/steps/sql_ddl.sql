-- Steps of the page sql_ddl.py. The lines that begin with -- are explained in sql_page.py.

-- step: create a table without a key and without partitions
-- table: ddl_bare
CREATE TABLE ddl_bare (id int, name string, price double, ts bigint) USING hudi LOCATION '{path}';

-- step: rows of the empty table
SELECT * FROM ddl_bare;

-- step: create a table that exists is refused
CREATE TABLE ddl_bare (id int, name string, price double, ts bigint) USING hudi LOCATION '{path}';

-- step: create if not exists with an existing table
CREATE TABLE IF NOT EXISTS ddl_bare (id int, name string, price double, ts bigint) USING hudi LOCATION '{path}';

-- step: create a keyed copy-on-write table with partitions
-- table: ddl_cow
CREATE TABLE ddl_cow (id int, name string, price double, ts bigint, p string) USING hudi
  TBLPROPERTIES (type = 'cow', primaryKey = 'id', preCombineField = 'ts') PARTITIONED BY (p) LOCATION '{path}';

-- step: the partition column stands last, where it was first of the columns
-- table: ddl_order
CREATE TABLE ddl_order (p string, id int, v string) USING hudi TBLPROPERTIES (primaryKey = 'id') PARTITIONED BY (p)
  LOCATION '{path}';

-- step: INSERT INTO expects the columns in this order
INSERT INTO ddl_order VALUES (1, 'v', 'p');
SELECT * FROM ddl_order;

-- step: create a merge-on-read table with orderingFields and two key columns
-- table: ddl_mor
CREATE TABLE ddl_mor (id int, name string, price double, ts bigint, day date, hour int) USING hudi
  TBLPROPERTIES (type = 'mor', primaryKey = 'id,name', orderingFields = 'ts') PARTITIONED BY (day, hour)
  LOCATION '{path}';

-- step: create a table with hoodie properties
-- table: ddl_properties
CREATE TABLE ddl_properties (id int, name string, price double, ts bigint, p string) USING hudi
  TBLPROPERTIES ('hoodie.datasource.write.recordkey.field' = 'id', 'hoodie.datasource.write.precombine.field' = 'ts',
  'hoodie.datasource.write.table.type' = 'MERGE_ON_READ', 'hoodie.table.cdc.enabled' = 'true',
  'hoodie.datasource.write.hive_style_partitioning' = 'false', 'hoodie.metadata.enable' = 'false') PARTITIONED BY (p)
  LOCATION '{path}';

-- step: create a table with names of hoodie.properties
-- table: ddl_stored_names
CREATE TABLE ddl_stored_names (id int, name string, price double, ts bigint) USING hudi
  TBLPROPERTIES ('hoodie.table.recordkey.fields' = 'id', 'hoodie.table.ordering.fields' = 'ts',
  'hoodie.table.type' = 'MERGE_ON_READ', 'hoodie.record.merge.mode' = 'COMMIT_TIME_ORDERING') LOCATION '{path}';

-- step: create a table with OPTIONS
-- table: ddl_options
CREATE TABLE ddl_options (id int, name string, price double, ts bigint) USING hudi
  OPTIONS (type = 'mor', primaryKey = 'id', preCombineField = 'ts') COMMENT 'a table' LOCATION '{path}';

-- step: a key column that is none of the columns is refused
-- table: ddl_wrong_key
CREATE TABLE ddl_wrong_key (id int, name string, price double, ts bigint) USING hudi
  TBLPROPERTIES (primaryKey = 'absent') LOCATION '{path}';

-- step: an ordering column that is none of the columns is refused
-- table: ddl_wrong_ordering
CREATE TABLE ddl_wrong_ordering (id int, name string, price double, ts bigint) USING hudi
  TBLPROPERTIES (primaryKey = 'id', preCombineField = 'absent') LOCATION '{path}';

-- step: an unknown table type is refused
-- table: ddl_wrong_type
CREATE TABLE ddl_wrong_type (id int, name string, price double, ts bigint) USING hudi TBLPROPERTIES (type = 'other')
  LOCATION '{path}';

-- step: types, NOT NULL and comments of columns
-- table: ddl_types
CREATE TABLE ddl_types (id int NOT NULL COMMENT 'the key', b boolean, l bigint, f float, d double, s string, y binary,
  c decimal(10,2), day date, at timestamp, items array<int>, m map<string,int>, part struct<a:int,b:string>) USING hudi
  TBLPROPERTIES (primaryKey = 'id') LOCATION '{path}';

-- step: describe a table with types and comments
DESCRIBE TABLE ddl_types;

-- step: describe a partitioned table
-- table: ddl_cow
DESC ddl_cow;

-- step: describe extended works
-- where: col_name IN ('Provider', 'Database', 'Table', 'Type')
DESCRIBE EXTENDED ddl_cow;

-- step: the columns of a table
SHOW COLUMNS IN ddl_cow;

-- step: show create table works
-- select: createtab_stmt LIKE '%USING hudi%' AS is_hudi
SHOW CREATE TABLE ddl_cow;

-- step: partitions of the empty table
SHOW PARTITIONS ddl_cow;

-- step: partitions after an insert
INSERT INTO ddl_cow VALUES (1, 'a', 1.0, 1, 'x'), (2, 'b', 2.0, 1, 'y'), (3, 'c', 3.0, 1, 'y');
SHOW PARTITIONS ddl_cow;

-- step: one partition by its value
SHOW PARTITIONS ddl_cow PARTITION (p = 'y');

-- step: partitions of two columns
-- table: ddl_mor
INSERT INTO ddl_mor VALUES (1, 'a', 1.0, 1, DATE '2026-01-02', 3), (2, 'b', 2.0, 1, DATE '2026-01-02', 4), 
  (3, 'c', 3.0, 1, DATE '2026-01-03', 3);
SHOW PARTITIONS ddl_mor;

-- step: partitions by the first of two columns
SHOW PARTITIONS ddl_mor PARTITION (day = '2026-01-02');

-- step: partitions of a table without partitions
-- table: ddl_options
SHOW PARTITIONS ddl_options;

-- step: partitions of a table without hive style
-- table: ddl_properties
INSERT INTO ddl_properties VALUES (1, 'a', 1.0, 1, 'x'), (2, 'b', 2.0, 1, 'y');
SHOW PARTITIONS ddl_properties;

-- step: create table as select, with a key and partitions
-- table: ddl_ctas
CREATE TABLE ddl_ctas USING hudi TBLPROPERTIES (type = 'cow', primaryKey = 'id', preCombineField = 'ts')
  PARTITIONED BY (p) LOCATION '{path}' AS SELECT 1 AS id, 'a' AS name, 10.0D AS price, 'x' AS p, 1000L AS ts
  UNION ALL SELECT 2, 'b', 20.0D, 'y', 1000L UNION ALL SELECT 1, 'newer', 30.0D, 'x', 2000L;

-- step: create table as select from the table, without a key
-- table: ddl_ctas_keyless
CREATE TABLE ddl_ctas_keyless USING hudi LOCATION '{path}' AS SELECT id, name, price, ts, p FROM ddl_ctas;

-- step: create table as select, merge-on-read
-- table: ddl_ctas_mor
CREATE TABLE ddl_ctas_mor USING hudi TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts')
  LOCATION '{path}' AS SELECT id, name, price, ts FROM ddl_ctas;

-- step: create table as select of all columns, with the meta columns
-- table: ddl_ctas_star
CREATE TABLE ddl_ctas_star USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts') LOCATION '{path}'
  AS SELECT * FROM ddl_ctas;

-- step: create table as select with an existing table is refused
CREATE TABLE ddl_ctas_star USING hudi LOCATION '{path}' AS SELECT 9 AS id;

-- step: create table if not exists as select with an existing table
CREATE TABLE IF NOT EXISTS ddl_ctas_star USING hudi LOCATION '{path}' AS SELECT 9 AS id;

-- step: create or replace table
CREATE OR REPLACE TABLE ddl_ctas_star (id int, name string, price double, ts bigint, more string) USING hudi
  TBLPROPERTIES (primaryKey = 'id') LOCATION '{path}';

-- step: create or replace table as select
CREATE OR REPLACE TABLE ddl_ctas_star USING hudi TBLPROPERTIES (primaryKey = 'id') LOCATION '{path}' AS SELECT 5 AS id,
  'e' AS name;

-- step: create table like another table
-- table: ddl_like
CREATE TABLE ddl_like LIKE ddl_cow USING hudi LOCATION '{path}';

-- step: create table like another table with a key
-- table: ddl_like_keyed
CREATE TABLE ddl_like_keyed LIKE ddl_cow USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts')
  LOCATION '{path}';

-- step: create a table over existing files, without columns
-- table: ddl_cow
CREATE TABLE ddl_over USING hudi LOCATION '{path}';
SELECT id, name, price, ts, p FROM ddl_over;

-- step: describe the table over existing files
DESCRIBE ddl_over;

-- step: an insert into the table over existing files
INSERT INTO ddl_over VALUES (4, 'd', 4.0, 1, 'x');

-- step: create a table over existing files, with columns
CREATE TABLE ddl_over2 (id int, name string, price double, ts bigint, p string) USING hudi PARTITIONED BY (p)
  LOCATION '{path}';
SELECT id, name, price, ts, p FROM ddl_over2;

-- step: create a table over existing files, with another key, is refused
CREATE TABLE ddl_over3 USING hudi TBLPROPERTIES (primaryKey = 'name') LOCATION '{path}';

-- step: create a table over files that the writer of DataFrames made

-- step: create a table without columns where no files are is refused
-- table: ddl_nothing
CREATE TABLE ddl_nothing USING hudi LOCATION '{path}';

-- step: the tables of the catalog
-- select: namespace, tableName, isTemporary
SHOW TABLES LIKE 'ddl_*';

-- step: add columns
-- table: ddl_altered
CREATE TABLE ddl_altered LIKE ddl_cow USING hudi LOCATION '{path}';
INSERT INTO ddl_altered VALUES (1, 'a', 1.0, 1, 'x');
ALTER TABLE ddl_altered ADD COLUMNS (extra string, more int);
DESCRIBE ddl_altered;

-- step: an insert after the columns were added
INSERT INTO ddl_altered VALUES (5, 'e', 5.0, 1, 'extra', 6, 'x');
SELECT * FROM ddl_altered;

-- step: add a column to an empty table
-- table: ddl_bare
ALTER TABLE ddl_bare ADD COLUMNS (extra string COMMENT 'more');

-- step: a column with a wider type
-- table: ddl_options
ALTER TABLE ddl_options CHANGE COLUMN id id bigint;

-- step: rename a column without schema.on.read
-- table: ddl_plain
CREATE TABLE ddl_plain (id int, name string, price double, ts bigint) USING hudi
  TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts') LOCATION '{path}';
INSERT INTO ddl_plain VALUES (1, 'a', 1.0, 1);
ALTER TABLE ddl_plain RENAME COLUMN name TO title;

-- step: drop a column without schema.on.read
ALTER TABLE ddl_plain DROP COLUMN price;

-- step: a column with a default
ALTER TABLE ddl_plain ADD COLUMNS (filled int DEFAULT 5);

-- step: a column that allows no null is refused
-- table: ddl_altered
ALTER TABLE ddl_altered ADD COLUMNS (another int NOT NULL);

-- step: set and unset properties
ALTER TABLE ddl_altered SET TBLPROPERTIES (hoodie.keep.max.commits = '40', note = 'text');
ALTER TABLE ddl_altered UNSET TBLPROPERTIES (note);

-- step: the properties of the table
-- where: key IN ('hoodie.keep.max.commits', 'note', 'type', 'primaryKey')
SHOW TBLPROPERTIES ddl_altered;

-- step: set a property that the definition of the table has
ALTER TABLE ddl_altered SET TBLPROPERTIES (primaryKey = 'name');

-- step: an insert under another key is refused
INSERT INTO ddl_altered VALUES (9, 'i', 9.0, 1, 'extra', 6, 'x');

-- step: the key of the definition again
ALTER TABLE ddl_altered SET TBLPROPERTIES (primaryKey = 'id');

-- step: rename the table
-- table: ddl_options
INSERT INTO ddl_options VALUES (1, 'a', 1.0, 1);
ALTER TABLE ddl_options RENAME TO ddl_renamed;
SELECT * FROM ddl_renamed;

-- step: an insert into the renamed table
INSERT INTO ddl_renamed VALUES (2, 'b', 1.0, 1);

-- step: drop a partition
-- table: ddl_cow
ALTER TABLE ddl_cow DROP PARTITION (p = 'y');
SHOW PARTITIONS ddl_cow;

-- step: drop a partition that is absent
ALTER TABLE ddl_cow DROP PARTITION (p = 'absent');
SHOW PARTITIONS ddl_cow;

-- step: drop a partition of two columns
-- table: ddl_mor
ALTER TABLE ddl_mor DROP PARTITION (day = '2026-01-02', hour = 3);
SHOW PARTITIONS ddl_mor;

-- step: truncate a partition
TRUNCATE TABLE ddl_mor PARTITION (day = '2026-01-02', hour = 4);

-- step: truncate a table
-- table: ddl_cow
TRUNCATE TABLE ddl_cow;
SHOW PARTITIONS ddl_cow;

-- step: an insert after truncate
INSERT INTO ddl_cow VALUES (6, 'f', 6.0, 1, 'x');

-- step: schema evolution: add a column at a place
-- table: ddl_evolved
CREATE TABLE ddl_evolved (id int, name string, price double, ts bigint) USING hudi
  TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts') LOCATION '{path}';
INSERT INTO ddl_evolved VALUES (1, 'a', 1.0, 1);
SET hoodie.schema.on.read.enable = true;
ALTER TABLE ddl_evolved ADD COLUMNS (extra int AFTER name);
SELECT * FROM ddl_evolved;

-- step: schema evolution: a wider type
ALTER TABLE ddl_evolved ALTER COLUMN extra TYPE bigint;
SELECT * FROM ddl_evolved;

-- step: schema evolution: a narrower type is refused
ALTER TABLE ddl_evolved ALTER COLUMN ts TYPE int;

-- step: schema evolution: a comment, and no NOT NULL
-- where: col_name = 'name'
ALTER TABLE ddl_evolved ALTER COLUMN name COMMENT 'text';
ALTER TABLE ddl_evolved ALTER COLUMN name DROP NOT NULL;
DESCRIBE ddl_evolved;

-- step: schema evolution: an insert
INSERT INTO ddl_evolved VALUES (2, 'b', 1099511627776, 2.0, 1);

-- step: schema evolution: rename a column, where columns may be dropped
SET hoodie.datasource.write.schema.allow.auto.evolution.column.drop = true;
ALTER TABLE ddl_evolved RENAME COLUMN price TO cost;
SELECT * FROM ddl_evolved;

-- step: schema evolution: drop a column, where columns may be dropped
ALTER TABLE ddl_evolved DROP COLUMN extra;
SELECT * FROM ddl_evolved;

-- step: schema evolution: an insert after columns were renamed and dropped
INSERT INTO ddl_evolved SELECT 3, 'c', 3.0D, 1L;

-- step: schema evolution: rows without schema.on.read
RESET hoodie.schema.on.read.enable;
RESET hoodie.datasource.write.schema.allow.auto.evolution.column.drop;
SELECT * FROM ddl_evolved;

-- step: schema evolution: nested fields
-- table: ddl_nested
CREATE TABLE ddl_nested (id int, s struct<x: int, y: string>, m map<string, struct<u: int, v: int>>, ts bigint)
  USING hudi TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts') LOCATION '{path}';
INSERT INTO ddl_nested SELECT 1, named_struct('x', 1, 'y', 'y'), map('k', named_struct('u', 1, 'v', 2)), 1L;
SET hoodie.schema.on.read.enable = true;
SET hoodie.datasource.write.schema.allow.auto.evolution.column.drop = true;
SET spark.sql.parquet.enableVectorizedReader = false;
ALTER TABLE ddl_nested ADD COLUMNS (s.z int FIRST, m.value.w string COMMENT 'more');
ALTER TABLE ddl_nested RENAME COLUMN s.y TO yy;
ALTER TABLE ddl_nested DROP COLUMN m.value.u;
ALTER TABLE ddl_nested ALTER COLUMN s.x TYPE double;
SELECT * FROM ddl_nested;

-- step: schema evolution: a name again
ALTER TABLE ddl_nested ADD COLUMNS (s.y int AFTER x);
SELECT * FROM ddl_nested;

-- step: schema evolution: a field that is there is refused
ALTER TABLE ddl_nested RENAME COLUMN s.yy TO y;

-- step: schema evolution: drop the key is refused
ALTER TABLE ddl_nested DROP COLUMN id;

-- step: schema evolution: replace columns is refused
ALTER TABLE ddl_nested REPLACE COLUMNS (id int);

-- step: schema evolution: an update after the changes
UPDATE ddl_nested SET ts = 2 WHERE id = 1;
SELECT * FROM ddl_nested;

-- step: schema evolution: the first place of the table
ALTER TABLE ddl_nested ADD COLUMNS (front int FIRST);

-- step: schema evolution: another type of the key
ALTER TABLE ddl_nested ALTER COLUMN id TYPE string;

-- step: schema evolution: rename a column, where columns may not be dropped

-- step: drop an external table: its files stay
-- table: ddl_cow
-- result: has files
DROP TABLE ddl_over;

-- step: drop a table with purge: its files go
-- table: ddl_saved
-- result: has files
DROP TABLE ddl_saved PURGE;

-- step: a managed table is in the warehouse
-- table: ddl_managed managed
CREATE TABLE ddl_managed (id int, name string, price double, ts bigint) USING hudi
  TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO ddl_managed VALUES (1, 'a', 1.0, 1);

-- step: drop a managed table: its files go
-- result: has files
DROP TABLE ddl_managed;

-- step: a managed table, created as select and named with its database
-- table: ddl_managed2 managed
CREATE TABLE default.ddl_managed2 USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts')
  AS SELECT 1 AS id, 'a' AS name, 1L AS ts;
SELECT id, name, ts FROM default.ddl_managed2;

-- step: drop the managed table with if exists, twice
-- result: has files
DROP TABLE IF EXISTS ddl_managed2;
DROP TABLE IF EXISTS ddl_managed2;

-- step: drop a table that is absent is refused
DROP TABLE ddl_managed2;

-- step: a table of another database
-- table: ddl_base.db/ddl_there managed
CREATE DATABASE IF NOT EXISTS ddl_base;
CREATE TABLE ddl_base.ddl_there (id int, name string, price double, ts bigint) USING hudi
  TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts');
INSERT INTO ddl_base.ddl_there VALUES (1, 'a', 1.0, 1);
SELECT * FROM ddl_base.ddl_there;

-- step: the table of the database in use
-- select: namespace, tableName
USE ddl_base;
INSERT INTO ddl_there VALUES (2, 'b', 1.0, 1);
SHOW TABLES;
USE default;

-- step: drop the database
-- result: has files
DROP DATABASE ddl_base CASCADE;

-- step: drop what is left
