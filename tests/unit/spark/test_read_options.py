"""The option `where` of the data source: Python workers evaluate it in UTC, or refuse it."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext

import hoodie
from hoodie.errors import InvalidConfigError
from hoodie.spark.merged import SlicesPartition
from hoodie.spark.read_options import ReadOptions, read_options
from hoodie.spark.types import arrow_schema_of, spark_schema_of
from tests.support.tables import new_table

SCHEMA = pa.schema([("id", pa.string()), ("at", pa.timestamp("us", "UTC")), ("day", pa.date32())])
AT = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


class Task:
    """A task of a session with a setting of its time zone, or without one."""

    def __init__(self, zone: str | None) -> None:
        self._zone = zone

    def getLocalProperty(self, name: str) -> str | None:
        return {"spark.sql.session.timeZone": self._zone}[name]


@pytest.fixture
def table(tmp_path: Path) -> hoodie.Table:
    rows = pa.table({"id": ["a"], "at": [AT], "day": [AT.date()]}, schema=SCHEMA)
    return new_table(SCHEMA, rows, path=tmp_path / "t")


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def partitions(table: hoodie.Table, where: str) -> list[SlicesPartition]:
    options = ReadOptions.of(*read_options({"path": table.path, "where": where}))
    return options.partitions(arrow_schema_of(spark_schema_of(options.schema())))


def rows(table: hoodie.Table, where: str, zone: str | None, monkeypatch: pytest.MonkeyPatch) -> int:
    """The number of rows that the tasks of a session read."""
    found = partitions(table, where)
    with monkeypatch.context() as patched:
        patched.setattr(TaskContext, "get", lambda: Task(zone))
        return sum(batch.num_rows for part in found for batch in part.batches())


OF_THE_ZONE = (
    "at >= '2026-01-01'",
    "id = 'a' AND NOT (hour(at) = 7)",
    "day <= current_date()",
    "at > DATE '2027-01-01'",
)


@pytest.mark.parametrize("where", OF_THE_ZONE)
def test_conditions_of_another_zone_are_refused(
    table: hoodie.Table, monkeypatch: pytest.MonkeyPatch, new_york: None, where: str
) -> None:
    expected = len(table.to_arrow(where=where))
    for utc in ("UTC", "Etc/UTC", "Z"):
        assert rows(table, where, utc, monkeypatch) == expected
    for zone in ("America/New_York", None):
        with pytest.raises(InvalidConfigError, match=r"spark\.sql\.session\.timeZone is (America|not set, on a mach)"):
            rows(table, where, zone, monkeypatch)


@pytest.mark.parametrize("where", ["at >= TIMESTAMP '2026-01-01 00:00:00Z'", "day = DATE '2026-01-01'", "at <= now()"])
def test_conditions_with_the_same_rows_in_each_zone_are_evaluated(
    table: hoodie.Table, monkeypatch: pytest.MonkeyPatch, new_york: None, where: str
) -> None:
    for zone in ("UTC", "America/New_York", None):
        assert rows(table, where, zone, monkeypatch) == 1
