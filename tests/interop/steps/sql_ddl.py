"""SQL that defines tables: CREATE, ALTER, DROP, TRUNCATE, SHOW and DESCRIBE."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.interop.steps.script import Page, Script

PAGE = Page("SQL: DDL")
COLUMNS = "id int, name string, price double, ts bigint"
KEYED = "primaryKey = 'id', preCombineField = 'ts'"


def names(it: Script, pattern: str = "ddl_*") -> Any:
    """Return the tables of this page that the catalog has."""
    return it.sql(f"SHOW TABLES LIKE '{pattern}'").select("namespace", "tableName", "isTemporary")


def has_files(it: Script) -> Any:
    """Return whether the table has files, as one row."""
    return it.frame("files boolean", (Path(it.path, ".hoodie").is_dir(),))


@PAGE.step("create a table without a key and without partitions")
def _(it: Script) -> None:
    it.use("ddl_bare")
    it.sql(f"CREATE TABLE {{t}} ({COLUMNS}) USING hudi LOCATION '{{path}}'")


@PAGE.step("rows of the empty table")
def _(it: Script) -> Any:
    return it.sql("SELECT * FROM {t}")


@PAGE.step("create a table that exists is refused")
def _(it: Script) -> None:
    it.sql(f"CREATE TABLE {{t}} ({COLUMNS}) USING hudi LOCATION '{{path}}'")


@PAGE.step("create if not exists with an existing table")
def _(it: Script) -> None:
    it.sql(f"CREATE TABLE IF NOT EXISTS {{t}} ({COLUMNS}) USING hudi LOCATION '{{path}}'")


@PAGE.step("create a keyed copy-on-write table with partitions")
def _(it: Script) -> None:
    it.use("ddl_cow")
    it.sql(
        f"CREATE TABLE {{t}} ({COLUMNS}, p string) USING hudi "
        f"TBLPROPERTIES (type = 'cow', {KEYED}) PARTITIONED BY (p) LOCATION '{{path}}'"
    )


@PAGE.step("the partition column stands last, where it was first of the columns")
def _(it: Script) -> None:
    it.use("ddl_order")
    it.sql(
        "CREATE TABLE {t} (p string, id int, v string) USING hudi "
        "TBLPROPERTIES (primaryKey = 'id') PARTITIONED BY (p) LOCATION '{path}'"
    )


@PAGE.step("INSERT INTO expects the columns in this order")
def _(it: Script) -> Any:
    it.sql("INSERT INTO {t} VALUES (1, 'v', 'p')")
    return it.sql("SELECT * FROM {t}")


@PAGE.step("create a merge-on-read table with orderingFields and two key columns")
def _(it: Script) -> None:
    it.use("ddl_mor")
    it.sql(
        f"CREATE TABLE {{t}} ({COLUMNS}, day date, hour int) USING hudi "
        "TBLPROPERTIES (type = 'mor', primaryKey = 'id,name', orderingFields = 'ts') "
        "PARTITIONED BY (day, hour) LOCATION '{path}'"
    )


@PAGE.step("create a table with hoodie properties")
def _(it: Script) -> None:
    it.use("ddl_properties")
    it.sql(
        f"CREATE TABLE {{t}} ({COLUMNS}, p string) USING hudi TBLPROPERTIES ("
        "'hoodie.datasource.write.recordkey.field' = 'id', 'hoodie.datasource.write.precombine.field' = 'ts', "
        "'hoodie.datasource.write.table.type' = 'MERGE_ON_READ', 'hoodie.table.cdc.enabled' = 'true', "
        "'hoodie.datasource.write.hive_style_partitioning' = 'false', 'hoodie.metadata.enable' = 'false') "
        "PARTITIONED BY (p) LOCATION '{path}'"
    )


@PAGE.step("create a table with names of hoodie.properties")
def _(it: Script) -> None:
    it.use("ddl_stored_names")
    it.sql(
        f"CREATE TABLE {{t}} ({COLUMNS}) USING hudi TBLPROPERTIES ("
        "'hoodie.table.recordkey.fields' = 'id', 'hoodie.table.ordering.fields' = 'ts', "
        "'hoodie.table.type' = 'MERGE_ON_READ', 'hoodie.record.merge.mode' = 'COMMIT_TIME_ORDERING') "
        "LOCATION '{path}'"
    )


@PAGE.step("create a table with OPTIONS")
def _(it: Script) -> None:
    it.use("ddl_options")
    it.sql(
        f"CREATE TABLE {{t}} ({COLUMNS}) USING hudi OPTIONS (type = 'mor', {KEYED}) "
        "COMMENT 'a table' LOCATION '{path}'"
    )


@PAGE.step("a key column that is none of the columns is refused")
def _(it: Script) -> None:
    it.use("ddl_wrong_key")
    it.sql(f"CREATE TABLE {{t}} ({COLUMNS}) USING hudi TBLPROPERTIES (primaryKey = 'absent') LOCATION '{{path}}'")


@PAGE.step("an ordering column that is none of the columns is refused")
def _(it: Script) -> None:
    it.use("ddl_wrong_ordering")
    it.sql(
        f"CREATE TABLE {{t}} ({COLUMNS}) USING hudi "
        "TBLPROPERTIES (primaryKey = 'id', preCombineField = 'absent') LOCATION '{path}'"
    )


@PAGE.step("an unknown table type is refused")
def _(it: Script) -> None:
    it.use("ddl_wrong_type")
    it.sql(f"CREATE TABLE {{t}} ({COLUMNS}) USING hudi TBLPROPERTIES (type = 'other') LOCATION '{{path}}'")


@PAGE.step("types, NOT NULL and comments of columns")
def _(it: Script) -> None:
    it.use("ddl_types")
    it.sql(
        "CREATE TABLE {t} (id int NOT NULL COMMENT 'the key', b boolean, l bigint, f float, d double, s string, "
        "y binary, c decimal(10,2), day date, at timestamp, items array<int>, m map<string,int>, "
        "part struct<a:int,b:string>) USING hudi TBLPROPERTIES (primaryKey = 'id') LOCATION '{path}'"
    )


@PAGE.step("describe a table with types and comments")
def _(it: Script) -> Any:
    return it.sql("DESCRIBE TABLE {t}")


@PAGE.step("describe a partitioned table")
def _(it: Script) -> Any:
    it.use("ddl_cow")
    return it.sql("DESC {t}")


@PAGE.step("describe extended works")
def _(it: Script) -> Any:
    return it.sql("DESCRIBE EXTENDED {t}").where("col_name IN ('Provider', 'Database', 'Table', 'Type')")


@PAGE.step("the columns of a table")
def _(it: Script) -> Any:
    return it.sql("SHOW COLUMNS IN {t}")


@PAGE.step("show create table works")
def _(it: Script) -> Any:
    return it.sql("SHOW CREATE TABLE {t}").selectExpr("createtab_stmt LIKE '%USING hudi%' AS is_hudi")


@PAGE.step("partitions of the empty table")
def _(it: Script) -> Any:
    return it.sql("SHOW PARTITIONS {t}")


@PAGE.step("partitions after an insert")
def _(it: Script) -> Any:
    it.sql("INSERT INTO {t} VALUES (1, 'a', 1.0, 1, 'x'), (2, 'b', 2.0, 1, 'y'), (3, 'c', 3.0, 1, 'y')")
    return it.sql("SHOW PARTITIONS {t}")


@PAGE.step("one partition by its value")
def _(it: Script) -> Any:
    return it.sql("SHOW PARTITIONS {t} PARTITION (p = 'y')")


@PAGE.step("partitions of two columns")
def _(it: Script) -> Any:
    it.use("ddl_mor")
    it.sql(
        "INSERT INTO {t} VALUES (1, 'a', 1.0, 1, DATE '2026-01-02', 3), (2, 'b', 2.0, 1, DATE '2026-01-02', 4), "
        "(3, 'c', 3.0, 1, DATE '2026-01-03', 3)"
    )
    return it.sql("SHOW PARTITIONS {t}")


@PAGE.step("partitions by the first of two columns")
def _(it: Script) -> Any:
    return it.sql("SHOW PARTITIONS {t} PARTITION (day = '2026-01-02')")


@PAGE.step("partitions of a table without partitions")
def _(it: Script) -> Any:
    it.use("ddl_options")
    return it.sql("SHOW PARTITIONS {t}")


@PAGE.step("partitions of a table without hive style")
def _(it: Script) -> Any:
    it.use("ddl_properties")
    it.sql("INSERT INTO {t} VALUES (1, 'a', 1.0, 1, 'x'), (2, 'b', 2.0, 1, 'y')")
    return it.sql("SHOW PARTITIONS {t}")


@PAGE.step("create table as select, with a key and partitions")
def _(it: Script) -> None:
    it.use("ddl_ctas")
    it.sql(
        f"CREATE TABLE {{t}} USING hudi TBLPROPERTIES (type = 'cow', {KEYED}) PARTITIONED BY (p) "
        "LOCATION '{path}' AS SELECT 1 AS id, 'a' AS name, 10.0D AS price, 'x' AS p, 1000L AS ts "
        "UNION ALL SELECT 2, 'b', 20.0D, 'y', 1000L UNION ALL SELECT 1, 'newer', 30.0D, 'x', 2000L"
    )


@PAGE.step("create table as select from the table, without a key")
def _(it: Script) -> None:
    it.use("ddl_ctas_keyless")
    it.sql("CREATE TABLE {t} USING hudi LOCATION '{path}' AS SELECT id, name, price, ts, p FROM ddl_ctas")


@PAGE.step("create table as select, merge-on-read")
def _(it: Script) -> None:
    it.use("ddl_ctas_mor")
    it.sql(
        f"CREATE TABLE {{t}} USING hudi TBLPROPERTIES (type = 'mor', {KEYED}) LOCATION '{{path}}' "
        "AS SELECT id, name, price, ts FROM ddl_ctas"
    )


@PAGE.step("create table as select of all columns, with the meta columns")
def _(it: Script) -> None:
    it.use("ddl_ctas_star")
    it.sql(f"CREATE TABLE {{t}} USING hudi TBLPROPERTIES ({KEYED}) LOCATION '{{path}}' AS SELECT * FROM ddl_ctas")


@PAGE.step("create table as select with an existing table is refused")
def _(it: Script) -> None:
    it.sql("CREATE TABLE {t} USING hudi LOCATION '{path}' AS SELECT 9 AS id")


@PAGE.step("create table if not exists as select with an existing table")
def _(it: Script) -> None:
    it.sql("CREATE TABLE IF NOT EXISTS {t} USING hudi LOCATION '{path}' AS SELECT 9 AS id")


@PAGE.step("create or replace table")
def _(it: Script) -> None:
    it.sql(
        f"CREATE OR REPLACE TABLE {{t}} ({COLUMNS}, more string) USING hudi "
        "TBLPROPERTIES (primaryKey = 'id') LOCATION '{path}'"
    )


@PAGE.step("create or replace table as select")
def _(it: Script) -> None:
    it.sql(
        "CREATE OR REPLACE TABLE {t} USING hudi TBLPROPERTIES (primaryKey = 'id') LOCATION '{path}' "
        "AS SELECT 5 AS id, 'e' AS name"
    )


@PAGE.step("create table like another table")
def _(it: Script) -> None:
    it.use("ddl_like")
    it.sql("CREATE TABLE {t} LIKE ddl_cow USING hudi LOCATION '{path}'")


@PAGE.step("create table like another table with a key")
def _(it: Script) -> None:
    it.use("ddl_like_keyed")
    it.sql(f"CREATE TABLE {{t}} LIKE ddl_cow USING hudi TBLPROPERTIES ({KEYED}) LOCATION '{{path}}'")


@PAGE.step("create a table over existing files, without columns")
def _(it: Script) -> Any:
    it.use("ddl_cow")
    it.sql("CREATE TABLE ddl_over USING hudi LOCATION '{path}'")
    return it.sql("SELECT id, name, price, ts, p FROM ddl_over")


@PAGE.step("describe the table over existing files")
def _(it: Script) -> Any:
    return it.sql("DESCRIBE ddl_over")


@PAGE.step("an insert into the table over existing files")
def _(it: Script) -> None:
    it.sql("INSERT INTO ddl_over VALUES (4, 'd', 4.0, 1, 'x')")


@PAGE.step("create a table over existing files, with columns")
def _(it: Script) -> Any:
    it.sql(f"CREATE TABLE ddl_over2 ({COLUMNS}, p string) USING hudi PARTITIONED BY (p) LOCATION '{{path}}'")
    return it.sql("SELECT id, name, price, ts, p FROM ddl_over2")


@PAGE.step("create a table over existing files, with another key, is refused")
def _(it: Script) -> None:
    it.sql("CREATE TABLE ddl_over3 USING hudi TBLPROPERTIES (primaryKey = 'name') LOCATION '{path}'")


@PAGE.step("create a table over files that the writer of DataFrames made")
def _(it: Script) -> Any:
    it.use("ddl_saved")
    options = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "p"}
    it.save(it.frame("id int, v string, p string", (1, "a", "x"), (2, "b", "y")), "overwrite", options)
    it.sql("CREATE TABLE {t} USING hudi LOCATION '{path}'")
    it.sql("INSERT INTO {t} VALUES (3, 'c', 'y')")
    return it.sql("SHOW PARTITIONS {t}")


@PAGE.step("create a table without columns where no files are is refused")
def _(it: Script) -> None:
    it.use("ddl_nothing")
    it.sql("CREATE TABLE {t} USING hudi LOCATION '{path}'")


@PAGE.step("the tables of the catalog")
def _(it: Script) -> Any:
    return names(it)


@PAGE.step("add columns")
def _(it: Script) -> Any:
    it.use("ddl_altered")
    it.sql("CREATE TABLE {t} LIKE ddl_cow USING hudi LOCATION '{path}'")
    it.sql("INSERT INTO {t} VALUES (1, 'a', 1.0, 1, 'x')")
    it.sql("ALTER TABLE {t} ADD COLUMNS (extra string, more int)")
    return it.sql("DESCRIBE {t}")


@PAGE.step("an insert after the columns were added")
def _(it: Script) -> Any:
    it.sql("INSERT INTO {t} VALUES (5, 'e', 5.0, 1, 'extra', 6, 'x')")
    return it.sql("SELECT * FROM {t}")


@PAGE.step("add a column to an empty table")
def _(it: Script) -> None:
    it.use("ddl_bare")
    it.sql("ALTER TABLE {t} ADD COLUMNS (extra string COMMENT 'more')")


@PAGE.step("a column with a wider type")
def _(it: Script) -> None:
    it.use("ddl_options")
    it.sql("ALTER TABLE {t} CHANGE COLUMN id id bigint")


@PAGE.step("rename a column without schema.on.read")
def _(it: Script) -> None:
    it.use("ddl_plain")
    it.sql(f"CREATE TABLE {{t}} ({COLUMNS}) USING hudi TBLPROPERTIES ({KEYED}) LOCATION '{{path}}'")
    it.sql("INSERT INTO {t} VALUES (1, 'a', 1.0, 1)")
    it.sql("ALTER TABLE {t} RENAME COLUMN name TO title")


@PAGE.step("drop a column without schema.on.read")
def _(it: Script) -> None:
    it.sql("ALTER TABLE {t} DROP COLUMN price")


@PAGE.step("a column with a default")
def _(it: Script) -> None:
    it.sql("ALTER TABLE {t} ADD COLUMNS (filled int DEFAULT 5)")


@PAGE.step("a column that allows no null is refused")
def _(it: Script) -> None:
    it.use("ddl_altered")
    it.sql("ALTER TABLE {t} ADD COLUMNS (another int NOT NULL)")


@PAGE.step("set and unset properties")
def _(it: Script) -> None:
    it.use("ddl_altered")
    it.sql("ALTER TABLE {t} SET TBLPROPERTIES (hoodie.keep.max.commits = '40', note = 'text')")
    it.sql("ALTER TABLE {t} UNSET TBLPROPERTIES (note)")


@PAGE.step("the properties of the table")
def _(it: Script) -> Any:
    return it.sql("SHOW TBLPROPERTIES {t}").where("key IN ('hoodie.keep.max.commits', 'note', 'type', 'primaryKey')")


@PAGE.step("set a property that the definition of the table has")
def _(it: Script) -> None:
    it.sql("ALTER TABLE {t} SET TBLPROPERTIES (primaryKey = 'name')")


@PAGE.step("an insert under another key is refused")
def _(it: Script) -> None:
    it.sql("INSERT INTO {t} VALUES (9, 'i', 9.0, 1, 'extra', 6, 'x')")


@PAGE.step("the key of the definition again")
def _(it: Script) -> None:
    it.sql("ALTER TABLE {t} SET TBLPROPERTIES (primaryKey = 'id')")


@PAGE.step("rename the table")
def _(it: Script) -> Any:
    it.use("ddl_options")
    it.sql("INSERT INTO {t} VALUES (1, 'a', 1.0, 1)")
    it.sql("ALTER TABLE {t} RENAME TO ddl_renamed")
    return it.sql("SELECT * FROM ddl_renamed")


@PAGE.step("an insert into the renamed table")
def _(it: Script) -> None:
    it.sql("INSERT INTO ddl_renamed VALUES (2, 'b', 1.0, 1)")


@PAGE.step("drop a partition")
def _(it: Script) -> Any:
    it.use("ddl_cow")
    it.sql("ALTER TABLE {t} DROP PARTITION (p = 'y')")
    return it.sql("SHOW PARTITIONS {t}")


@PAGE.step("drop a partition that is absent")
def _(it: Script) -> Any:
    it.sql("ALTER TABLE {t} DROP PARTITION (p = 'absent')")
    return it.sql("SHOW PARTITIONS {t}")


@PAGE.step("drop a partition of two columns")
def _(it: Script) -> Any:
    it.use("ddl_mor")
    it.sql("ALTER TABLE {t} DROP PARTITION (day = '2026-01-02', hour = 3)")
    return it.sql("SHOW PARTITIONS {t}")


@PAGE.step("truncate a partition")
def _(it: Script) -> None:
    it.sql("TRUNCATE TABLE {t} PARTITION (day = '2026-01-02', hour = 4)")


@PAGE.step("truncate a table")
def _(it: Script) -> Any:
    it.use("ddl_cow")
    it.sql("TRUNCATE TABLE {t}")
    return it.sql("SHOW PARTITIONS {t}")


@PAGE.step("an insert after truncate")
def _(it: Script) -> None:
    it.sql("INSERT INTO {t} VALUES (6, 'f', 6.0, 1, 'x')")


@PAGE.step("schema evolution: add a column at a place")
def _(it: Script) -> Any:
    it.use("ddl_evolved")
    it.sql(f"CREATE TABLE {{t}} ({COLUMNS}) USING hudi TBLPROPERTIES ({KEYED}) LOCATION '{{path}}'")
    it.sql("INSERT INTO {t} VALUES (1, 'a', 1.0, 1)")
    it.sql("SET hoodie.schema.on.read.enable = true")
    it.sql("ALTER TABLE {t} ADD COLUMNS (extra int AFTER name)")
    return it.sql("SELECT * FROM {t}")


@PAGE.step("schema evolution: a wider type")
def _(it: Script) -> Any:
    it.sql("ALTER TABLE {t} ALTER COLUMN extra TYPE bigint")
    return it.sql("SELECT * FROM {t}")


@PAGE.step("schema evolution: a narrower type is refused")
def _(it: Script) -> None:
    it.sql("ALTER TABLE {t} ALTER COLUMN ts TYPE int")


@PAGE.step("schema evolution: a comment, and no NOT NULL")
def _(it: Script) -> Any:
    it.sql("ALTER TABLE {t} ALTER COLUMN name COMMENT 'text'")
    it.sql("ALTER TABLE {t} ALTER COLUMN name DROP NOT NULL")
    return it.sql("DESCRIBE {t}").where("col_name = 'name'")


@PAGE.step("schema evolution: an insert")
def _(it: Script) -> None:
    it.sql("INSERT INTO {t} VALUES (2, 'b', 1099511627776, 2.0, 1)")


@PAGE.step("schema evolution: rename a column, where columns may be dropped")
def _(it: Script) -> Any:
    it.sql("SET hoodie.datasource.write.schema.allow.auto.evolution.column.drop = true")
    it.sql("ALTER TABLE {t} RENAME COLUMN price TO cost")
    return it.sql("SELECT * FROM {t}")


@PAGE.step("schema evolution: drop a column, where columns may be dropped")
def _(it: Script) -> Any:
    it.sql("ALTER TABLE {t} DROP COLUMN extra")
    return it.sql("SELECT * FROM {t}")


@PAGE.step("schema evolution: an insert after columns were renamed and dropped")
def _(it: Script) -> None:
    it.sql("INSERT INTO {t} SELECT 3, 'c', 3.0D, 1L")


@PAGE.step("schema evolution: rows without schema.on.read")
def _(it: Script) -> Any:
    it.sql("RESET hoodie.schema.on.read.enable")
    it.sql("RESET hoodie.datasource.write.schema.allow.auto.evolution.column.drop")
    return it.sql("SELECT * FROM {t}")


@PAGE.step("schema evolution: nested fields")
def _(it: Script) -> Any:
    it.use("ddl_nested")
    columns = "id int, s struct<x: int, y: string>, m map<string, struct<u: int, v: int>>, ts bigint"
    it.sql(f"CREATE TABLE {{t}} ({columns}) USING hudi TBLPROPERTIES (type = 'mor', {KEYED}) LOCATION '{{path}}'")
    it.sql("INSERT INTO {t} SELECT 1, named_struct('x', 1, 'y', 'y'), map('k', named_struct('u', 1, 'v', 2)), 1L")
    it.sql("SET hoodie.schema.on.read.enable = true")
    it.sql("SET hoodie.datasource.write.schema.allow.auto.evolution.column.drop = true")
    it.sql("SET spark.sql.parquet.enableVectorizedReader = false")
    it.sql("ALTER TABLE {t} ADD COLUMNS (s.z int FIRST, m.value.w string COMMENT 'more')")
    it.sql("ALTER TABLE {t} RENAME COLUMN s.y TO yy")
    it.sql("ALTER TABLE {t} DROP COLUMN m.value.u")
    it.sql("ALTER TABLE {t} ALTER COLUMN s.x TYPE double")
    return it.sql("SELECT * FROM {t}")


@PAGE.step("schema evolution: a name again")
def _(it: Script) -> Any:
    it.sql("ALTER TABLE {t} ADD COLUMNS (s.y int AFTER x)")
    return it.sql("SELECT * FROM {t}")


@PAGE.step("schema evolution: a field that is there is refused")
def _(it: Script) -> None:
    it.sql("ALTER TABLE {t} RENAME COLUMN s.yy TO y")


@PAGE.step("schema evolution: drop the key is refused")
def _(it: Script) -> None:
    it.sql("ALTER TABLE {t} DROP COLUMN id")


@PAGE.step("schema evolution: replace columns is refused")
def _(it: Script) -> None:
    it.sql("ALTER TABLE {t} REPLACE COLUMNS (id int)")


@PAGE.step("schema evolution: an update after the changes")
def _(it: Script) -> Any:
    it.sql("UPDATE {t} SET ts = 2 WHERE id = 1")
    return it.sql("SELECT * FROM {t}")


@PAGE.step("schema evolution: the first place of the table")
def _(it: Script) -> None:
    it.sql("ALTER TABLE {t} ADD COLUMNS (front int FIRST)")


@PAGE.step("schema evolution: another type of the key")
def _(it: Script) -> None:
    it.sql("ALTER TABLE {t} ALTER COLUMN id TYPE string")


@PAGE.step("schema evolution: rename a column, where columns may not be dropped")
def _(it: Script) -> Any:
    it.sql("RESET hoodie.datasource.write.schema.allow.auto.evolution.column.drop")
    it.sql("RESET spark.sql.parquet.enableVectorizedReader")
    it.use("ddl_evolved")
    try:
        it.sql("ALTER TABLE {t} RENAME COLUMN name TO title")
    finally:
        it.sql("RESET hoodie.schema.on.read.enable")
    return it.sql("SELECT * FROM {t}")


@PAGE.step("drop an external table: its files stay")
def _(it: Script) -> Any:
    it.use("ddl_cow")
    it.sql("DROP TABLE ddl_over")
    return has_files(it)


@PAGE.step("drop a table with purge: its files go")
def _(it: Script) -> Any:
    it.use("ddl_saved")
    it.sql("DROP TABLE {t} PURGE")
    return has_files(it)


@PAGE.step("a managed table is in the warehouse")
def _(it: Script) -> None:
    it.use("ddl_managed", managed=True)
    it.sql(f"CREATE TABLE {{t}} ({COLUMNS}) USING hudi TBLPROPERTIES ({KEYED})")
    it.sql("INSERT INTO {t} VALUES (1, 'a', 1.0, 1)")


@PAGE.step("drop a managed table: its files go")
def _(it: Script) -> Any:
    it.sql("DROP TABLE {t}")
    return has_files(it)


@PAGE.step("a managed table, created as select and named with its database")
def _(it: Script) -> Any:
    it.use("ddl_managed2", managed=True)
    it.sql(f"CREATE TABLE default.{{t}} USING hudi TBLPROPERTIES ({KEYED}) AS SELECT 1 AS id, 'a' AS name, 1L AS ts")
    return it.sql("SELECT id, name, ts FROM default.{t}")


@PAGE.step("drop the managed table with if exists, twice")
def _(it: Script) -> Any:
    it.sql("DROP TABLE IF EXISTS {t}")
    it.sql("DROP TABLE IF EXISTS {t}")
    return has_files(it)


@PAGE.step("drop a table that is absent is refused")
def _(it: Script) -> None:
    it.sql("DROP TABLE {t}")


@PAGE.step("a table of another database")
def _(it: Script) -> Any:
    it.sql("CREATE DATABASE IF NOT EXISTS ddl_base")
    it.use("ddl_base.db/ddl_there", managed=True)
    it.sql(f"CREATE TABLE ddl_base.ddl_there ({COLUMNS}) USING hudi TBLPROPERTIES ({KEYED})")
    it.sql("INSERT INTO ddl_base.ddl_there VALUES (1, 'a', 1.0, 1)")
    return it.sql("SELECT * FROM ddl_base.ddl_there")


@PAGE.step("the table of the database in use")
def _(it: Script) -> Any:
    it.sql("USE ddl_base")
    it.sql("INSERT INTO ddl_there VALUES (2, 'b', 1.0, 1)")
    found = it.sql("SHOW TABLES").select("namespace", "tableName")
    it.sql("USE default")
    return found


@PAGE.step("drop the database")
def _(it: Script) -> Any:
    it.sql("DROP DATABASE ddl_base CASCADE")
    return has_files(it)


@PAGE.step("drop what is left")
def _(it: Script) -> Any:
    for row in names(it).collect():
        it.sql(f"DROP TABLE {row.tableName}")
    return names(it)
