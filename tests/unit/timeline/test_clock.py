from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import InvalidConfigError
from hoodie.format.table.table_config import TimelineZone
from hoodie.timeline import (
    Action,
    Instant,
    InstantClock,
    State,
    Timeline,
    instant_time_of_ms,
    parse_instant_time,
    to_instant_time,
)
from tests.support.zones import local_zone

UTC_ZONE, LOCAL = TimelineZone.UTC, TimelineZone.LOCAL
MS = 1_795_264_481_258  # 2026-11-21T12:34:41.258Z


@pytest.fixture(params=["UTC", "America/New_York", "Asia/Kolkata"])
def zone_name(request: pytest.FixtureRequest) -> Iterator[str]:
    with local_zone(request.param) as name:
        yield name


def timeline(*times: str) -> Timeline:
    return Timeline.of(
        Instant(requested_time=t, action=Action.COMMIT, state=State.REQUESTED, completion_time=None) for t in times
    )


def test_format_and_parse() -> None:
    assert instant_time_of_ms(MS, UTC_ZONE) == "20261121123441258"
    assert parse_instant_time("20261121123441258", UTC_ZONE) == datetime(2026, 11, 21, 12, 34, 41, 258_000, UTC)
    assert parse_instant_time("20261121123441", UTC_ZONE).microsecond == 999_000
    assert parse_instant_time("20261121123523175001", UTC_ZONE).microsecond == 175_000
    moment = datetime(2024, 1, 31, 12, 30, 15, 123_000)
    # A timestamp of pandas without a zone is local time.
    assert to_instant_time(pd.Timestamp(moment), UTC_ZONE) == to_instant_time(moment, UTC_ZONE)


def test_local_times(zone_name: str) -> None:
    text = instant_time_of_ms(MS, LOCAL)
    assert text == {
        "UTC": "20261121123441258",
        "America/New_York": "20261121073441258",
        "Asia/Kolkata": "20261121180441258",
    }[zone_name]  # fmt: skip
    assert parse_instant_time(text, LOCAL).timestamp() == MS / 1000
    aware = datetime(2026, 11, 21, 12, 34, 41, 258_999, UTC)
    assert to_instant_time(aware, LOCAL) == text
    assert to_instant_time(aware, UTC_ZONE) == "20261121123441258"
    naive = aware.astimezone().replace(tzinfo=None)
    assert to_instant_time(naive, LOCAL)[:14] == text[:14]
    assert (
        to_instant_time(naive, UTC_ZONE)[:14] == to_instant_time(naive.isoformat(), UTC_ZONE)[:14] == "20261121123441"
    )
    assert to_instant_time("2026-11-21T01:02:03", LOCAL) == "20261121010203000"
    for end in (datetime.min, datetime.max):
        assert to_instant_time(end, UTC_ZONE)[:4] == f"{end.year:04}"


@pytest.mark.parametrize(
    "text",
    ["", "2026", "00000000000000010", "20261321000000000", "2026112112344125x", "2026-11-21", "20261121 23441258"],
)
def test_texts_that_are_no_times(text: str) -> None:
    with pytest.raises(InvalidConfigError, match="not an instant time"):
        parse_instant_time(text, UTC_ZONE)


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("20261121123441258", "20261121123441258"),
        ("20261121123441", "20261121123441"),
        ("20261121123523175001", "20261121123523175001"),
        (" 20261121123441258 ", "20261121123441258"),
        ("2026-11-21", "20261121000000000"),
        (date(2026, 11, 21), "20261121000000000"),
        ("2026-11-21T12:34:41", "20261121123441000"),
        ("2026-11-21 12:34:41.258", "20261121123441258"),
        ("2026-11-21T12:34:41.258Z", "20261121123441258"),
        ("2026-11-21T12:34:41+02:00", "20261121103441000"),
        (datetime(2026, 11, 21, 12, tzinfo=timezone(timedelta(hours=-5))), "20261121170000000"),
        (datetime(987, 1, 2), "09870102000000000"),
    ],
)
def test_what_users_say_for_a_time(when: str | date, expected: str) -> None:
    assert to_instant_time(when, UTC_ZONE) == expected


@pytest.mark.parametrize("text", ["yesterday", "", "2026-13-01", "123", "12:30"])
def test_what_is_not_a_time(text: str) -> None:
    with pytest.raises(InvalidConfigError, match="ISO date"):
        to_instant_time(text, UTC_ZONE)


@given(st.integers(0, 4_000_000_000_000))
def test_milliseconds_round_trip(ms: int) -> None:
    text = instant_time_of_ms(ms, UTC_ZONE)
    assert len(text) == 17
    assert round(parse_instant_time(text, UTC_ZONE).timestamp() * 1000) == ms


@given(st.lists(st.integers(MS - 3_600_000, MS + 10), min_size=2, max_size=30))
def test_times_grow_whatever_the_clock_does(readings: list[int]) -> None:
    clock = InstantClock(UTC_ZONE, now_ms=iter(readings).__next__)
    given_out = [clock.next_time() for _ in readings]
    assert all(a < b for a, b in itertools.pairwise(given_out))
    assert all(len(text) == 17 for text in given_out)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ((), "20261121123441258"),
        (("20261121123441257",), "20261121123441258"),
        (("20261121123441258",), "20261121123441259"),
        (("20261121123441258", "20270101000000000"), "20270101000000001"),
        (("20261231235959999",), "20270101000000000"),
        (("20261121123441258001",), "20261121123441259"),
        (("20261121123441",), "20261121123441258"),
        (("20261121123442",), "20261121123443000"),
        (("00000000000000010",), "20261121123441258"),
    ],
)
def test_times_are_greater_than_the_timeline(known: tuple[str, ...], expected: str) -> None:
    assert InstantClock(UTC_ZONE, now_ms=lambda: MS).next_time(timeline(*known)) == expected


def test_a_later_time_that_is_no_date_is_refused() -> None:
    with pytest.raises(InvalidConfigError, match="9" * 17):
        InstantClock(UTC_ZONE, now_ms=lambda: MS).next_time(timeline("9" * 17))


def test_completion_times_count() -> None:
    done = Instant(
        requested_time="20261121123441000",
        action=Action.COMMIT,
        state=State.COMPLETED,
        completion_time="20261121123441300",
    )
    assert InstantClock(UTC_ZONE, now_ms=lambda: MS).next_time(Timeline.of([done])) == "20261121123441301"


def test_threads_never_share_a_time() -> None:
    clock = InstantClock(UTC_ZONE, now_ms=lambda: MS)
    given_out: list[str] = []
    threads = [
        threading.Thread(target=lambda: given_out.extend(clock.next_time() for _ in range(200))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(given_out)) == 800


def test_the_real_clock() -> None:
    assert InstantClock().next_time() > "2026"
