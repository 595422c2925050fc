"""`docs/options.md` is what `scripts/write_options.py` writes: every option and table property is on it."""

from __future__ import annotations

import runpy

from tests.tidy.sources import ROOT

SCRIPT = runpy.run_path(str(ROOT / "scripts" / "write_options.py"))


def test_the_page_of_options_is_up_to_date() -> None:
    page = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    assert page == SCRIPT["page"](), "docs/options.md is stale: run `make docs`"


def test_every_option_and_table_property_has_a_meaning_and_no_other_has() -> None:
    rows = [line.split(" | ") for line in SCRIPT["page"]().splitlines() if line.startswith("| `")]
    assert all(cell.strip("| ") for row in rows for cell in row), "a cell is empty"
    known = {value for name, value in vars(SCRIPT["keys"]).items() if name.isupper() and isinstance(value, str)}
    assert {row[0].strip("|`… ") for row in rows} == known | SCRIPT["OPTIONS"].keys()
    assert SCRIPT["TABLE_PROPERTIES"].keys() == known
