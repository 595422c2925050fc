"""SQL that writes and queries: INSERT, INSERT OVERWRITE, UPDATE, DELETE, MERGE INTO, time travel, table functions."""

from __future__ import annotations

from typing import Any

from tests.interop.steps.script import Page, Script
from tests.interop.steps.sql_page import sql_steps

PAGE = Page("SQL: DML and queries", sql_steps(__file__))
COLUMNS = "id int, v string, ts bigint"


def create(it: Script, table: str) -> None:
    """Create a table, and go on with it."""
    it.use(table)
    keyed = "TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts')"
    it.sql(f"CREATE TABLE {{t}} ({COLUMNS}) USING hudi {keyed} LOCATION '{{path}}'")


@PAGE.step("insert as select from a temporary view")
def _(it: Script) -> None:
    it.frame(COLUMNS, (1, "a", 5), (2, "b", 5), (3, "c", 5)).createOrReplaceTempView("dml_view")
    create(it, "dml_source")
    it.sql("INSERT INTO {t} SELECT * FROM dml_view WHERE id < 3")


@PAGE.step("merge: update, insert and delete")
def _(it: Script) -> None:
    create(it, "dml_merge")
    it.sql("INSERT INTO {t} VALUES (1, 'a', 5), (2, 'b', 5), (3, 'c', 5)")
    news = it.frame(COLUMNS + ", gone boolean", (1, "m1", 6, False), (3, "", 9, True), (4, "m4", 1, False))
    news.createOrReplaceTempView("dml_news")
    it.sql(
        "MERGE INTO {t} AS t USING (SELECT * FROM dml_news) AS s ON t.id = s.id "
        "WHEN MATCHED AND NOT s.gone THEN UPDATE SET v = s.v, ts = s.ts WHEN MATCHED AND s.gone THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT (id, v, ts) VALUES (s.id, s.v, s.ts)"
    )


@PAGE.step("the table of the catalog by its name")
def _(it: Script) -> Any:
    return it.spark.table("default.dml_merge").select("id", "v")


@PAGE.step("drop what is left")
def _(it: Script) -> Any:
    for row in it.sql("SHOW TABLES LIKE 'dml_*'").where("NOT isTemporary").collect():
        it.sql(f"DROP TABLE {row.tableName}")
    for view in ("dml_view", "dml_news"):
        it.spark.catalog.dropTempView(view)
    return it.sql("SHOW TABLES LIKE 'dml_*'")
