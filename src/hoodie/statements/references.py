"""Where the text of a query names tables, so that each can be replaced and the rest stays as it was written.

A name can have `TIMESTAMP AS OF '…'` or `VERSION AS OF '…'` behind it. `hudi_table_changes(…)`,
`hudi_query_timeline(…)` and `hudi_query(…)` stand for rows too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from sqlglot import Token, TokenType, exp

from hoodie.errors import UnsupportedError
from hoodie.records.sql.parse import closing, tokens_of

FUNCTIONS: Final = ("hudi_table_changes", "hudi_query_timeline", "hudi_query")
_VERSIONS: Final = ("TIMESTAMP", "VERSION", "SYSTEM_TIME", "SYSTEM_VERSION")
_LITERALS: Final = (TokenType.STRING, TokenType.NUMBER)


@dataclass(frozen=True, slots=True)
class Reference:
    """The characters `[start, end)` of a text that name rows: a table, or a call of one of `FUNCTIONS`.

    `as_of`: the literal behind AS OF. `arguments`: of the call. `has_alias`: the query gives it another name.
    """

    start: int
    end: int
    table: exp.Table | None = None
    as_of: str | None = None
    function: str = ""
    arguments: tuple[str, ...] = ()
    has_alias: bool = True


def references(text: str, tree: exp.Expression) -> list[Reference]:
    """Return the references of a query, from left to right; names of its WITH clauses are left out.

    Raises: UnsupportedError if something else than a literal is behind AS OF, or in a call of `FUNCTIONS`.
    """
    tokens = tokens_of(text)
    found = [*_tables(tree, tokens), *_calls(tokens)]
    return sorted(found, key=lambda reference: reference.start)


def is_of_with(node: exp.Table) -> bool:
    """Return whether a table of a query is one of a WITH clause around it.

    A name in a WITH clause is visible behind its own definition: `WITH t AS (SELECT * FROM t) SELECT * FROM t` names
    the table `t` once, and then the rows of the clause. WITH RECURSIVE makes all its names visible in itself.
    """
    if len(node.parts) > 1:
        return False
    child: Any = node
    while (parent := child.parent) is not None:
        seen: list[exp.Expression] = []
        if isinstance(parent, exp.With):
            before = next(place for place, found in enumerate(parent.expressions) if found is child)
            seen = parent.expressions if parent.args.get("recursive") else parent.expressions[:before]
        else:
            clause = next((found for found in parent.args.values() if isinstance(found, exp.With)), None)
            seen = [] if clause is None or clause is child else clause.expressions
        if any(found.alias.lower() == node.name.lower() for found in seen):
            return True
        child = parent
    return False


def _tables(tree: exp.Expression, tokens: list[Token]) -> Iterator[Reference]:
    place = {token.end: number for number, token in enumerate(tokens)}
    for node in tree.find_all(exp.Table):
        parts = [part for part in node.parts if isinstance(part, exp.Identifier) and "start" in part.meta]
        if len(parts) != len(node.parts) or is_of_with(node):
            continue
        start, last = parts[0].meta["start"], parts[-1].meta["end"]
        end, as_of = last + 1, None
        if node.args.get("version") is not None:
            end, as_of = _version(tokens, place[last] + 1)
        # An alias cannot stand before TABLESAMPLE.
        yield Reference(start, end, node, as_of, has_alias=bool(node.alias or node.args.get("sample")))


def _version(tokens: list[Token], number: int) -> tuple[int, str]:
    """Return the end of `[FOR] TIMESTAMP AS OF literal`, and the text of the literal. Raises: UnsupportedError."""
    words = [token.text.upper() for token in tokens[number : number + 5]]
    number += words[0] == "FOR"
    literal = next((token for token in tokens[number + 3 : number + 4] if token.token_type in _LITERALS), None)
    if literal is None or words[words[0] == "FOR"] not in _VERSIONS:
        raise UnsupportedError(f"AS OF: expected an instant or a time as a literal, found {' '.join(words)!r}")
    return literal.end + 1, literal.text


def _calls(tokens: list[Token]) -> Iterator[Reference]:
    for number, token in enumerate(tokens[:-1]):
        name = token.text.lower()
        if name not in FUNCTIONS or tokens[number + 1].token_type is not TokenType.L_PAREN:
            continue
        close = closing(tokens, number + 1)
        values = [found for found in tokens[number + 2 : close] if found.token_type is not TokenType.COMMA]
        if any(found.token_type not in _LITERALS for found in values) or not values:
            raise UnsupportedError(f"{name}: expected literals, a table first")
        yield Reference(
            token.start, tokens[close].end + 1, function=name, arguments=tuple(found.text for found in values)
        )
