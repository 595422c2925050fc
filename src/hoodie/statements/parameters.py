"""The arguments of PySpark's `sql`: values for `:name` and `?`, and DataFrames and values for names in braces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from math import isfinite
from string import Formatter
from typing import Any, Final

from sqlglot import Token, TokenType
from sqlglot.errors import TokenError

from hoodie.records.sql.parse import tokens_of

_FRAME: Final = "hoodie_argument_"


def bound(
    text: str, args: Mapping[str, Any] | Sequence[Any] | None, named: Mapping[str, Any]
) -> tuple[str, dict[str, Any]] | None:
    """Return the statement with its arguments as literals, and the DataFrames of its names in braces.

    Args:
        text: the statement.
        args: values by the names of `:name`, or for each `?` in order.
        named: values and DataFrames by the names in braces.

    Returns: None for arguments that only PySpark understands: values that have no literal, and columns of DataFrames.
    Memory: the text.

    >>> bound("SELECT * FROM t WHERE id = :id", {"id": "it's"}, {})[0]
    "SELECT * FROM t WHERE id = 'it\\\\'s'"
    >>> bound("SELECT {n} FROM t", None, {"n": [5]}) is None
    True
    """
    frames = {name: value for name, value in named.items() if hasattr(value, "sparkSession")}
    try:
        filled = _filled(text, named, frames) if named else text
        return _with_values(filled, args or {}), {_FRAME + name: frame for name, frame in frames.items()}
    except (_NoLiteralError, TokenError):
        return None


def literal(value: object) -> str:
    """Return a value as a literal of Spark's SQL. A datetime without a zone has the zone of this process, as in `lit`.

    Raises: an error that `bound` understands, for a value of another type.
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
    raise _NoLiteralError(type(value).__name__)


class _NoLiteralError(Exception):
    """SQL has no literal of the value, or the text has names in braces that are no plain names."""


def _filled(text: str, named: Mapping[str, Any], frames: Mapping[str, Any]) -> str:
    """Replace names in braces."""
    parts = []
    for plain, name, spec, conversion in Formatter().parse(text):
        parts.append(plain)
        if name is None:
            continue
        if spec or conversion or name not in named:
            raise _NoLiteralError(name)
        parts.append(_FRAME + name if name in frames else literal(named[name]))
    return "".join(parts)


def _with_values(text: str, args: Mapping[str, Any] | Sequence[Any]) -> str:
    """Replace the markers `:name` and `?`."""
    tokens = tokens_of(text) if args else []
    left = [] if isinstance(args, Mapping) else list(args)
    parts, end = [], 0
    for token, following in zip(tokens, (*tokens[1:], None), strict=False):
        if token.token_type is TokenType.PLACEHOLDER and left:
            value, behind = left.pop(0), token.end + 1
        elif isinstance(args, Mapping) and _is_marker(token, following) and following and following.text in args:
            value, behind = args[following.text], following.end + 1
        else:
            continue
        parts += [text[end : token.start], literal(value)]
        end = behind
    return "".join((*parts, text[end:]))


def _is_marker(token: Token, following: Token | None) -> bool:
    return token.token_type is TokenType.COLON and following is not None and following.start == token.end + 1
