"""Random tests try the same examples for the same seed, whatever ran before them in the same process."""

from __future__ import annotations

import importlib
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.support import seeds

Example = tuple[str, int]


@hypothesis.settings(max_examples=300, derandomize=True, database=None)
@hypothesis.given(example=st.tuples(st.text(max_size=8), st.integers()))
def draw(found: list[Example], example: Example) -> None:
    found.append(example)


def drawn() -> list[Example]:
    found: list[Example] = []
    draw(found)
    return found


def test_examples_do_not_depend_on_the_modules_that_are_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = drawn()
    assert len(set(before)) > 100
    name = "hoodie_module_with_constants"
    (tmp_path / f"{name}.py").write_text("TEXTS, NUMBERS = ['sevenfold', 'eight'], [987654321, 123456789]\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module(name)
    assert drawn() == before


def test_every_seed_of_a_fuzz_run_comes_from_one() -> None:
    if seeds.FUZZ_SEED is None:
        assert seeds.seeds(3, 5) == (3, 5)
    else:
        assert len(seeds.seeds(3, 5)) == 2 * seeds.FACTOR
        assert seeds.seeds(3, 5) == seeds.seeds(3, 5)
