"""Format partition values as times: the TIMESTAMP key generator.

On-disk format: docs/format/table.md §1.2 (`hoodie.keygen.timebased.*`) and §3.4; checked by tests/golden/keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config.patterns import check_pattern, split_text
from hoodie.errors import InvalidConfigError, PartitionPathError
from hoodie.records.keys.joda_pattern import JodaPattern, joda_pattern

_MILLIS_OF_UNIT: Final[Mapping[str, tuple[int, int]]] = {
    "NANOSECONDS": (1, 1_000_000),
    "MICROSECONDS": (1, 1_000),
    "MILLISECONDS": (1, 1),
    "SECONDS": (1_000, 1),
    "MINUTES": (60_000, 1),
    "HOURS": (3_600_000, 1),
    "DAYS": (86_400_000, 1),
}
_UNIT_OF_TYPE: Final = {
    "UNIX_TIMESTAMP": "SECONDS",
    "EPOCHMILLISECONDS": "MILLISECONDS",
    "EPOCHMICROSECONDS": "MICROSECONDS",
}
_UNIT_OF_ARROW: Final = {"s": "SECONDS", "ms": "MILLISECONDS", "us": "MICROSECONDS", "ns": "NANOSECONDS"}
_TEXT_TYPES: Final = ("DATE_STRING", "MIXED")
_FIRST_MILLIS: Final = int(datetime(1, 1, 1, tzinfo=UTC).timestamp()) * 1000
_END_MILLIS: Final = (int(datetime(9999, 12, 31, tzinfo=UTC).timestamp()) + 86400) * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestampFormat:
    """Converts values of a column to times, and times to text; build it with `timestamp_format`."""

    timestamp_type: str
    scalar_unit: str | None
    """Java's name of the unit of numbers; None if the values are text."""
    input_patterns: tuple[JodaPattern, ...]
    input_zone: str | None
    output_pattern: JodaPattern
    output_zone: str | None

    def text(self, values: pa.Array) -> pa.StringArray:
        """Return each value as a formatted time; null is formatted as the start of 1970, as in the JVM.

        Raises:
            PartitionPathError: the column's type does not match the option `timestamp.type`, text does not match the
                input patterns, or a time is outside the years 1 to 9999.
        """
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            local = self._local_of_text(pc.cast(values, pa.string()))
        else:
            local = _in_zone(self._instants(values), self.output_zone or self.input_zone or "UTC")
        return self.output_pattern.format(local)

    def _instants(self, values: pa.Array) -> pa.TimestampArray:
        """Convert numbers, dates and timestamps to timestamps in UTC, in milliseconds."""
        self._check_type(values.type)
        numbers = pc.cast(values, pa.int32()) if pa.types.is_date32(values.type) else values
        numbers = pc.fill_null(pc.cast(numbers, pa.int64(), safe=False), 0)
        factor, divisor = _MILLIS_OF_UNIT[self.scalar_unit or ""]
        try:
            millis = pc.divide(pc.multiply_checked(numbers, factor), divisor)
        except pa.ArrowInvalid as error:
            raise PartitionPathError(f"a number in {self.scalar_unit} is too large for a time: {error}") from error
        bad = pc.or_(pc.less(millis, _FIRST_MILLIS), pc.greater_equal(millis, _END_MILLIS))
        if pc.any(bad).as_py():
            example = numbers.filter(bad)[0].as_py()
            raise PartitionPathError(
                f"{example} {self.scalar_unit} since 1970 is outside the years 1 to 9999; check timestamp.type"
            )
        return pc.cast(millis, pa.timestamp("ms", "UTC"))

    def _check_type(self, found: pa.DataType) -> None:
        unit = self.scalar_unit
        fits = pa.types.is_integer(found) or pa.types.is_floating(found) or pa.types.is_decimal(found)
        if pa.types.is_date32(found):
            fits = unit == "DAYS"
        elif pa.types.is_timestamp(found):
            fits = unit == _UNIT_OF_ARROW[found.unit]
        if unit is None or not fits:
            advice = {
                pa.types.is_timestamp(found): "EPOCHMICROSECONDS (or EPOCHMILLISECONDS, by the column's unit)",
                pa.types.is_date32(found): "SCALAR with timestamp.scalar.time.unit=DAYS",
            }.get(True, "one of the number types for a column of numbers")
            raise PartitionPathError(f"timestamp.type {self.timestamp_type} does not match type {found}: use {advice}")

    def _local_of_text(self, text: pa.StringArray) -> pa.TimestampArray:
        if self.timestamp_type not in _TEXT_TYPES:
            raise PartitionPathError(f"timestamp.type {self.timestamp_type} does not match text: use DATE_STRING")
        local, offset = self.input_patterns[0].parse(text)
        for pattern in self.input_patterns[1:]:
            other_local, other_offset = pattern.parse(text)
            local, offset = pc.coalesce(local, other_local), pc.coalesce(offset, other_offset)
        bad = pc.and_(text.is_valid(), local.is_null())
        if pc.any(bad).as_py():
            examples = ", ".join(map(repr, text.filter(bad).slice(0, 3).to_pylist()))
            formats = " or ".join(pattern.text for pattern in self.input_patterns)
            raise PartitionPathError(f"{pc.sum(bad)} texts do not match {formats}, such as {examples}")
        return self._to_output_zone(local, offset)

    def _to_output_zone(self, local: pa.TimestampArray, offset: pa.StringArray) -> pa.TimestampArray:
        """Convert times to local times of the output zone, by default of the input zone; without both, keep them."""
        epoch = pa.scalar(0, pa.timestamp("ms"))
        zone = self.output_zone or self.input_zone
        if zone is None:
            return pc.fill_null(local, epoch)
        try:
            assumed = pc.assume_timezone(local, self.input_zone or "UTC", ambiguous="earliest")
        except pa.ArrowInvalid as error:
            raise PartitionPathError(f"a time does not exist in {self.input_zone}: {error}") from error
        has_offset = pc.not_equal(offset, "")
        instants = pc.if_else(has_offset, _minus_offset(local, offset), pc.cast(assumed, pa.timestamp("ms", "UTC")))
        return _in_zone(pc.fill_null(instants, pa.scalar(0, pa.timestamp("ms", "UTC"))), zone)


def timestamp_format(options: Mapping[str, str]) -> TimestampFormat:
    """Read the options of the TIMESTAMP key generator, without their prefix `hoodie.keygen.timebased.`.

    Raises:
        InvalidConfigError: the type, the unit, a zone or a pattern is missing or unknown.
    """
    kind = options.get("timestamp.type", "").strip().upper()
    unit = options.get("timestamp.scalar.time.unit", "SECONDS").strip().upper()
    if kind not in (*_UNIT_OF_TYPE, *_TEXT_TYPES, "SCALAR"):
        known = ", ".join((*_UNIT_OF_TYPE, "SCALAR", *_TEXT_TYPES))
        raise InvalidConfigError(
            f"hoodie.keygen.timebased.timestamp.type: expected one of {known}, found {kind!r}; "
            "a JVM table with a custom key generator does not store this option: pass the hoodie.keygen.timebased.* "
            "options that its JVM writer uses in properties= of the write"
        )
    if unit not in _MILLIS_OF_UNIT:
        known = ", ".join(_MILLIS_OF_UNIT)
        raise InvalidConfigError(
            f"hoodie.keygen.timebased.timestamp.scalar.time.unit: expected one of {known}, found {unit!r}"
        )
    if not options.get("output.dateformat"):
        raise InvalidConfigError(
            "hoodie.keygen.timebased.output.dateformat is missing: set a date pattern such as yyyy/MM/dd"
        )
    both = options.get("timezone")
    return TimestampFormat(
        timestamp_type=kind,
        scalar_unit=None if kind in _TEXT_TYPES else _UNIT_OF_TYPE.get(kind, unit),
        input_patterns=_input_patterns(options) if kind in _TEXT_TYPES else (),
        input_zone=_zone(both or options.get("input.timezone")),
        output_pattern=_output_pattern(options["output.dateformat"]),
        output_zone=_zone(both or options.get("output.timezone")),
    )


def _input_patterns(options: Mapping[str, str]) -> tuple[JodaPattern, ...]:
    given = options.get("input.dateformat", "")
    delimiter = options.get("input.dateformat.list.delimiter.regex") or ","
    try:
        check_pattern(delimiter)
    except ValueError as error:
        raise InvalidConfigError(
            f"hoodie.keygen.timebased.input.dateformat.list.delimiter.regex={delimiter!r}: {error}"
        ) from error
    patterns = tuple(joda_pattern(text.strip()) for text in split_text(delimiter, given) if text.strip())
    if not patterns:
        raise InvalidConfigError(
            "hoodie.keygen.timebased.input.dateformat is missing: DATE_STRING and MIXED require it to read text"
        )
    for pattern in patterns:
        pattern.check_parses()
    return patterns


def _output_pattern(text: str) -> JodaPattern:
    pattern = joda_pattern(text)
    if any(token == "Z" and count for token, count in pattern.tokens):
        raise InvalidConfigError(f"output.dateformat {text!r}: zone letters are not supported in partition paths")
    return pattern


def _zone(name: str | None) -> str | None:
    """Return a zone's name in Arrow's form: `GMT+8:00` becomes `+08:00`."""
    if not name or not name.strip():
        return None
    name = name.strip()
    fixed = re.fullmatch(r"(?:GMT|UTC|UT)?([-+])([0-9]{1,2}):?([0-9]{2})?", name)
    if fixed:
        sign, hours, minutes = fixed.groups()
        return f"{sign}{int(hours):02d}:{minutes or '00'}"
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InvalidConfigError(f"hoodie.keygen.timebased: time zone {name!r} is unknown") from error
    return name


def _in_zone(instants: pa.TimestampArray, zone: str) -> pa.TimestampArray:
    return pc.local_timestamp(pc.cast(instants, pa.timestamp("ms", zone)))


def _minus_offset(local: pa.TimestampArray, offset: pa.StringArray) -> pa.TimestampArray:
    digits = pc.replace_substring_regex(offset, r"[-+:Z]", "")
    digits = pc.cast(pc.if_else(pc.equal(digits, ""), "0000", digits), pa.int64())
    hours = pc.divide(digits, 100)
    minutes = pc.add(pc.multiply(hours, 60), pc.subtract(digits, pc.multiply(hours, 100)))
    signed = pc.if_else(pc.starts_with(offset, "-"), pc.negate(minutes), minutes)
    millis = pc.subtract(pc.cast(local, pa.int64()), pc.multiply(signed, 60_000))
    return pc.cast(millis, pa.timestamp("ms", "UTC"))
