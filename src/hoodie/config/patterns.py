"""Regular expressions that options and tables contain: in Java's syntax, evaluated by RE2 in time linear in the text.

Python's `re` tries alternatives one after the other: a few characters in the properties of a table could keep a call
busy for ever. What Java has and RE2 lacks or reads in another way is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_PARTS: Final = re.compile(
    r"\\Q(?:(?!\\E).)*(?:\\E)?|\\[pP]\{[^}]*\}|\\.|\[\^?\]?|\]|&&|\(\?<?[^\w\s<-]|\(\?[a-zA-Z-]+|[*+?}]\+", re.DOTALL
)
"""The parts of a pattern by which Java and RE2 can differ, and the quoted parts in which they cannot."""
_LOOKS: Final = ("(?=", "(?!", "(?<=", "(?<!")


def check_pattern(pattern: str) -> str:
    """Return the pattern. Raises: ValueError that names what is not supported, or what is wrong."""
    lacking = _lacking(pattern)
    if lacking is not None:
        raise ValueError(
            f"a regular expression without {lacking} expected: it must be decided in time that grows with the length "
            "of the text only"
        )
    try:
        is_found(pattern, "")
        match_whole(pattern, [""])
    except pa.ArrowInvalid as error:
        reason = str(error).removeprefix("Invalid regular expression: ")
        raise ValueError(f"a regular expression expected, {reason}") from error
    return pattern


def match_whole(pattern: str, texts: Sequence[str]) -> list[bool]:
    """Return for each text whether the whole text matches a checked pattern.

    >>> match_whole("2026-0[1-3]", ["2026-02", "2026-02-07"])
    [True, False]
    """
    matched: list[bool] = pc.match_substring_regex(pa.array(texts, pa.string()), rf"\A(?:{pattern})\z").to_pylist()
    return matched


def is_found(pattern: str, text: str) -> bool:
    """Return whether a checked pattern matches a part of the text."""
    return bool(pc.match_substring_regex(pa.scalar(text), pattern).as_py())


def split_text(pattern: str, text: str) -> list[str]:
    """Split a text at the matches of a checked pattern."""
    parts: list[str] = pc.split_pattern_regex(pa.scalar(text), pattern).as_py()
    return parts


def _lacking(pattern: str) -> str | None:
    """Name the first part of a pattern that RE2 does not have, or that means something else in Java."""
    in_class = False
    for match in _PARTS.finditer(pattern):
        part = match[0]
        if part[0] == "\\":
            if part[1:] in tuple("123456789k"):
                return f"the back-reference {part}"
        elif part[0] == "[":
            if in_class:
                return "a class in a class, such as [a[bc]]"
            in_class = True
        elif part == "]":
            in_class = False
        elif part == "&&":
            if in_class:
                return "an intersection of classes (&&)"
        elif in_class:
            continue
        elif part in _LOOKS:
            return f"a look-around {part}…)"
        elif part == "(?>":
            return "an atomic group (?>…)"
        elif part[0] == "(" and set(part) & set("xduU"):
            return f"the flag {part})"
        elif part[0] != "(" and part[1:] == "+":
            return f"the possessive quantifier {part}"
    return None
