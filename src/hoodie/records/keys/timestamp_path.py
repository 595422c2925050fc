"""Format partition values as times: the TIMESTAMP key generator, with the date patterns of the JVM (Joda-Time letters).

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

_TOKEN: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_MONTHS: Final = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
                  "November", "December")  # fmt: skip
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_FORMATTED: Final = frozenset("yYMdDHhKkmsSaExwe")
_PARSED: Final = {"y": "year", "Y": "year", "M": "month", "d": "day", "H": "hour", "m": "minute", "s": "second"}
_DEFAULTS: Final = {"year": "", "month": "01", "day": "01", "hour": "00", "minute": "00", "second": "00"}
_OFFSET: Final = r"(?P<offset>Z|[-+][0-9]{2}:?[0-9]{2})"


@dataclass(frozen=True, slots=True)
class JodaPattern:
    """A date pattern, split into literals and runs of one letter."""

    text: str
    tokens: tuple[tuple[str, int], ...]
    """Pairs of a letter and its count, or of a literal text and 0."""

    def format(self, local: pa.TimestampArray) -> pa.StringArray:
        """Return each local time as text. English names, digits as in Java."""
        pieces = [token if count == 0 else _formatted(local, token, count) for token, count in self.tokens]
        return pc.binary_join_element_wise(*pieces, "") if pieces else pa.repeat("", len(local))

    def parse(self, text: pa.StringArray) -> tuple[pa.TimestampArray, pa.StringArray]:
        """Return local times in milliseconds and offsets (`Z`, `+hhmm` or empty); null where the text does not match.

        Raises: PartitionPathError if the text matches the pattern but is not a date of the calendar.
        """
        found = pc.extract_regex(text, self._parse_regex())
        names = {child.name for child in found.type.fields}
        year, month, day, hour, minute, second = (
            _padded(pc.struct_field(found, name), 4 if name == "year" else 2) if name in names else default
            for name, default in _DEFAULTS.items()
        )
        fraction = (
            pc.struct_field(found, "fraction") if "fraction" in names else pc.if_else(found.is_valid(), "0", None)
        )
        millis = pc.utf8_slice_codeunits(pc.utf8_rpad(fraction, 3, "0"), 0, 3)
        iso = pc.binary_join_element_wise(
            year, "-", month, "-", day, " ", hour, ":", minute, ":", second, ".", millis, ""
        )
        try:
            local = pc.cast(iso, pa.timestamp("ms"))
        except pa.ArrowInvalid as error:
            raise PartitionPathError(f"expected dates in the pattern {self.text!r}: {error}") from error
        offset = pc.struct_field(found, "offset") if "offset" in names else pc.if_else(found.is_valid(), "", None)
        return local, offset

    def check_parses(self) -> None:
        """Refuse patterns that cannot be used to read text.

        Raises: InvalidConfigError if a letter is not supported for reading or occurs twice, or the pattern has no year.
        """
        letters = [token for token, count in self.tokens if count]
        for letter in letters:
            if letter not in _PARSED and letter not in "SZ":
                raise InvalidConfigError(f"input pattern {self.text!r}: letter {letter!r} is not supported for reading")
        if "y" not in letters and "Y" not in letters:
            raise InvalidConfigError(f"input pattern {self.text!r} has no year: write yyyy")
        if len(set(letters)) != len(letters) or ("yy", 2) in [(letter * 2, count) for letter, count in self.tokens]:
            raise InvalidConfigError(f"input pattern {self.text!r}: write each part once, and years with four digits")

    def _parse_regex(self) -> str:
        out = "^"
        for position, (token, count) in enumerate(self.tokens):
            following = self.tokens[position + 1 : position + 2]
            adjacent = bool(following) and following[0][1] > 0 and following[0][0] != "Z"
            if count == 0:
                out += re.escape(token)
            elif token == "Z":
                out += _OFFSET
            elif token == "S":
                out += f"(?P<fraction>[0-9]{{{count if adjacent else f'1,{max(count, 9)}'}}})"
            else:
                width = count if adjacent else f"1,{max(count, 4 if token in 'yY' else 2)}"
                out += f"(?P<{_PARSED[token]}>[0-9]{{{width}}})"
        return out + "$"


def joda_pattern(text: str) -> JodaPattern:
    """Split a pattern into its tokens.

    Raises: InvalidConfigError if a quote is not closed, or a letter is not supported.
    """
    tokens: list[tuple[str, int]] = []
    end = 0
    for found in _TOKEN.finditer(text):
        if found.start() != end:
            break
        end = found.end()
        quoted, letter = found.groups()
        if letter:
            tokens.append((letter, len(found.group())))
        else:
            literal = found.group() if quoted is None else quoted.replace("''", "'") or "'"
            tokens.append((literal, 0))
    if end != len(text):
        raise InvalidConfigError(f"date pattern {text!r}: quote ' is not closed")
    unknown = [letter for letter, count in tokens if count and letter not in _FORMATTED | {"Z"}]
    if unknown:
        raise InvalidConfigError(f"date pattern {text!r}: letter {unknown[0]!r} is not supported; quote text with '")
    return JodaPattern(text, tuple(tokens))


def _padded(number: pa.Array, width: int) -> pa.StringArray:
    return pc.utf8_lpad(pc.cast(number, pa.string()), width, "0")


def _formatted(local: pa.TimestampArray, letter: str, count: int) -> pa.StringArray:
    if letter == "E" or (letter == "M" and count >= 3):
        names = _MONTHS if letter == "M" else _DAYS
        position = pc.subtract(pc.month(local), 1) if letter == "M" else pc.day_of_week(local)
        is_full = count >= 4
        return pc.take(pa.array([name if is_full else name[:3] for name in names]), position)
    if letter == "a":
        return pc.if_else(pc.less(pc.hour(local), 12), "AM", "PM")
    if letter == "S":
        millis = _padded(pc.millisecond(local), 3)
        return pc.utf8_rpad(pc.utf8_slice_codeunits(millis, 0, count), count, "0")
    number = _number(local, letter)
    if letter in "yYx" and count == 2:
        number = pc.subtract(number, pc.multiply(pc.divide(number, 100), 100))
    return _padded(number, count)


_PARTS: Final = {
    "y": pc.year,
    "Y": pc.year,
    "M": pc.month,
    "d": pc.day,
    "D": pc.day_of_year,
    "m": pc.minute,
    "s": pc.second,
    "x": pc.iso_year,
    "w": pc.iso_week,
}


def _number(local: pa.TimestampArray, letter: str) -> pa.Array:
    if letter in "hKHk":
        hour = pc.hour(local)
        base = pc.if_else(pc.greater_equal(hour, 12), pc.subtract(hour, 12), hour) if letter in "hK" else hour
        return pc.if_else(pc.equal(base, 0), 12 if letter == "h" else 24, base) if letter in "hk" else base
    if letter == "e":
        return pc.add(pc.day_of_week(local), 1)
    return _PARTS[letter](local)


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
        """Return each value as a formatted time; null is the number 1, or the text of a millisecond after 1970 began.

        The JVM formats numbers in UTC if the output has no zone, whatever the zone of the input.

        Raises: PartitionPathError if the column's type does not match the option `timestamp.type`, text does not match
            the input patterns, or a time is outside the years 1 to 9999.
        """
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            local = self._local_of_text(pc.cast(values, pa.string()))
        else:
            local = _in_zone(self._instants(values), self.output_zone or "UTC")
        return self.output_pattern.format(local)

    def _instants(self, values: pa.Array) -> pa.TimestampArray:
        """Convert numbers, dates and timestamps to timestamps in UTC, in milliseconds."""
        self._check_type(values.type)
        numbers = pc.cast(values, pa.int32()) if pa.types.is_date32(values.type) else values
        numbers = pc.fill_null(pc.cast(numbers, pa.int64(), safe=False), 1)
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
        if text.null_count:
            text = pc.fill_null(text, self._text_of_null())
        local, offset = self.input_patterns[0].parse(text)
        for pattern in self.input_patterns[1:]:
            other_local, other_offset = pattern.parse(text)
            local, offset = pc.coalesce(local, other_local), pc.coalesce(offset, other_offset)
        bad = local.is_null()
        if pc.any(bad).as_py():
            examples = ", ".join(map(repr, text.filter(bad).slice(0, 3).to_pylist()))
            formats = " or ".join(pattern.text for pattern in self.input_patterns)
            raise PartitionPathError(f"{pc.sum(bad)} texts do not match {formats}, such as {examples}")
        return self._to_output_zone(local, offset)

    def _text_of_null(self) -> str:
        """Return the text that the JVM reads for null: by the first input pattern, so that it may lack parts."""
        millis = pa.array([1], pa.timestamp("ms", "UTC"))
        local = _in_zone(millis, self.input_zone or self.output_zone or "UTC")
        sign, minutes = "+", (local.cast(pa.int64())[0].as_py() - 1) // 60_000
        if minutes < 0:
            sign, minutes = "-", -minutes
        offset = f"{sign}{minutes // 60:02d}{minutes % 60:02d}"
        pattern = self.input_patterns[0]
        tokens = tuple((offset, 0) if token == ("Z", 1) else token for token in pattern.tokens)
        return str(JodaPattern(pattern.text, tokens).format(local)[0])

    def _to_output_zone(self, local: pa.TimestampArray, offset: pa.StringArray) -> pa.TimestampArray:
        """Convert times to local times of the output zone, by default of the input zone; without both, keep them."""
        zone = self.output_zone or self.input_zone
        if zone is None:
            return local
        has_offset = pc.not_equal(offset, "")
        # A time with an offset may be in the hour that summer time skips in the zone of the input.
        here = pc.if_else(has_offset, None, local)
        try:
            assumed = pc.assume_timezone(here, self.input_zone or "UTC", ambiguous="earliest")
        except pa.ArrowInvalid as error:
            raise PartitionPathError(f"a time does not exist in {self.input_zone}: {error}") from error
        instants = pc.if_else(has_offset, _minus_offset(local, offset), pc.cast(assumed, pa.timestamp("ms", "UTC")))
        return _in_zone(instants, zone)


def timestamp_format(options: Mapping[str, str]) -> TimestampFormat:
    """Read the options of the TIMESTAMP key generator, without their prefix `hoodie.keygen.timebased.`.

    Raises: InvalidConfigError if the type, the unit, a zone or a pattern is missing or unknown.
    """
    kind = options.get("timestamp.type", "").strip().upper()
    unit = options.get("timestamp.scalar.time.unit", "SECONDS").strip().upper()
    if kind not in (*_UNIT_OF_TYPE, *_TEXT_TYPES, "SCALAR"):
        known = ", ".join((*_UNIT_OF_TYPE, "SCALAR", *_TEXT_TYPES))
        raise InvalidConfigError(
            f"hoodie.keygen.timebased.timestamp.type: expected one of {known}, found {kind!r}; "
            "a JVM table with a custom key generator, or of version 6, does not store this option: pass the "
            "hoodie.keygen.timebased.* options that its JVM writer uses in properties= of the write"
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
    written = options["output.dateformat"]
    output = joda_pattern(written)
    if any(token == "Z" and count for token, count in output.tokens):
        raise InvalidConfigError(f"output.dateformat {written!r}: zone letters are not supported in partition paths")
    both = options.get("timezone")
    return TimestampFormat(
        timestamp_type=kind,
        scalar_unit=None if kind in _TEXT_TYPES else _UNIT_OF_TYPE.get(kind, unit),
        input_patterns=_input_patterns(options) if kind in _TEXT_TYPES else (),
        input_zone=_zone(both or options.get("input.timezone")),
        output_pattern=output,
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
