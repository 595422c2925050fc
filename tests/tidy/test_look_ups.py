"""Names are looked up in sets, in dictionaries or by `get_field_index`.

A table may have thousands of columns. pyarrow builds the list of names, and the schema of a Parquet file, anew at each
use, so that a look-up of each column in one of them takes time that grows with the square of their number.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

import pytest

from tests.tidy.sources import package_sources

NAMES = {"names", "column_names"}
REBUILT = {"schema_arrow"}
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


def _loops(tree: ast.AST) -> Iterator[tuple[Sequence[ast.AST], set[str]]]:
    """Yield the parts of each loop that are evaluated again and again, and the variables that change meanwhile."""
    for node in ast.walk(tree):
        if isinstance(node, COMPREHENSIONS):
            parts: list[ast.AST] = [test for one in node.generators for test in one.ifs]
            parts += [one.iter for one in node.generators[1:]]
            parts += [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            yield parts, _stored(one.target for one in node.generators)
        elif isinstance(node, ast.For):
            yield [*node.body], _stored([node.target, *node.body])


def _stored(nodes: Iterable[ast.AST]) -> set[str]:
    return {
        name.id
        for node in nodes
        for name in ast.walk(node)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    }


def _slow(node: ast.AST, changing: set[str]) -> ast.expr | None:
    """Return the list of names in which a node looks a name up, or the schema that it builds."""
    found: ast.expr | None = None
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
        found = node.comparators[0]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "index":
        found = node.func.value
    if not (isinstance(found, ast.Attribute) and found.attr in NAMES):
        found = node if isinstance(node, ast.Attribute) and node.attr in REBUILT else None
    used = () if found is None else ast.walk(found)
    return None if changing & {name.id for name in used if isinstance(name, ast.Name)} else found


def slow_look_ups(tree: ast.AST) -> list[str]:
    """Return the places of a module that look a name up, in a loop, in a list that the loop does not change."""
    found = {
        f"line {slow.lineno}: {ast.unparse(slow)}"
        for parts, changing in _loops(tree)
        for part in parts
        for node in ast.walk(part)
        if (slow := _slow(node, changing)) is not None
    }
    return sorted(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[name for name in wanted if name in schema.names]", ["line 1: schema.names"]),
        ("{name: 1 for name in wanted if name not in rows.column_names}", ["line 1: rows.column_names"]),
        ("for name in wanted:\n    place = schema.names.index(name)", ["line 2: schema.names"]),
        (
            "[name for name in wanted if name in file.schema_arrow.names]",
            ["line 1: file.schema_arrow", "line 1: file.schema_arrow.names"],
        ),
        ("[name for name in schema.names if name in wanted]", []),
        ("[rows for rows in batches if name in rows.column_names]", []),
        ("for rows in batches:\n    stored = rows.schema\n    is_there = name in stored.names", []),
    ],
)
def test_the_rule_finds_look_ups_of_each_column(text: str, found: list[str]) -> None:
    assert slow_look_ups(ast.parse(text)) == found


def test_no_loop_looks_a_name_up_in_a_list() -> None:
    wrong = {source.name: found for source in package_sources() if (found := slow_look_ups(source.tree))}
    assert not wrong, "look names up in a set, in a dictionary or by get_field_index"
