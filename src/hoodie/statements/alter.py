"""ALTER TABLE: columns and stored properties of a table, in the words of Spark SQL."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeVar

from sqlglot import Token, TokenType

from hoodie.errors import InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.format.schema.alterations import (
    AddColumn,
    AllowNull,
    Alteration,
    ChangeType,
    DropColumn,
    MoveColumn,
    Place,
    RenameColumn,
    SetComment,
    stored_path,
)
from hoodie.format.schema.id_record import record_of
from hoodie.records.sql.parse import tokens_of
from hoodie.statements.names import Names, named_table
from hoodie.table import Table
from hoodie.table.alter import type_of
from hoodie.table.context import Text
from hoodie.write.result import AlterResult

_NAME: Final = r"(?:`(?:[^`]|``)*`|[^\s.`;]+)"
ALTER: Final = re.compile(
    rf"\s*alter\s+table\s+(?P<table>{_NAME}(?:\s*\.\s*{_NAME})*)\s+(?P<what>(?:add\s+columns?|rename\s+column"
    r"|drop\s+columns?|alter|change|replace\s+columns|set\s+tblproperties|unset\s+tblproperties)\b.*?);?\s*\Z",
    re.IGNORECASE | re.DOTALL,
)
"""A statement that changes columns or properties of a table."""
_BEHIND_TYPE: Final = ("COMMENT", "FIRST", "AFTER", "NOT", "DEFAULT")
_T = TypeVar("_T")


def run_alter_columns(found: re.Match[str], names: Names, properties: Text | None) -> AlterResult:
    """Change columns in one commit, or stored properties; the entry of the catalog gets the columns too.

    Raises: InvalidConfigError for text that is no such statement; UnsupportedError for NOT NULL, DEFAULT and REPLACE
        COLUMNS; as the methods of `Table.alter`.
    """
    node = named_table(found["table"])
    table, _ = names.target(node)
    words = _Words(found.string, found.start("what"))
    if words.take("SET", "TBLPROPERTIES"):
        return table.alter.set_properties(dict(words.listed(words.property)))
    if words.take("UNSET", "TBLPROPERTIES"):
        words.take("IF", "EXISTS")
        return table.alter.unset_properties(words.listed(words.key))
    result = table.alter.run(_alterations(words, table), properties=properties)
    names.refresh(node, table)
    return result


def _alterations(words: _Words, table: Table) -> list[Alteration]:
    if words.take("ADD", "COLUMN") or words.take("ADD", "COLUMNS"):
        return words.listed(words.added)
    if words.take("DROP", "COLUMN") or words.take("DROP", "COLUMNS"):
        if_exists = words.take("IF", "EXISTS")
        paths = words.listed(words.path)
        return [DropColumn(path) for path in paths if not if_exists or _has(table, path)]
    if words.take("RENAME", "COLUMN"):
        path = words.path()
        words.expect("TO")
        return words.last([RenameColumn(path, words.path())])
    if words.take("REPLACE"):
        raise UnsupportedError("ALTER TABLE … REPLACE COLUMNS: drop and add columns by name, as JVM Hudi requires too")
    if not words.take("ALTER"):
        words.expect("CHANGE")
    words.take("COLUMN")
    return words.last(words.changes(words.path()))


def _has(table: Table, path: str) -> bool:
    try:
        stored_path(record_of(table.schema), path)
    except SchemaMismatchError:
        return False
    return True


class _Words:
    """The words of a statement from a place on, behind the name of its table, read from left to right."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._tokens = [
            token for token in tokens_of(text) if token.start >= start and token.token_type is not TokenType.SEMICOLON
        ]
        self._at = 0

    def take(self, *keywords: str) -> bool:
        """Go over these keywords if they are the next ones."""
        found = self._tokens[self._at : self._at + len(keywords)]
        if len(found) < len(keywords) or not all(map(_is, found, keywords)):
            return False
        self._at += len(keywords)
        return True

    def expect(self, keyword: str) -> None:
        """Go over a keyword. Raises: InvalidConfigError if the next word is another one."""
        if not self.take(keyword):
            raise self._wrong(keyword)

    def last(self, found: _T) -> _T:
        """Return what was read, if the statement ends here. Raises: InvalidConfigError."""
        if self._at < len(self._tokens):
            raise self._wrong("the end of the statement")
        return found

    def listed(self, read: Callable[[], _T]) -> list[_T]:
        """Read a list, with or without parentheses, up to the end of the statement."""
        is_open = self._take_kind(TokenType.L_PAREN)
        found = [read()]
        while self._take_kind(TokenType.COMMA):
            found.append(read())
        if is_open and not self._take_kind(TokenType.R_PAREN):
            raise self._wrong("a comma or a closing parenthesis")
        return self.last(found)

    def path(self) -> str:
        """Read the name of a column, or the path of a nested field."""
        parts = [self._name()]
        while self._take_kind(TokenType.DOT):
            parts.append(self._name())
        return ".".join(parts)

    def text(self) -> str:
        """Read a literal text."""
        return self._next("a text in quotes", lambda token: token.token_type is TokenType.STRING).text

    def key(self) -> str:
        """Read the key of a property: a text, or names with dots."""
        is_text = self._at < len(self._tokens) and self._tokens[self._at].token_type is TokenType.STRING
        return self.text() if is_text else self.path()

    def property(self) -> tuple[str, str]:
        """Read a key and a value."""
        key = self.key()
        self._take_kind(TokenType.EQ)
        sign = "-" if self._take_kind(TokenType.DASH) else ""
        return key, sign + self._next("a value").text

    def place(self) -> Place:
        """Read FIRST or AFTER a column, if one of them is next."""
        if self.take("FIRST"):
            return Place(first=True)
        return Place(after=self._name()) if self.take("AFTER") else Place()

    def added(self) -> AddColumn:
        """Read a column of ADD COLUMNS."""
        path = self.path()
        kind, comment, place = self._definition(path)
        return AddColumn(path, kind, comment, place)

    def changes(self, path: str) -> list[Alteration]:
        """Read what ALTER COLUMN or CHANGE COLUMN does with a column."""
        if self.take("TYPE"):
            return [ChangeType(path, self._type(path))]
        if self.take("COMMENT"):
            return [SetComment(path, self.text())]
        if self.take("DROP", "NOT", "NULL"):
            return [AllowNull(path)]
        if place := self.place():
            return [MoveColumn(path, place)]
        if self.take("SET") or self.take("DROP"):
            raise UnsupportedError(
                f"ALTER TABLE … COLUMN {path}: expected TYPE, COMMENT, FIRST, AFTER or DROP NOT NULL; stored rows may "
                "have nulls, and the format has no defaults"
            )
        name = self._name()
        if name.lower() != path.rpartition(".")[2].lower():
            raise UnsupportedError(f"CHANGE COLUMN {path} {name}: write RENAME COLUMN {path} TO {name}")
        kind, comment, place = self._definition(path)
        changed: list[Alteration] = [ChangeType(path, kind)]
        changed += [] if comment is None else [SetComment(path, comment)]
        return [*changed, MoveColumn(path, place)] if place else changed

    def _definition(self, path: str) -> tuple[object, str | None, Place]:
        kind = self._type(path)
        if self.take("NOT") or self.take("DEFAULT"):
            raise UnsupportedError(
                f"column {path!r}: NOT NULL and DEFAULT are not there: stored rows have null in a new column, and the "
                "format has no defaults; write the values with UPDATE"
            )
        comment = self.text() if self.take("COMMENT") else None
        return kind, comment, self.place()

    def _type(self, path: str) -> object:
        """Read a type: all words up to a keyword, a comma or a parenthesis that the type does not open."""
        first, depth = self._at, 0
        for token in self._tokens[first:]:
            text = "" if token.token_type is TokenType.STRING else token.text
            opened, closed = text.count("<") + text.count("("), text.count(">") + text.count(")")
            is_behind = token.token_type is TokenType.COMMA or any(_is(token, word) for word in _BEHIND_TYPE)
            if depth == 0 and (closed or is_behind):
                break
            depth += opened - closed
            self._at += 1
        if self._at == first:
            raise self._wrong("a type")
        return type_of(path, self._text[self._tokens[first].start : self._tokens[self._at - 1].end + 1])

    def _name(self) -> str:
        def is_name(token: Token) -> bool:
            kind = token.token_type
            return kind is TokenType.IDENTIFIER or (kind is not TokenType.STRING and token.text.isidentifier())

        return self._next("a name", is_name).text

    def _take_kind(self, kind: TokenType) -> bool:
        is_next = self._at < len(self._tokens) and self._tokens[self._at].token_type is kind
        self._at += is_next
        return is_next

    def _next(self, expected: str, fits: Callable[[Token], bool] = lambda _: True) -> Token:
        if self._at >= len(self._tokens) or not fits(self._tokens[self._at]):
            raise self._wrong(expected)
        self._at += 1
        return self._tokens[self._at - 1]

    def _wrong(self, expected: str) -> InvalidConfigError:
        rest = self._tokens[self._at :]
        found = repr(self._text[rest[0].start :][:100]) if rest else "the end of the statement"
        return InvalidConfigError(f"{self._text.strip()[:200]!r}: expected {expected}, found {found}")


def _is(token: Token, keyword: str) -> bool:
    """Return whether a token is this keyword, and no name in backquotes and no text."""
    is_word = token.token_type not in (TokenType.IDENTIFIER, TokenType.STRING)
    return is_word and token.text.upper() == keyword
