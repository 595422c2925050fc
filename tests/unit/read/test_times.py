"""Times that read less than they seem to get a warning: a date without a time, and a time before the first commit."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.cli import main
from hoodie.read.times import as_of_jvm
from hoodie.storage import MemoryStore
from hoodie.timeline import in_local_time, parse_instant_time
from tests.support.tables import new_table
from tests.support.zones import local_zone

ROWS = pa.table({"id": ["a", "b"]})
READS: dict[str, Callable[[hoodie.Table, Any], Any]] = {
    "to_arrow": lambda table, when: table.to_arrow(as_of=when),
    "head": lambda table, when: table.head(as_of=when),
    "count": lambda table, when: table.count(as_of=when),
    "record_locations": lambda table, when: table.record_locations(["a"], as_of=when),
    "inspect.index": lambda table, when: table.inspect.index(as_of=when),
}
each_read = pytest.mark.parametrize("read", READS.values(), ids=READS.keys())


@pytest.fixture
def table() -> hoodie.Table:
    """A table with one commit."""
    return new_table(ROWS.schema, ROWS)


def day_of(table: hoodie.Table) -> date:
    """The day of the newest commit, in local time."""
    latest = table.timeline.latest()
    assert latest is not None
    return parse_instant_time(latest.requested_time, table.view().layout.zone).astimezone().date()


@each_read
@pytest.mark.parametrize("as_text", [True, False])
def test_a_date_leaves_out_the_commits_of_its_day(
    table: hoodie.Table, read: Callable[[hoodie.Table, Any], Any], as_text: bool
) -> None:
    day = day_of(table)
    begin = rf"as_of='{day}' means the first millisecond of the day in local time \(UTC[+-].*\)"
    expected = f"{begin}: 1 commit of that day is not included"
    with pytest.warns(hoodie.HoodieWarning, match=f"{expected}; pass a time, or as_of='{day + timedelta(1)}'"):
        read(table, day.isoformat() if as_text else day)


@each_read
def test_a_time_before_the_first_commit(table: hoodie.Table, read: Callable[[hoodie.Table, Any], Any]) -> None:
    first = table.timeline.instants[0].requested_time
    with pytest.warns(
        hoodie.HoodieWarning, match=rf"as_of='2001-02-03' in local time \(.*\) is before {first}, the first commit"
    ):
        read(table, "2001-02-03")
    with pytest.warns(hoodie.HoodieWarning, match=rf"as_of='20010203000000000' is before {first}, the first commit"):
        read(table, "requested:20010203000000000")


def test_changes_until_a_date(table: hoodie.Table) -> None:
    with pytest.warns(hoodie.HoodieWarning, match=r"until='.*1 commit of that day is not included"):
        assert table.changes(until=day_of(table)).num_rows == 0


def test_times_that_mean_what_they_say_get_no_warning(table: hoodie.Table) -> None:
    tomorrow, instant = day_of(table) + timedelta(1), table.timeline.instants[0].requested_time
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert table.count(as_of=tomorrow) == table.count(as_of=tomorrow.isoformat()) == table.count(as_of=instant) == 2
        assert table.changes(since=day_of(table), until=tomorrow).num_rows == 2
        assert table.to_arrow(as_of=date.max).num_rows == 2
    assert new_table(ROWS.schema).count(as_of="2001-02-03") == 0


@pytest.mark.parametrize(
    ("command", "option", "answer"), [("count", "--as-of", "0"), ("changes", "--until", "0 rows in the table")]
)
def test_the_command_line_prints_a_note(
    table: hoodie.Table, capsys: pytest.CaptureFixture[str], command: str, option: str, answer: str
) -> None:
    day = day_of(table)
    with pytest.raises(SystemExit) as exit_:
        main([command, table.path, option, str(day)])
    printed = capsys.readouterr()
    assert (exit_.value.code, printed.out.splitlines()[-1]) == (0, answer)
    zone = in_local_time(day).isoformat()[-6:]
    assert printed.err == (
        f"note: {option} '{day}' means the first millisecond of the day in local time (UTC{zone}): 1 commit of that "
        f"day is not included; pass a time, or {option} '{day + timedelta(1)}' for the whole day\n"
    )


@pytest.fixture(params=["America/New_York", "Asia/Kolkata"])
def zone(request: pytest.FixtureRequest) -> Iterator[None]:
    with local_zone(request.param):
        yield


@pytest.mark.parametrize("timeline", ["UTC", "LOCAL"])
@pytest.mark.usefixtures("zone")
def test_a_time_without_a_zone_is_local_time(timeline: str, capsys: pytest.CaptureFixture[str]) -> None:
    uri = MemoryStore().uri("")
    zone_of_timeline = {"hoodie.table.timeline.timezone": timeline}
    table = hoodie.create(uri, ROWS, record_key="id", properties=zone_of_timeline, spark=False)
    before = datetime.now()
    time.sleep(0.002)
    table.upsert(ROWS)
    time.sleep(0.002)
    after = datetime.now()
    assert table.count(as_of=after) == table.count(as_of=after.isoformat()) == 2
    assert table.count(as_of=after.astimezone(UTC)) == 2
    for when in (before, before.isoformat()):
        with pytest.warns(
            hoodie.HoodieWarning, match=r"in local time \(UTC(-0[45]:00|\+05:30); \d{17} on the timeline"
        ):
            assert table.count(as_of=when) == 0
    assert table.changes(since=before, until=after).num_rows == 2
    for when, expected in ((before, "0\n"), (after, "2\n")):
        with pytest.raises(SystemExit):
            main(["count", uri, "--as-of", when.isoformat()])
        assert capsys.readouterr().out == expected


@pytest.mark.usefixtures("zone")
def test_options_of_the_jvm_are_wall_clock_of_the_timeline() -> None:
    assert as_of_jvm("2026-11-25 12:00:00") == "requested:20261125120000000"
    assert as_of_jvm("1700000000") == "requested:2023-11-14T22:13:20+00:00"
