"""One typed option, and the parsers of the values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from hoodie.errors import InvalidConfigError

T = TypeVar("T")

NO_NAMES: Final[tuple[str, ...]] = ()
"""The default of options whose value is a list of names."""


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """One typed option. `since` is the Hudi release that introduced it; `hoodie` if only hoodie has the option.

    `parse`: None for the parser of the default's type: `flag`, `names`, or texts as they are.
    """

    key: str
    default: T
    since: str
    doc: str
    parse: Callable[[str], T] | None = None

    def get(self, *properties: Mapping[str, str]) -> T:
        """Return the value from the first mapping that contains the option, else the default.

        Raises: InvalidConfigError if the text does not parse.
        """
        for found in properties:
            if self.key in found:
                try:
                    return (self.parse or _BY_TYPE[type(self.default)])(found[self.key])
                except ValueError as error:
                    raise InvalidConfigError(f"{self.key}={found[self.key]!r}: {error}. {self.doc}") from error
        return self.default


def flag(text: str) -> bool:
    """Parse true or false."""
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("true or false expected")
    return text.strip().lower() == "true"


def whole(text: str) -> int:
    """Parse a whole number."""
    try:
        return int(text)
    except ValueError as error:
        raise ValueError("expected a whole number") from error


def real(text: str) -> float:
    """Parse a number."""
    try:
        return float(text)
    except ValueError as error:
        raise ValueError("expected a number") from error


def at_least(least: int, expected: str) -> Callable[[str], int]:
    """Return a parser of whole numbers from `least` up."""

    def parse(text: str) -> int:
        value = whole(text)
        if value < least:
            raise ValueError(f"a number {expected} expected")
        return value

    return parse


count: Final = at_least(0, "from 0 up")
positive: Final = at_least(1, "above 0")


def hours_or_never(text: str) -> int:
    """Parse a number of hours above 0, or -1 for never."""
    value = whole(text)
    if value != -1 and value < 1:
        raise ValueError("-1, or a number above 0 expected")
    return value


def factor(text: str) -> float:
    """Parse a finite number above 0."""
    value = real(text)
    if not 0 < value < math.inf:
        raise ValueError("a number above 0 expected")
    return value


def share(text: str) -> float:
    """Parse a number between 0 and 1."""
    value = real(text)
    if not 0 < value < 1:
        raise ValueError("a number between 0 and 1 expected")
    return value


def off(text: str) -> bool:
    """Parse false; what the option turns on does not exist here."""
    if flag(text):
        raise ValueError("false expected")
    return False


def one_of(*names: str) -> Callable[[str], str]:
    """Return a parser that accepts these names, in upper or lower case, and returns the name in lower case."""

    def parse(text: str) -> str:
        if text.strip().lower() not in names:
            raise ValueError(f"one of {', '.join(names)} expected")
        return text.strip().lower()

    return parse


def names(text: str) -> tuple[str, ...]:
    """Parse names that commas separate."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def checked_text(name: str, given: object) -> str:
    """Return a text of the caller that files can hold; `name` is the argument's name.

    Raises: InvalidConfigError: it is no text, or has a surrogate without its other half, which UTF-8 cannot hold.
    """
    if not isinstance(given, str):
        raise InvalidConfigError(f"{name}: expected a text, got {given!r} of type {type(given).__name__}")
    try:
        given.encode()
    except UnicodeEncodeError as error:
        raise InvalidConfigError(
            f"{name}: {given!r} has the character {given[error.start]!r} at position {error.start}, which UTF-8 cannot "
            "hold; remove it, or decode the bytes from which the text was made with the right encoding"
        ) from error
    return given


def layout(text: str) -> str:
    """Parse the layout of a clustering; hyphens and underscores are ignored."""
    return one_of("linear", "zorder", "hilbert")(text.replace("-", "").replace("_", ""))


def slice_order(text: str) -> tuple[str, ...]:
    """Parse the order of file slices in the groups of a clustering."""
    return tuple(map(one_of("size", "instant_time"), names(text)))


def compaction_strategy(text: str) -> str:
    """Parse a compaction strategy, or the name of Hudi's class with or without its package."""
    names = {
        "LogFileSizeBasedCompactionStrategy": "log_file_size",
        "LogFileNumBasedCompactionStrategy": "log_file_num",
        "BoundedIOCompactionStrategy": "bounded_io",
        "DayBasedCompactionStrategy": "day_based",
        "UnBoundedCompactionStrategy": "unbounded",
    }
    package = "org.apache.hudi.table.action.compact.strategy."
    given = text.strip()
    return one_of(*names.values())(names.get(given.removeprefix(package), given))


def update_strategy(text: str) -> str:
    """Parse an update strategy of clustering, or the name of Hudi's class."""
    names = {"sparkrejectupdatestrategy": "reject", "sparkallowupdatestrategy": "allow"}
    name = text.strip().rpartition(".")[2].lower()
    return one_of("reject", "allow")(names.get(name, name))


_BY_TYPE: Final[Mapping[type, Callable[[str], Any]]] = {bool: flag, str: str, tuple: names}
"""The parsers of options that name none."""
