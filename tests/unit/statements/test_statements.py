"""`hoodie.sql`: statements are the calls of the table's methods, and what would be ignored is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.statements.names import Names
from hoodie.statements.run import concerns
from tests.support.tables import new_table

ROWS = {"id": ["a", "b", "c"], "fare": [1.0, 2.0, 3.0], "Note": ["x", "y", "z"]}
MERGE = "MERGE INTO trips t USING news s ON t.id = s.id"
NEWS = {"id": ["c", "d"], "fare": [30.0, 40.0], "Note": ["n", "m"]}


@pytest.fixture
def tables() -> dict[str, Any]:
    return {"trips": new_table(pa.table(ROWS).schema, ROWS), "news": NEWS}


def caller(tables: Mapping[str, Any]) -> Callable[[str], list[dict[str, Any]]]:
    """Return what calls a procedure."""

    def call(text: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = hoodie.sql(None, f"CALL {text}", tables=tables).to_pylist()
        return rows

    return call


def fares(tables: Mapping[str, Any]) -> dict[str, float]:
    return {row["id"]: row["fare"] for row in tables["trips"].to_arrow(columns=["id", "fare"]).to_pylist()}


@pytest.mark.parametrize(
    ("statement", "changed", "expected"),
    [
        ("UPDATE trips SET fare = fare * 2 WHERE id <> 'a';", (0, 2, 0), {"a": 1.0, "b": 4.0, "c": 6.0}),
        ("update trips as x set x.fare = x.fare + 1 where x.`note` = 'x'", (0, 1, 0), {"a": 2.0, "b": 2.0, "c": 3.0}),
        ("UPDATE trips SET `Note` = 'it''s', fare = 0", (0, 3, 0), {"a": 0.0, "b": 0.0, "c": 0.0}),
        ("DELETE FROM trips WHERE trips.fare >= 2", (0, 0, 2), {"a": 1.0}),
        ("DELETE FROM trips", (0, 0, 3), {}),
        (
            "MERGE INTO trips AS t USING news AS s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            (1, 1, 0),
            {"a": 1.0, "b": 2.0, "c": 30.0, "d": 40.0},
        ),
        (
            "MERGE INTO trips USING news ON trips.id = news.id "
            "WHEN MATCHED AND news.fare > 20 THEN UPDATE SET trips.fare = trips.fare + news.fare "
            "WHEN NOT MATCHED BY TARGET THEN INSERT (id, fare) VALUES (news.id, news.fare / 2) "
            "WHEN NOT MATCHED BY SOURCE AND trips.fare < 2 THEN DELETE "
            "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET fare = -1",
            (1, 2, 1),
            {"b": -1.0, "c": 33.0, "d": 20.0},
        ),
        (f"{MERGE} WHEN MATCHED THEN DELETE", (0, 0, 1), {"a": 1.0, "b": 2.0}),
    ],
)
def test_statements_change_rows(
    tables: dict[str, Any], statement: str, changed: tuple[int, int, int], expected: dict[str, float]
) -> None:
    result = hoodie.sql(None, statement, tables=tables)
    assert (result.inserted, result.updated, result.deleted) == changed
    assert fares(tables) == expected


COMMENTS = ["/* dbt */ ", '/* {"app": "dbt"} */\n', "-- a comment\n  ", "-- it's \\\n goes on\n/* a /* b */ c */--\n\n"]


@pytest.mark.parametrize("comment", COMMENTS)
def test_comments_in_front_of_a_statement_change_nothing(tables: dict[str, Any], comment: str) -> None:
    for statement in (
        "CALL show_commits(table => 'trips')",
        "SHOW PARTITIONS trips",
        "SHOW TBLPROPERTIES trips",
        "SHOW INDEXES FROM trips",
        "ALTER TABLE trips SET TBLPROPERTIES (hoodie.clean.commits.retained = 20)",
        f"{MERGE} WHEN MATCHED THEN DELETE",
        "UPDATE trips SET fare = 5",
        "DELETE FROM trips WHERE id = 'a'",
        "TRUNCATE TABLE trips",
    ):
        assert concerns(comment + statement, Names(session=None, tables=tables, storage_options=None)), statement
        hoodie.sql(None, comment + statement, tables=tables)
    assert fares(tables) == {}


@pytest.mark.parametrize(
    "text", ["", "-- only a comment", "/* no end DELETE FROM trips", "/* a /* b */ TRUNCATE trips"]
)
def test_comments_without_a_statement_are_refused(tables: dict[str, Any], text: str) -> None:
    assert not concerns(text, Names(session=None, tables=tables, storage_options=None))
    with pytest.raises(InvalidConfigError):
        hoodie.sql(None, text, tables=tables)


@pytest.mark.parametrize(
    ("statement", "error", "says"),
    [
        ("SELECT 1", UnsupportedError, "SELECT needs a Spark session"),
        ("INSERT INTO trips VALUES (1)", UnsupportedError, "needs a Spark session"),
        ("CREATE TABLE t (id int) USING hudi", UnsupportedError, "needs a Spark session"),
        ("CREATE TABLE t (id int)", UnsupportedError, "CREATE TABLE needs USING hoodie"),
        ("SET x = 1", UnsupportedError, "runs no SET of this form"),
        ("UPDATE trips SET (", InvalidConfigError, "not a Spark SQL statement"),
        ("DELETE FROM trips; DELETE FROM trips", InvalidConfigError, "exactly one Spark SQL statement, found 2"),
        ("DELETE FROM lost", InvalidConfigError, "no table 'lost'"),
        ("DELETE FROM news", InvalidConfigError, "no table 'news'"),
        ("DELETE FROM trips WHERE nothing = 1", SchemaMismatchError, "nothing"),
        ("UPDATE trips SET a.b = 1", UnsupportedError, "a struct is set as a whole"),
        ("DELETE FROM trips ORDER BY id LIMIT 1", UnsupportedError, "ORDER BY, LIMIT is not supported"),
        ("MERGE INTO trips t USING lost s ON t.id = s.id WHEN MATCHED THEN DELETE", InvalidConfigError, "no source"),
        (
            "MERGE INTO trips t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
            UnsupportedError,
            "needs Spark",
        ),
        (
            f"{MERGE} WHEN NOT MATCHED THEN INSERT (id, fare) VALUES (s.id)",
            InvalidConfigError,
            "2 columns and 1 values",
        ),
        (f"{MERGE} WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *", UnsupportedError, "the clause"),
        (
            f"{MERGE} WHEN MATCHED THEN UPDATE SET fare = s.fare WHERE s.fare > 15",
            UnsupportedError,
            "WHEN … AND … THEN",
        ),
        (f"{MERGE} WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id) WHERE s.fare > 1", UnsupportedError, "AND … THEN"),
        (f"{MERGE} WHEN MATCHED THEN UPDATE SET * EXCEPT (fare)", UnsupportedError, "alone, or columns"),
        (f"{MERGE} WHEN NOT MATCHED THEN INSERT * EXCEPT (fare)", UnsupportedError, "alone, or columns"),
        (f"{MERGE} WHEN MATCHED THEN UPDATE SET *, fare = 5", UnsupportedError, "alone, or columns"),
        (f"{MERGE} WHEN MATCHED THEN UPDATE SET fare", UnsupportedError, "SET column = expression"),
        (f"{MERGE} WHEN MATCHED THEN UPDATE SET fare = 5, *", UnsupportedError, "alone, or columns"),
        ("MERGE INTO trips t USING news USING (id) WHEN MATCHED THEN DELETE", InvalidConfigError, "ON and a condition"),
        ("DELETE FROM trips TABLESAMPLE (1 ROWS)", UnsupportedError, "alias only"),
        ("DELETE FROM trips VERSION AS OF 1", UnsupportedError, "alias only"),
        ("UPDATE trips TABLESAMPLE (1 ROWS) SET fare = 1", UnsupportedError, "alias only"),
        (
            "MERGE INTO trips t USING news TIMESTAMP AS OF '2020-01-01' s ON t.id = s.id WHEN MATCHED THEN DELETE",
            UnsupportedError,
            "alias only",
        ),
        (
            "MERGE INTO trips t USING news AS s(fare, id) ON t.id = s.id WHEN MATCHED THEN DELETE",
            UnsupportedError,
            "names of columns",
        ),
        ("CALL lost(table => 'trips')", InvalidConfigError, "no such procedure; CALL help.. lists all procedures$"),
        ("CALL show_comits(table => 'trips')", InvalidConfigError, "procedures; did you mean 'show_commits'"),
        ("CALL verify(path => 'x', ful => true)", InvalidConfigError, "one of table, path, full; did you mean 'full'"),
        ("CALL help(x => 1)", InvalidConfigError, "unknown argument 'x'; expected one of cmd$"),
        ("CALL run_clean(path => 'x', table => 'trips')", InvalidConfigError, "expected one of the arguments table"),
        ("CALL verify()", InvalidConfigError, "expected one of the arguments table"),
        ("CALL run_clean(table => '/data/trips')", InvalidConfigError, "or path => '/data/trips' in CALL"),
        ("CALL run_clean(table => 'gone')", InvalidConfigError, "hoodie.`/data/gone`, or path => '/data/gone'"),
        ("CALL show_commits()", InvalidConfigError, "'table' is missing: name the table by table => '…' or path"),
        ("CALL show_commits(table => 'trips', limit => 'x')", InvalidConfigError, "limit => 'x': expected integer"),
        ("CALL show_commits(table => 'trips', limit => -1)", InvalidConfigError, "expected 0 or more"),
        ("UPDATE trips SET fare = 2, FARE = 3", InvalidConfigError, "'FARE' is set twice"),
        (f"{MERGE} WHEN MATCHED THEN UPDATE SET fare = 1, t.fare = 2", InvalidConfigError, "'fare' is set twice"),
        (f"{MERGE} WHEN NOT MATCHED THEN INSERT (id, ID) VALUES (s.id, 1)", InvalidConfigError, "'ID' is set twice"),
        ("CALL show_commits('trips', 1, 2)", InvalidConfigError, "too many arguments"),
        ("CALL show_commits(table => 'trips', table => 'trips')", InvalidConfigError, "'table' is given twice"),
        ("CALL show_commits(table => concat('a', 'b'))", InvalidConfigError, "expected a literal"),
        ("CALL run_clean(table => 'trips', schedule_in_line => false)", UnsupportedError, "'schedule_in_line' of Hudi"),
        ("CALL run_compaction(op => 'sometimes', table => 'trips')", InvalidConfigError, "sometimes"),
        ("CALL show_timeline()", InvalidConfigError, "one of the arguments table => '…' and path => '…'"),
        ("CALL run_clean(table => 'trips', options => 'a b')", InvalidConfigError, "name=value"),
        ("CALL 1 + 1", InvalidConfigError, "expected procedure("),
    ],
)
def test_what_would_be_ignored_is_refused(
    tables: dict[str, Any], statement: str, error: type[Exception], says: str
) -> None:
    before = [str(instant) for instant in tables["trips"].timeline]
    with pytest.raises(error, match=says.replace("(", r"\(")):
        hoodie.sql(None, statement, tables=tables)
    assert [str(instant) for instant in tables["trips"].timeline] == before


def test_tables_have_paths_and_names(tables: dict[str, Any]) -> None:
    path = tables["trips"].path
    assert hoodie.sql(None, f"UPDATE hoodie.`{path}` SET fare = t.fare + 1 WHERE t.id = 'a'").updated == 1
    other = hoodie.create(f"{path}-other", ROWS, record_key="id")
    merge = (
        f"MERGE INTO hoodie.`{other.path}` USING HUDI.`{path}` ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert hoodie.sql(None, merge).inserted == 3
    assert hoodie.sql(None, "DELETE FROM other", tables={"other": other.path}).deleted == 3


def test_procedures_on_commits(tables: dict[str, Any]) -> None:
    t, call = tables["trips"], caller(tables)
    t.upsert(NEWS, extra_metadata={"who": "me"})
    newest, oldest = call("show_commits('trips')")
    assert newest["commit_time"] > oldest["commit_time"]
    assert (newest["total_records_written"], newest["total_update_records_written"]) == (4, 1)
    assert call("system.show_commits(table => 'trips', limit => 1);") == [newest]
    files = call("show_commits_metadata('trips')")
    assert [(row["num_inserts"], row["num_update_writes"]) for row in files] == [(1, 1), (3, 0)]
    assert [row["instant_time"] for row in call(f"show_timeline(path => '{t.path}')")] == [
        instant.requested_time for instant in reversed(t.timeline.instants)
    ]
    begin = newest["commit_time"]
    assert [row["state"] for row in call(f"show_timeline(table => 'trips', startTime => {begin})")] == ["COMPLETED"]
    who = call("show_commit_extra_metadata(table => 'trips', metadata_key => 'who')")
    assert [(row["instant_time"], row["metadata_value"]) for row in who] == [(begin, "me")]
    properties = {row["key"]: row["value"] for row in call("show_table_properties(table => 'trips', limit => 100)")}
    assert properties == dict(t.view().config.raw)
    sizes = {row["commit_time"]: row for row in call("stats_file_sizes('trips')")}
    listed = t.inspect.files()["size_bytes"].to_pylist()
    assert (sizes["ALL"]["num_files"], sizes["ALL"]["min"], sizes["ALL"]["max"]) == (2, min(listed), max(listed))
    assert sizes["ALL"]["50th"] == sum(listed) / 2
    assert call("stats_file_sizes(table => 'trips', partition_path => 'no*')")[-1]["num_files"] == 0


def test_procedures_that_take_the_table_back(tables: dict[str, Any]) -> None:
    t, call = tables["trips"], caller(tables)
    saved = t.timeline.latest().requested_time
    assert call(f"create_savepoint(table => 'trips', commit_time => '{saved}', user => 'me')") == [
        {"create_savepoint_result": True}
    ]
    assert call(f"show_savepoints(path => '{t.path}')") == [{"savepoint_time": saved}]
    t.upsert(NEWS)
    newest = t.timeline.latest().requested_time
    assert call(f"rollback_to_instant('trips', '{newest}')") == [{"rollback_result": True}]
    assert fares(tables) == {"a": 1.0, "b": 2.0, "c": 3.0}
    t.upsert(NEWS)
    with pytest.raises(hoodie.HoodieError, match="no savepoint 123"):
        call("rollback_to_savepoint(table => 'trips', instant_time => '123')")
    assert call("rollback_to_savepoint(table => 'trips')") == [{"rollback_savepoint_result": True}]
    assert fares(tables) == {"a": 1.0, "b": 2.0, "c": 3.0}
    assert call("delete_savepoint(table => 'trips')") == [{"delete_savepoint_result": True}]
    with pytest.raises(hoodie.HoodieError, match="no savepoint"):
        call("delete_savepoint(table => 'trips')")


def test_procedures_that_run_services() -> None:
    rows = pa.table({"id": ["a", "b"], "city": ["x", "y"], "fare": [1.0, 2.0]})
    off = {"hoodie.clean.automatic": "false"}
    t = new_table(rows.schema, rows, rows, rows, partition_by="city", type="merge_on_read", properties=off)
    call = caller({"trips": t})
    (planned,) = call("run_compaction(op => 'schedule', table => 'trips')")
    assert (planned["operation_size"], planned["state"]) == (2, "REQUESTED")
    assert call("show_compaction(table => 'trips')") == [planned]
    (done,) = call(f"run_compaction(op => 'execute', table => 'trips', timestamp => {planned['timestamp']})")
    assert done == {**planned, "state": "COMPLETED"}
    assert call("show_compaction(table => 'trips')") == [done]
    with pytest.raises(hoodie.HoodieError, match="not pending"):
        call(f"run_compaction(op => 'execute', table => 'trips', instants => '{planned['timestamp']}')")
    assert call("run_compaction('run', 'trips')") == []
    t.upsert(rows)
    (done,) = call("run_compaction('run', 'trips')")
    assert done["state"] == "COMPLETED"
    (cleaned,) = call("run_clean(table => 'trips', clean_policy => 'keep_latest_commits', retain_commits => 1)")
    assert cleaned["total_files_deleted"] > 0
    assert call("run_clean(table => 'trips', options => 'hoodie.clean.commits.retained=1')") == []
    more = {"id": ["c"], "city": ["x"], "fare": [0.5]}
    t.insert(more, properties={"hoodie.parquet.small.file.limit": "0"})
    (planned,) = call(
        "run_clustering(table => 'trips', order => 'fare', op => 'schedule', selected_partitions => 'city=x')"
    )
    assert call("show_clustering(table => 'trips')") == [planned]
    (done,) = call("run_clustering(table => 'trips', op => 'execute')")
    assert done == {**planned, "state": "COMPLETED"}
    assert call("archive_commits(table => 'trips')") == [{"result": 0}]
    assert call("run_ttl(table => 'trips', retain_days => 1)") == []
    assert call("drop_partition(table => 'trips', partition => 'city=x')") == [{"result": "Success"}]
    assert t.to_arrow()["city"].to_pylist() == ["y"]


@pytest.mark.parametrize(
    "statement",
    [
        "SHOW PARTITIONS trips garbage",
        "SHOW PARTITIONS trips, trips",
        "SHOW PARTITIONS trips CASCADE",
        "SHOW TBLPROPERTIES trips garbage",
        "SHOW INDEXES FROM trips)",
        "ALTER TABLE trips) ADD COLUMN y int",
        "ALTER TABLE trips,trips ADD COLUMN y int",
        "CREATE INDEX record_index ON trips+1 (id)",
        "DROP INDEX record_index ON 5",
    ],
)
def test_what_is_no_name_of_a_table_is_refused(tables: dict[str, Any], statement: str) -> None:
    with pytest.raises(InvalidConfigError, match="expected the name of one table, found"):
        hoodie.sql(None, statement, tables=tables)
    assert not concerns(statement, Names(session=None, tables=tables, storage_options=None))


def test_one_property_of_a_table(tables: dict[str, Any]) -> None:
    for key in ("('hoodie.table.type')", '("hoodie.table.type")', "( hoodie.table.type )"):
        shown = hoodie.sql(None, f"SHOW TBLPROPERTIES trips {key};", tables=tables)
        assert shown.to_pylist() == [{"key": "hoodie.table.type", "value": "COPY_ON_WRITE"}]
        assert concerns(f"SHOW TBLPROPERTIES trips {key}", Names(session=None, tables=tables, storage_options=None))
    (absent,) = hoodie.sql(None, "show tblproperties trips ('x')", tables=tables).to_pylist()
    assert absent == {"key": "x", "value": "Table `trips` does not have property: x"}
