-- Steps of the page cleaning.py. The lines that begin with -- are explained in sql_page.py.

-- step: CALL run_clean
-- table: cleaning_sql
-- result: services and files
CREATE TABLE cleaning_sql (id int, v string) USING hudi TBLPROPERTIES (primaryKey = 'id') LOCATION '{path}';
INSERT INTO cleaning_sql VALUES (1, 'a');
UPDATE cleaning_sql SET v = 'b';
UPDATE cleaning_sql SET v = 'c';
CALL run_clean(table => 'cleaning_sql', retain_commits => 1);

-- step: SET hoodie.clean.commits.retained
-- result: services and files
SET hoodie.clean.commits.retained = 1;
UPDATE cleaning_sql SET v = 'd';
RESET hoodie.clean.commits.retained;

-- step: drop the table of SQL
DROP TABLE cleaning_sql;
