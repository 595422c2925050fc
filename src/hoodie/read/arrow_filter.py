"""Translate an expression of pyarrow to a condition in SQL, by its text: pyarrow shows it in no other way."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import UnsupportedError
from hoodie.records.sql.quoting import literal_of, quoted

_TOKEN: Final = re.compile(r'\s*("(?:[^"\\]|\\.)*"|==|!=|<=|>=|[<>(){}\[\],=]|[^\s"(){}\[\],=<>!]+)')
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_INTEGER: Final = re.compile(r"-?\d+")
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"'}
_TIME: Final = re.compile(r"\d\d:\d\d:\d\d(\.\d{1,6})?Z?")
_COMPARED: Final = {"==": "=", "!=": "<>", "<": "<", ">": ">", "<=": "<=", ">=": ">="}
_OTHER_WORDS: Final = frozenset({"and", "or", "true", "false", "null", "nan", "inf", "invert", "if_else"})


@dataclass(frozen=True, slots=True)
class Translated:
    """A condition that each row of the expression matches, None for every row. `is_complete`: nothing was left out."""

    where: str | None
    is_complete: bool


_NOTHING: Final = Translated(None, False)


def translated(expression: pc.Expression, schema: pa.Schema) -> Translated:
    """Translate the parts that SQL has too: comparisons of columns with values, IN, IS NULL, AND, OR and NOT.

    Of parts that are joined by AND, those that cannot be translated are left out.

    >>> schema = pa.schema([("id", pa.string()), ("n", pa.int64())])
    >>> translated((pc.field("id") == "a") & (pc.field("n") > pc.field("n")), schema)
    Translated(where="((`id` = 'a'))", is_complete=False)
    """
    text = str(expression)
    # A name of other characters could look like a part of the expression.
    if any(name in text for name in schema.names if name in _OTHER_WORDS or not _WORD.fullmatch(name)):
        return _NOTHING
    parser = _Parser(text, schema)
    try:
        found = parser.operand()
    except _UnknownError:
        return _NOTHING
    return found if parser.is_at_end else _NOTHING


def sql_of(expression: pc.Expression, schema: pa.Schema) -> str:
    """Return an expression as a condition in SQL.

    Raises: UnsupportedError if a part of it has no form in SQL.

    >>> sql_of(pc.field("n") > 2, pa.schema([("n", pa.int64())]))
    '(`n` > 2)'
    """
    found = translated(expression, schema)
    if found.where is None or not found.is_complete:
        raise UnsupportedError(
            f"where={expression}: expected comparisons of columns with values, is_in, is_null, is_valid, &, | and ~; "
            "write other conditions in SQL, or filter the rows that are read"
        )
    return found.where


def columns_of(expression: pc.Expression, schema: pa.Schema) -> list[str]:
    """Return at least the columns that an expression reads, in the order of the schema."""
    text = str(expression)
    if "FieldPath" in text:
        return list(schema.names)
    words = set(re.findall(r"\w+", text))
    return [name for name in schema.names if name in words or (not _WORD.fullmatch(name) and name in text)]


class _UnknownError(Exception):
    """A part of the text that has no translation."""


class _Parser:
    """Reads an expression from its tokens. `operand` passes over the parts that have no translation."""

    def __init__(self, text: str, schema: pa.Schema) -> None:
        self._tokens = _TOKEN.findall(text)
        self._schema, self._place, self._inverted = schema, 0, 0

    @property
    def is_at_end(self) -> bool:
        """Whether all tokens were read."""
        return self._place == len(self._tokens)

    def operand(self) -> Translated:
        """Read a condition, and return its translation. Raises: _UnknownError if the text ends in it."""
        start, inverted = self._place, self._inverted
        try:
            return self._known()
        except _UnknownError:
            self._place, self._inverted = self._behind(start), inverted
            return _NOTHING

    def _known(self) -> Translated:
        word = self._next()
        match word:
            case "(":
                return self._comparison() if self._peek(1) in _COMPARED else self._joined()
            case "invert":
                return self._not()
            case "is_null":
                self._expect("(")
                name = self._column()
                self._expect(",", "{", "nan_is_null", "=", "false", "}", ")")
                return Translated(f"({quoted(name)} IS NULL)", True)
            case "is_valid":
                self._expect("(")
                name = self._column()
                self._expect(")")
                return Translated(f"({quoted(name)} IS NOT NULL)", True)
            case "is_in":
                return self._is_in()
            case "if_else":  # DuckDB's IN, which is null for null
                self._expect("(", "is_valid", "(")
                name = self._column()
                self._expect(")", ",", "is_in")
                found = self._is_in()
                self._expect(",", "null", "[", "bool", "]", ")")
                return found if self._inverted == 0 else _NOTHING
        self._place -= 1
        name = self._column()
        if not pa.types.is_boolean(self._schema.field(name).type):
            raise _UnknownError
        return Translated(f"({quoted(name)} = true)", True)

    def _comparison(self) -> Translated:
        name = self._column()
        word = self._next()
        kind = self._schema.field(name).type
        # In SQL a NaN is greater than all numbers.
        if self._inverted and pa.types.is_floating(kind):
            raise _UnknownError
        value = self._value(kind)
        self._expect(")")
        return Translated(f"({quoted(name)} {_COMPARED[word]} {value})", True)

    def _joined(self) -> Translated:
        left = self.operand()
        word = self._next()
        right = self.operand()
        self._expect(")")
        known = [found.where for found in (left, right) if found.where is not None]
        is_complete = left.is_complete and right.is_complete
        if word == "and" and known and (is_complete or not self._inverted):
            return Translated(f"({' AND '.join(known)})", is_complete)
        if word == "or" and len(known) == 2 and (is_complete or not self._inverted):
            return Translated(f"({' OR '.join(known)})", is_complete)
        return _NOTHING

    def _not(self) -> Translated:
        self._expect("(")
        self._inverted += 1
        found = self.operand()
        self._inverted -= 1
        self._expect(")")
        return Translated(f"(NOT {found.where})", True) if found.is_complete else _NOTHING

    def _is_in(self) -> Translated:
        self._expect("(")
        name = self._column()
        self._expect(",", "{", "value_set", "=")
        self._next()
        self._expect("[")
        kind = self._schema.field(name).type
        values: list[str] = []
        while not values or self._next_is(","):
            values.append(self._value(kind))
        self._expect("]", ",", "null_matching_behavior", "=", "MATCH", "}", ")")
        # For a null, pyarrow returns false; SQL returns null.
        return Translated(f"({quoted(name)} IS NOT NULL AND {quoted(name)} IN ({', '.join(values)}))", True)

    def _column(self) -> str:
        name = self._next()
        if name not in self._schema.names:
            raise _UnknownError
        return name

    def _value(self, kind: pa.DataType) -> str:
        """Return a value of this type as a literal of SQL."""
        text = self._next()
        if pa.types.is_string(kind) and text.startswith('"'):
            return literal_of(_unescaped(text[1:-1]))
        if pa.types.is_boolean(kind) and text in ("true", "false"):
            return text
        if pa.types.is_integer(kind) and _INTEGER.fullmatch(text):
            return literal_of(int(text))
        if pa.types.is_float64(kind) and _NUMBER.fullmatch(text):
            return literal_of(float(text))
        if pa.types.is_decimal(kind) and _NUMBER.fullmatch(text):
            return literal_of(Decimal(text))
        if pa.types.is_timestamp(kind) and kind.unit in ("ms", "us") and _DATE.fullmatch(text):
            return _timestamp(f"{text} {self._next()}", kind)
        if pa.types.is_date32(kind) and _DATE.fullmatch(text):
            return literal_of(date.fromisoformat(text))
        raise _UnknownError

    def _next(self) -> str:
        if self.is_at_end:
            raise _UnknownError
        self._place += 1
        return str(self._tokens[self._place - 1])

    def _next_is(self, token: str) -> bool:
        is_there = self._peek(0) == token
        self._place += is_there
        return is_there

    def _peek(self, distance: int) -> str:
        return next(iter(self._tokens[self._place + distance :]), "")

    def _expect(self, *tokens: str) -> None:
        for token in tokens:
            if self._next() != token:
                raise _UnknownError

    def _behind(self, start: int) -> int:
        """Return the place behind an operand: a word, a part in parentheses, or a call."""
        depth = 0
        for place in range(start, len(self._tokens)):
            token = self._tokens[place]
            depth += (token == "(") - (token == ")")
            if depth == 0 and not (place == start and self._tokens[start + 1 : start + 2] == ["("]):
                return place + 1
        raise _UnknownError


def _timestamp(text: str, kind: pa.TimestampType) -> str:
    if not _TIME.fullmatch(text[11:]) or text.endswith("Z") != (kind.tz is not None):
        raise _UnknownError
    return f"TIMESTAMP{'' if kind.tz else '_NTZ'}'{text}'"


def _unescaped(text: str) -> str:
    def plain(found: re.Match[str]) -> str:
        if found[1] not in _ESCAPED:
            raise _UnknownError
        return _ESCAPED[found[1]]

    return _ESCAPE.sub(plain, text)
