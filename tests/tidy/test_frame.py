"""The frame of an operation: who loads a view, and where a write meets the services."""

from __future__ import annotations

import ast

from tests.tidy.sources import package_sources

_LOADS_MAX = 40
"""A view is loaded once for a call, under the lock by `TableView.locked`, and refreshed; fewer calls are better."""
_MEET_SERVICES = {"write/mend.py", "write/outcome.py"}
"""What is mended before a write, and what follows it."""


def test_few_places_load_a_view() -> None:
    loads = [
        f"{source.name}:{node.lineno}"
        for source in package_sources()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "TableView.load"
    ]
    assert len(loads) <= _LOADS_MAX, f"{len(loads)} places load a view; use the view of the call: {loads}"


def test_a_write_meets_services_before_it_and_after_it() -> None:
    found = {
        source.name.partition("src/hoodie/")[2]
        for source in package_sources()
        for _, name in source.imports()
        if source.room == "write" and name.startswith("hoodie.services")
    }
    assert found == _MEET_SERVICES
