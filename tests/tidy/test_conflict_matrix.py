"""The page about many writers shows the conflict matrix that the tests run."""

from __future__ import annotations

import pytest

from tests.support.conflict_matrix import page_lines
from tests.support.pages import ROOT

PAGE = ROOT / "docs/operations/concurrency.md"


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_the_page_has_every_cell(table_type: str) -> None:
    table = "\n".join(page_lines(table_type))
    assert table in PAGE.read_text(), f"{PAGE.name}: write this table for {table_type}:\n{table}"
