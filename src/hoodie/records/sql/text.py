"""Text functions: LIKE with escapes, SUBSTRING, TRIM, and the tests for a prefix, a suffix or a contained text."""

from __future__ import annotations

from itertools import groupby
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.records.sql.values import Value

_TRIMS = {"BOTH": pc.utf8_trim, "LEADING": pc.utf8_ltrim, "TRAILING": pc.utf8_rtrim}
_LAST_BEFORE_SURROGATES, _FIRST_AFTER_SURROGATES, _LAST_CODE_POINT = 0xD7FF, 0xE000, 0x10FFFF

_Piece = Literal["text", "%", "_"]


def like(text: Value, pattern: str, *, escape: str = "\\", ignore_case: bool = False) -> pc.Expression:
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
            return starts_with(text, pieces[0][1])
        if kinds == ["%", "text"]:
            return pc.ends_with(text.expression, pattern=pieces[1][1])
        if kinds == ["%", "text", "%"]:
            return pc.match_substring(text.expression, pattern=pieces[1][1])
    wildcards = {"%": ".*", "_": "."}
    regex = "".join(wildcards.get(kind) or _quoted(part) for kind, part in pieces)
    return pc.match_substring_regex(text.expression, pattern=rf"(?s)\A{regex}\z", ignore_case=ignore_case)


def starts_with(text: Value, prefix: str) -> pc.Expression:
    """Test for a prefix as a range of text: UTF-8 sorts by code point, so the range is exact."""
    successor = _successor(prefix)
    if successor is None:
        return pc.starts_with(text.expression, pattern=prefix)
    return (text.expression >= _scalar(prefix, text)) & (text.expression < _scalar(successor, text))


def substring(text: Value, start: int, length: int | None) -> pc.Expression:
    """Return `length` characters from position `start`: 1 and 0 are the first one, negative counts from the end."""
    if length is not None and length <= 0:
        return pc.utf8_slice_codeunits(text.expression, start=0, stop=0)
    begin = start - 1 if start > 0 else start
    stop = None if length is None or (begin < 0 <= begin + length) else begin + length
    return pc.utf8_slice_codeunits(text.expression, start=begin, stop=stop)


def trim(text: Value, position: str, characters: str) -> pc.Expression:
    """Strip the given characters from BOTH ends, or the LEADING or TRAILING one."""
    return _TRIMS[position](text.expression, characters=characters)


def concat(parts: list[Value], data_type: pa.DataType) -> pc.Expression:
    """Join texts; the result is NULL if one of them is NULL."""
    separator = pc.scalar(pa.scalar("", data_type))
    return pc.binary_join_element_wise(*[part.expression for part in parts], separator, null_handling="emit_null")


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
    if like_value.family != "string":
        raise UnsupportedError(f"LIKE on {like_value.type} is not supported without Spark")
    return pc.scalar(pa.scalar(text, like_value.type))
