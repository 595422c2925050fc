"""Format and parse whole columns by date patterns of the JVM's TIMESTAMP key generator (Joda-Time letters)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidConfigError, PartitionPathError

_TOKEN: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_MONTHS: Final = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
                  "November", "December")  # fmt: skip
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_FORMATTED: Final = frozenset("yYMdDHhKkmsSaExwe")
_PARSED: Final = {"y": "year", "Y": "year", "M": "month", "d": "day", "H": "hour", "m": "minute", "s": "second"}
_DEFAULTS: Final = (
    ("year", ""),
    ("month", "01"),
    ("day", "01"),
    ("hour", "00"),
    ("minute", "00"),
    ("second", "00"),
)
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

        Raises:
            PartitionPathError: the text matches the pattern but is not a date of the calendar.
        """
        found = pc.extract_regex(text, self._parse_regex())
        names = {child.name for child in found.type.fields}
        year, month, day, hour, minute, second = (
            _padded(pc.struct_field(found, name), 4 if name == "year" else 2) if name in names else default
            for name, default in _DEFAULTS
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

        Raises:
            InvalidConfigError: a letter is not supported for reading or occurs twice, or the pattern has no year.
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

    Raises:
        InvalidConfigError: a quote is not closed, or a letter is not supported.
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
