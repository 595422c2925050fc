"""Tests take random data from the seeds of tests/support/seeds.py: a normal run gives the same verdict every time."""

from __future__ import annotations

import ast

from tests.tidy.sources import Source, all_test_sources, for_each

SEEDS = "tests/support/seeds.py"
NEED_A_SEED = {"random.Random", "np.random.default_rng"}
# Calls with these beginnings draw without a seed, where the module is imported.
DRAW_FREELY = {"random": "random.", "numpy": "np.random.", "secrets": "secrets.", "os": "os.urandom"}


def _draws_freely(call: ast.Call, imported: set[str]) -> bool:
    """Whether the call draws, or makes something that draws, without a seed."""
    name = ast.unparse(call.func)
    if name in NEED_A_SEED:
        return not call.args
    return any(name.startswith(begin) for module, begin in DRAW_FREELY.items() if module in imported)


@for_each(all_test_sources())
def test_random_data_have_a_seed(source: Source) -> None:
    imported = {name for _, name in source.imports()}
    calls = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call)]
    wrong = [f"line {call.lineno}: {ast.unparse(call)}" for call in calls if _draws_freely(call, imported)]
    assert not wrong or source.name == SEEDS, f"{source.name}: take the seed from {SEEDS}: {wrong}"


@for_each(all_test_sources())
def test_hypothesis_is_told_the_number_of_examples_only(source: Source) -> None:
    """Profiles decide the rest; `examples` multiplies the number in a fuzz run."""
    wrong = [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "settings"
        and [ast.unparse(keyword).partition("(")[0] for keyword in node.keywords] != ["max_examples=examples"]
    ]
    assert not wrong, f"{source.name}: write @settings(max_examples=examples(…)): {wrong}"
