"""Translate a condition of Polars to SQL, whole or not at all.

Polars shows the inputs of an expression, and not what it does with them. So each form that SQL has is built anew of the
inputs, and compared with the expression: another version of Polars can only have fewer of them. Polars and SQL agree on
null and NaN; what they compare differently is refused.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isfinite
from typing import Any, Final

import polars as pl
import pyarrow as pa

from hoodie.arguments import shown
from hoodie.errors import UnsupportedError
from hoodie.records.sql.columns import resolve_parts
from hoodie.records.sql.quoting import literal_of, quoted

_Join = Callable[..., pl.Expr]
_DEPTH_MAX: Final = 100
_EXACT: Final = 2**53
"""Integers up to here are the same number as a float of 64 bits."""
_COMPARED: Final[Sequence[tuple[str, _Join]]] = (
    ("=", lambda left, right: left == right),
    ("<>", lambda left, right: left != right),
    ("<", lambda left, right: left < right),
    ("<=", lambda left, right: left <= right),
    (">", lambda left, right: left > right),
    (">=", lambda left, right: left >= right),
    ("<=>", lambda left, right: left.eq_missing(right)),
)
_SWAPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_BETWEEN: Final = {"both": (">=", "<="), "left": (">=", "<"), "right": (">", "<="), "none": (">", "<")}
_OF_TEXT: Final[Sequence[tuple[str, _Join]]] = (
    ("startswith", lambda text, part: text.str.starts_with(part)),
    ("endswith", lambda text, part: text.str.ends_with(part)),
    ("contains", lambda text, part: text.str.contains(part, literal=True)),
)
_NAN: Final = "CAST('nan' AS DOUBLE)"


def sql_of_polars(expression: pl.Expr, schema: pa.Schema) -> str:
    """Return a condition of Polars in SQL, which the same rows match.

    Raises: UnsupportedError if a part of it has no form in SQL; SchemaMismatchError for an unknown column.

    >>> import polars as pl
    >>> schema = pa.schema([("n", pa.int64()), ("city", pa.string())])
    >>> sql_of_polars((pl.col("n") > 2) & pl.col("city").is_in(["sf"]), schema)
    "((`n` > 2) AND (`city` IN ('sf')))"
    """
    try:
        return _Reader(schema).condition(expression.meta.undo_aliases(), 0)
    except _UnknownError as error:
        raise UnsupportedError(
            f"where={_text(expression)}: expected comparisons of columns with values of their type, is_in, is_between, "
            f"is_null, is_nan, starts_with, &, | and ~, found {error}; write the condition in Spark SQL, as "
            'where="fare * 2 > 5", or filter the rows that are read: t.to_polars().filter(…)'
        ) from None


class _UnknownError(Exception):
    """A part that has no translation."""

    def __init__(self, part: pl.Expr, why: str = "") -> None:
        super().__init__(f"{_text(part)}{why}")


class _Reader:
    """Reads conditions over the columns of a schema."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def condition(self, node: pl.Expr, depth: int) -> str:
        """Return a condition in SQL. Raises: _UnknownError, SchemaMismatchError."""
        if depth > _DEPTH_MAX:
            raise _UnknownError(node, f" inside of {_DEPTH_MAX} others (write is_in, or all_horizontal)")
        found = self._of_conditions(node, depth) or self._of_values(node)
        if found is None:
            raise _UnknownError(node)
        return found

    def _of_conditions(self, node: pl.Expr, depth: int) -> str | None:
        inputs = _inputs(node)
        word = None
        if len(inputs) == 1 and _is(node, lambda: ~inputs[0]):
            return f"(NOT {self.condition(inputs[0], depth + 1)})"
        if inputs and _is(node, lambda: pl.all_horizontal(*inputs)):
            word = "AND"
        elif inputs and _is(node, lambda: pl.any_horizontal(*inputs)):
            word = "OR"
        elif len(inputs) == 2 and _is(node, lambda: inputs[0] & inputs[1]):
            word = "AND"
        elif len(inputs) == 2 and _is(node, lambda: inputs[0] | inputs[1]):
            word = "OR"
        return None if word is None else f"({f' {word} '.join(self.condition(one, depth + 1) for one in inputs)})"

    def _of_values(self, node: pl.Expr) -> str | None:
        inputs = _inputs(node)
        column = self._column(node)
        if column is not None:
            return f"({column[0]} = true)" if pa.types.is_boolean(column[1]) else None
        match inputs:
            case []:
                value = _value(node)
                return str(value).lower() if isinstance(value, bool) else None
            case [one]:
                return self._of_column(node, one)
            case [left, right]:
                found = self._comparison(node, left, right)
                return found or self._text_part(node, left, right) or self._in(node, left, right)
            case [one, low, high]:
                for closed, (above, below) in _BETWEEN.items():
                    if _is(node, one.is_between, low, high, closed):
                        return f"({self._compared(one, above, low)} AND {self._compared(one, below, high)})"
        return None

    def _of_column(self, node: pl.Expr, one: pl.Expr) -> str | None:
        column = self._column(one)
        if column is None:
            return None
        name, kind = column
        if _is(node, one.is_null):
            return f"({name} IS NULL)"
        if _is(node, one.is_not_null):
            return f"({name} IS NOT NULL)"
        if pa.types.is_floating(kind) and _is(node, one.is_nan):
            return f"({name} = {_NAN})"
        if pa.types.is_floating(kind) and _is(node, one.is_not_nan):
            return f"({name} <> {_NAN})"
        return None

    def _comparison(self, node: pl.Expr, left: pl.Expr, right: pl.Expr) -> str | None:
        for word, join in _COMPARED:
            if _is(node, join, left, right):
                return self._compared(left, word, right)
        if _is(node, lambda: left.ne_missing(right)):
            return f"(NOT {self._compared(left, '<=>', right)})"
        return None

    def _compared(self, left: pl.Expr, word: str, right: pl.Expr) -> str:
        column, other = self._column(left), self._column(right)
        if column is None and other is not None:
            return self._compared(right, _SWAPPED.get(word, word), left)
        if column is None:
            raise _UnknownError(left, ", which is no column")
        if other is None:
            return f"({column[0]} {word} {_literal(right, _value(right), column[1], may_be_null=word == '<=>')})"
        if column[1] != other[1] or pa.types.is_nested(column[1]):
            raise _UnknownError(right, f" of type {other[1]}, compared with {column[1]}")
        return f"({column[0]} {word} {other[0]})"

    def _text_part(self, node: pl.Expr, text: pl.Expr, part: pl.Expr) -> str | None:
        column = self._column(text)
        for function, join in _OF_TEXT:
            if _is(node, join, text, part):
                if column is None or not _is_text(column[1]):
                    raise _UnknownError(text, ", which is no column of text")
                return f"{function}({column[0]}, {_literal(part, _value(part), column[1])})"
        return None

    def _in(self, node: pl.Expr, one: pl.Expr, options: pl.Expr) -> str | None:
        column = self._column(one)
        if column is None or not _is(node, lambda: one.is_in(options)):
            return None
        values = _values(options)
        if not values:  # null for null, as IN
            return f"({column[0]} <> {column[0]})"
        return f"({column[0]} IN ({', '.join(_literal(options, value, column[1]) for value in values)}))"

    def _column(self, node: pl.Expr) -> tuple[str, pa.DataType] | None:
        """Return the name in SQL and the type of a column, or of a field of a struct; None for another expression."""
        path = _path(node)
        if path is None:
            return None
        found = resolve_parts(path, self._schema)
        return ".".join(quoted(part) for part in found.path), found.type


def _path(node: pl.Expr) -> list[str] | None:
    inputs = _inputs(node)
    names = node.meta.root_names()
    if not inputs:
        return names if len(names) == 1 and _is(node, lambda: pl.col(names[0])) else None
    if len(inputs) > 1 or not names:
        return None
    name = node.meta.output_name(raise_if_undetermined=False)
    if name is None or not _is(node, lambda: inputs[0].struct.field(name)):
        return None
    owner = _path(inputs[0])
    return None if owner is None else [*owner, name]


def _inputs(node: pl.Expr) -> list[pl.Expr]:
    """Return the inputs of an expression, in order."""
    return list(reversed(node.meta.pop()))


def _is(node: pl.Expr, build: Callable[..., pl.Expr], *inputs: Any) -> bool:
    """Return whether an expression equals the expression that is built of the inputs."""
    try:
        return bool(build(*inputs).meta.eq(node))
    except (pl.exceptions.PolarsError, TypeError, ValueError):
        return False


def _value(node: pl.Expr) -> Any:
    """Return the value of a literal. Raises: _UnknownError for another expression."""
    if _inputs(node) or node.meta.root_names() or not node.meta.is_literal():
        raise _UnknownError(node, ", which is no value")
    found = pl.select(node).to_series()
    if len(found) != 1 or found.dtype == pl.Datetime("ns"):
        raise _UnknownError(node, f" of type {found.dtype}")
    return found[0]


def _values(node: pl.Expr) -> list[Any]:
    """Return the values of a list or of a series. Raises: _UnknownError for another expression."""
    if _inputs(node) or node.meta.root_names():
        raise _UnknownError(node, ", which is no list of values")
    try:
        found = pl.select(node).to_series()
    except pl.exceptions.PolarsError:
        raise _UnknownError(node, ", which is no list of values") from None
    if found.dtype.is_nested():
        if len(found) != 1:
            raise _UnknownError(node, ", which is no list of values")
        found = found[0]
    if found.dtype == pl.Datetime("ns") and len(found):
        raise _UnknownError(node, f" of type {found.dtype}")
    return list(found)


def _literal(node: pl.Expr, value: Any, kind: pa.DataType, *, may_be_null: bool = False) -> str:
    """Return a value as a literal, which SQL compares with this type as Polars does. Raises: _UnknownError."""
    match value:
        case None:
            fits = may_be_null
        case bool():
            fits = pa.types.is_boolean(kind)
        case int():
            fits = _fits_integer(value, kind)
        case float():
            fits = _fits_float(value, kind)
        case Decimal():
            fits = pa.types.is_decimal(kind)
        case str():
            fits = _is_text(kind)
        case bytes():
            fits = pa.types.is_binary(kind)
        case datetime():
            fits = pa.types.is_timestamp(kind) and (value.tzinfo is None) == (kind.tz is None)
            # Polars drops what a column in milliseconds cannot hold.
            if fits and (kind.unit == "us" or (kind.unit == "ms" and value.microsecond % 1000 == 0)):
                return _timestamp(value)
            fits = False
        case date():
            fits = pa.types.is_date(kind)
        case _:
            fits = False
    if not fits:
        raise _UnknownError(node, f" compared with {kind}: {shown(value)}")
    return literal_of(value)


def _fits_integer(value: int, kind: pa.DataType) -> bool:
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return -(2**63) <= value < 2**63
    return pa.types.is_floating(kind) and abs(value) <= _EXACT and _fits_float(float(value), kind)


def _fits_float(value: float, kind: pa.DataType) -> bool:
    if pa.types.is_integer(kind):
        return isfinite(value) and abs(value) < _EXACT
    if pa.types.is_float32(kind):
        return isfinite(value) and abs(value) < 3e38 and struct.unpack("f", struct.pack("f", value))[0] == value
    return bool(pa.types.is_float64(kind))


def _timestamp(value: datetime) -> str:
    if value.tzinfo is None:
        return f"TIMESTAMP_NTZ'{value.isoformat(sep=' ')}'"
    return f"TIMESTAMP'{value.astimezone(UTC).replace(tzinfo=None).isoformat(sep=' ')}Z'"


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _text(expression: pl.Expr) -> str:
    """Return an expression for a message: on one line, and not long."""
    text = " ".join(str(expression).split())
    return text if len(text) <= 120 else f"{text[:120]}…"
