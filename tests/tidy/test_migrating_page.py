"""`docs/migrating.md` has every judged page of steps and every difference: `scripts/write_migrating.py` writes them."""

from __future__ import annotations

import runpy

from tests.interop.steps.differences import DIFFERENCES
from tests.interop.steps.run import page_of
from tests.tidy.sources import ROOT

SCRIPT = runpy.run_path(str(ROOT / "scripts" / "write_migrating.py"))


def test_the_page_for_scripts_of_jvm_hudi_is_up_to_date() -> None:
    page = (ROOT / "docs" / "migrating.md").read_text(encoding="utf-8")
    assert page == SCRIPT["written"](page), "docs/migrating.md is stale: run `make docs`"


def test_every_difference_is_one_of_a_step() -> None:
    for name, differences in DIFFERENCES.items():
        steps = [step.name for step in page_of(name).steps]
        assert len(set(steps)) == len(steps), f"two steps of {name} have one name"
        assert differences.keys() <= set(steps), name
