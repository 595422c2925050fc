-- Steps of the page clustering.py. The lines that begin with -- are explained in sql_page.py.

-- step: SQL: CALL run_clustering with an order
-- table: clustering_sql
-- result: services and files
CREATE TABLE clustering_sql (id int, v string, p string) USING hudi TBLPROPERTIES (primaryKey = 'id')
  PARTITIONED BY (p) LOCATION '{path}';
SET hoodie.parquet.small.file.limit = 0;
INSERT INTO clustering_sql VALUES (1, 'c', 'x'), (2, 'b', 'y');
INSERT INTO clustering_sql VALUES (3, 'a', 'x'), (4, 'd', 'y');
RESET hoodie.parquet.small.file.limit;
CALL run_clustering(table => 'clustering_sql', order => 'v');

-- step: CALL run_clustering with op schedule, then execute
-- result: services and files
SET hoodie.parquet.small.file.limit = 0;
INSERT INTO clustering_sql VALUES (5, 'a', 'x'), (6, 'd', 'y');
RESET hoodie.parquet.small.file.limit;
CALL run_clustering(table => 'clustering_sql', op => 'schedule', order => 'id');
CALL run_clustering(table => 'clustering_sql', op => 'execute');

-- step: drop the table of SQL
DROP TABLE clustering_sql;
