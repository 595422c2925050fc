"""`hoodie.sql` in a session: sources are views and queries, tables are in the catalog, results are DataFrames."""

from __future__ import annotations

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidConfigError, SchemaMismatchError
from tests.contract.table_lanes import Lane, trips
from tests.support.odd_types import LEAVES
from tests.support.rows import assert_same_rows
from tests.support.tables import values_of

FIRST = trips(("a", 1, 1.0, "sf"), ("b", 1, 2.0, "nyc"), ("c", 1, 3.0, "sf"))


@pytest.mark.surface
def test_statements_of_a_session(lane: Lane) -> None:
    session = lane.session
    table = lane.table(FIRST, partition_by="city", merge_mode="commit_time")
    news = trips(("a", 2, 10.0, "sf"), ("n", 2, 7.0, "la"))
    # Types as Polars has them; Spark's own conversion refuses some, and cuts nanoseconds.
    odd = news.set_column(0, "id", LEAVES["coded views"](news["id"].chunk(0)))
    odd = odd.set_column(3, "city", news["city"].cast(pa.string_view()))
    known = {"trips": table, "more": odd}
    if session is None:
        merge = "MERGE INTO trips USING more ON trips.id = more.id"
    else:
        lane.data(news).createOrReplaceTempView("hoodie_news")
        merge = (
            f"MERGE INTO hoodie.`{lane.path}` AS trips USING "
            f"(SELECT n.* FROM hoodie_news n LEFT JOIN hoodie.`{lane.path}` ON n.id = `{lane.path}`.id "
            "JOIN more ON n.id = more.id) AS more ON trips.id = more.id"
        )
    clauses = (
        "WHEN MATCHED THEN UPDATE SET fare = trips.fare + more.fare "
        "WHEN NOT MATCHED AND more.city = 'la' THEN INSERT * "
        "WHEN NOT MATCHED BY SOURCE AND trips.fare > 2 THEN DELETE"
    )
    result = hoodie.sql(session, f"{merge} {clauses}", tables=known)
    assert (result.inserted, result.updated, result.deleted) == (1, 1, 1)
    expected = trips(("a", 1, 11.0, "sf"), ("b", 1, 2.0, "nyc"), ("n", 2, 7.0, "la"))
    assert_same_rows(lane.read(table), expected, key="id")
    commits = lane.arrow(hoodie.sql(session, "CALL show_commits('trips', 1)", tables=known))
    assert commits["commit_time"].to_pylist() == [result.instant]
    if session is not None:
        views = [view.name for view in session.catalog.listTables()]
        assert not [view for view in views if view.startswith("hoodie_") and len(view) > len("hoodie_news")]
        with pytest.raises(InvalidConfigError, match="no path for a temporary view"):
            hoodie.sql(session, "DELETE FROM hoodie_news")
        fine = odd.append_column("at", pa.array([1, 2], pa.timestamp("ns")))
        with pytest.raises(SchemaMismatchError, match="column 'at'"):
            hoodie.sql(
                session, f"MERGE INTO trips USING fine s ON trips.id = s.id {UPSERT}", tables={**known, "fine": fine}
            )
        of_view = f"MERGE INTO trips USING hoodie_news s ON trips.id = s.id {UPSERT}"
        assert hoodie.sql(session, of_view, tables=known).updated == 2


UPSERT = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"


@pytest.mark.spark
def test_a_table_of_the_catalog(spark_lane: Lane, has_data_sources: None) -> None:
    table, spark = spark_lane.table(FIRST), spark_lane.session
    spark.sql(f"CREATE TABLE hoodie_trips USING hoodie OPTIONS (path '{spark_lane.path}')")
    try:
        assert hoodie.sql(spark, "UPDATE hoodie_trips SET fare = 9 WHERE id = 'b'").updated == 1
        assert hoodie.sql(spark, "CALL show_timeline(table => 'default.hoodie_trips')").count() == 2
    finally:
        spark.sql("DROP TABLE hoodie_trips")
    assert values_of(table, "id", "fare") == [("a", 1.0), ("b", 9.0), ("c", 3.0)]
