"""SQL of databases as incremental reads need it: names, literals, order of texts, the clock, and kinds of columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Final

from hoodie.errors import SourceError


class Kind(StrEnum):
    """Kind of an incremental column. The value names it in messages."""

    INTEGER = "an integer"
    DECIMAL = "a decimal"
    FLOAT = "a floating-point number"
    DATE = "a date"
    TIMESTAMP = "a timestamp without time zone"
    INSTANT = "a timestamp with time zone"
    TEXT = "a text"
    OTHER = "values of another type"


_TIMES: Final = (Kind.DATE, Kind.TIMESTAMP, Kind.INSTANT)
_TIME = re.compile(
    r"(?P<date>\d{4,6}-\d\d-\d\d)"
    r"(?:[ T](?P<time>\d\d:\d\d:\d\d(?:\.\d{1,9})?)(?P<zone>Z|[+-]\d\d(?::?\d\d(?::\d\d)?)?)?)?(?P<era> BC)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one database writes the SQL of bounds.

    `quote`: the character around names. `first`: the clause that ends a query after the first rows. `literals`: by
    kind, the literal of a text; kinds without an entry cannot be incremental columns. `text_order`: a suffix that
    orders texts by their bytes. `exact_text`: the expression that returns a value as text, or None if the client
    makes the text. `clock`: by kind, the current time minus seconds. `session`: a query that prepares a connection.
    """

    name: str
    quote: str = '"'
    first: str = "OFFSET 0 ROWS FETCH NEXT {rows} ROWS ONLY"
    literals: Mapping[Kind, Callable[[str], str]] = field(default_factory=dict)
    text_order: str = ""
    exact_text: str | None = None
    clock: Mapping[Kind, str] = field(default_factory=dict)
    session: str | None = None

    def quoted(self, name: str) -> str:
        return f"{self.quote}{name.replace(self.quote, self.quote * 2)}{self.quote}"

    def value(self, column: str, kind: Kind) -> str:
        """Return the expression by which rows are ordered and compared."""
        return self.quoted(column) + (self.text_order if kind is Kind.TEXT else "")


def canonical(place: str, kind: Kind, where: str) -> str:
    """Return a stored place in the form that databases read; JVM Hudi's texts of values are understood.

    Raises: SourceError if the text is no value of the kind.
    """
    found = _canonical_time(place, kind) if kind in _TIMES else _canonical_number(place, kind)
    if found is None:
        raise SourceError(
            f"{where}: expected {kind.value} as the place to go on from, found {place!r}; set another place, or read "
            "from the begin by ignoring the checkpoint"
        )
    return found


def _canonical_number(place: str, kind: Kind) -> str | None:
    if kind is Kind.TEXT:
        return place
    try:
        if kind is Kind.FLOAT:
            return repr(float(place))
        number = Decimal(place)
    except (InvalidOperation, ValueError):
        return None
    if not number.is_finite() or (kind is Kind.INTEGER and number != number.to_integral_value()):
        return None
    return str(int(number)) if kind is Kind.INTEGER else f"{number:f}"


def _canonical_time(place: str, kind: Kind) -> str | None:
    if place == "-infinity":
        return place
    match = _TIME.fullmatch(place.strip())
    if match is None:
        return None
    day, time, zone, era = match["date"], match["time"] or "00:00:00", match["zone"] or "", match["era"] or ""
    is_utc = re.fullmatch(r"Z|[+-]00(:?00)?(:00)?|", zone) is not None
    if kind is Kind.DATE:
        # A JVM job stores a date as a timestamp at midnight.
        return f"{day}{era}" if is_utc and not re.search("[1-9]", time) else None
    if kind is Kind.TIMESTAMP:
        return f"{day} {time}{era}" if is_utc else None
    return f"{day} {time}{'+00' if is_utc else zone}{era}"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _float(value: str) -> str:
    return value if "e" in value.lower() else f"{value}E0"


_NUMBERS: Final[Mapping[Kind, Callable[[str], str]]] = {Kind.INTEGER: str, Kind.DECIMAL: str, Kind.FLOAT: _float}
# JDBC's escapes: each driver translates them.
_JDBC_TIMES: Final = {
    Kind.DATE: lambda value: f"{{d '{value}'}}",
    Kind.TIMESTAMP: lambda value: f"{{ts '{value}'}}",
}

POSTGRESQL: Final = Dialect(
    name="postgresql",
    literals={kind: _text for kind in Kind if kind is not Kind.OTHER},
    # Orders of locales change with the system's library, and may hold different texts for equal.
    text_order=' COLLATE "C"',
    exact_text="CAST({value} AS text)",
    clock={
        Kind.DATE: "CAST(LOCALTIMESTAMP - INTERVAL '{seconds} seconds' AS date)",
        Kind.TIMESTAMP: "(LOCALTIMESTAMP - INTERVAL '{seconds} seconds')",
        Kind.INSTANT: "(CURRENT_TIMESTAMP - INTERVAL '{seconds} seconds')",
    },
    session="SELECT set_config('TimeZone', 'UTC', false), set_config('DateStyle', 'ISO, YMD', false), "
    "set_config('extra_float_digits', '1', false), set_config('standard_conforming_strings', 'on', false)",
)
SQLITE: Final = Dialect(
    name="sqlite",
    first="LIMIT {rows}",
    literals={**_NUMBERS, Kind.TEXT: _text},
    text_order=" COLLATE BINARY",
    clock={Kind.TEXT: "strftime('%Y-%m-%d %H:%M:%f', 'now', '-{seconds} seconds')"},
)
MYSQL: Final = Dialect(
    name="mysql",
    quote="`",
    first="LIMIT {rows}",
    literals={**_NUMBERS, **_JDBC_TIMES, Kind.TEXT: lambda value: _text(value.replace("\\", "\\\\"))},
    clock={
        Kind.DATE: "DATE(LOCALTIMESTAMP(6) - INTERVAL {seconds} SECOND)",
        Kind.TIMESTAMP: "(LOCALTIMESTAMP(6) - INTERVAL {seconds} SECOND)",
    },
)
STANDARD: Final = Dialect(name="standard", literals={**_NUMBERS, **_JDBC_TIMES, Kind.TEXT: _text})

_BY_SCHEME: Final = {
    "postgresql": POSTGRESQL,
    "postgres": POSTGRESQL,
    "mysql": MYSQL,
    "mariadb": MYSQL,
    "sqlite": SQLITE,
}


def dialect_of(url: str) -> Dialect:
    """Return the dialect of a URL, with or without `jdbc:`; standard SQL for databases without an entry."""
    return _BY_SCHEME.get(url.removeprefix("jdbc:").partition(":")[0].lower(), STANDARD)


_KEPT: Final = {
    **dict.fromkeys(("int2", "int4", "int8"), Kind.INTEGER),
    **dict.fromkeys(("float4", "float8"), Kind.FLOAT),
    **dict.fromkeys(("text", "varchar", "bpchar", "name"), Kind.TEXT),
    "numeric": Kind.DECIMAL,
    "date": Kind.DATE,
    "timestamp": Kind.TIMESTAMP,
    "timestamptz": Kind.INSTANT,
    "bool": Kind.OTHER,
    "bytea": Kind.OTHER,
}
_PLAIN_ITEMS: Final = frozenset(_KEPT) - {"numeric", "bytea", "name"}


@dataclass(frozen=True, slots=True)
class PostgresColumn:
    """A column of a query in PostgreSQL: its name, its type as in `pg_type`, and of numeric its digits, if declared."""

    name: str
    type: str
    digits: tuple[int, int] | None = None

    @property
    def kind(self) -> Kind:
        return _KEPT.get(self.type, Kind.OTHER)

    @property
    def as_text(self) -> bool:
        """Whether the database casts the column to text, so that Spark and ADBC return the same values.

        Numeric without declared digits is text too: Spark would round it to 18 digits behind the point.
        """
        if self.type == "numeric":
            return self.digits is None or not 0 <= self.digits[1] <= 38
        return self.type not in _KEPT and self.type.removeprefix("_") not in _PLAIN_ITEMS


def postgres_list(columns: list[PostgresColumn]) -> str:
    """Return the select list that returns each column in a type that Spark and Arrow have."""
    if not any(column.as_text for column in columns):
        return "*"
    names = ((POSTGRESQL.quoted(column.name), column.as_text) for column in columns)
    return ", ".join(f"CAST({name} AS text) AS {name}" if as_text else name for name, as_text in names)
