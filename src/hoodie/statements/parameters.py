"""The arguments of PySpark's `sql`: values for `:name` and `?`, and DataFrames and values for names in braces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import Formatter
from typing import Any, Final

from sqlglot import TokenType
from sqlglot.errors import TokenError

from hoodie.records.sql.parse import tokens_of
from hoodie.records.sql.quoting import literal_of

_FRAME: Final = "hoodie_argument_"


def bound(
    text: str, args: Mapping[str, Any] | Sequence[Any] | None, named: Mapping[str, Any]
) -> tuple[str, dict[str, Any]] | None:
    """Return the statement with its arguments as literals, and the DataFrames of its names in braces.

    `args`: values by the names of `:name`, or for each `?` in order. `named`: values and DataFrames by the names in
    braces. None for arguments that only PySpark understands: values that have no literal, and columns of DataFrames.

    >>> bound("SELECT * FROM t WHERE id = :id", {"id": "it's"}, {})[0]
    "SELECT * FROM t WHERE id = 'it\\\\'s'"
    >>> bound("SELECT {n} FROM t", None, {"n": [5]}) is None
    True
    """
    frames = {name: value for name, value in named.items() if hasattr(value, "sparkSession")}
    try:
        filled = _filled(text, named, frames) if named else text
        return _with_values(filled, args or {}), {_FRAME + name: frame for name, frame in frames.items()}
    except (TokenError, TypeError, ValueError):  # ValueError: braces that do not match
        return None


def _filled(text: str, named: Mapping[str, Any], frames: Mapping[str, Any]) -> str:
    parts = []
    for plain, name, spec, conversion in Formatter().parse(text):
        parts.append(plain)
        if name is None:
            continue
        if spec or conversion or name not in named:
            raise TypeError(f"{name!r} is no plain name of an argument")
        parts.append(_FRAME + name if name in frames else literal_of(named[name]))
    return "".join(parts)


def _with_values(text: str, args: Mapping[str, Any] | Sequence[Any]) -> str:
    """Replace the markers `:name` and `?`."""
    tokens = tokens_of(text) if args else []
    left = [] if isinstance(args, Mapping) else list(args)
    parts, end = [], 0
    for token, following in zip(tokens, (*tokens[1:], None), strict=False):
        is_marker = token.token_type is TokenType.COLON and following and following.start == token.end + 1
        if token.token_type is TokenType.PLACEHOLDER and left:
            value, behind = left.pop(0), token.end + 1
        elif isinstance(args, Mapping) and following and is_marker and following.text in args:
            value, behind = args[following.text], following.end + 1
        else:
            continue
        parts += [text[end : token.start], literal_of(value)]
        end = behind
    return "".join((*parts, text[end:]))
