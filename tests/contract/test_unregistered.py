"""What users read who forgot `hoodie.register(spark)`: our message, or one of Spark that a page explains."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

import hoodie
from tests.contract.table_lanes import Lane, trips

pytestmark = [pytest.mark.spark, pytest.mark.connect]
ROWS = trips(("a", 1, 1.0, "sf"))


def test_what_needs_a_registered_session_says_so(spark_lane: Lane, has_data_sources: None) -> None:
    """Messages of Spark itself, which it raises before it calls the data source, are on the page about messages."""
    lane, session = spark_lane, cast("Any", spark_lane.session)
    rows: Any = lane.data(ROWS)
    writer = rows.write.format("hudi").mode("append").option("hoodie.datasource.write.recordkey.field", "id")
    saves: list[Callable[[], Any]] = [
        lambda: writer.saveAsTable("sql_unregistered"),
        lambda: session.sql("CREATE TABLE sql_unregistered USING hudi AS SELECT 'a' AS id"),
    ]
    for save in saves:
        with pytest.raises(Exception, match=r"InvalidConfigError: no path: .* need hoodie\.register\(spark\)"):
            save()
    page = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text()
    of_spark = [re.findall(r"`([^`]+)`", cell) for cell in re.findall(r"^\| Spark: ([^|]+) \|", page, re.MULTILINE)]
    hoodie.register(session)
    session.sql("CREATE TABLE sql_registered (id string, n int) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    hoodie.unregister(session)
    row = session.sql("SELECT 'a' AS id, 1 AS n")
    merge = "MERGE INTO sql_registered t USING (SELECT 'a' AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE"
    calls: dict[str, Callable[[], Any]] = {
        "ErrorIfExists": lambda: rows.write.format("hudi").save(str(lane.path)),
        "Ignore": lambda: rows.write.format("hudi").mode("ignore").save(str(lane.path)),
        "not enough data columns": lambda: row.write.insertInto("sql_registered"),
        "UPDATE": lambda: session.sql("UPDATE sql_registered SET n = 2").collect(),
        "MERGE": lambda: session.sql(merge).collect(),
        "deletes": lambda: session.sql("DELETE FROM sql_registered").collect(),
        "truncates": lambda: session.sql("TRUNCATE TABLE sql_registered").collect(),
        "routine|procedures": lambda: session.sql("CALL show_commits(table => 'sql_registered')").collect(),
        "location": lambda: row.write.format("hudi").mode("overwrite").saveAsTable("sql_registered"),
    }
    try:
        raised: dict[str, str] = {}
        for name, call in calls.items():
            with pytest.raises(Exception, match=name) as found:
                call()
            raised[name] = str(found.value)
        silent = [texts for texts in of_spark if not any(_has(message, texts) for message in raised.values())]
        unnamed = [name for name, message in raised.items() if not any(_has(message, texts) for texts in of_spark)]
        assert (silent, unnamed) == ([], [])
    finally:
        session.sql("DROP TABLE IF EXISTS sql_registered")


def _has(message: str, texts: list[str]) -> bool:
    """Return whether a message has the parts of one of the texts, which releases of Spark word differently."""
    return any(all(part.strip() in message for part in text.split("…")) for text in texts)
