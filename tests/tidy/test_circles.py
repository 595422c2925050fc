"""Modules do not import each other in a circle: inside rooms, in functions, for type checkers, by name."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from tests.tidy.sources import package_sources
from tests.tidy.test_imports import LINE_OF

Arrows = Mapping[str, Mapping[str, str]]
"""The modules that a module imports, and where: `file:line`."""


def test_modules_import_each_other_in_no_circle() -> None:
    arrows = _arrows()
    circles = _circles(arrows)
    assert not circles, "\n".join(_told(circle, arrows) for circle in circles)


def test_a_circle_is_found_and_the_arrow_to_cut_is_named() -> None:
    ends = {"top": "a", "a": "b", "b": "c", "c": ("a", "b", "low"), "low": ("leaf",), "leaf": (), "x": "y", "y": "x"}
    arrows = {start: dict.fromkeys(found, f"{start}.py:1") for start, found in ends.items()}
    assert sorted(map(sorted, _circles(arrows))) == [["a", "b", "c"], ["x", "y"]]
    assert _told(frozenset("abc"), arrows) == "3 modules import each other in a circle, a b c; cut b.py:1 imports c"


def _arrows() -> dict[str, dict[str, str]]:
    """Return what each module of the package imports; a name in a package that is no module counts as the package."""
    modules = {source.module: source for source in package_sources()}
    arrows: dict[str, dict[str, str]] = {}
    for module, source in modules.items():
        ends = [(line, name) for line, name in source.imports() if name.partition(".")[0] == "hoodie"]
        for line, pattern in source.imports_by_name():
            ends += [(line, name) for name in modules if fnmatchcase(name, pattern)]
        own = arrows.setdefault(module, {})
        for line, name in ends:
            while name not in modules:
                name = name.rpartition(".")[0]
            if name != module:
                own.setdefault(name, f"{source.name}:{line}")
    return arrows


def _circles(arrows: Arrows) -> list[frozenset[str]]:
    """Return the largest sets of modules each of which reaches all others."""
    ends = {name: set(found) for name, found in arrows.items()}
    while True:  # A module that nothing imports, or that imports nothing, is in no circle.
        imported = set().union(*ends.values())
        kept = {name for name, found in ends.items() if found and name in imported}
        if len(kept) == len(ends):
            break
        ends = {name: ends[name] & kept for name in kept}
    reached = {name: _reached(name, ends) for name in ends}
    found = {frozenset(one for one in reached[name] if name in reached[one]) for name in ends if name in reached[name]}
    return sorted(found, key=sorted)


def _reached(start: str, ends: Mapping[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    new = set(ends[start])
    while new:
        reached |= new
        new = set().union(*(ends[name] for name in new)) - reached
    return reached


def _told(circle: frozenset[str], arrows: Arrows) -> str:
    """Return the modules of a circle, and the arrow without which fewest of them are in one; rather one upwards."""

    def left(arrow: tuple[str, str]) -> tuple[int, bool, tuple[str, str]]:
        others = {name: dict.fromkeys(circle & arrows[name].keys() - {arrow[1]}, "") for name in circle}
        others |= {name: dict.fromkeys(circle & arrows[name].keys(), "") for name in circle - {arrow[0]}}
        return sum(map(len, _circles(others))), _line(arrow[0]) >= _line(arrow[1]), arrow

    start, end = min(((start, end) for start in circle for end in circle & arrows[start].keys()), key=left)
    names = " ".join(sorted(circle))
    return f"{len(circle)} modules import each other in a circle, {names}; cut {arrows[start][end]} imports {end}"


def _line(module: str) -> int:
    return LINE_OF.get(f"{module}.".split(".")[1] or "hoodie", 0)
