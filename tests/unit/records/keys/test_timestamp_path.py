"""Partition values written as formatted times: what golden cases do not show."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import InvalidConfigError, PartitionPathError
from hoodie.records.keys.timestamp_path import joda_pattern, timestamp_format

MOMENT = pa.array([datetime(2026, 7, 1, 12, 30, 15, 123000), datetime(1999, 1, 3, 0, 5, 9)], pa.timestamp("ms"))


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("yyyy/MM/dd", ["2026/07/01", "1999/01/03"]),
        ("y yy yyyyy M d H m s", ["2026 26 02026 7 1 12 30 15", "1999 99 01999 1 3 0 5 9"]),
        ("MMM MMMM E EEEE D", ["Jul July Wed Wednesday 182", "Jan January Sun Sunday 3"]),
        ("hh a K kk", ["12 PM 0 12", "12 AM 0 24"]),
        ("S SS SSS SSSS", ["1 12 123 1230", "0 00 000 0000"]),
        ("xxxx-'W'ww-e", ["2026-W27-3", "1998-W53-7"]),
        ("yyyy'year'''", ["2026year'", "1999year'"]),
        ("''yyyy", ["'2026", "'1999"]),
    ],
)
def test_letters_of_output_patterns(pattern: str, expected: list[str]) -> None:
    assert joda_pattern(pattern).format(MOMENT).to_pylist() == expected


@pytest.mark.parametrize("pattern", ["yyyy'", "yyyy G", "qq"])
def test_patterns_without_meaning_are_refused(pattern: str) -> None:
    with pytest.raises(InvalidConfigError, match="date pattern"):
        joda_pattern(pattern)


@pytest.mark.parametrize("pattern", ["MM/dd", "yy-MM", "yyyy yyyy", "yyyy E", "yyyy-MMM"[:4] + " D"])
def test_input_patterns_that_cannot_be_read_are_refused(pattern: str) -> None:
    with pytest.raises(InvalidConfigError, match="input pattern"):
        joda_pattern(pattern).check_parses()


def text(values: pa.Array, **options: str) -> list[str]:
    named = {name.replace("__", "."): value for name, value in options.items()}
    texts: list[str] = timestamp_format({"output.dateformat": "yyyy-MM-dd HH:mm", **named}).text(values).to_pylist()
    return texts


@pytest.mark.parametrize(
    ("pattern", "value", "expected"),
    [
        ("yyyyMMdd", "20260701", "2026-07-01 00:00"),
        ("yyyyMMddHHmmssSSS", "20260701123015123", "2026-07-01 12:30"),
        ("yyyy-M-d", "2026-7-1", "2026-07-01 00:00"),
        ("dd.MM.yyyy HH:mm", "01.07.2026 12:30", "2026-07-01 12:30"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSZ", "2026-07-01T12:30:15.5+02:00", "2026-07-01 12:30"),
        ("yyyy", "2024", "2024-01-01 00:00"),
    ],
)
def test_input_patterns(pattern: str, value: str, expected: str) -> None:
    options = {"timestamp__type": "DATE_STRING", "input__dateformat": pattern}
    assert text(pa.array([value, None]), **options) == [expected, "1970-01-01 00:00"]


@pytest.mark.parametrize("value", ["2026-13-01", "2026-02-30", "2026-07-01x", " 2026-07-01", ""])
def test_texts_that_are_no_dates_are_refused(value: str) -> None:
    with pytest.raises(PartitionPathError):
        text(pa.array(["2026-01-01", value]), timestamp__type="DATE_STRING", input__dateformat="yyyy-MM-dd")


def test_times_that_a_zone_skips_are_refused() -> None:
    options = {"timestamp__type": "DATE_STRING", "input__dateformat": "yyyy-MM-dd HH:mm", "timezone": "Europe/Berlin"}
    assert text(pa.array(["2026-03-29 01:59"]), **options) == ["2026-03-29 01:59"]
    with pytest.raises(PartitionPathError, match="does not exist"):
        text(pa.array(["2026-03-29 02:30"]), **options)


@pytest.mark.parametrize(
    ("zone", "expected"),
    [("GMT+8:00", "08:00"), ("+05:30", "05:30"), ("UTC", "00:00"), ("Asia/Tokyo", "09:00"), ("GMT-3", "21:00")],
)
def test_zones(zone: str, expected: str) -> None:
    assert text(pa.array([0]), timestamp__type="UNIX_TIMESTAMP", timezone=zone)[0].endswith(expected)


@pytest.mark.parametrize(
    ("values", "kind", "unit"),
    [
        (pa.array([1], pa.timestamp("us")), "EPOCHMILLISECONDS", "SECONDS"),
        (pa.array([1], pa.timestamp("ms")), "EPOCHMICROSECONDS", "SECONDS"),
        (pa.array([date(2026, 1, 1)]), "UNIX_TIMESTAMP", "SECONDS"),
        (pa.array([1]), "DATE_STRING", "SECONDS"),
        (pa.array(["2026"]), "UNIX_TIMESTAMP", "SECONDS"),
        (pa.array([True]), "UNIX_TIMESTAMP", "SECONDS"),
        (pa.array([2**62]), "UNIX_TIMESTAMP", "SECONDS"),
        (pa.array([253402300800]), "UNIX_TIMESTAMP", "SECONDS"),
        (pa.array([-62135596801]), "UNIX_TIMESTAMP", "SECONDS"),
    ],
    ids=str,
)
def test_columns_that_do_not_go_with_the_type_are_refused(values: pa.Array, kind: str, unit: str) -> None:
    options = {"timestamp__type": kind, "input__dateformat": "yyyy", "timestamp__scalar__time__unit": unit}
    with pytest.raises(PartitionPathError):
        text(values, **options)


@pytest.mark.parametrize(
    ("unit", "value", "expected"),
    [
        ("NANOSECONDS", 60 * 10**9, "1970-01-01 00:01"),
        ("MICROSECONDS", -60 * 10**6, "1969-12-31 23:59"),
        ("MINUTES", 61, "1970-01-01 01:01"),
        ("DAYS", -1, "1969-12-31 00:00"),
    ],
)
def test_scalar_units(unit: str, value: int, expected: str) -> None:
    assert text(pa.array([value]), timestamp__type="SCALAR", timestamp__scalar__time__unit=unit) == [expected]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"timestamp.type": "DAYS", "output.dateformat": "yyyy"},
        {"timestamp.type": "SCALAR", "timestamp.scalar.time.unit": "WEEKS", "output.dateformat": "yyyy"},
        {"timestamp.type": "UNIX_TIMESTAMP"},
        {"timestamp.type": "UNIX_TIMESTAMP", "output.dateformat": "yyyy Z"},
        {"timestamp.type": "UNIX_TIMESTAMP", "output.dateformat": "yyyy", "timezone": "Mars/Olympus"},
        {"timestamp.type": "DATE_STRING", "output.dateformat": "yyyy"},
    ],
    ids=str,
)
def test_options_that_are_missing_or_unknown_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfigError):
        timestamp_format(options)


BY_JVM = [
    ({"timestamp__type": "SCALAR", "timestamp__scalar__time__unit": "DAYS"}, None, "1970-01-02-00-00-00-000"),
    ({"timestamp__type": "SCALAR", "timestamp__scalar__time__unit": "HOURS"}, None, "1970-01-01-01-00-00-000"),
    ({"timestamp__type": "UNIX_TIMESTAMP"}, None, "1970-01-01-00-00-01-000"),
    ({"timestamp__type": "EPOCHMILLISECONDS"}, None, "1970-01-01-00-00-00-001"),
    (
        {"timestamp__type": "EPOCHMILLISECONDS", "input__timezone": "Asia/Tokyo"},
        1_700_000_000_000,
        "2023-11-14-22-13-20-000",
    ),
]
TEXTS_BY_JVM = [
    ("yyyy-MM-dd HH", {"input__timezone": "Asia/Tokyo", "output__timezone": "America/New_York"}, None,
     "1969-12-31-19-00-00-000"),
    ("yyyy-MM-dd HH", {}, None, "1970-01-01-00-00-00-000"),
    ("yyyy-MM-dd'T'HH:mm:ssZ", {"input__timezone": "Europe/Berlin"}, "2026-03-29T02:30:00Z", "2026-03-29-04-30-00-000"),
]  # fmt: skip
ALL_PARTS = {"output__dateformat": "yyyy-MM-dd-HH-mm-ss-SSS"}


@pytest.mark.parametrize(("options", "value", "expected"), BY_JVM)
def test_numbers_as_jvm_hudi_1_2_0_writes_them(options: dict[str, str], value: int | None, expected: str) -> None:
    """Null is the number 1, and the zone of the input does not count."""
    assert text(pa.array([value], pa.int64()), **ALL_PARTS, **options) == [expected]


@pytest.mark.parametrize(("pattern", "options", "value", "expected"), TEXTS_BY_JVM)
def test_texts_as_jvm_hudi_1_2_0_writes_them(
    pattern: str, options: dict[str, str], value: str | None, expected: str
) -> None:
    """Null is read from its own text. An offset counts in the hour that summer time skips in the zone of the input."""
    given = {"timestamp__type": "DATE_STRING", "input__dateformat": pattern, **ALL_PARTS, **options}
    assert text(pa.array([value], pa.string()), **given) == [expected]


def test_null_in_a_pattern_with_an_offset() -> None:
    given = {"timestamp__type": "DATE_STRING", "input__dateformat": "yyyy-MM-dd'T'HH:mm:ss.SSSZ", **ALL_PARTS}
    zones = {"input__timezone": "Asia/Tokyo", "output__timezone": "America/New_York"}
    assert text(pa.array([None], pa.string()), **given, **zones) == ["1969-12-31-19-00-00-001"]
