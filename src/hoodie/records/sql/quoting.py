"""Quote names and values for Spark SQL. It imports no parser: reads without a condition need none (decision 0015)."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from math import isfinite


def quoted(name: str) -> str:
    """Return a name between backticks.

    >>> quoted("a`b")
    '`a``b`'
    """
    return f"`{name.replace('`', '``')}`"


def literal_of(value: object) -> str:
    """Return a value as a literal. A datetime without a zone has the zone of this process, as in PySpark.

    Raises: TypeError for a value of another type.

    >>> literal_of("it's"), literal_of(5), literal_of(None)
    ("'it\\\\'s'", '5', 'NULL')
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case int():
            return str(value) if -(2**31) <= value < 2**31 else f"{value}L"
        case float():
            return f"{value!r}D" if isfinite(value) else f"CAST('{value!r}' AS DOUBLE)"
        case Decimal() if value.is_finite():
            return f"{value:f}BD"
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
        case datetime():
            return f"TIMESTAMP'{value.astimezone().isoformat(sep=' ')}'"
        case date():
            return f"DATE'{value.isoformat()}'"
        case bytes() | bytearray():
            return f"X'{value.hex()}'"
    raise TypeError(f"SQL has no literal of {type(value).__name__}")
