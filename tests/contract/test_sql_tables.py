"""`hoodie.sql` on tables of Spark's catalog: definitions, inserts and queries; `spark.sql` of a registered session.

A registered session hands its statements to `hoodie.sql`: a table's life and changes of its columns are
told by both, the rest by one of them.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

import hoodie
from hoodie.records.sql.quoting import literal_of
from tests.contract.table_lanes import session_with

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.connect,
    pytest.mark.surface,
    pytest.mark.filterwarnings("ignore:insert .* keys were not looked up:hoodie.HoodieWarning"),
]
COLUMNS = "id int, v string, s struct<x: int>, p string"


BOTH = pytest.mark.parametrize("run", ["hoodie.sql", "registered"], indirect=True)
ONE = pytest.mark.parametrize("run", ["hoodie.sql"], indirect=True)
REGISTERED = pytest.mark.parametrize("run", ["registered"], indirect=True)


def rows(found: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in found.collect()), key=repr)


@BOTH
def test_columns_change_by_sql(run: Callable[[str], Any], spark: SparkSession) -> None:
    run("CREATE TABLE sqlt_alter (id int, v string, p string) USING hudi PARTITIONED BY (p)")
    run("INSERT INTO sqlt_alter VALUES (1, 'a', 'x')")
    run("ALTER TABLE sqlt_alter ADD COLUMNS (n int COMMENT 'a number', s struct<x: int> AFTER id)")
    run("INSERT INTO sqlt_alter (id, v, n, s, p) VALUES (2, 'b', 5, named_struct('x', 7), 'y')")
    with pytest.warns(hoodie.HoodieWarning, match=r"schema\.on\.read"):
        run("ALTER TABLE sqlt_alter RENAME COLUMN v TO w")
    assert rows(run("SELECT id, s.x, w, n, p FROM sqlt_alter")) == [(1, None, "a", None, "x"), (2, 7, "b", 5, "y")]
    described = {row[0]: (row[1], row[2]) for row in run("DESCRIBE sqlt_alter").collect()}
    assert (described["n"], described["w"]) == (("int", "a number"), ("string", None))
    # The entry of the catalog has the columns too.
    entry = spark.sql("SELECT * FROM sqlt_alter").schema if run != spark.sql else spark.table("sqlt_alter").schema
    assert {"s", "w", "n"} <= {*entry.names}
    assert "v" not in entry.names
    run("ALTER TABLE sqlt_alter SET TBLPROPERTIES (hoodie.clean.commits.retained = 20)")
    shown = {row[0]: row[1] for row in run("SHOW TBLPROPERTIES sqlt_alter").collect()}
    assert shown["hoodie.clean.commits.retained"] == "20"


DBT = '/* {"app": "dbt", "target": "a /* b */"} */\n-- model: answers\n'
ANSWERS: dict[str, tuple[str, Any]] = {
    "CREATE TABLE sqlt_answers (id int, v string) USING hudi TBLPROPERTIES (primaryKey = 'id')": ("Table", None),
    "INSERT INTO sqlt_answers VALUES (1, 'a'), (2, 'b')": ("WriteResult", (2, 0, 0)),
    "UPDATE sqlt_answers SET v = 'c' WHERE id = 1": ("WriteResult", (0, 1, 0)),
    "MERGE INTO sqlt_answers t USING (SELECT 2 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE": (
        "WriteResult",
        (0, 0, 1),
    ),
    "ALTER TABLE sqlt_answers SET TBLPROPERTIES (hoodie.clean.commits.retained = 20)": ("AlterResult", None),
    "DROP INDEX record_index ON sqlt_answers": ("NoneType", None),
    "SELECT id FROM sqlt_answers": ("", [(1,)]),
    "SHOW TBLPROPERTIES sqlt_answers": ("", None),
    "CALL show_commits(table => 'sqlt_answers', limit => 1)": ("", None),
    "DESCRIBE sqlt_answers": ("", None),
    "TRUNCATE TABLE sqlt_answers": ("WriteResult", (0, 0, 1)),
    "SHOW TABLES": ("", None),
    "DROP TABLE sqlt_answers": ("NoneType", None),
}
"""The type of the result of each statement, and rows of its answer: of a write its counts."""


@BOTH
@pytest.mark.parametrize("comments", ["", DBT], ids=["", "behind comments"])
def test_each_statement_answers_with_a_dataframe(
    run: Callable[[str], Any], spark: SparkSession, comments: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `spark.sql`; scripts that replace it call `show` of the answer. The fields of results are attributes."""
    for statement, (kind, told) in ANSWERS.items():
        found = run(comments + statement)
        assert isinstance(found, type(spark.range(1))), statement
        found.show()
        assert "+" in capsys.readouterr().out
        if kind:
            assert type(found.result).__name__ == kind, statement
        if kind == "WriteResult":
            assert found.columns == ["instant", "inserted", "updated", "deleted", "ignored"]
            assert rows(found) == [(found.result.instant, *told, found.result.ignored)], statement
            assert (found.inserted, found.updated, found.deleted, found.seconds) == (*told, found.result.seconds)
        elif kind:
            assert (found.columns, rows(found)) == ([], []), statement
        elif told is not None:
            assert rows(found) == told, statement


@BOTH
def test_notes_of_results_are_warnings(run: Callable[[str], Any], spark: SparkSession) -> None:
    run("CREATE TABLE sqlt_noted (id int, v string) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    run("INSERT INTO sqlt_noted VALUES (1, 'a')")
    with pytest.warns(hoodie.HoodieWarning, match="ids") as noted:
        found = run("ALTER TABLE sqlt_noted RENAME COLUMN v TO w")
    assert [str(one.message).partition(": ")[2] for one in noted] == list(found.result.notes)
    assert {one.filename.rpartition("/")[2] for one in noted} <= {"conftest.py", "test_sql_tables.py"}


@BOTH
def test_a_table_lives_by_sql(run: Callable[[str], Any], spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "it's {here}"
    properties = "primaryKey = 'id', type = 'mor', 'hoodie.datasource.write.hive_style_partitioning' = 'false'"
    location = str(path).replace("'", "\\'")
    run(
        f"CREATE TABLE sqlt_t ({COLUMNS}) USING hudi TBLPROPERTIES ({properties}) PARTITIONED BY (p) "
        f"LOCATION '{location}'"
    )
    assert hoodie.exists(path)
    run("CREATE TABLE IF NOT EXISTS sqlt_t (other int) USING hudi")
    with pytest.raises(hoodie.TableExistsError):
        run("CREATE TABLE sqlt_t (other int) USING hudi")
    run("INSERT INTO sqlt_t VALUES (1, 'a{}', named_struct('x', 7), 'x'), (2, 'b', NULL, 'y')")
    run("INSERT INTO sqlt_t PARTITION (p = 'z') (v, id) SELECT v, id + 10 FROM sqlt_t")
    first = hoodie.open(path, spark=False).timeline.instants[0].requested_time
    found = run("SELECT sqlt_t.id, v, s.x, p FROM default.sqlt_t WHERE v LIKE '%' ORDER BY id")
    assert rows(found) == [(1, "a{}", 7, "x"), (11, "a{}", None, "z"), (12, "b", None, "z"), (2, "b", None, "y")]
    assert rows(run(f"SELECT id, '{{x}}' FROM sqlt_t TIMESTAMP AS OF '{first}'")) == [(1, "{x}"), (2, "{x}")]
    joined = "WITH w AS (SELECT id FROM sqlt_t) SELECT count(*) FROM w JOIN sqlt_t t ON t.id = w.id"
    assert rows(run(joined)) == [(4,)]
    assert rows(run("SELECT count(*) FROM hudi_table_changes('sqlt_t', 'latest_state', 'earliest')")) == [(4,)]
    assert rows(run("SHOW PARTITIONS sqlt_t")) == [("x",), ("y",), ("z",)]
    run("UPDATE sqlt_t SET v = 'new' WHERE id = 1")
    run("DELETE FROM sqlt_t WHERE id = 2")
    run("INSERT OVERWRITE sqlt_t PARTITION (p = 'z') SELECT 20, 'over', NULL")
    run("ALTER TABLE sqlt_t DROP PARTITION (p = 'none')")
    assert rows(run("SELECT id, v, p FROM sqlt_t")) == [(1, "new", "x"), (20, "over", "z")]
    assert rows(run("DESCRIBE sqlt_t"))[-1] == ("v", "string", None)
    for text, error in (
        ("INSERT INTO sqlt_t VALUES (1)", "expected 4 columns"),
        ("INSERT INTO sqlt_t SELECT 'x', 'y', NULL, 'z'", "column id has the type int"),
        ("ALTER TABLE sqlt_t REPLACE COLUMNS (more int)", "REPLACE COLUMNS"),
        ("ALTER TABLE sqlt_t DROP PARTITION (q = 'x')", "q is no partition column"),
        ("TRUNCATE TABLE sqlt_t PARTITION (p)", "a value of each of p"),
        (
            "INSERT INTO sqlt_t PARTITION (p = 'z') (id, P, v, s) SELECT 1, 'q', 'x', NULL",
            "of each column, found two of p",
        ),
        ("INSERT INTO sqlt_t PARTITION (p = 'z') BY NAME SELECT 1 AS id, 'q' AS p", "of each column, found two of p"),
        ("INSERT INTO sqlt_t (id, v, ID) SELECT 1, 'q', 2", "of each column, found two of id"),
    ):
        with pytest.raises(hoodie.HoodieError, match=error):
            run(text)
    run("TRUNCATE TABLE sqlt_t")
    assert rows(run("SELECT * FROM sqlt_t")) == []
    run("DROP TABLE sqlt_t")
    assert hoodie.exists(path)
    run(f"CREATE TABLE sqlt_again USING hudi LOCATION '{location}'")
    assert spark.table("sqlt_again").columns[5:] == ["id", "v", "s", "p"]
    run("ALTER TABLE sqlt_again RENAME TO sqlt_renamed")
    assert rows(run("SELECT count(*) FROM sqlt_renamed")) == [(0,)]
    run("DROP TABLE sqlt_renamed PURGE")
    assert not hoodie.exists(path)


@ONE
def test_a_query_that_fails_leaves_no_table(run: Callable[[str], Any], spark: SparkSession) -> None:
    create = "CREATE {} sqlt_failed USING hudi TBLPROPERTIES (primaryKey = 'id', {}) AS SELECT 1 AS id, {} AS x"
    days = "'hoodie.partition.ttl.strategy.days.retain' = -1"
    for words in ("TABLE", "TABLE IF NOT EXISTS", "OR REPLACE TABLE"):
        with pytest.raises(Exception, match="failed on purpose"):
            run(create.format(words, days, "CAST(raise_error('failed on purpose') AS int)"))
        assert not spark.catalog.tableExists("sqlt_failed")
    run(create.format("TABLE", days, "5"))
    named = "WITH sqlt_failed AS (SELECT id, x FROM sqlt_failed) SELECT x FROM sqlt_failed"
    assert rows(run(named)) == [(5,)]
    shown = {row[0]: row[1] for row in run("SHOW TBLPROPERTIES sqlt_failed").collect()}
    assert shown["hoodie.partition.ttl.strategy.days.retain"] == "-1"


@ONE
def test_managed_tables_of_queries(run: Callable[[str], Any], spark: SparkSession) -> None:
    run(
        "CREATE TABLE sqlt_m USING hoodie TBLPROPERTIES (primaryKey = 'id') AS SELECT id, id * 2 AS twice FROM range(3)"
    )
    assert rows(run("SELECT id, twice FROM sqlt_m")) == [(0, 0), (1, 2), (2, 4)]
    with pytest.raises(hoodie.HoodieError):
        run("CREATE OR REPLACE TABLE sqlt_m USING hoodie TBLPROPERTIES (primaryKey = 'none') AS SELECT 1 AS id")
    run("CREATE OR REPLACE TABLE sqlt_m USING hoodie AS SELECT sum(twice) AS total FROM sqlt_m")
    with (
        session_with(spark, {"hoodie.bulkinsert.schema.ddl": "id int"}),
        pytest.raises(hoodie.HoodieError, match="ddl"),
    ):
        run("CREATE TABLE sqlt_refused USING hoodie AS SELECT 1 AS id")
    assert not spark.catalog.tableExists("sqlt_refused")
    of_tables = {"hoodie.datasource.write.precombine.field": "id", "hoodie.index.type": "BLOOM"}
    with session_with(spark, of_tables):
        run("CREATE TABLE sqlt_made USING hoodie AS SELECT 1 AS id")
    assert spark.table("sqlt_made").count() == 1
    assert rows(run("SELECT total FROM sqlt_m")) == [(6,)]
    run("CREATE TABLE sqlt_like LIKE sqlt_m USING hoodie")
    run("INSERT INTO sqlt_like TABLE sqlt_m")
    path = hoodie.open(next(row[1] for row in rows(run("DESCRIBE EXTENDED sqlt_m")) if row[0] == "Location")).path
    run(f"CREATE TABLE sqlt_options USING hoodie OPTIONS (path '{path}')")
    assert rows(run("SELECT total FROM sqlt_options")) == [(6,)]
    # Sessions that are not registered read and insert through the data source.
    hoodie.unregister(spark)
    assert rows(spark.sql("SELECT total FROM sqlt_like")) == [(6,)]
    if spark.version.startswith("4.0."):  # it wants values for all columns of such a table
        hoodie.sql(spark, "INSERT INTO sqlt_like VALUES (7)")
    else:
        spark.sql("INSERT INTO sqlt_like (total) VALUES (7)")
    assert rows(spark.table("sqlt_like").select("total")) == [(6,), (7,)]
    hoodie.register(spark)
    assert rows(spark.table("sqlt_like").select("total")) == [(6,), (7,)]
    saved = spark.createDataFrame([(1, "a")], "id int, v string").write.format("hudi").option("record_key", "id")
    for mode in ("append", "overwrite", "append"):
        saved.mode(mode).saveAsTable("sqlt_saved")
    place = next(row[1] for row in rows(spark.sql("DESCRIBE EXTENDED sqlt_saved")) if row[0] == "Location")
    first = hoodie.open(place, spark=False).timeline.instants[0]
    again = spark.createDataFrame([(1, "a")], "id int, v string").write.format("hoodie")
    again.mode("overwrite").saveAsTable("sqlt_saved")  # no option defines another table
    kept = hoodie.open(place, spark=False)
    assert (kept.timeline.instants[0], kept.view().config.record_key_fields) == (first, ("id",))
    assert kept.view().config.name == "sqlt_saved"
    with pytest.raises(hoodie.TableExistsError):
        saved.mode("error").saveAsTable("sqlt_saved")
    assert rows(spark.sql("SELECT id, v FROM sqlt_saved")) == [(1, "a")]
    assert rows(spark.sql("SELECT 1 AS one, '{}' AS braces")) == [(1, "{}")]
    spark.sql("CREATE TEMPORARY VIEW sqlt_view AS SELECT 5 AS five")
    assert rows(spark.sql("SELECT five FROM sqlt_view WHERE five > :low", args={"low": 1})) == [(5,)]
    spark.catalog.dropTempView("sqlt_view")
    managed = [
        hoodie.open(row[1], spark=False) for row in rows(spark.sql("DESCRIBE EXTENDED sqlt_m")) if row[0] == "Location"
    ]
    hoodie.sql(spark, "ALTER TABLE sqlt_like RENAME TO sqlt_other")
    with pytest.raises(hoodie.TableExistsError, match="has a table without an entry in the catalog"):
        hoodie.sql(spark, "CREATE TABLE sqlt_like (id int) USING hudi")
    hoodie.sql(spark, "DROP TABLE sqlt_m")
    hoodie.sql(spark, "DROP TABLE sqlt_options PURGE")  # its files are gone already
    assert not hoodie.exists(managed[0].path)
    hoodie.unregister(spark)


@BOTH
def test_the_merge_of_the_quick_start_runs_without_a_key(run: Callable[[str], Any]) -> None:
    run("CREATE TABLE sqlt_keyless (ts bigint, uuid string, fare double, city string) USING hudi PARTITIONED BY (city)")
    run("INSERT INTO sqlt_keyless VALUES (1, 'a', 1.5, 'sf'), (2, 'b', 2.5, 'sf'), (3, 'c', 3.5, 'sao')")
    news = "SELECT 9L AS ts, 'b' AS uuid, 10.0D AS fare, 'x' AS city UNION ALL SELECT 9, 'n', 4.5, 'la'"
    run(
        f"MERGE INTO sqlt_keyless AS target USING ({news}) AS source ON target.uuid = source.uuid "
        "WHEN MATCHED THEN UPDATE SET target.fare = target.fare + source.fare WHEN NOT MATCHED THEN INSERT *"
    )
    expected = [(1, "a", 1.5, "sf"), (2, "b", 12.5, "sf"), (3, "c", 3.5, "sao"), (9, "n", 4.5, "la")]
    assert rows(run("SELECT ts, uuid, fare, city FROM sqlt_keyless")) == expected
    keys = rows(run("SELECT _hoodie_record_key, _hoodie_commit_time FROM sqlt_keyless WHERE ts <> 2"))
    assert len({key for key, _ in keys}) == len(keys) == 3
    assert all(key.startswith(f"{time}_") for key, time in keys)


@REGISTERED
def test_a_registered_session_takes_arguments_of_sql(spark: SparkSession, run: Callable[..., Any]) -> None:
    sql = run
    sql("CREATE TABLE sqlt_a (id int, v string, d double, p string) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    more = spark.createDataFrame([(1, "a", 1.5, "x"), (2, "b", 2.5, "y")], "id int, v string, d double, p string")
    sql("INSERT INTO sqlt_a SELECT * FROM {more}", more=more)
    sql("UPDATE sqlt_a SET v = :v, d = :d WHERE id = :id", {"v": "it's", "d": 0.1, "id": 1})
    assert rows(sql("SELECT id, v, d FROM sqlt_a WHERE v = ? OR id = ?", ["it's", 2])) == [
        (1, "it's", 0.1),
        (2, "b", 2.5),
    ]
    sql("MERGE INTO sqlt_a t USING {more} s ON t.id = s.id WHEN MATCHED AND s.id = {n} THEN DELETE", more=more, n=2)
    assert rows(sql("SELECT id FROM {found} f WHERE v = {v}", found=spark.table("sqlt_a"), v="it's")) == [(1,)]


def test_literals_of_arguments_are_the_values_of_pyspark(spark: SparkSession) -> None:
    day, moment = date(1969, 2, 3), datetime(2026, 7, 1, 12, 30, 0, 123456)
    values = [None, True, -(2**31), 2**31, 0.1, float("-inf"), Decimal("-1.50"), "a'\\b\n", b"\x00\xff", day]
    values += [moment, moment.replace(tzinfo=UTC)]
    for value in values:
        expected = spark.sql("SELECT :v AS v", args={"v": value})
        found = spark.sql(f"SELECT {literal_of(value)} AS v")
        assert found.first() == expected.first(), value
        if not isinstance(value, Decimal):  # Connect of Spark 4.0 gives it more digits
            assert found.dtypes == expected.dtypes, value


@REGISTERED
def test_insert_into_and_read_table_are_native(
    spark: SparkSession, run: Callable[[str], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    columns = "id int, v string, p string"
    spark.sql(f"CREATE TABLE sqlt_i ({columns}) USING hudi TBLPROPERTIES (primaryKey = 'id') PARTITIONED BY (p)")
    spark.createDataFrame([(1, "a", "x"), (2, "b", "y")], "a int, b string, c string").write.insertInto("sqlt_i")
    frame = spark.createDataFrame([(3, "c", "x")], columns)
    with pytest.raises(hoodie.InvalidConfigError, match="expected 3 columns"):
        frame.drop("v").write.insertInto("sqlt_i")
    first = spark.table("sqlt_i").collect()[0]["_hoodie_commit_time"]
    frame.write.option("hoodie.datasource.overwrite.mode", "dynamic").insertInto("sqlt_i", overwrite=True)
    found = spark.read.table("sqlt_i")
    found.explain()
    assert "FileScan parquet" in capsys.readouterr().out
    assert rows(found.select("id", "v", "p")) == [(2, "b", "y"), (3, "c", "x")]
    older = spark.read.option("as.of.instant", first).table("sqlt_i")
    assert rows(older.select("id")) == [(1,), (2,)]
    frame.write.mode("overwrite").insertInto("sqlt_i")
    assert rows(spark.read.table("sqlt_i").select("id")) == [(3,)]


@REGISTERED
def test_copies_of_a_table_with_an_index_of_its_properties(run: Callable[[str], Any], spark: SparkSession) -> None:
    properties = "primaryKey = 'id', 'hoodie.index.type' = 'BUCKET', 'hoodie.bucket.index.num.buckets' = '1'"
    run(f"CREATE TABLE sqlt_b (id int, v string) USING hudi TBLPROPERTIES ({properties})")
    assert ("hoodie.index.type", "BUCKET") in rows(run("SHOW TBLPROPERTIES sqlt_b"))
    run("INSERT INTO sqlt_b VALUES (1, 'a'), (2, 'b')")
    run("UPDATE sqlt_b SET v = 'c' WHERE id = 2")
    first, second = rows(run("SELECT Completion_Time FROM hudi_query_timeline('sqlt_b')"))
    span = f"begin_instance_time => '{first[0]}', end_instance_time => '{second[0]}'"
    try:
        run(f"CALL copy_to_temp_view('sqlt_b', 'incremental', 'sqlt_view', {span})").collect()
        assert rows(spark.sql("SELECT id, v FROM sqlt_view")) == [(2, "c")]
        with pytest.raises(Exception, match="sqlt_view"):
            run("CALL copy_to_temp_view(table => 'sqlt_b', view_name => 'sqlt_view')").collect()
        run("CALL copy_to_temp_view(table => 'sqlt_b', view_name => 'sqlt_view', replace => true)").collect()
        assert rows(spark.sql("SELECT id, v FROM sqlt_view")) == [(1, "a"), (2, "c")]
    finally:
        spark.catalog.dropTempView("sqlt_view")
    copy = "table => 'sqlt_b', new_table => 'sqltcopy', columns => 'id'"
    try:
        run(f"CALL copy_to_table({copy})").collect()
        run(f"CALL copy_to_table({copy}, save_mode => 'append')").collect()
        assert rows(spark.sql("SELECT * FROM sqltcopy")) == [(1,), (1,), (2,), (2,)]
    finally:
        spark.sql("DROP TABLE IF EXISTS sqltcopy")
    with pytest.raises(hoodie.InvalidConfigError, match="expected overwrite or append"):
        run(f"CALL copy_to_table({copy}, save_mode => 'ignore')")
