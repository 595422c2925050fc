"""`current_date`, `current_timestamp` and `now` become literals, once a call."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidConfigError
from hoodie.records.condition import Condition
from hoodie.records.sql.clock import Clock
from tests.support.tables import new_table

NOW = datetime(2024, 3, 1, 1, 2, 3, 456789, tzinfo=timezone(timedelta(hours=14)))
CLOCK = Clock(lambda: (NOW, NOW.date()))
TODAY, INSTANT = "DATE '2024-03-01'", "TIMESTAMP '2024-02-29 11:02:03.456789Z'"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("d < current_date()", f"d < {TODAY}"),
        ("d < CURRENT_DATE", f"d < {TODAY}"),
        ("d < date_add( Current_Date ( ) , -30)", f"d < date_add( {TODAY} , -30)"),
        ("curdate() = d", f"{TODAY} = d"),
        ("at > now() OR at = current_timestamp", f"at > {INSTANT} OR at = {INSTANT}"),
        ("now = 1", "now = 1"),
        ("t.current_date = 1 AND t.x", "t.current_date = 1 AND t.x"),
        ("`current_date` = 'now()'", "`current_date` = 'now()'"),
        ("current_timestamp(3) = at", "current_timestamp(3) = at"),
        ('s = "current_date" -- now()', 's = "current_date" -- now()'),
    ],
)
def test_only_the_functions_are_replaced(text: str, expected: str) -> None:
    assert CLOCK.set_in(text, lambda: ["d", "at"]) == expected


def test_a_clock_is_read_once_and_only_if_needed() -> None:
    reads = []

    def read() -> tuple[datetime, date]:
        reads.append(1)
        return datetime.now(UTC), datetime.now(UTC).date()

    clock = Clock(read)
    assert clock.set_in("a = 1", list) == "a = 1"
    assert reads == []
    first = clock.set_in("now()", list)
    assert clock.set_in("now()", list) == first
    assert reads == [1]


def test_a_name_of_a_function_and_of_a_column_is_refused() -> None:
    with pytest.raises(InvalidConfigError, match=r"current_date\(\)"):
        CLOCK.set_in("CURRENT_DATE > 1", lambda: ["Current_Date"])
    assert CLOCK.set_in("current_date() > d", lambda: ["current_date"]) == f"{TODAY} > d"
    rows = pa.table({"id": ["a"], "current_date": [date(2020, 1, 1)]})
    t = new_table(rows.schema, rows)
    for refused in (
        lambda: t.to_arrow(where="current_date > DATE '2019-01-01'"),
        lambda: t.update({"current_date": "current_date"}),
        lambda: t.merge(t.to_arrow(columns=["id"]), "id").when_matched_delete("current_date > '2000'").execute(),
    ):
        with pytest.raises(InvalidConfigError, match="backquotes"):
            refused()
    assert t.count("`current_date` < current_date()") == 1


@pytest.fixture
def days() -> hoodie.Table:
    """Rows of today, 10 and 100 days ago, in partitions by day."""
    today = datetime.now(UTC).date()
    rows = pa.table(
        {
            "id": ["new", "late", "old"],
            "day": [today - timedelta(days=ago) for ago in (0, 10, 100)],
            "at": pa.array([None] * 3, pa.timestamp("us", "UTC")),
        }
    )
    return new_table(rows.schema, rows, partition_by="day")


@pytest.mark.parametrize(
    "where",
    [
        "day < date_add(current_date(), -30)",
        "day < date_sub(current_date, 30)",
        "day < current_date() - 30",
        "day < current_date() - INTERVAL 30 DAYS",
    ],
)
def test_conditions_prune_partitions_by_the_current_date(days: hoodie.Table, where: str) -> None:
    explained = days.explain(where)
    assert (explained.file_slices, explained.all_file_slices) == (1, 3)
    assert days.to_arrow(columns="id", where=where)["id"].to_pylist() == ["old"]
    assert days.delete_where(where).deleted == 1
    assert days.count() == 2


@pytest.mark.parametrize(
    "write",
    [
        lambda t: t.update({"at": "now()"}, where="day <= current_date()"),
        lambda t: t.merge(t.to_arrow(), "id").when_matched_update({"at": "current_timestamp()"}).execute(),
        lambda t: hoodie.sql(None, "UPDATE t SET at = current_timestamp WHERE day <= now()", tables={"t": t}),
    ],
)
def test_all_rows_of_a_write_have_one_time(days: hoodie.Table, write: Callable[[hoodie.Table], object]) -> None:
    before = datetime.now(UTC)
    write(days)
    (at,) = set(days.to_arrow(columns="at")["at"].to_pylist())
    assert before <= at <= datetime.now(UTC)


def test_row_groups_and_files_are_skipped_by_the_time(days: hoodie.Table) -> None:
    schema = days.view().schema().arrow
    bound = Condition.parse(CLOCK.set_in("at > now()", list)).row_group_filter(schema, in_utc=False)
    literal = Condition.parse(f"at > {INSTANT}").row_group_filter(schema, in_utc=False)
    assert bound is not None
    assert str(bound) == str(literal)
