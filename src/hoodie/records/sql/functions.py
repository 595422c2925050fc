"""The Spark functions that Arrow computes with the same results, one small function each."""

from __future__ import annotations

from itertools import groupby
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from hoodie.errors import InvalidConfigError, SchemaMismatchError
from hoodie.records.sql import letters
from hoodie.records.sql.cast import cast, round_decimal
from hoodie.records.sql.parse import chain, unsupported
from hoodie.records.sql.regex import rlike
from hoodie.records.sql.values import Translate, Value, literal, null_of, shared_type

_TRIMS = {"BOTH": pc.utf8_trim, "LEADING": pc.utf8_ltrim, "TRAILING": pc.utf8_rtrim}
_LAST_BEFORE_SURROGATES, _FIRST_AFTER_SURROGATES, _LAST_CODE_POINT = 0xD7FF, 0xE000, 0x10FFFF

_ROUNDED_DIGITS_MAX = 30
_WHOLE_FROM = 1e17

_Piece = Literal["text", "%", "_"]


def common(values: list[Value]) -> tuple[list[Value], pa.DataType]:
    """Convert the branches of COALESCE, IF or CASE to one type.

    Raises: SchemaMismatchError if they have no common type.
    """
    seed = Value(values[0].expression, pa.null())
    for value in values:
        # Between branches a literal has its whole type: 1 is an int of ten digits; in arithmetic it has one digit.
        shared = shared_type(seed, Value(value.expression, value.type))
        if shared is None:
            raise SchemaMismatchError(
                f"branches of types {seed.type} and {value.type} have no common type; CAST one of them"
            )
        seed = Value(value.expression, shared)
    return [cast(value, seed.type) for value in values], seed.type


def coalesce(arguments: list[Value]) -> Value:
    """Translate COALESCE, NVL, IFNULL."""
    values, data_type = common(arguments)
    return Value(pc.coalesce(*[value.expression for value in values]), data_type)


def choose(cases: list[tuple[pc.Expression, Value]], default: Value | None) -> Value:
    """Translate CASE and IF: the first case whose condition is true (not NULL), else the default, else NULL."""
    nothing = literal(None, pa.null())
    values, data_type = common([*[value for _, value in cases], default or nothing])
    chosen = values[-1].expression
    for (condition, _), value in zip(reversed(cases), reversed(values[:-1]), strict=True):
        # Arrow's if_else gives NULL for a NULL condition; SQL tests the next case.
        chosen = pc.if_else(pc.coalesce(condition, False), value.expression, chosen)
    return Value(chosen, data_type)


def change_case(node: exp.Upper | exp.Lower, translate: Translate) -> Value:
    """Translate UPPER and LOWER."""
    value = as_text(translate(node.this), node)
    name = "upper" if isinstance(node, exp.Upper) else "lower"
    return Value(letters.changed_case(name, value.expression, value.type), value.type)


def length(node: exp.Length, translate: Translate) -> Value:
    """Translate LENGTH: characters of text, bytes of binary."""
    value = translate(node.this)
    if value.family == "binary":
        return Value(pc.binary_length(value.expression).cast(pa.int32()), pa.int32())
    return Value(pc.utf8_length(as_text(value, node).expression).cast(pa.int32()), pa.int32())


def concat(node: exp.Concat | exp.DPipe, translate: Translate) -> Value:
    """Translate CONCAT, `||` and adjacent literals (`'a' 'b'`); the result is NULL if one of the texts is NULL."""
    parts = node.expressions
    if isinstance(node, exp.Concat) and all(isinstance(one, exp.Literal) and one.is_string for one in parts):
        return literal("".join(one.name for one in parts), pa.string())
    if isinstance(node, exp.DPipe):
        spine = chain(node)
        parts = [spine[-1].this, *(link.expression for link in reversed(spine))]
    values, data_type = common([as_text(translate(part), node) for part in parts])
    texts = [value.expression for value in values]
    separator = pc.scalar(pa.scalar("", data_type))
    return Value(pc.binary_join_element_wise(*texts, separator, null_handling="emit_null"), data_type)


def trim(node: exp.Trim, translate: Translate) -> Value:
    """Translate TRIM, LTRIM, RTRIM: spaces, or the literal characters given."""
    value = as_text(translate(node.this), node)
    position = str(node.args.get("position") or "BOTH").upper()
    characters = " " if node.expression is None else literal_text(node.expression, node, translate)
    return Value(_TRIMS[position](value.expression, characters=characters), value.type)


def substring(node: exp.Substring, translate: Translate) -> Value:
    """Translate SUBSTRING and SUBSTR with literal positions: 0 is the first too, negative ones count from the end."""
    value = as_text(translate(node.this), node)
    start = 1 if node.args.get("start") is None else literal_integer(node.args["start"], node, translate)
    wanted = node.args.get("length")
    length = None if wanted is None else literal_integer(wanted, node, translate)
    begin = start - 1 if start > 0 else start
    stop = None if length is None or (begin < 0 <= begin + length) else begin + length
    if length is not None and length <= 0:
        begin = stop = 0
    return Value(pc.utf8_slice_codeunits(value.expression, start=begin, stop=stop), value.type)


def contains(node: exp.Contains | exp.StartsWith | exp.EndsWith, translate: Translate) -> Value:
    """Translate CONTAINS, STARTSWITH, ENDSWITH with a literal."""
    value = as_text(translate(node.this), node)
    part = literal_text(node.expression, node, translate)
    if isinstance(node, exp.StartsWith):
        return Value(_starts_with(value, part), pa.bool_())
    test = pc.match_substring if isinstance(node, exp.Contains) else pc.ends_with
    return Value(test(value.expression, pattern=part), pa.bool_())


def like(node: exp.Like | exp.ILike, translate: Translate, escape: str = "\\") -> Value:
    """Translate LIKE and ILIKE with a literal pattern."""
    pattern = translate(node.expression) if isinstance(node.expression, exp.Expression) else None
    if pattern is not None and pattern.is_null_literal:
        return Value(null_of(pa.bool_()), pa.bool_())
    value = as_text(translate(node.this), node)
    wanted = literal_text(node.expression, node, translate)
    found = _matches(value, wanted, escape=escape, ignore_case=isinstance(node, exp.ILike))
    return Value(~found if node.args.get("negate") else found, pa.bool_())


def regexp(node: exp.RegexpLike | exp.Anonymous, translate: Translate) -> Value:
    """Translate RLIKE and REGEXP with a literal pattern."""
    arguments = node.expressions if isinstance(node, exp.Anonymous) else [node.this, node.expression]
    if len(arguments) != 2 or node.args.get("flag") is not None:
        raise unsupported(node, "only with a text and a pattern")
    if translate(arguments[1]).is_null_literal:
        return Value(null_of(pa.bool_()), pa.bool_())
    value = as_text(translate(arguments[0]), node)
    return Value(rlike(value.expression, literal_text(arguments[1], node, translate), node), pa.bool_())


def absolute(node: exp.Abs, translate: Translate) -> Value:
    """Translate ABS of a number; the smallest integer of a type is an error."""
    value = translate(node.this)
    if value.family not in ("integer", "decimal", "float"):
        raise unsupported(node, f"of {value.type}")
    return Value(pc.abs_checked(value.expression), value.type)


def rounded(node: exp.Round, translate: Translate) -> Value:
    """Translate ROUND, halves away from zero, to any number of digits after the point that a decimal holds."""
    value = translate(node.this)
    decimals = node.args.get("decimals")
    digits = 0 if decimals is None else literal_integer(decimals, node, translate)
    if not 0 <= digits <= _ROUNDED_DIGITS_MAX or value.family not in ("integer", "decimal", "float"):
        raise unsupported(node, f"of {value.type} to {digits} digits")
    if value.family == "integer" or (value.family == "decimal" and digits >= value.type.scale):
        return value
    if value.family == "decimal":
        target = pa.decimal128(min(38, value.type.precision - value.type.scale + digits + 1), digits)
        return Value(round_decimal(value.expression, value.type, target), target)
    if digits:
        return Value(_rounded_float(value, digits), value.type)
    return Value(pc.add(pc.round(value.expression, round_mode="half_towards_infinity"), _zero(value)), value.type)


def _rounded_float(value: Value, digits: int) -> pc.Expression:
    """Round the shortest text of each number, as Spark does: 1.005 becomes 1.01, though its binary value is lower.

    Numbers without digits behind the point, NaN and infinity stay as they are; small numbers become 0.0.
    """
    number = value.expression.cast(pa.float64())
    size = pc.abs(number)
    is_small, is_whole = size < pc.scalar(10.0 ** -(digits + 1)), ~(size < pc.scalar(_WHOLE_FROM))
    text = pc.if_else(is_small | is_whole, null_of(pa.float64()), number).cast(pa.string())
    # A double has 17 digits: those of the numbers that are rounded here fit.
    exact, target = pa.decimal256(76, digits + 20), pa.decimal256(76, digits)
    fitting = round_decimal(text.cast(exact), exact, target).cast(pa.string()).cast(value.type)
    return pc.if_else(is_small, _zero(value), pc.if_else(is_whole, value.expression, pc.add(fitting, _zero(value))))


def _zero(value: Value) -> pc.Expression:
    """Return 0.0, which added to -0.0 is 0.0."""
    return pc.scalar(pa.scalar(0.0, value.type))


def is_nan(node: exp.IsNan, translate: Translate) -> Value:
    """Translate ISNAN; false for NULL, as in Spark."""
    value = translate(node.this)
    if value.family != "float":
        raise unsupported(node, f"of {value.type}")
    return Value(pc.coalesce(pc.is_nan(value.expression), False), pa.bool_())


def as_text(value: Value, node: exp.Expression) -> Value:
    """Convert an argument to text, as Spark does implicitly."""
    if value.family == "string":
        return value
    if value.family in ("nested", "binary"):
        raise unsupported(node, f"of {value.type}")
    return cast(value, pa.string())


def literal_text(argument: object, node: exp.Expression, translate: Translate) -> str:
    """Return the text of an argument that must be literal text."""
    value = translate(argument) if isinstance(argument, exp.Expression) else None
    if value is None or not value.is_literal or not isinstance(value.literal, str):
        raise unsupported(node, "only with literal text as an argument")
    return value.literal


def literal_integer(argument: exp.Expression, node: exp.Expression, translate: Translate) -> int:
    """Return the value of an argument that must be a literal integer."""
    value = translate(argument)
    if not value.is_literal or not isinstance(value.literal, int):
        raise unsupported(node, "only with a literal integer as an argument")
    return value.literal


def _matches(text: Value, pattern: str, *, escape: str = "\\", ignore_case: bool = False) -> pc.Expression:
    """Match the whole text against `%`, `_` and escaped characters.

    A pattern without wildcards, or with one `%` at its end, becomes comparisons, so that Parquet statistics apply.

    Raises: InvalidConfigError if the character after the escape character is not `%`, `_` or the escape character.
    """
    pieces = _pieces(pattern, escape)
    if not ignore_case:
        kinds = [kind for kind, _ in pieces]
        if kinds in ([], ["text"]):
            return text.expression == _scalar(pieces[0][1] if pieces else "", text)
        if kinds == ["text", "%"]:
            return _starts_with(text, pieces[0][1])
        if kinds == ["%", "text"]:
            return pc.ends_with(text.expression, pattern=pieces[1][1])
        if kinds == ["%", "text", "%"]:
            return pc.match_substring(text.expression, pattern=pieces[1][1])
    wildcards = {"%": ".*", "_": "."}
    regex = "".join(wildcards.get(kind) or _quoted(part) for kind, part in pieces)
    return pc.match_substring_regex(text.expression, pattern=rf"(?s)\A{regex}\z", ignore_case=ignore_case)


def _starts_with(text: Value, prefix: str) -> pc.Expression:
    """Test for a prefix as a range of text: UTF-8 sorts by code point, so the range is exact."""
    successor = _successor(prefix)
    if successor is None:
        return pc.starts_with(text.expression, pattern=prefix)
    return (text.expression >= _scalar(prefix, text)) & (text.expression < _scalar(successor, text))


def _pieces(pattern: str, escape: str) -> list[tuple[_Piece, str]]:
    if len(escape) != 1:
        raise InvalidConfigError(f"ESCAPE takes one character, found {escape!r}")
    marks: list[tuple[_Piece, str]] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, None)
            if escaped not in ("%", "_", escape):
                raise InvalidConfigError(
                    f"LIKE pattern {pattern!r}: {escape!r} must be followed by '%', '_' or {escape!r}"
                )
            marks.append(("text", str(escaped)))
        else:
            marks.append((character, character) if character in ("%", "_") else ("text", character))  # type: ignore[arg-type]
    pieces: list[tuple[_Piece, str]] = []
    for kind, group in groupby(marks, key=lambda mark: mark[0]):
        parts = [part for _, part in group]
        pieces += [("text", "".join(parts))] if kind == "text" else [(kind, part) for part in parts]
    return pieces


def _quoted(part: str) -> str:
    return "".join(rf"\{one}" if one.isascii() and not one.isalnum() and one.isprintable() else one for one in part)


def _successor(prefix: str) -> str | None:
    """Return the smallest text above all texts that start with `prefix`; None if there is no such text."""
    if not prefix:
        return None
    last = ord(prefix[-1])
    if last == _LAST_CODE_POINT:
        return _successor(prefix[:-1])
    following = _FIRST_AFTER_SURROGATES if last == _LAST_BEFORE_SURROGATES else last + 1
    return prefix[:-1] + chr(following)


def _scalar(text: str, like_value: Value) -> pc.Expression:
    return pc.scalar(pa.scalar(text, like_value.type))
