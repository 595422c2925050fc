"""SQL that writes and queries: INSERT, INSERT OVERWRITE, UPDATE, DELETE, MERGE INTO, time travel, table functions."""

from __future__ import annotations

from typing import Any

from tests.interop.steps.script import Page, Script

PAGE = Page("SQL: DML and queries")
COLUMNS = "id int, v string, ts bigint"
KEYED = "primaryKey = 'id', preCombineField = 'ts'"
OPERATION = "hoodie.spark.sql.insert.into.operation"


def create(it: Script, table: str, properties: str = KEYED, *, columns: str = COLUMNS, partition: str = "") -> None:
    """Create a table, and go on with it."""
    it.use(table)
    given = f"TBLPROPERTIES ({properties})" if properties else ""
    parts = f"PARTITIONED BY ({partition})" if partition else ""
    it.sql(f"CREATE TABLE {{t}} ({columns}) USING hudi {given} {parts} LOCATION '{{path}}'")


def all_rows(it: Script, text: str = "SELECT * FROM {t}") -> Any:
    """Return the rows of a query without the meta columns."""
    frame = it.sql(text)
    return frame.select(*(name for name in frame.columns if not name.startswith("_hoodie")))


def shape(frame: Any) -> Any:
    """Return the columns of a result whose values no second run repeats; the rows are read, too."""
    frame.collect()
    return frame.limit(0)


@PAGE.step("insert with a key and an ordering column")
def _(it: Script) -> None:
    create(it, "dml_keyed")
    it.sql("INSERT INTO {t} VALUES (1, 'a', 5), (2, 'b', 5)")


@PAGE.step("insert of an existing key, newer")
def _(it: Script) -> None:
    it.sql("INSERT INTO {t} VALUES (1, 'newer', 6), (3, 'c', 5)")


@PAGE.step("insert of an existing key, older")
def _(it: Script) -> None:
    it.sql("INSERT INTO {t} VALUES (2, 'older', 4)")


@PAGE.step("insert of a key twice in one statement")
def _(it: Script) -> None:
    it.sql("INSERT INTO {t} VALUES (4, 'd', 5), (4, 'd2', 7)")


@PAGE.step("insert twice with a key and no ordering column")
def _(it: Script) -> None:
    create(it, "dml_no_ordering", "primaryKey = 'id'")
    it.sql("INSERT INTO {t} VALUES (1, 'a', 5), (2, 'b', 5)")
    it.sql("INSERT INTO {t} VALUES (1, 'again', 1), (3, 'c', 5), (3, 'c2', 5)")


@PAGE.step("insert twice with a key, merge-on-read")
def _(it: Script) -> None:
    create(it, "dml_mor", f"type = 'mor', {KEYED}")
    it.sql("INSERT INTO {t} VALUES (1, 'a', 5), (2, 'b', 5)")
    it.sql("INSERT INTO {t} VALUES (1, 'again', 1), (2, 'newer', 9), (3, 'c', 5)")


@PAGE.step("insert twice without a key")
def _(it: Script) -> None:
    create(it, "dml_keyless", "")
    it.sql("INSERT INTO {t} VALUES (1, 'a', 5), (2, 'b', 5)")
    it.sql("INSERT INTO {t} VALUES (1, 'a', 5)")


@PAGE.step("insert with a list of columns")
def _(it: Script) -> None:
    it.sql("INSERT INTO {t} (ts, id, v) VALUES (7, 3, 'c')")


@PAGE.step("insert with a list of some columns")
def _(it: Script) -> None:
    it.sql("INSERT INTO {t} (id) VALUES (4)")


@PAGE.step("insert of too few values is refused")
def _(it: Script) -> None:
    it.sql("INSERT INTO {t} VALUES (5, 'e')")


@PAGE.step("insert of too many values is refused")
def _(it: Script) -> None:
    it.sql("INSERT INTO {t} VALUES (5, 'e', 5, 5)")


@PAGE.step("insert of another type that can be cast")
def _(it: Script) -> None:
    it.sql("INSERT INTO {t} VALUES (6L, 7, 8)")


@PAGE.step("insert of a text that is no number is refused")
def _(it: Script) -> None:
    it.sql("INSERT INTO {t} VALUES ('text', 'v', 8)")


@PAGE.step("insert of a number that is too large is refused")
def _(it: Script) -> None:
    it.sql("INSERT INTO {t} VALUES (1099511627776, 'v', 8)")


@PAGE.step("insert without the key")
def _(it: Script) -> None:
    it.use("dml_keyed")
    it.sql("INSERT INTO {t} (v, ts) VALUES ('v', 1)")


@PAGE.step("insert of null into a column that is not null")
def _(it: Script) -> None:
    create(it, "dml_required", "primaryKey = 'id'", columns="id int NOT NULL, v string NOT NULL, ts bigint")
    it.sql("INSERT INTO {t} VALUES (1, NULL, 5)")


@PAGE.step("insert of values into columns that are not null")
def _(it: Script) -> None:
    it.sql("INSERT INTO {t} VALUES (1, 'a', NULL)")


@PAGE.step("insert as select from a temporary view")
def _(it: Script) -> None:
    it.frame(COLUMNS, (1, "a", 5), (2, "b", 5), (3, "c", 5)).createOrReplaceTempView("dml_view")
    create(it, "dml_source")
    it.sql("INSERT INTO {t} SELECT * FROM dml_view WHERE id < 3")


@PAGE.step("insert of a whole view")
def _(it: Script) -> None:
    create(it, "dml_whole", "")
    it.sql("INSERT INTO {t} TABLE dml_view")


@PAGE.step("insert as select from another table")
def _(it: Script) -> None:
    create(it, "dml_copy")
    it.sql("INSERT INTO {t} SELECT id + 2, v, ts FROM dml_source")


@PAGE.step("insert as select of all columns, with the meta columns")
def _(it: Script) -> None:
    it.sql("INSERT INTO {t} SELECT * FROM dml_source")


@PAGE.step("insert as select matches columns by position, not by name")
def _(it: Script) -> None:
    it.sql("INSERT INTO {t} SELECT 9 AS ts, 'position' AS id, 10L AS v")


@PAGE.step("insert as select by name")
def _(it: Script) -> None:
    it.sql("INSERT INTO {t} BY NAME SELECT 11L AS ts, 'name' AS v, 10 AS id")


@PAGE.step("insert as select from a join")
def _(it: Script) -> None:
    it.sql("INSERT INTO {t} SELECT a.id + 10, b.v, a.ts FROM dml_source a JOIN dml_view b ON a.id = b.id")


@PAGE.step("operation insert")
def _(it: Script) -> None:
    create(it, "dml_operation")
    it.sql("INSERT INTO {t} VALUES (1, 'a', 5), (2, 'b', 5)")
    it.sql(f"SET {OPERATION} = insert")
    it.sql("INSERT INTO {t} VALUES (1, 'insert', 6), (1, 'insert', 7)")


@PAGE.step("operation upsert")
def _(it: Script) -> None:
    it.sql(f"SET {OPERATION} = upsert")
    it.sql("INSERT INTO {t} VALUES (2, 'upsert', 6)")


@PAGE.step("operation bulk_insert")
def _(it: Script) -> None:
    it.sql(f"SET {OPERATION} = bulk_insert")
    it.sql("INSERT INTO {t} VALUES (2, 'bulk', 6), (2, 'bulk', 7)")


@PAGE.step("an unknown operation is refused")
def _(it: Script) -> None:
    it.sql(f"SET {OPERATION} = other")
    it.sql("INSERT INTO {t} VALUES (3, 'c', 6)")


@PAGE.step("the default operation again")
def _(it: Script) -> None:
    it.sql(f"RESET {OPERATION}")
    it.sql("INSERT INTO {t} VALUES (3, 'c', 6)")


@PAGE.step("duplicates are dropped by policy")
def _(it: Script) -> None:
    it.sql("SET hoodie.datasource.insert.dup.policy = drop")
    it.sql("INSERT INTO {t} VALUES (3, 'dropped', 9), (5, 'e', 1)")


@PAGE.step("duplicates are refused by policy")
def _(it: Script) -> None:
    it.sql("SET hoodie.datasource.insert.dup.policy = fail")
    it.sql("INSERT INTO {t} VALUES (3, 'refused', 9), (6, 'f', 1)")


@PAGE.step("insert mode strict with an existing key")
def _(it: Script) -> None:
    it.sql("RESET hoodie.datasource.insert.dup.policy")
    it.sql("SET hoodie.sql.insert.mode = strict")
    it.sql("INSERT INTO {t} VALUES (5, 'strict', 9)")


@PAGE.step("insert mode upsert")
def _(it: Script) -> None:
    it.sql("SET hoodie.sql.insert.mode = upsert")
    it.sql("INSERT INTO {t} VALUES (5, 'upsert', 9)")
    it.sql("RESET hoodie.sql.insert.mode")


@PAGE.step("the operation of the writer of DataFrames")
def _(it: Script) -> None:
    it.sql("SET hoodie.datasource.write.operation = upsert")
    it.sql("INSERT INTO {t} VALUES (3, 'written', 20)")
    it.sql("RESET hoodie.datasource.write.operation")


@PAGE.step("an operation as property of the table")
def _(it: Script) -> None:
    create(it, "dml_property", f"{KEYED}, '{OPERATION}' = 'upsert'")
    it.sql("INSERT INTO {t} VALUES (1, 'a', 5), (2, 'b', 5)")
    it.sql("INSERT INTO {t} VALUES (1, 'newer', 6), (2, 'older', 4)")


@PAGE.step("insert into partitions: the last values are their columns")
def _(it: Script) -> None:
    create(it, "dml_parts", columns=f"{COLUMNS}, p string, q int", partition="p, q")
    it.sql("INSERT INTO {t} VALUES (1, 'a', 5, 'x', 1), (2, 'b', 5, 'x', 2), (3, 'c', 5, 'y', 1)")


@PAGE.step("static partition")
def _(it: Script) -> None:
    it.sql("INSERT INTO {t} PARTITION (p = 'x', q = 3) SELECT 4, 'd', 5")


@PAGE.step("dynamic partition")
def _(it: Script) -> None:
    it.sql("INSERT INTO {t} PARTITION (p, q) SELECT 5, 'e', 5, 'y', 3")


@PAGE.step("static and dynamic partition")
def _(it: Script) -> None:
    it.sql("INSERT INTO {t} PARTITION (p = 'y', q) SELECT 6, 'f', 5, 4")


@PAGE.step("static partition with a list of columns")
def _(it: Script) -> None:
    it.sql("INSERT INTO {t} PARTITION (p = 'z', q = 1) (ts, id, v) VALUES (5, 7, 'g')")


@PAGE.step("the same key in another partition")
def _(it: Script) -> None:
    it.sql("INSERT INTO {t} VALUES (1, 'elsewhere', 6, 'z', 1)")


@PAGE.step("a list of columns with the partition column first")
def _(it: Script) -> None:
    it.sql("INSERT INTO {t} (p, q, id, v, ts) VALUES ('z', 2, 8, 'h', 5)")


@PAGE.step("null as partition")
def _(it: Script) -> Any:
    create(it, "dml_null", columns=f"{COLUMNS}, p string", partition="p")
    it.sql("INSERT INTO {t} VALUES (1, 'a', 5, NULL), (2, 'b', 5, 'x')")
    return it.sql("SHOW PARTITIONS {t}")


@PAGE.step("insert overwrite of a static partition")
def _(it: Script) -> None:
    it.use("dml_parts")
    it.sql("INSERT OVERWRITE TABLE {t} PARTITION (p = 'z', q = 1) SELECT 21, 'over', 5")


@PAGE.step("insert overwrite of dynamic partitions")
def _(it: Script) -> None:
    it.sql("INSERT OVERWRITE {t} PARTITION (p, q) SELECT 22, 'over', 5, 'x', 2 UNION ALL SELECT 20, 'over', 5, 'y', 2")


@PAGE.step("insert overwrite of a static and a dynamic partition")
def _(it: Script) -> None:
    it.sql("INSERT OVERWRITE {t} PARTITION (p = 'y', q) SELECT 23, 'over', 5, 9")


@PAGE.step("insert overwrite of the partitioned table")
def _(it: Script) -> None:
    it.sql("INSERT OVERWRITE TABLE {t} VALUES (24, 'over', 5, 'x', 1), (24, 'twice', 6, 'x', 1)")


@PAGE.step("insert overwrite with the overwrite mode dynamic of Spark")
def _(it: Script) -> None:
    it.sql("INSERT INTO {t} VALUES (25, 'a', 5, 'x', 2), (26, 'b', 5, 'y', 2), (30, 'c', 5, 'y', 2)")
    it.sql("SET spark.sql.sources.partitionOverwriteMode = dynamic")
    it.sql("INSERT OVERWRITE TABLE {t} VALUES (27, 'over', 5, 'x', 1)")
    it.sql("RESET spark.sql.sources.partitionOverwriteMode")


@PAGE.step("insert overwrite with the overwrite mode dynamic of Hudi")
def _(it: Script) -> None:
    it.sql("SET hoodie.datasource.overwrite.mode = DYNAMIC")
    it.sql("INSERT OVERWRITE TABLE {t} VALUES (28, 'over', 5, 'y', 2)")
    it.sql("RESET hoodie.datasource.overwrite.mode")


@PAGE.step("insert overwrite of a table without partitions")
def _(it: Script) -> None:
    it.use("dml_operation")
    it.sql("INSERT OVERWRITE TABLE {t} SELECT id, v, ts FROM dml_source")


@PAGE.step("insert overwrite of a table by itself")
def _(it: Script) -> None:
    it.sql("INSERT OVERWRITE TABLE {t} SELECT id, concat(v, '!'), ts FROM {t} WHERE id = 1")


@PAGE.step("insert overwrite of a table without a key")
def _(it: Script) -> None:
    it.use("dml_keyless")
    it.sql("INSERT OVERWRITE TABLE {t} VALUES (1, 'a', 5), (1, 'a', 5), (2, 'b', 6)")


@PAGE.step("insert overwrite of a merge-on-read table")
def _(it: Script) -> None:
    it.use("dml_mor")
    it.sql("INSERT OVERWRITE TABLE {t} VALUES (1, 'a', 5), (2, 'b', 5), (3, 'c', 5)")


@PAGE.step("insert overwrite with no row")
def _(it: Script) -> None:
    it.use("dml_whole")
    it.sql("INSERT OVERWRITE TABLE {t} SELECT * FROM dml_view WHERE id > 99")


@PAGE.step("update")
def _(it: Script) -> None:
    it.use("dml_copy")
    it.sql("UPDATE {t} SET v = concat(v, '+'), ts = ts + 1 WHERE id < 3")


@PAGE.step("update without a condition")
def _(it: Script) -> None:
    it.sql("UPDATE {t} SET v = upper(v)")


@PAGE.step("update of a key is refused")
def _(it: Script) -> None:
    it.sql("UPDATE {t} SET id = 99 WHERE id = 1")


@PAGE.step("update of a partition column")
def _(it: Script) -> None:
    it.use("dml_null")
    it.sql("UPDATE {t} SET p = 'moved' WHERE id = 2")


@PAGE.step("update of an unknown column is refused")
def _(it: Script) -> None:
    it.sql("UPDATE {t} SET absent = 1")


@PAGE.step("update to a lower ordering value")
def _(it: Script) -> None:
    it.use("dml_mor")
    it.sql("UPDATE {t} SET v = 'lower', ts = 0 WHERE id = 1")


@PAGE.step("update with a subquery")
def _(it: Script) -> None:
    it.sql("UPDATE {t} SET v = 'in' WHERE id IN (SELECT id FROM dml_view WHERE id > 2)")


@PAGE.step("update of a table without a key")
def _(it: Script) -> None:
    it.use("dml_keyless")
    it.sql("UPDATE {t} SET v = 'updated' WHERE id = 1")


@PAGE.step("delete")
def _(it: Script) -> None:
    it.use("dml_copy")
    it.sql("DELETE FROM {t} WHERE id = 2")


@PAGE.step("delete with a subquery")
def _(it: Script) -> None:
    it.sql("DELETE FROM {t} WHERE id IN (SELECT id FROM dml_source)")


@PAGE.step("delete of a table without a key")
def _(it: Script) -> None:
    it.use("dml_keyless")
    it.sql("DELETE FROM {t} WHERE id = 2")


@PAGE.step("delete of a merge-on-read table")
def _(it: Script) -> None:
    it.use("dml_mor")
    it.sql("DELETE FROM {t} WHERE id = 3")


@PAGE.step("delete of all rows")
def _(it: Script) -> None:
    it.use("dml_null")
    it.sql("DELETE FROM {t}")


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


@PAGE.step("merge with a delete before an update without a condition")
def _(it: Script) -> None:
    create(it, "dml_odd")
    it.sql("INSERT INTO {t} VALUES (1, 'a', 5), (2, 'b', 5), (4, 'm4', 1)")
    it.sql(
        "MERGE INTO {t} t USING (SELECT 4 AS id, 'kept' AS v, 8L AS ts) s ON t.id = s.id "
        "WHEN MATCHED AND s.ts = 8 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v, ts = s.ts"
    )


@PAGE.step("merge that deletes only")
def _(it: Script) -> None:
    it.use("dml_merge")
    it.sql("MERGE INTO {t} t USING (SELECT 4 AS id, 9L AS ts) s ON t.id = s.id WHEN MATCHED THEN DELETE")


@PAGE.step("merge with stars, from a view")
def _(it: Script) -> None:
    it.sql(
        "MERGE INTO {t} t USING dml_view s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


@PAGE.step("merge with stars, from a table of hudi")
def _(it: Script) -> None:
    it.sql(
        "MERGE INTO {t} t USING dml_copy s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


@PAGE.step("merge of some columns")
def _(it: Script) -> None:
    it.sql(
        "MERGE INTO {t} t USING (SELECT 1 AS id, 'part' AS v, 99L AS ts) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET t.v = s.v, ts = s.ts"
    )


@PAGE.step("merge of inserts only")
def _(it: Script) -> None:
    it.sql(
        "MERGE INTO {t} t USING (SELECT 1 AS id, 'no' AS v, 100L AS ts UNION ALL SELECT 12, 'yes', 1L) s "
        "ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    )


@PAGE.step("merge of an older row")
def _(it: Script) -> None:
    it.sql(
        "MERGE INTO {t} t USING (SELECT 2 AS id, 'older' AS v, 1L AS ts) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET *"
    )


@PAGE.step("merge of two rows of a key")
def _(it: Script) -> None:
    it.use("dml_odd")
    it.sql(
        "MERGE INTO {t} t USING (SELECT 2 AS id, 'one' AS v, 20L AS ts UNION ALL SELECT 2, 'two', 21L) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
    )


@PAGE.step("merge without the ordering column")
def _(it: Script) -> None:
    it.sql(
        "MERGE INTO {t} t USING (SELECT 2 AS id, 'unordered' AS v) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = s.v"
    )


@PAGE.step("merge on a column that is no key")
def _(it: Script) -> None:
    it.sql(
        "MERGE INTO {t} t USING (SELECT 1 AS id, 'a' AS v, 100L AS ts) s ON t.v = s.v WHEN MATCHED THEN UPDATE SET *"
    )


@PAGE.step("merge into partitions, merge-on-read")
def _(it: Script) -> None:
    create(it, "dml_merge_mor", f"type = 'mor', {KEYED}", columns=f"{COLUMNS}, p string", partition="p")
    it.sql("INSERT INTO {t} VALUES (1, 'a', 5, 'x'), (2, 'b', 5, 'y'), (3, 'c', 5, 'y')")
    it.sql(
        "MERGE INTO {t} t USING (SELECT 1 AS id, 'm1' AS v, 6L AS ts, 'x' AS p UNION ALL SELECT 2, '', 6L, 'y' "
        "UNION ALL SELECT 4, 'm4', 6L, 'z') s ON t.id = s.id AND t.p = s.p "
        "WHEN MATCHED AND s.v <> '' THEN UPDATE SET * WHEN MATCHED AND s.v = '' THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT *"
    )


@PAGE.step("merge by the key, when the source row has another partition")
def _(it: Script) -> None:
    it.sql(
        "MERGE INTO {t} t USING (SELECT 3 AS id, 'moved' AS v, 9L AS ts, 'x' AS p) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET *"
    )


@PAGE.step("merge of a table without a key")
def _(it: Script) -> None:
    it.use("dml_keyless")
    it.sql(
        "MERGE INTO {t} t USING (SELECT 1 AS id, 'merged' AS v, 100L AS ts UNION ALL SELECT 7, 'new', 1L) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


@PAGE.step("rows with a condition, sorted and limited")
def _(it: Script) -> Any:
    it.use("dml_merge")
    return it.sql("SELECT id, v FROM {t} WHERE ts > 4 ORDER BY id DESC LIMIT 2")


@PAGE.step("groups")
def _(it: Script) -> Any:
    return it.sql("SELECT count(*) AS n, sum(ts) AS total FROM {t} GROUP BY id % 2")


@PAGE.step("join of two tables")
def _(it: Script) -> Any:
    return it.sql("SELECT a.id, a.v, b.v AS other FROM dml_merge a JOIN dml_copy b ON a.id = b.id")


@PAGE.step("a common table expression and a subquery")
def _(it: Script) -> Any:
    return it.sql("WITH w AS (SELECT id FROM dml_copy) SELECT id, v FROM {t} WHERE id IN (SELECT id FROM w)")


@PAGE.step("meta columns by name")
def _(it: Script) -> Any:
    return it.sql("SELECT _hoodie_record_key, _hoodie_partition_path, v FROM {t}")


@PAGE.step("a table by its path")
def _(it: Script) -> Any:
    return it.sql("SELECT id, v FROM hudi.`{path}`")


@PAGE.step("the table of the catalog by its name")
def _(it: Script) -> Any:
    return it.spark.table("default.dml_merge").select("id", "v")


@PAGE.step("timestamp as of a requested time")
def _(it: Script) -> Any:
    return all_rows(it, f"SELECT * FROM {{t}} TIMESTAMP AS OF '{it.instants()[0][0]}'")


@PAGE.step("timestamp as of a completion time")
def _(it: Script) -> Any:
    return all_rows(it, f"SELECT * FROM {{t}} TIMESTAMP AS OF '{it.instants()[0][1]}'")


@PAGE.step("timestamp as of a time in words")
def _(it: Script) -> Any:
    found = it.instants()[1][0]
    day = f"{found[:4]}-{found[4:6]}-{found[6:8]} {found[8:10]}:{found[10:12]}:{found[12:14]}.{found[14:]}"
    return all_rows(it, f"SELECT * FROM {{t}} TIMESTAMP AS OF '{day}'")


@PAGE.step("timestamp as of a time before the table")
def _(it: Script) -> Any:
    return all_rows(it, "SELECT * FROM {t} TIMESTAMP AS OF '2020-01-01'")


@PAGE.step("version as of a requested time")
def _(it: Script) -> Any:
    return all_rows(it, f"SELECT * FROM {{t}} VERSION AS OF '{it.instants()[0][0]}'")


@PAGE.step("changes from earliest, latest state")
def _(it: Script) -> Any:
    return all_rows(it, "SELECT * FROM hudi_table_changes('{t}', 'latest_state', 'earliest')")


@PAGE.step("changes from the first commit, latest state")
def _(it: Script) -> Any:
    return all_rows(it, f"SELECT * FROM hudi_table_changes('{{t}}', 'latest_state', '{it.instants()[0][1]}')")


@PAGE.step("changes between two commits, by path")
def _(it: Script) -> Any:
    begin, end = it.instants()[0][1], it.instants()[1][1]
    return all_rows(it, f"SELECT * FROM hudi_table_changes('{{path}}', 'latest_state', '{begin}', '{end}')")


@PAGE.step("changes with the database in the name")
def _(it: Script) -> Any:
    return all_rows(it, "SELECT id FROM hudi_table_changes('default.{t}', 'latest_state', 'earliest') WHERE id = 1")


@PAGE.step("change data of a table without change data is refused")
def _(it: Script) -> Any:
    return it.sql("SELECT * FROM hudi_table_changes('{t}', 'cdc', 'earliest')")


@PAGE.step("change data from earliest")
def _(it: Script) -> Any:
    create(it, "dml_cdc", f"{KEYED}, 'hoodie.table.cdc.enabled' = 'true'")
    it.sql("INSERT INTO {t} VALUES (1, 'a', 5), (2, 'b', 5)")
    it.sql("UPDATE {t} SET v = 'u', ts = 6 WHERE id = 1")
    it.sql("DELETE FROM {t} WHERE id = 2")
    return it.sql("SELECT op, before, after FROM hudi_table_changes('{t}', 'cdc', 'earliest')")


@PAGE.step("change data between two commits, by path")
def _(it: Script) -> Any:
    begin, end = it.instants()[0][1], it.instants()[1][1]
    return it.sql(f"SELECT op, before, after FROM hudi_table_changes('{{path}}', 'cdc', '{begin}', '{end}')")


@PAGE.step("columns of change data")
def _(it: Script) -> Any:
    return shape(it.sql("SELECT * FROM hudi_table_changes('{t}', 'cdc', 'earliest')"))


@PAGE.step("a table as a function")
def _(it: Script) -> Any:
    return it.sql("SELECT id, v FROM hudi_query('{t}', 'snapshot')")


@PAGE.step("the timeline of a table")
def _(it: Script) -> Any:
    return it.sql("SELECT action, state FROM hudi_query_timeline('{t}', 'true')")


@PAGE.step("the timeline of a table, one argument")
def _(it: Script) -> Any:
    return shape(it.sql("SELECT * FROM hudi_query_timeline('{t}')"))


@PAGE.step("the timeline of a table, by path")
def _(it: Script) -> Any:
    return shape(it.sql("SELECT * FROM hudi_query_timeline('{path}', 'false')"))


@PAGE.step("the metadata of a table")
def _(it: Script) -> Any:
    return it.sql("SELECT count(*) > 0 AS found FROM hudi_metadata('{t}')")


@PAGE.step("the metadata of a table, by path")
def _(it: Script) -> Any:
    return it.sql("SELECT key, type FROM hudi_metadata('{path}') WHERE type IN (1, 2)")


@PAGE.step("the slices of the files, by path")
def _(it: Script) -> Any:
    return shape(it.sql("SELECT * FROM hudi_filesystem_view('{path}')"))


@PAGE.step("drop what is left")
def _(it: Script) -> Any:
    tables = it.sql("SHOW TABLES LIKE 'dml_*'").where("NOT isTemporary").collect()
    for row in tables:
        it.sql(f"DROP TABLE {row.tableName}")
    it.spark.catalog.dropTempView("dml_view")
    it.spark.catalog.dropTempView("dml_news")
    return it.sql("SHOW TABLES LIKE 'dml_*'")
