-- Steps of the page indexes.py. The lines that begin with -- are explained in sql_page.py.

-- step: SQL: a table without indexes
-- table: indexes_sql
SET hoodie.write.lock.provider = org.apache.hudi.client.transaction.lock.InProcessLockProvider;
SET hoodie.metadata.index.column.stats.enable = false;
CREATE TABLE indexes_sql (id int, ts bigint, v string, p string) USING hudi
  TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', 'hoodie.index.type' = 'SIMPLE') PARTITIONED BY (p)
  LOCATION '{path}';
INSERT INTO indexes_sql VALUES (1, 1, 'a', 'x'), (2, 1, 'b', 'x'), (3, 1, 'c', 'y');
SHOW INDEXES FROM indexes_sql;

-- step: CREATE INDEX record_index
-- result: services and metadata
CREATE INDEX record_index ON indexes_sql (id);
SET hoodie.metadata.record.index.enable = true;

-- step: SHOW INDEXES
SHOW INDEXES FROM indexes_sql;

-- step: CREATE INDEX of the same name is refused
CREATE INDEX record_index ON indexes_sql (id);

-- step: CREATE INDEX IF NOT EXISTS
CREATE INDEX IF NOT EXISTS record_index ON indexes_sql (id);

-- step: an update, and rows by the record key
UPDATE indexes_sql SET v = 'updated' WHERE id = 3;
SELECT id, v, p FROM indexes_sql WHERE id = 3;

-- step: CREATE INDEX of a column: a secondary index
-- result: services and metadata
CREATE INDEX idx_v ON indexes_sql (v);

-- step: rows by the column of the secondary index
SELECT id, v, p FROM indexes_sql WHERE v = 'b';

-- step: CREATE INDEX USING column_stats with an expression
CREATE INDEX idx_day ON indexes_sql USING column_stats(ts) OPTIONS (expr = 'from_unixtime', format = 'yyyy-MM-dd');

-- step: CREATE INDEX USING bloom_filters with an expression
CREATE INDEX idx_lower ON indexes_sql USING bloom_filters(v) OPTIONS (expr = 'lower');

-- step: rows by the expression of the index
SELECT id, v, p FROM indexes_sql WHERE from_unixtime(ts, 'yyyy-MM-dd') = '1970-01-01';

-- step: CREATE INDEX on a column that the table lacks is refused
CREATE INDEX idx_absent ON indexes_sql (absent);

-- step: CREATE INDEX of an unknown kind is refused
CREATE INDEX idx_magic ON indexes_sql USING magic(v);

-- step: DROP INDEX of a secondary index and of expression indexes
DROP INDEX secondary_index_idx_v ON indexes_sql;
DROP INDEX expr_index_idx_day ON indexes_sql;
DROP INDEX expr_index_idx_lower ON indexes_sql;

-- step: DROP INDEX record_index
RESET hoodie.metadata.record.index.enable;
DROP INDEX record_index ON indexes_sql;
SHOW INDEXES FROM indexes_sql;

-- step: DROP INDEX of an index that is not there is refused
DROP INDEX idx_v ON indexes_sql;

-- step: DROP INDEX IF EXISTS
DROP INDEX IF EXISTS idx_v ON indexes_sql;

-- step: an update after the indexes are gone
UPDATE indexes_sql SET v = 'again' WHERE id = 1;
SELECT id, v, p FROM indexes_sql WHERE id < 3;

-- step: drop the table of SQL
RESET hoodie.write.lock.provider;
RESET hoodie.metadata.index.column.stats.enable;
DROP TABLE indexes_sql;
