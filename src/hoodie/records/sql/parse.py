"""Parse Spark SQL text to a syntax tree, and split a condition into conjuncts or derive a weaker condition."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import and_, or_
from typing import ClassVar, Final

import pyarrow.compute as pc
from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from hoodie.errors import InvalidConfigError, UnsupportedError

DEPTH_MAX = 100
"""How deep operations may be nested: expressions are translated, and Arrow computes them, by recursion."""
_SHOWN_MAX = 300
_CHAIN_MAX = 256
CHAIN_MAX = 1010
"""How many operations of chains Arrow may compute below each other, by recursion: a stack of 2 MiB holds them."""
_CLAUSES: Final = {
    "order": "ORDER BY",
    "joins": "JOIN",
    "laterals": "LATERAL VIEW",
    "pivots": "PIVOT",
    "sample": "TABLESAMPLE",
    "version": "VERSION AS OF",
    "tables": "names in front of FROM",
}
_BLANKS: Final = re.compile(r"\s+|--(?:\\\r?\n|[^\r\n])*")
_BRACKETS: Final = re.compile(r"/\*|\*/")
_SUMS: Final = (exp.Add, exp.Sub, exp.Mul)


def _call(name: str, arguments: list[exp.Expression]) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=arguments)


_SPARK = Dialect.get_or_raise("spark")
_AS_WRITTEN: Final = ("DATE_ADD", "DATEADD", "DATE_SUB", "DATE_TRUNC")
"""Calls that stay as they are written; the parser would make a literal unit of a column."""


class _Parser(_SPARK.parser_class):  # type: ignore[misc, name-defined]
    FUNCTIONS: ClassVar = {
        **_SPARK.parser_class.FUNCTIONS,
        **{name: partial(_call, name.lower()) for name in _AS_WRITTEN},
    }

    def _parse_partition(self) -> exp.Partition | None:
        """Parse IF NOT EXISTS behind PARTITION (…) too, which becomes the part `exists` of the partition."""
        partition: exp.Partition | None = super()._parse_partition()
        if partition is not None and self._match_text_seq("IF", "NOT", "EXISTS"):
            partition.set("exists", True)
        return partition


def parse_expression(text: str) -> exp.Expression:
    """Parse one Spark SQL expression.

    Raises: InvalidConfigError if the text is not exactly one expression, or nests deeper than `DEPTH_MAX`.
    """
    tree = _parsed(text, "expression", lambda parser, tokens: parser.parse_into(exp.Condition, tokens, text))
    if _is_too_deep(tree):
        raise _too_deep(text)
    return tree


def _parsed(
    text: str, what: str, parse: Callable[[_Parser, list[Token]], Sequence[exp.Expression | None]]
) -> exp.Expression:
    """Return the only tree of a text. Raises: InvalidConfigError; `what` is expected."""
    try:
        text.encode()
        trees = parse(_Parser(dialect="spark"), tokens_of(text))
    except (SqlglotError, UnicodeEncodeError) as error:
        raise InvalidConfigError(f"not a Spark SQL {what}: {_shown(text)} ({_first_reason(error)})") from error
    except RecursionError as error:
        raise _too_deep(text) from error
    if len(trees) != 1 or not isinstance(trees[0], exp.Expression):
        raise InvalidConfigError(f"expected exactly one Spark SQL {what}, found {len(trees)}: {_shown(text)}")
    return trees[0]


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of a text with their places.

    `'it''s'` is one literal with a quote, as in Spark 4 and standard SQL; the tokenizer reads two literals.
    """
    joined: list[Token] = []
    for token in _SPARK.tokenize(text):
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.token_type == token.token_type == TokenType.STRING
            and last.end + 1 == token.start
            and text[last.end] == text[token.start]
        ):
            whole = last.text + text[token.start] + token.text
            joined[-1] = Token(TokenType.STRING, whole, last.line, last.col, last.start, token.end)
        else:
            joined.append(token)
    return joined


def closing(tokens: Sequence[Token], opening: int) -> int:
    """Return the number of the token that closes the parenthesis of the token `opening`."""
    depth = 0
    for number in range(opening, len(tokens)):
        kind = tokens[number].token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if depth == 0:
            return number
    return len(tokens) - 1


def behind_comments(text: str) -> str:
    """Return a statement without the blanks and comments in front of it; as it is if a comment has no end.

    >>> behind_comments("/* dbt /* 1 */ */ -- drop\\nSELECT 1"), behind_comments("/* no end")
    ('SELECT 1', '/* no end')
    """
    at = 0
    while found := _BLANKS.match(text, at) or _bracketed(text, at):
        at = found.end()
    return text if text.startswith("/*", at) else text[at:]


def _bracketed(text: str, at: int) -> re.Match[str] | None:
    """Return the end of a comment in brackets, which may have others in it; a hint (`/*+`) is no comment."""
    depth = 0
    for found in _BRACKETS.finditer(text, at) if text.startswith("/*", at) and text[at + 2 : at + 3] != "+" else ():
        depth += 1 if found[0] == "/*" else -1
        if depth == 0:
            return found
    return None


def parse_statement(text: str) -> exp.Expression:
    """Parse one Spark SQL statement, with or without a semicolon at its end.

    Raises: InvalidConfigError if the text is not exactly one statement.
    """
    return _parsed(
        text,
        "statement",
        lambda parser, tokens: [tree for tree in parser.parse(tokens, text) if tree is not None],
    )


def _too_deep(text: str) -> InvalidConfigError:
    return InvalidConfigError(
        f"a Spark SQL expression of at most {DEPTH_MAX} nested operations, or {CHAIN_MAX} in a chain, expected, found "
        f"more: {_shown(text)}; remove parentheses, or write a chain of = and OR as IN (…)"
    )


def _is_too_deep(tree: exp.Expression) -> bool:
    """Return whether operations nest too deep; a chain of AND, of OR, of `+ - *`, or of `||` is one operation.

    Python translates a chain in one loop, but Arrow computes each of its operations below the next one.
    """
    pending: list[tuple[exp.Expression, int, int]] = [(tree, 1, 1)]
    while pending:
        node, depth, computed = pending.pop()
        if depth > DEPTH_MAX or computed > CHAIN_MAX:
            return True
        if isinstance(node, (*_SUMS, exp.DPipe)):
            spine = chain(node)
            pending.append((spine[-1].this, depth + 1, computed + len(spine)))
            pending += [(link.expression, depth + 1, computed + place + 1) for place, link in enumerate(spine)]
            continue
        for child in node.iter_expressions():
            is_chain = isinstance(node, (exp.And, exp.Or)) and type(without_parens(child)) is type(node)
            same = is_chain or isinstance(node, exp.Paren)
            pending.append((child, depth if same else depth + 1, computed if same else computed + 1))
    return False


def chain(node: exp.Expression) -> list[exp.Expression]:
    """List the operations of `a + b - c` or `a || b || c`, the last to compute first, without recursion."""
    kinds = _SUMS if isinstance(node, _SUMS) else (type(node),)
    spine = [node]
    while isinstance(spine[-1].this, kinds):
        spine.append(spine[-1].this)
    return spine


def _shown(text: str) -> str:
    return repr(text) if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]!r}…"


def to_sql(node: exp.Expression) -> str:
    """Render a syntax tree as Spark SQL text that parses to the same tree."""
    return node.sql(dialect="spark")


def unsupported(node: exp.Expression, reason: str = "") -> UnsupportedError:
    """Build the error for a part of SQL that Arrow cannot compute with Spark's results."""
    why = f": {reason}" if reason else ""
    return UnsupportedError(f"SQL expression {_shown(to_sql(node))} is not supported without Spark{why}")


def other_clauses(node: exp.Expression, known: tuple[str, ...]) -> list[str]:
    """List the parts of a statement or a table's name that are not among `known` parts, in words of SQL."""
    others = [name.strip("_") for name, part in node.args.items() if part and name not in known]
    return [_CLAUSES.get(name, name.replace("_", " ").upper()) for name in others]


def without_parens(node: exp.Expression) -> exp.Expression:
    """Strip the parentheses around a tree."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def operands(node: exp.Expression, connector: type[exp.Connector]) -> list[exp.Expression]:
    """List the operands of a chain of one connector, left to right, without recursion for a chain of any length."""
    found: list[exp.Expression] = []
    pending = [node]
    while pending:
        current = without_parens(pending.pop())
        if isinstance(current, connector):
            pending += [current.expression, current.this]
        else:
            found.append(current)
    return found


def weaken(node: exp.Expression, leaf: Callable[[exp.Expression], pc.Expression | None]) -> pc.Expression | None:
    """Build a condition that is true wherever `node` is true, from the leaves that `leaf` can translate.

    A leaf that `leaf` returns None for counts as true: it is removed from an AND, and an OR that contains it is removed
    as a whole. Returns None if no leaf is left.
    """
    node = without_parens(node)
    if isinstance(node, exp.And):
        said = [part for part in (weaken(one, leaf) for one in operands(node, exp.And)) if part is not None]
        return balanced(and_, said) if said else None
    if isinstance(node, exp.Or):
        parts = [weaken(one, leaf) for one in operands(node, exp.Or)]
        said = [part for part in parts if part is not None]
        return balanced(or_, said) if len(said) == len(parts) else None
    return leaf(node)


def balanced(
    combine: Callable[[pc.Expression, pc.Expression], pc.Expression], parts: list[pc.Expression]
) -> pc.Expression:
    """Combine expressions to a shallow tree: Arrow processes them recursively, and a long chain overflows its stack.

    Arrow makes one deep chain of nested chains again. It does not where each part is negated twice.
    """
    while len(parts) > _CHAIN_MAX:
        chunks = [parts[start : start + _CHAIN_MAX] for start in range(0, len(parts), _CHAIN_MAX)]
        parts = [~~balanced(combine, chunk) for chunk in chunks]
    while len(parts) > 4:
        parts = [reduce(combine, parts[start : start + 2]) for start in range(0, len(parts), 2)]
    return reduce(combine, parts)


def _first_reason(error: Exception) -> str:
    """Return the parser's first reason in words of SQL: without names of its classes and tokens."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    if isinstance(cause, UnicodeEncodeError):
        return f"{cause.object[cause.start]!r} is no character"
    details = getattr(cause, "errors", None)
    reason = str(details[0].get("description") or cause) if details else str(cause).splitlines()[0]
    if "missing for <class" in reason:
        return "an operand or an argument is missing"
    expected = re.match(r"(Expect(?:ed|ing) [^<]*?)(?: but got)? ?<", reason)
    if expected:
        return expected[1]
    return "unexpected text" if re.search(r"[<>]|Token|sqlglot|exp\.", reason) else reason
