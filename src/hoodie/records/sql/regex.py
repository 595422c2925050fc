r"""RLIKE: a regular expression of Java in the syntax of RE2, by which Arrow finds the same texts.

The same is true of literals, `.`, classes, groups, alternatives, quantifiers, `^`, and `$` at the end. A construct that
RE2 lacks, or in which Java's releases, or Java and RE2, differ, is refused by name: look-around, back references,
possessive quantifiers, flags, `\b`, `\p{…}`, classes in classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from hoodie.errors import UnsupportedError
from hoodie.records.sql.parse import unsupported

_LINE_ENDS: Final = r"\n\r\x{85}\x{2028}\x{2029}"
_FINAL_LINE_END: Final = rf"(?:\r\n|[{_LINE_ENDS}])\z"
_SPACES: Final = r"\t\n\x{0B}\f\r "
_SAME_ESCAPES: Final = "dDwWtnrfa"
_OUTSIDE_CLASSES: Final = {"s": f"[{_SPACES}]", "S": f"[^{_SPACES}]", "A": r"\A", "z": r"\z"}
_QUANTIFIERS: Final = "*+?{"
_REPEATED_MAX: Final = 1000


def rlike(text: pc.Expression, pattern: str, node: exp.Expression) -> pc.Expression:
    """Test whether a part of the text matches. Raises: UnsupportedError for a pattern that RE2 reads otherwise."""
    try:
        translation = _Translation(pattern)
        translated = translation.translated()
        pc.match_substring_regex(pa.array([""]), pattern=translated)
    except (UnsupportedError, pa.ArrowInvalid) as error:
        raise unsupported(node, str(error)) from error
    found = pc.match_substring_regex(text, pattern=translated)
    if not translation.has_end:
        return found
    # `$` of Java is also the place before a line end that ends the text.
    stripped = pc.replace_substring_regex(text, pattern=_FINAL_LINE_END, replacement="")
    return found | pc.match_substring_regex(stripped, pattern=translated)


@dataclass(slots=True)
class _Translation:
    """Reads a pattern from left to right; `place`: the offset of the next character."""

    pattern: str
    place: int = 0
    has_end: bool = False
    has_text_end: bool = False

    def translated(self) -> str:
        """Return the pattern in the syntax of RE2. Raises: UnsupportedError."""
        found = self._alternatives(is_last=True, depth=0)
        if self.place < len(self.pattern):
            raise UnsupportedError("')' without '('")
        if self.has_end and self.has_text_end:
            raise UnsupportedError(r"'$' and '\z' in one pattern")
        return found

    def _peek(self) -> str:
        return self.pattern[self.place : self.place + 1]

    def _next(self) -> str:
        if self.place >= len(self.pattern):
            raise UnsupportedError("the pattern ends too early")
        self.place += 1
        return self.pattern[self.place - 1]

    def _alternatives(self, *, is_last: bool, depth: int) -> str:
        """Translate up to the end or `)`. `is_last`: nothing follows that could match."""
        if depth > 50:
            raise UnsupportedError("groups nested deeper than 50")
        parts: list[str] = []
        while self._peek() not in ("", ")"):
            parts.append(self._piece(is_last=is_last, depth=depth))
        return "".join(parts)

    def _piece(self, *, is_last: bool, depth: int) -> str:
        character = self._next()
        if character in "|^":
            return self._without_quantifier(character)
        if character == "$":
            if not is_last or self._peek() not in ("", "|", ")"):
                raise UnsupportedError("'$' that is not at the end")
            self.has_end = True
            return r"\z"
        if character == "(":
            return self._group(is_last=is_last, depth=depth)
        if character in _QUANTIFIERS:
            raise UnsupportedError(f"{character!r} that quantifies nothing")
        if character == "[":
            atom = self._class()
        elif character == "\\":
            atom = self._escaped(in_class=False)
        else:
            atom = f"[^{_LINE_ENDS}]" if character == "." else _literal(character)
        return atom + self._quantifier()

    def _group(self, *, is_last: bool, depth: int) -> str:
        if self._peek() == "?":
            construct = self.pattern[self.place - 1 : self.place + 2]
            self.place += 1
            if self._next() != ":":
                raise UnsupportedError(f"{construct!r}: look-around, flags and names of groups")
        ends = self._closes_at_end() if is_last else False
        inner = self._alternatives(is_last=ends, depth=depth + 1)
        if self._peek() == "":
            raise UnsupportedError("'(' without ')'")
        self.place += 1
        return f"(?:{inner}){self._quantifier()}"

    def _closes_at_end(self) -> bool:
        """Return whether after the group that begins here only ends of groups and alternatives follow."""
        depth, place, in_class = 1, self.place, False
        while place < len(self.pattern) and depth:
            character = self.pattern[place]
            if character == "\\":
                place += 1
            elif in_class:
                in_class = character != "]"
            elif character == "[":
                in_class = True
            else:
                depth += (character == "(") - (character == ")")
            place += 1
        return self.pattern[place : place + 1] in ("", "|", ")")

    def _quantifier(self) -> str:
        found = self._peek()
        if found == "" or found not in _QUANTIFIERS:
            return ""
        self.place += 1
        if found == "{":
            end = self.pattern.find("}", self.place)
            body = self.pattern[self.place : end] if end >= 0 else ""
            low, comma, high = body.partition(",")
            numbers = [low, high] if comma and high else [low]
            if not all(one.isascii() and one.isdecimal() and int(one) <= _REPEATED_MAX for one in numbers):
                raise UnsupportedError(f"'{{' that is no quantifier of at most {_REPEATED_MAX}")
            found, self.place = f"{{{body}}}", end + 1
        if self._peek() == "+":
            raise UnsupportedError(f"'{found}+', a possessive quantifier")
        if self._peek() == "?":
            found += self._next()
        return self._without_quantifier(found)

    def _without_quantifier(self, found: str) -> str:
        following = self._peek()
        if following and following in _QUANTIFIERS:
            raise UnsupportedError(f"{following!r} behind {found!r}")
        return found

    def _escaped(self, *, in_class: bool) -> str:
        character = self._next()
        if character in _SAME_ESCAPES:
            return f"\\{character}"
        if character == "s" and in_class:
            return _SPACES
        if character in _OUTSIDE_CLASSES and not in_class:
            self.has_text_end |= character == "z"
            return _OUTSIDE_CLASSES[character]
        if character.isascii() and not character.isalnum():
            return _literal(character)
        raise UnsupportedError(f"'\\{character}'")

    def _class(self) -> str:
        parts = ["["]
        if self._peek() == "^":
            parts.append(self._next())
        if self._peek() == "]":
            raise UnsupportedError("']' as the first character of a class")
        while (character := self._next()) != "]":
            if character == "[" or self.pattern[self.place - 1 : self.place + 1] == "&&":
                raise UnsupportedError("a class in a class, '[' or '&&'; write \\[ for the character")
            if character == "-" and parts[-1] == _SPACES:
                parts.append(_literal(character))  # not a range from the last of the spaces
            elif character == "\\":
                parts.append(self._escaped(in_class=True))
            else:
                parts.append(character if character in "-^" else _literal(character))
        return "".join((*parts, "]"))


def _literal(character: str) -> str:
    return rf"\x{{{ord(character):X}}}" if not character.isalnum() or not character.isascii() else character
