"""Translate an expression of pyarrow to a condition in SQL, which prunes partitions, file groups and row groups."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import UnsupportedError
from hoodie.read.arrow_tree import Call, Field, Node, fields_of, tree_of
from hoodie.records.sql.quoting import literal_of, quoted

_COMPARED: Final = {
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "greater": ">",
    "less_equal": "<=",
    "greater_equal": ">=",
}
_MIRRORED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_JOINED: Final = {"and_kleene": "AND", "or_kleene": "OR"}
_EXACT_MAX: Final = 1 << 53
"""Integers up to here are doubles without a change."""
_EPOCH: Final = datetime(1970, 1, 1)
_LIST_MAX: Final = 10_000
"""Values of an IN: the text of more of them takes longer to parse than the pruning saves."""
_CONDITIONS_MAX: Final = 1000
"""Conditions of an expression, for the same reason."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A translated part. `texts`: its conditions, joined by `joined`, none if it cannot be translated.

    `may_be_negated`: SQL and pyarrow agree on which rows do not match, too.
    """

    texts: list[str]
    joined: str = "AND"
    is_complete: bool = True
    may_be_negated: bool = True

    @property
    def where(self) -> str | None:
        """The condition."""
        if not self.texts:
            return None
        return self.texts[0] if len(self.texts) == 1 else f"({f' {self.joined} '.join(self.texts)})"

    def operands(self, word: str) -> list[str]:
        """Return the conditions that a chain of `word` has for this part."""
        return self.texts if self.joined == word or self.where is None else [self.where]


class _UnknownError(Exception):
    """A part that has no translation."""


def translated(expression: pc.Expression, schema: pa.Schema) -> tuple[str | None, bool]:
    """Translate the parts that SQL has too: comparisons of columns with values, IN, IS NULL, AND, OR and NOT.

    Returns a condition that each row of the expression matches, None for every row; and whether nothing was left out:
    of parts that are joined by AND, those that cannot be translated are left out.

    >>> schema = pa.schema([("id", pa.string()), ("n", pa.int64())])
    >>> translated((pc.field("id") == "a") & (pc.field("n") > pc.field("n")), schema)
    ("(`id` = 'a')", False)
    """
    tree = tree_of(expression)
    is_long = tree is None or sum(1 for _ in fields_of(tree)) > _CONDITIONS_MAX
    found = _nothing() if tree is None or is_long else _translated(tree, schema)
    return found.where, found.is_complete


def sql_of(expression: pc.Expression, schema: pa.Schema) -> str:
    """Return an expression as a condition in SQL.

    Raises: UnsupportedError if a part of it has no form in SQL.

    >>> sql_of(pc.field("n") > 2, pa.schema([("n", pa.int64())]))
    '(`n` > 2)'
    """
    where, is_complete = translated(expression, schema)
    if where is None or not is_complete:
        raise UnsupportedError(
            f"where={shown(expression)}: expected comparisons of columns with values, is_in, is_null, is_valid, &, | "
            "and ~; write other conditions in SQL, or filter the rows that are read"
        )
    return where


def columns_of(expression: pc.Expression, schema: pa.Schema) -> list[str]:
    """Return at least the columns that an expression reads, in the order of the schema."""
    tree = tree_of(expression)
    if tree is None:
        return list(schema.names)
    named = {found.path[0] for found in fields_of(tree)}
    return [name for name in schema.names if name in named]


def shown(expression: pc.Expression) -> str:
    """Return the text of an expression for a message: pyarrow cuts long values, also inside a character."""
    try:
        return str(expression)
    except UnicodeDecodeError:
        return "<expression>"


def _nothing() -> _Part:
    return _Part([], is_complete=False)


def _translated(tree: Node, schema: pa.Schema) -> _Part:
    """Translate a tree, its leaves first; a stack instead of recursion, as in `tree_of`."""
    done: list[_Part] = []
    pending: list[tuple[Node, bool]] = [(tree, False)]
    while pending:
        node, is_ready = pending.pop()
        if not isinstance(node, Call) or not (node.name in _JOINED or node.name == "invert"):
            try:
                done.append(_known(node, schema))
            except _UnknownError:
                done.append(_nothing())
        elif not is_ready:
            pending.append((node, True))
            pending += [(argument, False) for argument in reversed(node.arguments)]
        elif node.name == "invert":
            done.append(_negated(done.pop()))
        else:
            right, left = done.pop(), done.pop()
            done.append(_joined(left, right, _JOINED[node.name]))
    (found,) = done
    return found


def _joined(left: _Part, right: _Part, word: str) -> _Part:
    is_complete = left.is_complete and right.is_complete
    if word == "OR" and not (left.texts and right.texts):
        return _nothing()
    # One list for a chain of one word: SQL that nests as deep as the chain is long cannot be parsed.
    texts = left.operands(word)
    texts += right.operands(word)
    return _Part(texts, word, is_complete, left.may_be_negated and right.may_be_negated)


def _negated(part: _Part) -> _Part:
    if not (part.is_complete and part.may_be_negated):
        return _nothing()
    return _Part([f"(NOT {part.where})"])


def _known(node: Node, schema: pa.Schema) -> _Part:
    match node:
        case Field():
            if not pa.types.is_boolean(_column(node, schema).type):
                raise _UnknownError
            return _Part([f"({quoted(node.path[0])} = true)"])
        case Call(name="is_null", arguments=[argument]) if not _option(node, "nan_is_null"):
            return _Part([f"({quoted(_column(argument, schema).name)} IS NULL)"])
        case Call(name="is_valid", arguments=[argument]):
            return _Part([f"({quoted(_column(argument, schema).name)} IS NOT NULL)"])
        case Call(name="is_in", arguments=[argument]):
            # For a null, pyarrow returns false; SQL returns null.
            name = quoted(_column(argument, schema).name)
            return _Part([f"({name} IS NOT NULL AND {_in(node, schema)})"])
        case Call(name="if_else", arguments=[Call(name="is_valid") as given, Call(name="is_in") as among, other]):
            # DuckDB's IN, which is null for null.
            if given.arguments != among.arguments or not isinstance(other, pa.Scalar) or other.is_valid:
                raise _UnknownError
            return _Part([f"({_in(among, schema)})"])
        case Call(arguments=[left, right]) if node.name in _COMPARED:
            return _comparison(left, _COMPARED[node.name], right, schema)
    raise _UnknownError


def _option(call: Call, name: str) -> object:
    if call.options is None:
        raise _UnknownError
    return call.options[name].as_py()


def _column(node: Node, schema: pa.Schema) -> pa.Field:
    if not isinstance(node, Field) or len(node.path) > 1 or schema.names.count(node.path[0]) != 1:
        raise _UnknownError
    return schema.field(node.path[0])


def _comparison(left: object, word: str, right: object, schema: pa.Schema) -> _Part:
    if isinstance(left, pa.Scalar):
        left, word, right = right, _MIRRORED.get(word, word), left
    if not isinstance(left, Field) or not isinstance(right, pa.Scalar):
        raise _UnknownError
    column = _column(left, schema)
    text = f"({quoted(column.name)} {word} {_value(right, column.type)})"
    # In SQL a NaN is greater than all numbers.
    return _Part([text], may_be_negated=not pa.types.is_floating(column.type))


def _in(call: Call, schema: pa.Schema) -> str:
    column = _column(call.arguments[0], schema)
    values = None if call.options is None else call.options["value_set"]
    if not isinstance(values, pa.ListScalar) or _option(call, "null_matching_behavior"):
        raise _UnknownError
    if not 0 < len(values.values) <= _LIST_MAX:
        raise _UnknownError
    return f"{quoted(column.name)} IN ({', '.join(_value(value, column.type) for value in values.values)})"


def _value(value: pa.Scalar, kind: pa.DataType) -> str:
    """Return a value as a literal of SQL that compares with a column as pyarrow compares it."""
    given = value.type
    if not value.is_valid:
        raise _UnknownError
    if any(is_kind(kind) and is_kind(given) for is_kind in (_is_text, pa.types.is_boolean, pa.types.is_decimal)):
        return literal_of(value.as_py())
    if pa.types.is_integer(given) and (pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        return literal_of(value.as_py())
    if pa.types.is_float64(kind) and (pa.types.is_floating(given) or pa.types.is_integer(given)):
        return literal_of(_double(value.as_py()))
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(given) and kind.unit in ("ms", "us"):
        return _timestamp(value, kind)
    if pa.types.is_date32(kind) and pa.types.is_date32(given):
        try:
            return literal_of(value.as_py())
        except (OverflowError, ValueError):
            raise _UnknownError from None
    raise _UnknownError


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _double(number: float) -> float:
    if not math.isfinite(number) or (isinstance(number, int) and abs(number) > _EXACT_MAX):
        raise _UnknownError
    return float(number)


def _timestamp(value: pa.Scalar, kind: pa.TimestampType) -> str:
    if (value.type.tz is None) != (kind.tz is None):
        raise _UnknownError
    try:
        ticks = value.cast(pa.timestamp("us", value.type.tz)).value
        text = (_EPOCH + timedelta(microseconds=ticks)).isoformat(sep=" ")
    except (pa.ArrowInvalid, OverflowError):
        raise _UnknownError from None
    return f"TIMESTAMP'{text}Z'" if kind.tz else f"TIMESTAMP_NTZ'{text}'"
