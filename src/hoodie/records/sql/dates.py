"""Dates and times: parts of them, days added to them, and units to which they are truncated. The time zone is UTC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from hoodie.records.sql.cast import cast, floor_divide, utc, year
from hoodie.records.sql.parse import unsupported
from hoodie.records.sql.values import TIMESTAMP, Translate, Value, fold, literal

_DATE_PARTS: dict[type[exp.Expression], Callable[[pc.Expression], pc.Expression]] = {
    exp.Year: year,
    exp.Month: pc.month,
    exp.Day: pc.day,
    exp.DayOfMonth: pc.day,
    exp.Quarter: pc.quarter,
}
_TIME_PARTS: dict[type[exp.Expression], Callable[[pc.Expression], pc.Expression]] = {
    exp.Hour: pc.hour,
    exp.Minute: pc.minute,
    exp.Second: pc.second,
}
_SECOND: Final = 1_000_000
_DAY: Final = 86_400 * _SECOND
_CYCLE: Final = 146_097 * _DAY
"""The calendar repeats every 400 years."""
_STEPS: Final = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": _SECOND,
    "minute": 60 * _SECOND,
    "hour": 3_600 * _SECOND,
    "day": _DAY,
    "dd": _DAY,
    "week": 7 * _DAY,
}
_FIRST_MONDAY: Final = -3 * _DAY
_CALENDAR_UNITS: Final = {
    "year": "year",
    "yyyy": "year",
    "yy": "year",
    "quarter": "quarter",
    "month": "month",
    "mm": "month",
    "mon": "month",
}


def date_part(node: exp.Expression, translate: Translate) -> Value:
    """Translate YEAR, QUARTER, MONTH, DAY of a date, timestamp (in UTC) or text."""
    inner = node.this.this if isinstance(node.this, exp.TsOrDsToDate) else node.this
    value = cast(translate(inner), pa.date32())
    return Value(_DATE_PARTS[type(node)](value.expression).cast(pa.int32()), pa.int32())


def time_part(node: exp.Expression, translate: Translate) -> Value:
    """Translate HOUR, MINUTE, SECOND of a timestamp, in UTC."""
    value = translate(node.this)
    if value.family != "timestamp":
        raise unsupported(node, f"of {value.type}")
    return Value(_TIME_PARTS[type(node)](utc(value)).cast(pa.int32()), pa.int32())


def to_date(node: exp.TsOrDsToDate, translate: Translate) -> Value:
    """Translate TO_DATE without a format."""
    if node.args.get("format") is not None:
        raise unsupported(node, "with a format")
    return cast(translate(node.this), pa.date32())


def date_add(node: exp.Anonymous, translate: Translate) -> Value:
    """Translate DATE_ADD and DATE_SUB: days are added to a date, or to the date of a timestamp or a text."""
    if len(node.expressions) != 2:
        raise unsupported(node, "only with a date and a number of days")
    day, days = map(translate, node.expressions)
    if day.family not in ("date", "timestamp", "string", "null"):
        raise unsupported(node, f"of {day.type}")
    found = add_days(cast(day, pa.date32()), "-" if node.name.lower() == "date_sub" else "+", days)
    if found is None:
        raise unsupported(node, f"with {days.type} days; CAST them AS INT")
    return found


def add_days(day: Value, symbol: str, days: Value) -> Value | None:
    """Add days to a date or subtract them; an overflow is an error. None for days of a type that Spark refuses."""
    if pa.types.is_duration(days.type) and days.is_literal:
        days = literal(days.literal.value // 86_400, pa.int32())  # type: ignore[attr-defined]
    if days.family != "null" and (days.family != "integer" or days.type not in (pa.int8(), pa.int16(), pa.int32())):
        return None
    compute = pc.add_checked if symbol == "+" else pc.subtract_checked
    found = compute(day.expression.cast(pa.int32()), cast(days, pa.int32()).expression)
    value = Value(found.cast(pa.date32()), pa.date32())
    return fold(value) if day.is_literal and days.is_literal else value


def interval(node: exp.Interval, translate: Translate) -> Value:
    """Translate INTERVAL of whole days, which Spark adds to dates; its type is a duration in seconds."""
    written = node.this.name if isinstance(node.this, exp.Literal) else ""
    unit = node.text("unit").upper()
    if unit not in ("DAY", "DAYS") or not written.lstrip("+-").isdecimal() or abs(int(written)) >= 2**31:
        raise unsupported(node, "only whole days, INTERVAL 30 DAYS")
    return literal(int(written) * 86_400, pa.duration("s"))


def date_trunc(node: exp.Anonymous, translate: Translate) -> Value:
    """Translate DATE_TRUNC with a literal unit, in UTC; NULL for a unit that Spark does not have, as in Spark."""
    if len(node.expressions) != 2:
        raise unsupported(node, "only with a unit and a timestamp")
    unit, value = map(translate, node.expressions)
    if not unit.is_literal or not isinstance(unit.literal, str | None):
        raise unsupported(node, "only with a literal unit")
    if value.family not in ("date", "timestamp", "string", "null"):
        raise unsupported(node, f"of {value.type}")
    name, moment = (unit.literal or "").lower(), cast(value, TIMESTAMP)
    if name not in _STEPS and name not in _CALENDAR_UNITS:
        return literal(None, TIMESTAMP)
    ticks = moment.expression.cast(pa.int64())
    found = _floored(ticks, _STEPS[name]) if name in _STEPS else _first_of(ticks, _CALENDAR_UNITS[name])
    truncated = Value(found.cast(TIMESTAMP), TIMESTAMP)
    return fold(truncated) if moment.is_literal else truncated


def _floored(ticks: pc.Expression, step: int) -> pc.Expression:
    """Return the start of the step that holds each number of microseconds; weeks start on Monday."""
    if step == 1:
        return ticks
    offset = _number(_FIRST_MONDAY if step == _STEPS["week"] else 0)
    steps = floor_divide(pc.subtract_checked(ticks, offset), step)
    return pc.add_checked(pc.multiply_checked(steps, _number(step)), offset)


def _first_of(ticks: pc.Expression, unit: str) -> pc.Expression:
    """Return the start of the month, quarter or year; Arrow itself has years of 16 bits."""
    cycles = pc.multiply_checked(floor_divide(ticks, _CYCLE), _number(_CYCLE))
    near = pc.subtract_checked(ticks, cycles).cast(pa.timestamp("us"))
    return pc.add_checked(pc.floor_temporal(near, unit=unit).cast(pa.int64()), cycles)


def _number(value: int) -> pc.Expression:
    return pc.scalar(pa.scalar(value, pa.int64()))
