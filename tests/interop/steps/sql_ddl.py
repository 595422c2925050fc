"""SQL that defines tables: CREATE, ALTER, DROP, TRUNCATE, SHOW and DESCRIBE."""

from __future__ import annotations

from typing import Any

from tests.interop.steps.script import Page, Script
from tests.interop.steps.sql_page import sql_steps

PAGE = Page("SQL: DDL", sql_steps(__file__))


@PAGE.step("create a table over files that the writer of DataFrames made")
def _(it: Script) -> Any:
    it.use("ddl_saved")
    options = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "p"}
    it.save(it.frame("id int, v string, p string", (1, "a", "x"), (2, "b", "y")), "overwrite", options)
    it.sql("CREATE TABLE {t} USING hudi LOCATION '{path}'")
    it.sql("INSERT INTO {t} VALUES (3, 'c', 'y')")
    return it.sql("SHOW PARTITIONS {t}")


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


@PAGE.step("drop what is left")
def _(it: Script) -> Any:
    names = "namespace", "tableName", "isTemporary"
    for row in it.sql("SHOW TABLES LIKE 'ddl_*'").select(*names).collect():
        it.sql(f"DROP TABLE {row.tableName}")
    return it.sql("SHOW TABLES LIKE 'ddl_*'").select(*names)
