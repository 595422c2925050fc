"""How the source rows of a merge meet the stored rows: the columns that `on` compares, and its further conditions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from hoodie.errors import SchemaMismatchError, UnsupportedError
from hoodie.merge_into.clauses import Merge
from hoodie.records.sql.parse import operands, parse_expression, to_sql, without_parens


@dataclass(frozen=True, slots=True)
class Equality:
    """A column of the table and one of the source that `on` compares; `null_safe`: null equals null."""

    target: str
    source: str
    null_safe: bool


def matching_of(
    merge: Merge, names: Sequence[str], source_names: Sequence[str], *, takes_conditions: bool
) -> tuple[tuple[Equality, ...], str | None]:
    """Return the columns that `on` compares, and its further condition in SQL, whose columns have the names of sides.

    `names` and `source_names`: the columns of the table and of the source. `takes_conditions`: whether `on` may have
    other parts than equalities of a column of each side.

    Raises: UnsupportedError for another part; SchemaMismatchError for unknown and ambiguous columns.
    """
    if merge.clock.check is not None:
        merge.clock.check(merge.on)
    pairs, others = [], []
    sides = {merge.target: names, merge.source: source_names}
    known = known_names(sides)
    for part in operands(parse_expression(merge.on), exp.And):
        is_name = isinstance(part, exp.Column) and len(part.parts) == 1
        if takes_conditions and not is_name:
            part = parse_expression(qualified(to_sql(part), sides, known, merge))
        found = _equality(part, merge, names, source_names)
        if found is not None:
            pairs.append(found)
        elif takes_conditions:
            others.append(f"({to_sql(part)})")
        else:
            raise UnsupportedError(
                f"merge on {to_sql(part)[:300]!r}: expected only equalities of a column of the table and a column of "
                f"the source, such as {f'{merge.target}.id = {merge.source}.id'!r}, joined by AND; other conditions "
                "belong to the clauses"
            )
    return tuple(pairs), " AND ".join(others) or None


def _equality(part: exp.Expression, merge: Merge, names: Sequence[str], source_names: Sequence[str]) -> Equality | None:
    """Return the columns that a part of `on` compares; None if it is another condition."""
    if isinstance(part, exp.Column) and len(part.parts) == 1:
        return Equality(_one_of(names, part.name, "table"), _one_of(source_names, part.name, "source"), False)
    sides: dict[str, str] = {}
    if isinstance(part, exp.EQ | exp.NullSafeEQ):
        for node in (without_parens(part.this), without_parens(part.expression)):
            if isinstance(node, exp.Column) and len(node.parts) == 2:
                sides[node.parts[0].name.lower()] = node.parts[1].name
    target, source = sides.get(merge.target.lower()), sides.get(merge.source.lower())
    if target is None or source is None:
        return None
    columns = (_one_of(names, target, "table"), _one_of(source_names, source, "source"))
    return Equality(*columns, null_safe=isinstance(part, exp.NullSafeEQ))


def _one_of(names: Sequence[str], name: str, side: str) -> str:
    found = [one for one in names if one.lower() == name.lower()]
    if len(found) != 1:
        raise SchemaMismatchError(f"merge: no column {name!r} in the {side}, which has {list(names)}")
    return found[0]


def known_names(sides: Mapping[str, Sequence[str]]) -> dict[str, Collection[str]]:
    """Return the columns of each side in lower case."""
    return {side: by_lower(names).keys() for side, names in sides.items()}


def qualified(text: str, sides: Mapping[str, Sequence[str]], known: Mapping[str, Collection[str]], merge: Merge) -> str:
    """Return an SQL expression at the time of the merge in which every column has the name of its side before it.

    `sides`: columns by side. `known`: as `known_names` returns them, once for all expressions.

    Raises: InvalidConfigError for text that is no expression; SchemaMismatchError for a name that no side has, or
    several sides.
    """
    tree = parse_expression(merge.clock.set_in(text, lambda: [name for names in known.values() for name in names]))
    has_variables = tree.find(exp.Lambda) is not None

    def qualify(node: exp.Expression) -> exp.Expression:
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            return node
        parts = [part.name.lower() for part in node.parts]
        if len(parts) > 1 and any(parts[0] == side.lower() for side in sides):
            return node
        holders = [side for side, names in known.items() if parts[0] in names]
        if len(holders) == 1 and len(parts) < 4:
            names = [exp.to_identifier(holders[0], quoted=True), *(part.copy() for part in node.parts)]
            return exp.Column(**dict(zip(("this", "table", "db", "catalog"), reversed(names), strict=False)))
        if has_variables and not holders:
            return node
        both = f"is ambiguous: write {' or '.join(f'{side}.{parts[0]}' for side in holders)}"
        listed = "; ".join(f"{side} has {list(names)}" for side, names in sides.items())
        raise SchemaMismatchError(f"merge: column {node.sql()!r} {both if holders else f'is not known here: {listed}'}")

    found: exp.Expression = tree.transform(qualify)
    return to_sql(found)


def by_lower(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the names by their texts in lower case."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(name.lower(), []).append(name)
    return found
